//! `status`, `explain` and `release` on a real control plane, as a user runs them.

use crate::common::control_plane::rolegate_binary;
use crate::common::prelude::*;
use crate::common::terminal::Terminal;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// A stage on which the first segment runs, and is not ready.
async fn first_segment(name: &str) -> (Stage, Rolegate) {
    let (stage, rolegate) = Stage::new(name).await.with_room(18).await.serve().await;
    stage.deploy(&Group::three_segments()).await;
    let runs = |now: &View| now.count_all(|_| true) == 18 && now.count_all(Pod::is_scheduled) == 6;
    stage.pods.until("the first segment runs", runs).await;
    (stage, rolegate)
}

/// What a command prints, which must work.
async fn text(stage: &Stage, arguments: &[&str]) -> String {
    let ran = stage.run(arguments).await;
    assert_eq!(ran.code, 0, "{arguments:?}: {ran:?}");
    ran.out
}

async fn json_of(stage: &Stage, arguments: &[&str]) -> Value {
    serde_json::from_str(&text(stage, arguments).await).unwrap()
}

/// The one line that a command says when it fails.
async fn failure(stage: &Stage, arguments: &[&str]) -> String {
    let ran = stage.run(arguments).await;
    assert_eq!((ran.code, ran.err.lines().count()), (1, 1), "{arguments:?}: {ran:?}");
    ran.err.trim_end().to_owned()
}

