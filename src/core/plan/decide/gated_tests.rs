use serde_json::{Value, json};

use crate::build;
use crate::model::HoldReason;
use crate::plan::decide::DecisionContext;
use crate::plan::test_support::{mk_evaluation, mk_group, mk_pod, shared};
use crate::plan::view::{GroupView, PodFacts};

/// Returns what goes of two batches of two prefills and a decode, and why the others are held. `gated` are the names of pods with a
/// gate of another controller, `went` of those that were released.
fn seen(strategy: &Value, gated: &[&str], went: &[&str], stalled: bool) -> (Vec<String>, Vec<String>) {
    let group = mk_group(&[("prefill", 4), ("decode", 2)], &json!([{ "name": "pd", "strategy": strategy }]));
    let mut pods = Vec::new();
    for (role, count) in [("prefill", 4), ("decode", 2)] {
        for ordinal in 0..count {
            let name = format!("{role}-{ordinal}");
            let gate = gated.contains(&&*name).then(|| "example.com/other".into());
            let created = Some(format!("2026-01-01T00:00:0{ordinal}Z").into());
            let held = !went.contains(&&*name);
            let facts =
                PodFacts { held, gated: gate.is_some(), foreign_gate: gate, created, ..mk_pod(&name, role, ordinal) };
            pods.push(facts);
        }
    }
    let view = GroupView::build(&group, &shared(&pods));
    let decision = mk_evaluation(&group, &view, DecisionContext { stalled, ..DecisionContext::default() }).decision;
    let release = decision.release.iter().map(|release| release.pod.pod.name.to_string()).collect();
    let held = decision.held.iter().filter(|held| held.reason == HoldReason::GatedByOthers);
    (release, held.map(|held| held.message.clone()).collect())
}

fn segments(more: &Value) -> Value {
    build::segments(&[("prefill", 2), ("decode", 1)], &build::with(json!({ "progression": "Parallel" }), more))
}

#[test]
fn a_batch_that_goes_as_a_whole_waits_for_gates_of_others() {
    let rack = json!({ "topologyKey": "rack", "strategy": "RequireSegmentAffinity" });
    let gangs = json!({ "podGroupPolicy": { "kubeScheduling": {} } });
    for whole in [json!({ "whole": true }), gangs, json!({ "topologyAffinity": rack })] {
        let (release, why) = seen(&segments(&whole), &["prefill-1", "decode-0"], &[], false);
        let mut release: Vec<_> = release.iter().map(String::as_str).collect();
        release.sort_unstable();
        assert_eq!(release, ["decode-1", "prefill-2", "prefill-3"], "{whole}");
        let text = "gate \"example.com/other\" of another controller holds 2 of its pods since 2026-01-01T00:00:00Z";
        assert_eq!(why, [format!("segment 1 is held: {text}")], "{whole}");
        let (_, why) = seen(&segments(&whole), &["prefill-1"], &[], true);
        let text = "; if its owner waits until rolegate has lifted its own gate, neither goes on";
        assert!(why[0].ends_with(text), "{why:?}");
        // What went is not called back: the others follow it.
        let (release, why) = seen(&segments(&whole), &["prefill-1"], &["prefill-0"], false);
        assert_eq!((release.len(), why.len()), (5, 0), "{whole}");
        assert_eq!(seen(&segments(&whole), &[], &[], false).0.len(), 6);
    }
    let (release, why) = seen(&segments(&json!({})), &["prefill-1"], &[], true);
    assert_eq!((release.len(), why.len()), (6, 0), "pods that go one by one wait for nobody");
}
