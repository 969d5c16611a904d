//! `rolegate adopt` of workloads that run: nothing stands still, and from then on they are rolled in lockstep.

use tokio::io::AsyncWriteExt;

use crate::common::group::pod_template;
use crate::common::prelude::*;

const SETS: [(&str, u32); 2] = [("prefill", 8), ("decode", 4)];

/// A StatefulSet that has never heard of rolegate.
fn set(stage: &Stage, name: &str, replicas: u32) -> Value {
    let template = pod_template(&json!({ "app": name }), &stage.namespace);
    let selector = json!({ "matchLabels": { "app": name } });
    let spec = json!({ "replicas": replicas, "serviceName": name, "selector": selector, "template": template });
    let mut set = object("apps/v1", "StatefulSet", name).spec(spec);
    set["spec"]["podManagementPolicy"] = json!("Parallel");
    set
}

async fn with_sets(namespace: &str) -> (Stage, Rolegate) {
    let (stage, rolegate) = Stage::new(namespace).await.with_room(40).await.serve().await;
    for (name, replicas) in SETS {
        stage.create(set(&stage, name, replicas)).await;
    }
    stage.pods.until("they run", |now| now.count_all(Pod::is_ready) == 12).await;
    (stage, rolegate)
}

/// Nothing is written: there is no coordination, and no pod of a group.
async fn nothing_is_written(stage: &Stage) {
    assert!(stage.coordinations().list(&ListParams::default()).await.unwrap().items.is_empty());
    stage.pods.now(|now| assert_eq!(now.count_all(|pod| pod.labels.contains_key("rolegate.dev/group")), 0));
}

/// What a command says, on both streams, and its exit code.
async fn run(stage: &Stage, command: &[&str]) -> (Option<i32>, String) {
    let ran = stage.run(command).await;
    (Some(ran.code), ran.out + &ran.err)
}

/// What a command says to a standard input that is no terminal, and ends after this.
async fn answer(stage: &Stage, command: &[&str], input: &str) -> (Option<i32>, String) {
    let command = [command, &["-n", &stage.namespace]].concat();
    let mut command = rolegate_command(&stage.plane.kubeconfig, &command);
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = pipes.spawn().unwrap();
    // A command that has ended reads no more.
    _ = process.stdin.take().unwrap().write_all(input.as_bytes()).await;
    let output = process.wait_with_output().await.unwrap();
    (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

fn role(pod: &Pod) -> &str {
    pod.name.split('-').next().unwrap()
}

fn is_labelled(pod: &Pod) -> bool {
    let label = |key: &str| pod.labels.get(key).map(String::as_str);
    label("rolegate.dev/group") == Some("pd") && label("rolegate.dev/role") == Some(role(pod))
}

/// Waits until every pod was made anew since, and is labelled, let go and ready; then says whether the roles stayed together.
async fn rolls_in_lockstep(stage: &Stage, before: &BTreeMap<String, String>, since: usize) {
    let is_new = |pod: &Pod| before.get(&pod.name) != Some(&pod.uid);
    let is_done = |pod: &Pod| is_new(pod) && is_labelled(pod) && pod.is_ready();
    let is_done = |now: &View| now.all().all(is_done) && now.count_all(is_done) == 12;
    stage.pods.until("all are made anew, labelled and ready", is_done).await;
    let mut seen = View::default();
    for (number, event) in stage.pods.events().iter().enumerate() {
        seen.take(event);
        if number < since {
            continue;
        }
        let counts = SETS.map(|(name, replicas)| {
            let of_role = |test: &dyn Fn(&Pod) -> bool| {
                let count = seen.count_all(|pod| role(pod) == name && test(pod));
                f64::from(u32::try_from(count).unwrap())
            };
            assert!(of_role(&Pod::is_ready) >= f64::from(replicas - 1), "{name} loses more than one: {event:?}");
            of_role(&is_new) / f64::from(replicas)
        });
        // A quarter apart, and the pod that is being replaced.
        assert!((counts[0] - counts[1]).abs() <= 0.5, "{counts:?} after {event:?}");
    }
    stage.pods.now(|now| assert_eq!(now.count_all(Pod::is_held), 0));
}

#[tokio::test]
async fn two_running_stateful_sets_are_adopted_end_to_end_and_then_roll_in_lockstep() {
    let (stage, _rolegate) = with_sets("adopt-sets").await;
    let before = stage.pods.uids();
    let adopt = ["adopt", "sts/prefill", "statefulset/decode", "--group", "pd"];

    let (code, said) = run(&stage, &["explain", "workload", "sts/prefill"]).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("group     none refers to it") && said.contains("rolegate adopt sts/prefill"), "{said}");

    let (code, said) = run(&stage, &[&adopt[..], &["--dry-run"]].concat()).await;
    assert_eq!(code, Some(0), "{said}");
    for told in [
        "label 12 running pods: nothing moves",
        "label the template of StatefulSet prefill, StatefulSet decode: they are frozen, and their pods are replaced in lockstep",
        "nothing was done",
    ] {
        assert!(said.contains(told), "{told}: {said}");
    }
    nothing_is_written(&stage).await;

    for no in ["", "n\n", "maybe\n"] {
        let (code, said) = answer(&stage, &adopt, no).await;
        assert!(code == Some(1) && said.contains("not confirmed"), "{no:?}: {said}");
    }
    nothing_is_written(&stage).await;

    let since = stage.pods.events().len();
    let (code, said) = answer(&stage, &adopt, "y\n").await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("adopted"), "{said}");
    rolls_in_lockstep(&stage, &before, since).await;
    let sizes = stage.coordinations().get("pd").await.unwrap().data["spec"]["coordination"][1].clone();
    assert_eq!(sizes["strategy"]["segmentPlacement"]["segmentSize"], json!({ "prefill": 2, "decode": 1 }));

    let (_, said) = run(&stage, &["explain", "workload", "prefill"]).await;
    for told in ["pd, role prefill (RoleCoordination pd refers to it)", "claim     pd/prefill", "template  labelled"] {
        assert!(said.contains(told), "{told}: {said}");
    }
    assert!(said.contains("8: 8 ready, 0 held, 8 labelled") && !said.contains("missing"), "{said}");
    let (code, said) = run(&stage, &[&adopt[..], &["--yes"]].concat()).await;
    assert!(code == Some(0) && said.contains("nothing: all is labelled"), "a second time: {said}");

    let (before, since) = (stage.pods.uids(), stage.pods.events().len());
    let edit = json!({ "spec": { "template": { "metadata": { "annotations": { "edited": "once" } } } } });
    for (name, _) in SETS {
        stage.patch::<StatefulSet>(name, &edit).await;
    }
    rolls_in_lockstep(&stage, &before, since).await;
}