#[tokio::test]
async fn status_shows_batches_as_bars() {
    let (stage, _rolegate) = first_segment("cli-status").await;
    let shown = text(&stage, &["status"]).await;
    let head = "cli-status/llm  RoleBasedGroup  0/3 segments  0/18 pods ready  12 pods held  ";
    assert!(shown.starts_with(head), "{shown}");
    assert!(shown.contains("  segments [+..]  segments: 1 released, 2 held  OrderedReady, Waiting\n"), "{shown}");
    assert!(shown.ends_with("\n+ released  . held\n"), "what the cells stand for: {shown}");
    let why = "PreviousSegmentNotReady: segment 2 is held: segment 1 has 0/4 prefill and 0/2 decode ready (12 pods)";
    assert!(shown.contains(why), "{shown}");
    assert!(!shown.contains('\u{1b}'), "no colours where nobody looks: {shown}");

    stage.let_ready(Pod::is_released).await;
    stage.pods.until("the second segment runs", |now| now.count_all(Pod::is_scheduled) == 12).await;
    let found = json_of(&stage, &["status", "llm", "-o", "json"]).await;
    let group = &found["groups"][0];
    assert_eq!((&group["segments"], &group["ready"], &group["held"]), (&json!("1/3"), &json!("6/18"), &json!(6)));
    let batches: Vec<_> = group["coordinations"][0]["batches"].as_array().unwrap().iter().collect();
    let states: Vec<_> = batches.iter().map(|batch| batch["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["Ready", "Released", "Held"]);
    assert_eq!(batches[2]["reason"], "PreviousSegmentNotReady");
    assert_eq!(batches[2]["roles"]["prefill"], json!({"ordinals": [8, 11], "released": 0, "ready": 0}));
    assert_eq!(group["conditions"][0]["reason"], "PartialDeployment");
}

#[tokio::test]
async fn wide_has_a_row_for_each_batch_and_yaml_the_data_of_json() {
    let (stage, _rolegate) = first_segment("cli-wide").await;
    let shown = text(&stage, &["status", "-o", "wide"]).await;
    let rows = "\
    SEGMENT  LABEL  STATE     REPLICAS                                                REASON
    1        0      Released  0/2 decode ready, 2 released; 0/4 prefill ready, 4 released  -
    2-3      1-2    Held      4 decode held; 8 prefill held                           PreviousSegmentNotReady
";
    let words =
        |text: &str| text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>();
    let (found, expected) = (words(&shown), words(rows));
    assert!(found.windows(expected.len()).any(|lines| lines == expected), "{shown}");
    for arguments in [&["status", "llm"], &["fit", "llm"]] {
        let json = json_of(&stage, &[arguments as &[&str], &["-o", "json"]].concat()).await;
        let yaml = text(&stage, &[arguments as &[&str], &["-o", "yaml"]].concat()).await;
        let yaml: Value = serde_saphyr::from_str(&yaml).unwrap();
        assert_eq!(yaml, json, "{arguments:?}");
    }
}

#[tokio::test]
async fn what_is_seen_of_a_cluster_is_coloured_on_a_terminal_and_nowhere_else() {
    let (stage, _rolegate) = first_segment("cli-colours").await;
    let commands: [&[&str]; 3] =
        [&["status", "llm"], &["explain", "group", "llm"], &["explain", "pod", "llm-prefill-9"]];
    for arguments in commands {
        for (name, value, is_coloured) in [("TERM", "xterm", true), ("NO_COLOR", "1", false), ("TERM", "dumb", false)] {
            let terminal = Terminal::open(80);
            let arguments = [arguments, &["-n", &stage.namespace]].concat();
            let mut command = rolegate_command(&stage.plane.kubeconfig, &arguments);
            command.env("TERM", "xterm").env_remove("NO_COLOR").env(name, value);
            let mut process = command.stdout(terminal.stream()).spawn().unwrap();
            drop(command);
            let shown = tokio::task::spawn_blocking(|| terminal.read_all()).await.unwrap();
            assert!(process.wait().await.unwrap().success());
            assert_eq!(shown.contains('\u{1b}'), is_coloured, "{name}={value}: {arguments:?}: {shown}");
            let cells = if is_coloured { "[\u{1b}[33m+\u{1b}[0m\u{1b}[2m..\u{1b}[0m]" } else { "[+..]" };
            assert_eq!(shown.contains(cells), arguments[1] != "pod", "{name}={value}: {arguments:?}: {shown}");
        }
        let piped = text(&stage, arguments).await;
        assert!(!piped.contains('\u{1b}'), "{piped}");
    }
}

#[tokio::test]
async fn an_explanation_follows_what_happens() {
    let (stage, _rolegate) = first_segment("cli-follow").await;
    let (_pod, mut of_pod) = watch(&stage, &["explain", "pod", "llm-prefill-4"]);
    let (_group, mut of_group) = watch(&stage, &["explain", "group", "llm"]);
    assert_eq!(next_json(&mut of_pod).await["state"], "Held");
    assert_eq!(next_json(&mut of_group).await["explanations"][0]["pods"], 12);
    stage.let_ready(Pod::is_released).await;
    while next_json(&mut of_pod).await["state"] != "NotGated" {}
    while next_json(&mut of_group).await["explanations"][0]["pods"] != 6 {}
}

type OutputLines = Lines<BufReader<ChildStdout>>;

/// Starts a command that goes on, and what it prints.
fn watch(stage: &Stage, command: &[&str]) -> (Child, OutputLines) {
    let arguments = [command, &["--watch", "-o", "json", "-n", &stage.namespace]].concat();
    let mut process = rolegate_command(&stage.plane.kubeconfig, &arguments).spawn().unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines();
    (process, lines)
}

async fn next_json(lines: &mut OutputLines) -> Value {
    let line = tokio::time::timeout(PATIENT, lines.next_line()).await.expect("a line in time").unwrap().unwrap();
    serde_json::from_str(&line).unwrap()
}

#[tokio::test]
async fn status_follows_what_happens() {
    let (stage, _rolegate) = first_segment("cli-watch").await;
    let (_process, mut lines) = watch(&stage, &["status", "llm"]);
    let mut next = async || next_json(&mut lines).await["groups"][0]["ready"].as_str().unwrap().to_owned();
    assert_eq!(next().await, "0/18");
    stage.let_ready(Pod::is_released).await;
    while next().await != "6/18" {}
}

#[tokio::test]
async fn a_held_pod_is_explained() {
    let (stage, _rolegate) = first_segment("cli-explain").await;
    stage.let_ready(|pod| pod.is_released() && pod.name != "llm-prefill-3").await;
    stage.pods.until("all but one are ready", |now| now.count_all(Pod::is_ready) == 5).await;
    let shown = text(&stage, &["explain", "pod", "llm-prefill-9"]).await;
    for line in [
        "pod cli-explain/llm-prefill-9: held, ",
        "  gates    rolegate.dev/hold (rolegate, this program)\n",
        "  place    group cli-explain/llm (RoleBasedGroup llm), role prefill, replica 9, segment 3 of 3 in \"segments\" (rolegate.dev/segment=2)\n",
        "  reason   PreviousSegmentNotReady: segment 2 is held: segment 1 has 3/4 prefill and 2/2 decode ready\n",
        "  ahead    1 segment of \"segments\"\n",
        "           prefill 3  is not ready  llm-prefill-3\n",
        "  next     the next batch goes at once when the last of these replicas is ready",
        "lift the gate by hand: `rolegate release pod llm-prefill-9 -n cli-explain`\n",
    ] {
        assert!(shown.contains(line), "{line:?} is not in:\n{shown}");
    }
    let found = json_of(&stage, &["explain", "pod", "llm-prefill-9", "-o", "json"]).await;
    assert_eq!(found["state"], "Held");
    assert_eq!(found["place"]["batch"], 2);
    let awaited = json!([{"role": "prefill", "ordinal": 3, "state": "is not ready", "pods": ["llm-prefill-3"]}]);
    assert_eq!(found["waitsFor"], awaited);

    let found = json_of(&stage, &["explain", "group", "llm", "-o", "json"]).await;
    assert_eq!(found["explanations"][0]["reason"], "PreviousSegmentNotReady");
    assert_eq!(found["explanations"][0]["waitsFor"], awaited);
    let shown = text(&stage, &["explain", "group", "llm"]).await;
    assert!(shown.contains("coordination \"segments\": PreviousSegmentNotReady\n"), "{shown}");

    let found = json_of(&stage, &["explain", "pod", "llm-prefill-0", "-o", "json"]).await;
    assert_eq!((&found["state"], &found["reason"]), (&json!("NotGated"), &Value::Null));
}

#[tokio::test]
async fn gates_of_others_are_named_with_their_owners() {
    let (stage, _rolegate) = first_segment("cli-gates").await;
    let mut pod = Group::three_segments().pod("prefill", "two-gates", &stage.namespace);
    pod["spec"]["schedulingGates"] =
        json!([{"name": "kueue.x-k8s.io/admission"}, {"name": "grove.io/podgang-pending-creation"}]);
    stage.create(pod).await;
    let found = json_of(&stage, &["explain", "pod", "two-gates", "-o", "json"]).await;
    let owners: Vec<_> = found["gates"].as_array().unwrap().iter().map(|gate| gate["owner"].clone()).collect();
    assert_eq!(owners, ["Kueue", "Grove", "rolegate"]);

    let plain = object("v1", "Pod", "of-others").spec(json!({
        "schedulingGates": [{"name": "example.com/wait"}],
        "containers": [{"name": "main", "image": "registry.invalid/x:1"}],
    }));
    stage.create(plain).await;
    let shown = text(&stage, &["explain", "pod", "of-others"]).await;
    assert!(shown.contains(": gated by others, "), "{shown}");
    assert!(shown.contains("  gates    example.com/wait (of unknown)\n"), "{shown}");
}

#[tokio::test]
async fn a_group_that_is_not_there_is_explained_by_its_pods() {
    let (stage, _rolegate) = Stage::new("cli-missing").await.serve_with("missing-group", "hold").await;
    stage.create_sets(&Group::three_segments()).await;
    stage.pods.until("all pods", |now| now.count_all(Pod::is_held) == 18).await;
    let found = json_of(&stage, &["explain", "pod", "llm-decode-0", "-o", "json"]).await;
    assert_eq!((&found["reason"], &found["message"]), (&json!("GroupMissing"), &json!("group \"llm\" is not there")));
    let shown = text(&stage, &["status"]).await;
    assert!(shown.starts_with("cli-missing/llm  not there  18 pods held\n"), "{shown}");
}

#[tokio::test]
async fn a_release_by_hand_is_asked_for_done_and_told() {
    let (stage, _rolegate) = first_segment("cli-release").await;
    let refused = stage.run(&["release", "group", "llm"]).await;
    assert!(refused.code == 1 && refused.err.contains("12 pods in namespace \"cli-release\""), "{refused:?}");
    assert_eq!(stage.pods.now(|now| now.count_all(Pod::is_held)), 12);

    let one = text(&stage, &["release", "pod", "llm-prefill-11", "--yes"]).await;
    assert_eq!(one, "released cli-release/llm-prefill-11\n1 released, 0 gone, 0 failed\n");
    stage.pods.until("it has a node", |now| now.named("llm-prefill-11").is_some_and(Pod::is_scheduled)).await;
    let again = text(&stage, &["release", "pod", "llm-prefill-11", "--yes"]).await;
    assert_eq!(again, "no pod carries the gate: nothing to do\n");

    let mut command = rolegate_command(&stage.plane.kubeconfig, &["release", "group", "llm", "-n", &stage.namespace]);
    let mut process = command.stdin(Stdio::piped()).spawn().unwrap();
    process.stdin.take().unwrap().write_all(b"y\n").await.unwrap();
    let output = process.wait_with_output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).ends_with("11 released, 0 gone, 0 failed\n"), "{output:?}");
    stage.pods.until("all run", |now| now.count_all(Pod::is_scheduled) == 18).await;
}

