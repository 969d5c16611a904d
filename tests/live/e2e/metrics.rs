//! What `/metrics` says while a group comes up, and that the page about it names every metric.

use crate::common::http;
use crate::common::prelude::*;

const PODS_AGE: &str = r#"rolegate_cache_age_seconds{kind="pods"}"#;

#[tokio::test]
async fn a_run_is_told_in_metrics() {
    let stage = Stage::new("metrics").await.with_room(45).await;
    // On a busy machine a short lease is lost now and then, and with it the time of the segment that is being released.
    let rolegate = stage.launch().flag("lease-duration", "15s").start().await;
    let group = Group::new("llm").role("prefill", 30, 10).role("decode", 15, 5).held_back();
    let statuses = stage.create_watched(&group).await;
    statuses.until("the first is committed", |status| status.released("prefill") == 10).await;
    stage.create_sets(&group).await;
    let batches = async |ready, released, held| {
        for (state, count) in [("Ready", ready), ("Released", released), ("Held", held)] {
            rolegate.until_metric(&format!(r#"rolegate_batches{{state="{state}"}}"#), count).await;
        }
    };
    for segment in 0..3 {
        stage.pods.until("the next", |now| now.count_all(Pod::is_released) == 15 * (segment + 1)).await;
        let segment = i64::try_from(segment).unwrap();
        batches(segment, 1, 2 - segment).await;
        let held = 15 * (2 - segment);
        rolegate.until_metric(r#"rolegate_held_pods{reason="PreviousSegmentNotReady"}"#, held).await;
        stage.let_ready(Pod::is_released).await;
    }
    statuses.until("all ready", |status| status.ready() == "True AllReplicasReady: 45/45 pods ready").await;
    batches(3, 0, 0).await;
    assert_eq!(rolegate.metric("rolegate_leader").await, 1);
    assert_eq!(rolegate.metric(r#"rolegate_releases_total{outcome="released"}"#).await, 45);

    // Those segments are timed whose pods waited: the first was free before it had any.
    rolegate.until_metric("rolegate_batch_release_seconds_count", 2).await;
    let time = rolegate.seconds("rolegate_batch_release_seconds_sum").await.unwrap();
    let planned = rolegate.seconds("rolegate_plan_seconds_sum").await.unwrap();
    assert!(time > 0.0 && planned > 0.0, "{time} {planned}");
    println!("{:.1} ms for each of two segments of 15 pods", time / 2.0 * 1000.0);
    assert!(rolegate.seconds(PODS_AGE).await.unwrap() < 90.0);

    // What counts only what goes wrong is there once it has.
    assert_eq!(http::get(rolegate.webhook, "/").await.unwrap().0, 400);
    rolegate.until_metric(r#"rolegate_server_handshakes_failed_total{reason="plain_http"}"#, 1).await;
    are_documented(&rolegate.metrics().await);
}

/// The page names each metric, and no other.
fn are_documented(metrics: &str) {
    let named = |line: &str| {
        let (name, kind) = line.strip_prefix("# TYPE ")?.split_once(' ')?;
        Some(if kind == "counter" { format!("{name}_total") } else { name.to_owned() })
    };
    let there: BTreeSet<_> = metrics.lines().filter_map(named).collect();
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/metrics.md")).unwrap();
    let section = page.split("\n## ").find(|section| section.starts_with("Metrics")).unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `")).flat_map(|line| line.split('`'));
    let names = rows.clone().filter(|word| word.starts_with("rolegate_"));
    let names = names.map(|word| word.split('{').next().unwrap().to_owned());
    // Those of rollouts are there while there are any: their own suite reads them.
    let of_rollouts = |name: &String| name.starts_with("rolegate_rollout_");
    assert_eq!(names.filter(|name| !of_rollouts(name)).collect::<BTreeSet<_>>(), there);

    let samples = crate::monitoring::samples(metrics);
    for word in rows.filter(|word| word.starts_with("rolegate_")) {
        let (name, labels) = word.trim_end_matches('}').split_once('{').unwrap_or((word, ""));
        let of_sum = || samples.get(&format!("{name}_sum"));
        let Some(found) = samples.get(name).or_else(of_sum) else { continue };
        let documented: BTreeSet<_> = labels.split(',').filter(|label| !label.is_empty()).collect();
        assert_eq!(documented, found.keys().map(String::as_str).collect(), "{name}");
    }
}
