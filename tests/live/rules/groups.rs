//! Wrong groups, as `kubectl` shows them.

use crate::common::prelude::*;
use crate::rules::desk::{Shown, apply, causes, put, refused, stage, warned};

const CONFLICT: &str = r#"spec.coordination[1].strategy.segmentPlacement.segmentSize[prefill]: Invalid value: 10: segment size conflict for role "prefill": coordination has segment size 10, but another coordination has 5"#;

fn group(coordination: &Value) -> Value {
    Group::new("llm").role("prefill", 20, 5).role("decode", 10, 5).coordinated(coordination)
}

fn segments(name: &str, sizes: &Value) -> Value {
    json!({ "name": name, "strategy": { "segmentPlacement": { "segmentSize": sizes } } })
}

fn conflicting() -> Value {
    json!([segments("a", &json!({ "prefill": 5 })), segments("b", &json!({ "prefill": 10 }))])
}

/// What is shown of a Deployment that does not select its pods.
fn broken_deployment(stage: &Stage, pod: &Value) -> Shown {
    let mut template = json!({ "metadata": { "labels": { "app": "x" } } });
    template["spec"] = pod.clone();
    let spec = json!({ "selector": { "matchLabels": { "app": "y" } }, "template": template });
    apply(stage, &object("apps/v1", "Deployment", "llm").spec(spec))
}

/// A text with what differs between two refusals taken out: the kind, and each fault after its reason.
fn shape(text: &str) -> String {
    let fault = |fault: &str| {
        let reasons = ["Invalid value", "Not found", "Required value", "Unsupported value", "Duplicate value"];
        let reason = reasons.iter().find(|reason| fault.contains(&format!(": {reason}")));
        assert!(reason.is_some(), "no reason that Kubernetes knows: {fault:?}");
        "PATH: REASON: DETAIL"
    };
    let (head, faults) = text.split_once(" is invalid: ").unwrap_or_else(|| panic!("{text:?}"));
    let head = head.split_whitespace().map(|word| if word.contains('"') || word == "The" { word } else { "KIND" });
    let head = head.collect::<Vec<_>>().join(" ");
    let faults: Vec<_> = match faults.strip_prefix('\n') {
        Some(list) => list.lines().map(|line| format!("* {}", fault(line.strip_prefix("* ").unwrap()))).collect(),
        None => vec![fault(faults).to_owned()],
    };
    format!("{head} is invalid: {} fault(s), first {:?}", faults.len(), faults[0])
}

#[tokio::test]
async fn one_fault_is_shown_as_the_api_server_shows_one_of_its_own() {
    let (stage, _rolegate) = stage("one-fault").await.serve().await;
    refused(&stage, &group(&conflicting()), CONFLICT);
    let ours = apply(&stage, &group(&conflicting()));
    let containers = json!([{ "name": "main", "image": "registry.invalid/x:1" }]);
    let theirs = broken_deployment(&stage, &json!({ "containers": containers }));
    assert_eq!((ours.done, ours.out), (theirs.done, theirs.out));
    assert_eq!(shape(&ours.err), shape(&theirs.err));
}

#[tokio::test]
async fn more_faults_than_a_message_holds_are_all_among_the_causes() {
    let (stage, _rolegate) = stage("many-faults").await.serve().await;
    let sizes = (0..14).map(|number| (format!("role-{number:02}"), json!(0))).collect::<serde_json::Map<_, _>>();
    let answer = stage.post(GROUPS, "rolebasedgroups", &group(&json!([segments("a", &json!(sizes))]))).await;
    let causes = causes(&answer);
    assert!(answer.code == 422 && causes.len() >= 14, "{answer:?}");
    let fields: Vec<_> = causes.iter().map(|cause| cause.split(": ").next().unwrap()).collect();
    assert!(fields.is_sorted(), "{fields:?}");
    let message = answer.body["message"].as_str().unwrap();
    let more = format!("and {} more]", causes.len() - 10);
    assert!(message.ends_with(&more), "{message}");
}

