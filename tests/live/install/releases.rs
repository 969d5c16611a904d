//! Releases of Helm on a real API server: their definitions are upgraded, kept and taken over, `helm test` says how it is, and
//! two of them live side by side.

use std::process::Output;

use crate::common::account::{manifests, token};
use crate::common::control_plane::client_of;
use crate::common::prelude::*;
use crate::install::render::{KEEP, chart, copy, helm_command};
use crate::install::rights::{granted, used};
use crate::install::support::{Installation, apply, create_endpoint, get_named};
use crate::policies::cluster::{Answer, client_as, grant, released, try_patch};

/// A cluster for releases.
struct Cluster(Arc<ControlPlane>);

impl Cluster {
    async fn start(more: &'static [&'static str]) -> Self {
        Self(ControlPlane::own(move || ControlPlane::start_with("kwok", more)).await)
    }

    fn try_helm(&self, arguments: &[&str]) -> Output {
        let mut command = helm_command(arguments);
        command.arg("--kubeconfig").arg(&self.0.kubeconfig).args(["--namespace", SYSTEM]).output().unwrap()
    }

    fn helm(&self, arguments: &[&str]) -> String {
        let output = self.try_helm(arguments);
        assert!(output.status.success(), "helm {arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// What Helm says against it.
    fn refused(&self, arguments: &[&str]) -> String {
        let output = self.try_helm(arguments);
        assert!(!output.status.success(), "helm {arguments:?}: {output:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    fn definition(&self) -> Value {
        get_named(&self.0, "crd", "rolecoordinations.rolegate.dev")
    }

    fn has_definitions(&self) -> bool {
        self.0.must(&["get", "crd", "-o", "name"], "").contains("rolecoordinations.rolegate.dev")
    }
}

fn short_names(definition: &Value) -> &Value {
    &definition["spec"]["names"]["shortNames"]
}

/// The chart of a later version, whose definition has another short name.
fn later_chart(name: &str) -> String {
    let folder: PathBuf = scratch_dir().join(format!("chart-{name}"));
    copy(Path::new(&chart()), &folder);
    for (file, from, to) in [
        ("Chart.yaml", "version: \"0.1.0\"", "version: \"0.2.0\""),
        ("generated/definitions/rolecoordinations.rolegate.dev.yaml", "- rcoord\n", "- rcoord2\n"),
    ] {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        assert!(text.contains(from), "{file}: {from}");
        std::fs::write(folder.join(file), text.replace(from, to)).unwrap();
    }
    folder.to_str().unwrap().to_owned()
}

fn coordination() -> String {
    let mut object = Group::new("kept").role("a", 1, 1).coordination_of_numbers(&json!({}));
    object["metadata"]["namespace"] = json!("default");
    object.to_string()
}

#[tokio::test]
async fn an_upgrade_brings_its_definitions_and_an_uninstall_keeps_them_or_not() {
    let cluster = Cluster::start(&[]).await;
    cluster.helm(&["install", "rolegate", &chart()]);
    assert_eq!(*short_names(&cluster.definition()), json!(["rcoord"]));
    assert_eq!(cluster.definition()["metadata"]["annotations"][KEEP], "keep");

    let later = later_chart("later");
    cluster.helm(&["upgrade", "rolegate", &later]);
    assert_eq!(*short_names(&cluster.definition()), json!(["rcoord2"]), "the upgrade changed nothing");
    // And back: a rollback is an upgrade to what was.
    cluster.helm(&["rollback", "rolegate", "1"]);
    assert_eq!(*short_names(&cluster.definition()), json!(["rcoord"]));

    cluster.0.until_defined();
    // Nobody serves: the webhook would refuse it.
    let ours = "mutatingwebhookconfiguration,validatingwebhookconfiguration";
    cluster.0.must(&["delete", ours, "rolegate"], "");
    cluster.0.must(&["create", "-f", "-"], &coordination());
    let said = cluster.helm(&["uninstall", "rolegate", "--no-hooks"]);
    assert!(said.contains("rolecoordinations.rolegate.dev"), "it says what it keeps: {said}");
    assert!(cluster.has_definitions());
    cluster.0.must(&["get", "rolecoordination", "kept", "-n", "default"], "");

    // What was kept is the release's own when it is installed again.
    cluster.helm(&["install", "rolegate", &chart(), "--set", "crds.keep=false"]);
    assert_eq!(cluster.definition()["metadata"]["annotations"][KEEP], Value::Null);
    cluster.0.must(&["get", "rolecoordination", "kept", "-n", "default"], "");
    cluster.helm(&["uninstall", "rolegate", "--no-hooks"]);
    until_is("no definitions", async || cluster.has_definitions(), false).await;
}

#[tokio::test]
async fn definitions_that_somebody_else_installed_are_taken_over_when_told() {
    let cluster = Cluster::start(&[]).await;
    // As charts before 0.1.0 installed them, and as kubectl does: an older version, without any word of Helm's.
    let older = manifests(&["--part", "crds"]).replace("- rcoord\n", "- rc0\n");
    apply(&cluster.0, &older);
    let why = cluster.refused(&["install", "rolegate", &chart()]);
    assert!(why.contains("invalid ownership metadata"), "{why}");
    // The fields are kubectl's: who wants them as well must say so.
    let why = cluster.refused(&["install", "rolegate", &chart(), "--take-ownership"]);
    assert!(why.contains("conflict"), "{why}");
    cluster.helm(&["uninstall", "rolegate", "--ignore-not-found", "--no-hooks"]);
    cluster.helm(&["install", "rolegate", &chart(), "--take-ownership", "--force-conflicts"]);
    assert_eq!(*short_names(&cluster.definition()), json!(["rcoord"]));
    assert_eq!(cluster.definition()["metadata"]["annotations"]["meta.helm.sh/release-name"], "rolegate");
    // From now on it is as any other.
    cluster.helm(&["upgrade", "rolegate", &later_chart("after-take-over")]);
    assert_eq!(*short_names(&cluster.definition()), json!(["rcoord2"]));

    // A second release leaves them to the first.
    let why = cluster.refused(&["install", "second", &chart()]);
    assert!(why.contains("invalid ownership metadata"), "{why}");
    cluster.helm(&["install", "second", &chart(), "--set", "crds.enabled=false"]);
    let names = cluster.0.must(&["get", "deployments", "-n", SYSTEM, "-o", "name"], "");
    assert_eq!(names.lines().collect::<Vec<_>>(), ["deployment.apps/rolegate", "deployment.apps/second-rolegate"]);
}

/// Runs what a hook's pod asks for, as a kubelet would: with its arguments, under its account. Says then what became of it.
async fn run_hook(cluster: &Cluster, account: &str) -> Value {
    let plane = &cluster.0;
    let found = async || {
        let output = plane.kubectl(&["get", "pods", "-n", SYSTEM, "-o", "json"], "");
        let pods: Value = serde_json::from_slice(&output.stdout).map_err(|_| format!("{output:?}"))?;
        let waits = |pod: &&Value| pod["spec"]["serviceAccountName"] == account && pod["status"]["phase"] == "Pending";
        pods["items"].as_array().unwrap().iter().find(waits).cloned().ok_or_else(|| pods.to_string())
    };
    let pod = eventually(PATIENT, "the pod of the hook", found).await;
    let name = pod["metadata"]["name"].as_str().unwrap();
    token(plane, account);
    let kubeconfig = plane.dir.join(format!("conf/account-{account}.kubeconfig"));
    let arguments = pod["spec"]["containers"][0]["args"].as_array().unwrap().iter();
    let arguments: Vec<_> = arguments.map(|argument| argument.as_str().unwrap()).chain(["-o", "json"]).collect();
    // Rights reach the API server's own caches a moment later.
    let tried = async || ran(&kubeconfig, &arguments).await;
    let has_rights = |ran: &Ran| !ran.out.contains("forbidden") && !ran.out.is_empty();
    let ran = until_found("rights of the hook", tried, has_rights).await;
    let phase = if ran.code == 0 { "Succeeded" } else { "Failed" };
    let status = json!({ "status": { "phase": phase } }).to_string();
    plane.must(&["patch", "pod", name, "-n", SYSTEM, "--subresource=status", "-p", &status], "");
    ran.json()
}

/// The account of the doctor makes no pod that is stored, whatever its rights say.
#[tokio::test]
async fn the_account_of_the_doctor_makes_no_pod() {
    let cluster = Cluster::start(&[]).await;
    let plane = &cluster.0;
    apply(plane, &manifests(&["--part", "doctor"]));
    token(plane, "rolegate-doctor");
    let kubeconfig = plane.dir.join("conf/account-rolegate-doctor.kubeconfig");
    plane.must(&["wait", "--for=create", "serviceaccount/default", "-n", "default", "--timeout=30s"], "");
    let client = client_of(&kubeconfig).await;
    let pods: Api<ApiPod> = Api::namespaced(client, "default");
    let pod: ApiPod = typed(json!({
        "metadata": { "name": "mine" },
        "spec": { "automountServiceAccountToken": false, "containers": [{ "name": "main", "image": "none" }] },
    }));
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    eventually(PATIENT, "a pod that is tried", async || pods.create(&dry_run, &pod).await.map(|_| ())).await;
    eventually(PATIENT, "a pod that is refused", async || match pods.create(&PostParams::default(), &pod).await {
        Err(kube::Error::Api(status)) if status.message.contains("may create this pod as a dry run only") => Ok(()),
        made => {
            // The policy reaches the API server's own caches a moment later.
            plane.kubectl(&["delete", "pod", "mine", "-n", "default", "--ignore-not-found"], "");
            Err(format!("{made:?}"))
        }
    })
    .await;
}

fn levels(report: &Value, level: &str) -> Vec<String> {
    let findings = report["findings"].as_array().unwrap().iter().filter(|finding| finding["level"] == level);
    let line = |found: &Value| format!("{}: {}", found["check"].as_str().unwrap(), found["what"].as_str().unwrap());
    findings.map(line).collect()
}

#[tokio::test]
async fn helm_test_lets_the_doctor_look_with_rights_that_go_with_it() {
    // No fake nodes: the pod of the hook stays as it is until it was really run.
    let cluster = Arc::new(Cluster::start(&["--audit"]).await);
    let account = "gate-rolegate-doctor";
    cluster.0.must(&["create", "namespace", "team"], "");
    cluster.helm(&["install", "gate", &chart(), "--set", "test.tryIn=team"]);
    cluster.0.until_defined();
    let run = |cluster: Arc<Cluster>| {
        tokio::task::spawn_blocking(move || cluster.try_helm(&["test", "gate", "--timeout", "2m"]))
    };

    // Nobody serves yet: the doctor says so, and so does Helm. The pod stays, to be asked; the account's rights do not.
    let (said, report) = tokio::join!(run(cluster.clone()), run_hook(&cluster, account));
    let said = said.unwrap();
    assert!(!said.status.success(), "{said:?}");
    assert!(levels(&report, "error").iter().any(|error| error.starts_with("leader: ")), "{report}");
    let left = cluster.0.must(&["get", "serviceaccounts,roles,pods", "-n", SYSTEM, "-o", "name"], "");
    assert!(left.contains("pod/gate-rolegate-doctor") && left.matches("doctor").count() == 1, "{left}");

    let stage = Stage::within(cluster.0.clone(), "team").await;
    let installed = Installation::named(cluster.0.clone(), "gate-rolegate").await;
    let _rolegate = installed.serve(&stage).await;
    route(&cluster.0, "gate-rolegate", installed.service.address.port());
    let (said, report) = tokio::join!(run(cluster.clone()), run_hook(&cluster, account));
    // Nothing was left unread.
    assert!(levels(&report, "info").iter().all(|info| !info.contains("not checked")), "{report:#}");
    assert_eq!(levels(&report, "error"), [""; 0], "{report:#}");
    assert!(levels(&report, "ok").contains(&"admission: a pod of a group, created as a dry run, is held".to_owned()));
    let said = said.unwrap();
    assert!(said.status.success(), "{said:?}");
    let left = cluster.0.must(&["get", "serviceaccounts,roles,pods", "-n", SYSTEM, "-o", "name"], "");
    assert!(!left.contains("doctor"), "{left}");

    // Least rights: of what it has everything is used.
    let granted = granted(&manifests(&["--part", "doctor", "--name", "gate-rolegate", "--try-in", "team"]));
    let (used, _) = used(&cluster.0, account);
    let unused: Vec<_> = granted.difference(&used).collect();
    assert!(unused.is_empty(), "{unused:?}");
    let beyond: Vec<_> = used.difference(&granted).collect();
    assert!(beyond.is_empty(), "used without being granted: {beyond:?}");
}

/// Runs kubectl while what serves the webhook in this process goes on.
async fn must(plane: &Arc<ControlPlane>, arguments: &[&str], stdin: &str) -> String {
    let plane = plane.clone();
    let (arguments, stdin): (Vec<_>, _) = (arguments.iter().map(ToString::to_string).collect(), stdin.to_owned());
    let run = move || plane.must(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), &stdin);
    tokio::task::spawn_blocking(run).await.unwrap()
}

/// An uninstall leaves nothing that nobody would let go, and what it took is not installed anew before it is gone.
#[tokio::test]
async fn an_uninstall_lets_go_of_what_is_held_with_rights_that_go_with_it() {
    let cluster = Arc::new(Cluster::start(&["--audit"]).await);
    let plane = cluster.0.clone();
    let account = "gate-rolegate-uninstall";
    cluster.helm(&["install", "gate", &chart(), "--set", "crds.keep=false,policies.enabled=true"]);
    plane.until_defined();
    let stage = Stage::on(plane.clone(), "team").await;
    let installed = Installation::named(plane.clone(), "gate-rolegate").await;
    let rolegate = installed.serve(&stage).await;
    let pod = Group::new("llm").pod("main", "main-0", "team");
    let made = stage.send("POST", "/api/v1/namespaces/team/pods", &pod).await;
    assert_eq!(made.body["spec"]["schedulingGates"][0]["name"], GATE, "{made:?}");
    guarded(&plane, &stage).await;
    must(&plane, &["apply", "-f", "-"], &coordination()).await;
    let theirs = r#"{"metadata":{"finalizers":["example.com/theirs"]}}"#;
    must(&plane, &["patch", "rolecoordination", "kept", "-n", "default", "--type=merge", "-p", theirs], "").await;

    let helm = cluster.clone();
    let uninstalled = tokio::task::spawn_blocking(move || helm.try_helm(&["uninstall", "gate", "--timeout", "3m"]));
    // The replicas end with their Deployment.
    let ended = async {
        let wait = ["wait", "--for=delete", "deployment/gate-rolegate", "-n", SYSTEM, "--timeout=90s"];
        must(&plane, &wait, "").await;
        rolegate.kill().await;
    };
    let (done, (), said) = tokio::join!(run_hook(&cluster, account), ended, uninstalled);
    assert_eq!(done["failed"], json!([]), "{done:#}");
    let said = said.unwrap();
    assert!(said.status.success(), "{said:?}");
    let found = stage.kubectl(&["get", "pod", "main-0", "-o", "json"]);
    assert!(!found.contains("schedulingGates"), "{found}");
    let kinds = "jobs,serviceaccounts,leases,secrets,deployments,clusterroles,mutatingwebhookconfigurations";
    let left = plane.must(&["get", kinds, "-n", SYSTEM, "-o", "name"], "");
    assert!(!left.contains("gate-rolegate"), "{left}");
    let granted = granted(&manifests(&["--part", "uninstall", "--name", "gate-rolegate"]));
    let (used, refused) = used(&plane, account);
    let beyond: Vec<_> = used.difference(&granted).collect();
    assert!(beyond.is_empty(), "used without being granted: {beyond:?}, refused: {refused:?}");

    // The definition waits for an object that somebody keeps.
    let why = cluster.refused(&["install", "gate", &chart()]);
    assert!(why.contains("rolecoordinations.rolegate.dev is still being deleted"), "{why}");
    let none = r#"{"metadata":{"finalizers":null}}"#;
    plane.must(&["patch", "rolecoordination", "kept", "-n", "default", "--type=merge", "-p", none], "");
    plane.must(&["wait", "--for=delete", "crd/rolecoordinations.rolegate.dev", "--timeout=60s"], "");
    cluster.helm(&["install", "gate", &chart()]);
}

/// Waits until the guard lets nobody open the hold who has not the right to, an editor of the namespace neither.
async fn guarded(plane: &ControlPlane, stage: &Stage) {
    grant(plane, &stage.namespace, "edit", "editor");
    let pods: Api<ApiPod> = Api::namespaced(client_as(plane, "editor").await, &stage.namespace);
    let release = Patch::Strategic(released());
    let answer = async || try_patch(&pods, "main-0", &release).await;
    let is_so = |answer: &Answer| answer.is_refused("may be released only by rolegate");
    until_found("the guard is in force", answer, is_so).await;
}

/// What a cluster has behind a Service, where the API server is led another way: its port, and an endpoint.
fn route(plane: &ControlPlane, service: &str, port: u16) {
    let ports = json!({ "spec": { "ports": [{ "name": "webhook", "port": port, "protocol": "TCP" }] } }).to_string();
    plane.must(&["patch", "service", service, "-n", SYSTEM, "--type=merge", "-p", &ports], "");
    let port = json!({ "name": "webhook", "port": 9443, "protocol": "TCP" });
    create_endpoint(plane, service, ("IPv4", "10.0.0.1"), &port);
}