#[tokio::test]
async fn everything_in_a_namespace_is_released_and_other_gates_stay() {
    let (stage, _rolegate) = first_segment("cli-release-all").await;
    let mut pod = Group::three_segments().pod("prefill", "two-gates", &stage.namespace);
    pod["spec"]["schedulingGates"] = json!([{"name": "example.com/wait"}]);
    stage.create(pod).await;
    let found = json_of(&stage, &["release", "--all", "--yes", "-o", "json"]).await;
    assert_eq!(found["released"].as_array().unwrap().len(), 13, "{found}");
    stage.pods.until("no gate of ours is left", |now| now.count_all(Pod::is_held) == 0).await;
    let gates = stage.pods.now(|now| now.named("two-gates").unwrap().gates.clone());
    assert_eq!(gates, ["example.com/wait"]);
}

/// A pod that the API server does not let us change: the others go, and the command says so.
#[tokio::test]
async fn a_release_that_is_refused_is_told_and_fails() {
    let (stage, _rolegate) = first_segment("cli-refused").await;
    let policy = object("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "cli-refused").spec(json!({
        "matchConstraints": {"resourceRules": [
            {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["pods"]},
        ]},
        "validations": [{"expression": "object.metadata.name != 'llm-prefill-11'", "message": "not this one"}],
    }));
    let binding =
        object("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", "cli-refused").spec(json!({
            "policyName": "cli-refused", "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "cli-refused"}}},
        }));
    stage.plane.must(&["create", "-f", "-"], &format!("{policy}\n---\n{binding}"));
    let patch = r#"{"metadata":{"annotations":{"tried":"yes"}}}"#;
    let tried = ["patch", "pod", "llm-prefill-11", "-n", "cli-refused", "--dry-run=server", "-p", patch];
    let admitted = async || stage.plane.kubectl(&tried, "").status.success();
    until_is("the policy is in force", admitted, false).await;
    let ran = stage.run(&["release", "group", "llm", "--yes", "-o", "json"]).await;
    assert_eq!(ran.code, 1, "{ran:?}");
    let found = ran.json();
    assert_eq!(found["released"].as_array().unwrap().len(), 11, "{found}");
    assert_eq!(found["failed"][0]["object"], "llm-prefill-11");
    assert!(found["failed"][0]["error"].as_str().unwrap().contains("not this one"), "{found}");
    stage.plane.must(&["delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", "cli-refused"], "");
}