#[tokio::test]
async fn a_deployment_is_said_to_roll_at_once_and_its_pods_are_of_the_group_afterwards() {
    let (stage, _rolegate) = with_sets("adopt-router").await;
    let labels = json!({ "app": "router" });
    let template = pod_template(&labels, &stage.namespace);
    let spec = json!({ "replicas": 2, "selector": { "matchLabels": labels }, "template": template });
    stage.create(object("apps/v1", "Deployment", "router").spec(spec)).await;
    stage.pods.until("it runs", |now| now.count_all(Pod::is_ready) == 14).await;
    let adopt = ["adopt", "deploy/router", "sts/prefill", "sts/decode", "--group", "pd", "--yes"];
    let (code, said) = run(&stage, &adopt).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("label the template of Deployment router: pods are replaced at once"), "{said}");
    let is_done = |pod: &Pod| is_labelled(pod) && pod.is_ready();
    let all = |now: &View| now.all().all(is_done) && now.count_all(is_done) == 14;
    stage.pods.until("all are labelled and ready", all).await;
}

#[tokio::test]
async fn what_would_not_go_well_is_refused_before_anything_is_written() {
    let (stage, _rolegate) = with_sets("adopt-refused").await;
    let mut by_hand = set(&stage, "by-hand", 1);
    by_hand["spec"]["updateStrategy"] = json!({ "type": "OnDelete" });
    let mut starting = set(&stage, "starting", 1);
    starting["spec"]["template"]["metadata"]["annotations"] = json!({ "kwok.rolegate.dev/not-ready": "" });
    for object in [by_hand, starting] {
        stage.create(object).await;
    }
    let one_is_not = |now: &View| now.count_all(|_| true) == 14 && now.count_all(Pod::is_ready) == 13;
    stage.pods.until("one is not ready", one_is_not).await;
    let refused = [
        (&["sts/prefill", "sts/by-hand"][..], "role-update-strategy: "),
        (&["sts/prefill", "sts/starting"], "StatefulSet starting: 0 of 1 pods are ready"),
        (&["sts/prefill", "sts/absent"], "StatefulSet absent is not in namespace"),
        (&["sts/prefill", "sts/decode", "--segment-size", "router=1"], "there is no role \"router\""),
    ];
    for (arguments, told) in refused {
        let (code, said) = run(&stage, &[&["adopt"], arguments, &["--group", "pd", "--yes"]].concat()).await;
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(told), "{told}: {said}");
    }
    nothing_is_written(&stage).await;
}

#[tokio::test]
async fn where_nothing_is_held_nothing_is_adopted() {
    let (stage, _rolegate) = with_sets("adopt-observed").await;
    stage.label("rolegate.dev/mode=observe");
    let (code, said) = run(&stage, &["adopt", "sts/prefill", "sts/decode", "--group", "pd", "--yes"]).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("its namespace is only observed"), "{said}");
    nothing_is_written(&stage).await;
    assert_eq!(stage.pods.births().len(), 12);
    let steps = stage.pods.events();
    assert!(!steps.iter().any(|event| event.step == Step::Gone));
}
