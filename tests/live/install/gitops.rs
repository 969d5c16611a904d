//! Whoever compares what is stored with what is in a repository, and corrects it, finds nothing to correct.

use rolegate::model::WorkloadKind;

use crate::common::account::{manifests, token};
use crate::common::prelude::*;
use crate::install::agreement::WAYS;
use crate::install::render::{chart, helm_command, kustomize, root, template};
use crate::install::support::{DRY, apply, define, get};

const APPLY: &[&str] = &["apply", "--server-side", "--force-conflicts", "-f", "-"];

/// The resource version of every object of a text, as it is stored.
fn versions(plane: &ControlPlane, yaml: &str) -> BTreeMap<String, String> {
    let found = plane.must(&["get", "-f", "-", "-o", "json"], yaml);
    let found: Value = serde_json::from_str(&found).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let of = |object: &Value| {
        let metadata = &object["metadata"];
        (format!("{} {}", text(&object["kind"]), text(&metadata["name"])), text(&metadata["resourceVersion"]))
    };
    let versions: BTreeMap<_, _> = found["items"].as_array().unwrap().iter().map(of).collect();
    assert!(versions.len() > 10, "{versions:?}");
    versions
}

/// Versions when controllers have done what they do with new objects: the status of a Deployment, of a budget, of a definition.
async fn settled(plane: &ControlPlane, yaml: &str) -> BTreeMap<String, String> {
    let mut before = versions(plane, yaml);
    eventually(PATIENT, "nothing moves", async || {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let now = versions(plane, yaml);
        let same = now == before;
        before.clone_from(&now);
        if same { Ok(now) } else { Err("it moves") }
    })
    .await
}

#[tokio::test]
async fn what_is_applied_twice_is_changed_once_whoever_wrote_it() {
    let plane = ControlPlane::own(|| ControlPlane::start_with("cert-manager", &[])).await;
    define(&plane);
    for (folder, by_program, by_helm) in WAYS {
        let program = manifests(by_program);
        plane.must(APPLY, &program);
        let before = settled(&plane, &program).await;
        // The chart's definitions say more: that Helm is to keep them.
        let by_helm = [by_helm, &["--set", "crds.enabled=false"][..]].concat();
        for again in [&program, &kustomize(&root().join(folder)), &template(&by_helm)] {
            plane.must(APPLY, again);
            assert_eq!(versions(&plane, &program), before, "{folder}");
        }
    }
}

/// What runs writes its bundle into the webhook configurations, and whoever applies them leaves it there.
#[tokio::test]
async fn what_runs_is_no_drift() {
    let plane = ControlPlane::own(|| ControlPlane::start_with("kwok", &[])).await;
    define(&plane);
    let program = manifests(&[]);
    // As Argo CD applies and compares by default: three ways, by what was applied last.
    plane.must(&["apply", "-f", "-"], &program);
    let served = serve(&plane).await;
    let bundles = bundles(&plane);
    assert!(plane.must(&["diff", "-f", "-"], &program).is_empty());
    plane.must(&["apply", "-f", "-"], &program);
    assert_eq!(self::bundles(&plane), bundles);
    // As Flux does, and Argo CD where it is told to: on the server, by the owners of fields.
    let diff = &["diff", "--server-side", "--force-conflicts", "-f", "-"];
    plane.must(APPLY, &program);
    assert!(plane.must(diff, &program).is_empty());
    let before = settled(&plane, &program).await;
    plane.must(APPLY, &program);
    assert_eq!(versions(&plane, &program), before);
    assert_eq!(self::bundles(&plane), bundles);
    served.terminate().await;
    // It would have told.
    let other = program.replace("replicas: 2", "replicas: 5");
    assert_eq!(plane.kubectl(diff, &other).status.code(), Some(1));
}

#[tokio::test]
async fn an_upgrade_of_helm_to_what_is_there_changes_nothing() {
    let plane = ControlPlane::own(|| ControlPlane::start_with("kwok", &[])).await;
    let helm = |arguments: &[&str]| {
        let mut command = helm_command(arguments);
        let output = command.arg("--kubeconfig").arg(&plane.kubeconfig).args(["--namespace", SYSTEM]).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    };
    helm(&["install", "rolegate", &chart()]);
    plane.until_defined();
    let served = serve(&plane).await;
    let (bundles, yaml) = (bundles(&plane), template(&[]));
    let before = settled(&plane, &yaml).await;
    helm(&["upgrade", "rolegate", &chart()]);
    assert_eq!(versions(&plane, &yaml), before);
    assert_eq!(self::bundles(&plane), bundles);
    served.terminate().await;
}

/// A rolegate as it is deployed, which nobody reaches, when it has published what it serves with.
async fn serve(plane: &Arc<ControlPlane>) -> Rolegate {
    token(plane, "rolegate");
    let launch = Launch::as_deployed(plane.clone(), plane.client().await, &get(plane, "deployment"));
    let rolegate = launch.start_unready().await;
    let in_all = |bundles: &Vec<Value>| bundles.iter().all(Value::is_string);
    until_found("its bundle in every webhook", async || bundles(plane), in_all).await;
    rolegate.until_metric("rolegate_leader", 1).await;
    rolegate
}

fn bundles(plane: &ControlPlane) -> Vec<Value> {
    let of = |kind: &str| {
        let webhooks = get(plane, kind)["webhooks"].as_array().unwrap().clone();
        webhooks.into_iter().map(|webhook| webhook["clientConfig"]["caBundle"].clone())
    };
    of("mutatingwebhookconfiguration").chain(of("validatingwebhookconfiguration")).collect()
}