#[tokio::test]
async fn what_fits_is_told_with_where_and_what_would_make_room() {
    let (stage, _rolegate) = first_segment("cli-fit").await;
    let shown = text(&stage, &["fit", "llm"]).await;
    assert!(shown.starts_with("cli-fit/llm, coordination \"segments\": 1 of 3 run, 2 of 2 segments fit\n"), "{shown}");
    // Nodes of other tests are there as well, and closed to these pods.
    assert!(shown.contains("\n  pods in the cluster\n    all nodes  ["), "{shown}");
    assert!(shown.contains("  12 for segments 2-3, 0 of "), "{shown}");
    let placed = "\n  segment 2 (4 prefill and 2 decode): cli-fit-all × 6\n  \
                  segment 3 (4 prefill and 2 decode): cli-fit-all × 6\n";
    assert!(shown.contains(placed), "{shown}");
    let wide = text(&stage, &["fit", "llm", "-o", "wide"]).await;
    let node = wide.lines().find(|line| line.starts_with("      cli-fit-all ")).unwrap_or_default();
    assert!(node.ends_with("  [##########++++++++++++++++++++]  12 for segments 2-3, 0 of 18 free"), "{wide}");
    stage.plane.must(&["cordon", "cli-fit-all"], "");
    let ran = stage.run(&["fit", "llm", "-o", "json"]).await;
    assert_eq!(ran.code, 1);
    let coordination = ran.json()["groups"][0]["coordinations"][0].take();
    assert_eq!((&coordination["bound"], &coordination["fits"]), (&json!(1), &json!([])));
    assert_eq!(coordination["stop"]["remedies"], json!([{ "uncordon": ["cli-fit-all"] }]));
    let mixed = stage.run(&["fit", "llm", "group.yaml"]).await;
    assert!(mixed.code == 2 && mixed.err.contains("either groups of a cluster"), "{mixed:?}");
}