#[tokio::test]
async fn what_is_legal_and_will_surprise_is_a_warning() {
    let (stage, _rolegate) = stage("warnings").await.serve().await;
    let shown = apply(&stage, &group(&json!([segments("a", &json!({ "prefill": 6, "decode": 5 }))])));
    assert!(shown.done && shown.out.contains("created"), "{shown:?}");
    let sizes = "spec.coordination[0].strategy.segmentPlacement.segmentSize";
    let warnings = [
        format!(r#"{sizes}: role "decode" ends after 2 of 4 segments; the later ones are made of the other roles"#),
        format!("{sizes}[prefill]: 6: 20 replicas are not a multiple of it: the last segment has 2"),
    ];
    assert_eq!(shown.warnings(), warnings);
    // Who is refused is warned besides.
    let mut both = conflicting();
    both[0]["strategy"]["segmentPlacement"]["segmentSize"]["decode"] = json!(3);
    let shown = apply(&stage, &group(&both));
    let rest = format!("{sizes}[decode]: 3: 10 replicas are not a multiple of it: the last segment has 1");
    assert!(!shown.done && shown.err.contains(CONFLICT), "{shown:?}");
    assert_eq!(shown.warnings(), [rest]);
}

#[tokio::test]
async fn an_old_fault_warns_and_a_new_one_is_refused() {
    let stage = stage("old-faults").await;
    // Stored when nobody looked.
    put(&stage, &group(&conflicting()));
    let _rolegate = stage.launch().start().await;
    let mut noted = group(&conflicting());
    noted["metadata"]["annotations"] = json!({ "rolegate.dev/discovery": "disabled" });
    warned(&stage, &noted, &[CONFLICT]);
    // Nobody is asked about other labels.
    noted["metadata"]["labels"] = json!({ "team": "a" });
    warned(&stage, &noted, &[]);
    let mut worse = conflicting();
    worse[1]["strategy"]["segmentPlacement"]["segmentSize"]["decode"] = json!(0);
    let shown = apply(&stage, &group(&worse));
    let new = "spec.coordination[1].strategy.segmentPlacement.segmentSize[decode]: Invalid value: 0: must be greater than or equal to 1";
    assert!(!shown.done && shown.err.contains(new), "{shown:?}");
    assert_eq!(shown.warnings(), [CONFLICT]);
    // Repaired, it is as good as any.
    put(&stage, &group(&json!([segments("a", &json!({ "prefill": 10, "decode": 5 }))])));
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn several_faults_are_shown_together_and_sorted_by_path() {
        let (stage, _rolegate) = stage("several-faults").await.serve().await;
        let wrong = group(&json!([
            segments("a", &json!({ "prefill": 5, "decod": 5 })),
            segments("b", &json!({ "prefill": 10, "decode": 0 })),
        ]));
        let faults = [
            r#"spec.coordination[0].strategy.segmentPlacement.segmentSize[decod]: Not found: "decod": must name an entry of `spec.roles`; did you mean "decode"?"#,
            "spec.coordination[1].strategy.segmentPlacement.segmentSize[decode]: Invalid value: 0: must be greater than or equal to 1",
            CONFLICT,
        ];
        let shown = apply(&stage, &wrong);
        assert!(!shown.done && shown.out.is_empty(), "{shown:?}");
        let list = faults.map(|fault| format!("* {fault}\n")).concat();
        assert_eq!(shown.err, format!("The RoleBasedGroup \"llm\" is invalid: \n{list}"));

        let containers = json!([{ "name": "Main", "image": "registry.invalid/x:1" }]);
        let theirs = broken_deployment(&stage, &json!({ "restartPolicy": "Never", "containers": containers }));
        assert_eq!(shape(&shown.err), shape(&theirs.err), "{theirs:?}");

        // The same for programs: all of it in the causes, in this order.
        let answer = stage.post(GROUPS, "rolebasedgroups", &wrong).await;
        assert_eq!((answer.code, causes(&answer)), (422, faults.map(str::to_owned).to_vec()));
    }
}