/// Fields of the stored object that were not sent, with the numbers of lists left out.
fn added(sent: &Value, stored: &Value, path: &str, into: &mut BTreeSet<String>) {
    match (sent, stored) {
        (Value::Object(sent), Value::Object(stored)) => {
            for (key, value) in stored {
                let path = format!("{path}.{key}");
                match sent.get(key) {
                    Some(sent) => added(sent, value, &path, into),
                    None => _ = into.insert(path),
                }
            }
        }
        (Value::Array(sent), Value::Array(stored)) if sent.len() == stored.len() => {
            sent.iter().zip(stored).for_each(|(sent, stored)| added(sent, stored, &format!("{path}[]"), into));
        }
        (sent, stored) if sent == stored => {}
        (sent, stored) => _ = into.insert(format!("{path}: {sent} became {stored}")),
    }
}

/// What the API server fills in all the same: what it alone knows.
const FILLED_IN: &[&str] = &[
    "Deployment.spec.template.spec.serviceAccount",
    "Namespace.metadata.labels.kubernetes.io/metadata.name",
    "Namespace.spec",
    "Service.spec.clusterIP",
    "Service.spec.clusterIPs",
    "Service.spec.ipFamilies",
    "Service.spec.ipFamilyPolicy",
];

#[tokio::test]
async fn the_manifests_say_what_the_api_server_would_fill_in() {
    let mut all = BTreeSet::new();
    for (_, by_program, _) in WAYS {
        let program = manifests(by_program);
        apply(&DRY.get(), &manifests(&["--part", "namespace"]));
        let dry_run = [APPLY, &["--dry-run=server", "-o", "json"][..]].concat();
        let stored: Value = serde_json::from_str(&DRY.get().must(&dry_run, &program)).unwrap();
        let sent: Vec<Value> = serde_saphyr::from_multiple(&program).unwrap();
        let stored = stored["items"].as_array().unwrap();
        assert_eq!(sent.len(), stored.len());
        for (sent, stored) in sent.iter().zip(stored) {
            assert_eq!((&sent["kind"], &sent["metadata"]["name"]), (&stored["kind"], &stored["metadata"]["name"]));
            added(sent, stored, sent["kind"].as_str().unwrap(), &mut all);
        }
    }
    let of_the_server = [".metadata.uid", ".metadata.creationTimestamp", ".metadata.resourceVersion", ".status"];
    let more = [".metadata.generation", ".metadata.managedFields", ".metadata.annotations"];
    all.retain(|path| ![&of_the_server[..], &more[..]].concat().iter().any(|known| path.ends_with(known)));
    let known: BTreeSet<_> = FILLED_IN.iter().map(|path| (*path).to_owned()).collect();
    assert_eq!(all, known);
}

/// The YAML of the page that is written to this file.
fn snippet(file: &str) -> Value {
    let page = std::fs::read_to_string(root().join("docs/guides/gitops.md")).unwrap();
    let head = format!("```yaml file={file}\n");
    let (_, rest) = page.split_once(&head).unwrap_or_else(|| panic!("no {file}"));
    serde_saphyr::from_str(rest.split_once("```").unwrap().0).unwrap()
}

/// Where the fields of an expression are, `.webhooks[]?.clientConfig.caBundle`: the one form that the page uses.
fn of_each_webhook(expression: &str, object: &Value) -> Vec<String> {
    let field = expression.strip_prefix(".webhooks[]?.").unwrap_or_else(|| panic!("{expression}")).replace('.', "/");
    (0..object["webhooks"].as_array().unwrap().len()).map(|number| format!("/webhooks/{number}/{field}")).collect()
}

/// The page's rules name the bundles and nothing else, in every webhook; its values are values of the chart.
#[test]
fn the_snippets_of_the_page_are_about_what_is_installed() {
    use crate::install::render::{first, objects};
    let (argo, flux) = (snippet("argo.yaml"), snippet("flux.yaml"));
    assert_eq!(argo["spec"]["source"]["helm"]["valuesObject"], flux["spec"]["values"]);
    let rendered = objects(&template(&["--set-json", &format!("global={{}},{}", flattened(&flux["spec"]["values"]))]));
    assert_eq!(first(&rendered, "Deployment")["spec"]["replicas"], 3);
    for kind in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"] {
        let object = first(&rendered, kind);
        let all = of_each_webhook(".webhooks[]?.clientConfig.caBundle", object);
        let of_kind = |rules: &Value, path: &str| {
            rules.as_array().unwrap().iter().find(|rule| rule.pointer(path).unwrap() == kind).unwrap().clone()
        };
        let rule = of_kind(&argo["spec"]["ignoreDifferences"], "/kind");
        let expressions = rule["jqPathExpressions"].as_array().unwrap();
        let found: Vec<_> = expressions.iter().flat_map(|one| of_each_webhook(one.as_str().unwrap(), object)).collect();
        assert_eq!((found, &rule["group"]), (all.clone(), &Value::from("admissionregistration.k8s.io")));
        let rule = of_kind(&flux["spec"]["driftDetection"]["ignore"], "/target/kind");
        assert_eq!(rule["paths"], Value::from(all));
    }
    // Partitions are where rolegate writes them.
    for rule in snippet("workloads.yaml")["ignoreDifferences"].as_array().unwrap() {
        let kind = WorkloadKind::with_partition().find(|kind| kind.object_kind().kind == rule["kind"]).unwrap();
        let partition = kind.row().rollout.unwrap().partition.join("/");
        assert_eq!(rule["jsonPointers"][1], format!("/{partition}"), "{rule}");
        assert_eq!(rule["group"], kind.object_kind().group);
    }
}

/// Values as `--set-json` takes them.
fn flattened(values: &Value) -> String {
    let values = values.as_object().unwrap().iter().map(|(key, value)| format!("{key}={value}"));
    values.collect::<Vec<_>>().join(",")
}