#[tokio::test]
async fn what_is_not_there_is_said_in_one_line() {
    let stage = Stage::new("cli-absent").await;
    assert_eq!(text(&stage, &["status"]).await, "no groups in namespace \"cli-absent\"\n");
    let group = "rolegate: group \"llm\" is not in namespace \"cli-absent\"";
    assert_eq!(failure(&stage, &["status", "llm"]).await, group);
    assert_eq!(failure(&stage, &["explain", "group", "llm"]).await, group);
    assert_eq!(failure(&stage, &["fit", "llm"]).await, group);
    assert_eq!(failure(&stage, &["release", "group", "llm", "--yes"]).await, group);
    let pod = "rolegate: pod \"llm-0\" is not in namespace \"cli-absent\"";
    assert_eq!(failure(&stage, &["explain", "pod", "llm-0"]).await, pod);
    assert_eq!(failure(&stage, &["release", "pod", "llm-0", "--yes"]).await, pod);
    // Nothing is asked for that would be another request.
    let path = failure(&stage, &["explain", "pod", "llm-0/log"]).await;
    assert!(path.contains(r#"name "llm-0/log": a lowercase RFC 1123 subdomain must consist of"#), "{path}");
}

/// The gate without the labels that say whose it is.
#[tokio::test]
async fn a_pod_that_lost_its_group_is_told_how_to_go() {
    let stage = Stage::new("cli-orphan").await;
    let pod = object("v1", "Pod", "orphan").spec(json!({
        "schedulingGates": [{"name": GATE}],
        "containers": [{"name": "main", "image": "registry.invalid/x:1"}],
    }));
    stage.create(pod).await;
    let shown = text(&stage, &["explain", "pod", "orphan"]).await;
    assert!(shown.starts_with("pod cli-orphan/orphan: held by nobody, "), "{shown}");
    stage.delete::<ApiPod>("orphan").await;
}

#[tokio::test]
async fn a_cluster_without_answer_is_said_in_one_line() {
    let plane = ControlPlane::shared();
    let config = std::fs::read_to_string(&plane.kubeconfig).unwrap();
    let dead = plane.kubeconfig.with_extension("dead");
    // Nothing listens on port 1.
    std::fs::write(&dead, config.replace(&plane.server, "https://127.0.0.1:1")).unwrap();
    let failed = ran(&dead, &["explain", "pod", "x"]).await;
    assert_eq!((failed.code, failed.err.lines().count()), (1, 1), "{failed:?}");
    assert!(failed.err.starts_with("rolegate: cannot reach the API server at https://127.0.0.1:1/: "), "{failed:?}");
}

#[tokio::test]
async fn a_kubectl_plugin_names_itself_as_it_was_called() {
    let folder = tempfile::tempdir().unwrap();
    let plugin = folder.path().join("kubectl-rolegate");
    std::os::unix::fs::symlink(rolegate_binary(), &plugin).unwrap();
    let output = Command::new(&plugin).args(["plan", "--help"]).output().await.unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    assert!(help.contains("Usage: kubectl rolegate plan [OPTIONS] <FILE>..."), "{help}");
    let output = Command::new(&plugin).args(["completions", "bash"]).output().await.unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains("kubectl-rolegate"));
}
