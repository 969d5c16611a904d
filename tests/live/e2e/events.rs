//! Events on a group, its workloads and its pods: one for each batch and reason, each with its own text.

use k8s_openapi::api::core::v1::Event;

use crate::common::prelude::*;

/// Events on the group as `kubectl describe` shows them: how often each was said.
async fn events(stage: &Stage) -> BTreeMap<String, i32> {
    let of_group = ListParams::default().fields("involvedObject.kind=RoleBasedGroup,involvedObject.name=llm");
    let events = stage.api::<Event>().list(&of_group).await.unwrap().items;
    let line = |event: &Event| {
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        format!("{} {}: {}", text(&event.type_), text(&event.reason), text(&event.message))
    };
    let times = |event: &Event| event.series.as_ref().and_then(|series| series.count).unwrap_or(1);
    let all: Vec<_> = events.iter().map(|event| (line(event), times(event))).collect();
    let found = all.iter().cloned().collect::<BTreeMap<_, _>>();
    assert_eq!(found.len(), all.len(), "no text twice: {all:#?}");
    found
}

/// What pods were told by us, and how often: name, reason and note.
async fn on_pods(stage: &Stage) -> BTreeMap<[String; 3], i64> {
    let of_pods = ListParams::default().fields("involvedObject.kind=Pod");
    let events = stage.api::<Event>().list(&of_pods).await.unwrap().items;
    let ours = events.into_iter().filter(|event| event.reporting_component.as_deref() == Some("rolegate"));
    let told = ours.map(|event| {
        let times = event.series.as_ref().and_then(|series| series.count).unwrap_or(1);
        let texts = [event.involved_object.name, event.reason, event.message];
        (texts.map(Option::unwrap_or_default), i64::from(times))
    });
    told.collect()
}

fn times(told: &BTreeMap<[String; 3], i64>) -> i64 {
    told.values().sum()
}

/// Waits until these pods were told these notes for these reasons, each once, and no others.
async fn until_told(stage: &Stage, told: &[[&str; 3]]) {
    let expected = told.iter().map(|texts| (texts.map(str::to_owned), 1)).collect::<BTreeMap<_, _>>();
    until_found("these Events on pods", async || on_pods(stage).await, |found| *found == expected).await;
}

/// Waits until these begin the Events that there are, in order of their texts, and there are no others.
async fn until_events(stage: &Stage, begin: &[(&str, i32)]) {
    let fits =
        |((text, count), (begin, times)): ((&String, &i32), &(&str, i32))| text.starts_with(begin) && count == times;
    let same = |found: &BTreeMap<_, _>| found.len() == begin.len() && found.iter().zip(begin).all(fits);
    until_found("these Events", async || events(stage).await, same).await;
}

#[tokio::test]
async fn each_segment_has_its_own_events_and_the_next_leader_makes_no_new_ones() {
    let stage = Stage::new("events").await.with_room(45).await;
    let launch = stage.launch();
    let rolegate = launch.start().await;
    let group = Group::new("llm").role("prefill", 30, 10).role("decode", 15, 5).held_back();
    let statuses = stage.deploy_watched(&group).await;
    stage.pods.until("a segment released", |now| now.count_all(Pod::is_released) == 15).await;
    let first = [
        ("Normal PreviousSegmentNotReady: segment 2 is held: segment 1 has ", 1),
        ("Normal Released: segment 1 (rolegate.dev/segment=0) is released: decode 0-4, prefill 0-9", 1),
    ];
    until_events(&stage, &first).await;

    rolegate.kill().await;
    let before = on_pods(&stage).await;
    let rolegate = launch.start().await;
    until_events(&stage, &[(first[0].0, 2), first[1]]).await;
    let third = [
        (first[0].0, 2),
        ("Normal PreviousSegmentNotReady: segment 3 is held: segment 2 has ", 1),
        first[1],
        ("Normal Released: segment 2 (rolegate.dev/segment=1) is released: decode 5-9, prefill 10-19", 1),
    ];
    for _ in 0..3 {
        stage.let_ready(Pod::is_released).await;
        let before = stage.pods.now(|now| now.count_all(Pod::is_released));
        stage.pods.until("the next", |now| before == 45 || now.count_all(Pod::is_released) == before + 15).await;
        if before == 15 {
            // That the third waits for its turn is told once it has waited for a moment.
            until_events(&stage, &third).await;
        }
    }
    stage.let_ready(|_| true).await;
    statuses.until("all ready", |status| status.ready() == "True AllReplicasReady: 45/45 pods ready").await;
    let all = [
        (first[0].0, 2),
        ("Normal PreviousSegmentNotReady: segment 3 is held: segment 2 has ", 1),
        ("Normal Released: segment 1 (rolegate.dev/segment=0) is released: decode 0-4, prefill 0-9", 1),
        ("Normal Released: segment 2 (rolegate.dev/segment=1) is released: decode 5-9, prefill 10-19", 1),
        ("Normal Released: segment 3 (rolegate.dev/segment=2) is released: decode 10-14, prefill 20-29", 1),
    ];
    until_events(&stage, &all).await;
    assert_eq!(rolegate.metric(r#"rolegate_events_total{outcome="failed"}"#).await, 0);
    // A pod of each segment is told as well that is held for more than a moment: how many are, is not for us to say.
    eventually(PATIENT, "all are written", async || {
        let written = rolegate.metric(r#"rolegate_events_total{outcome="written"}"#).await;
        let on_pods = times(&on_pods(&stage).await) - times(&before);
        if written == 3 * 4 + on_pods { Ok(()) } else { Err(format!("{written}, {on_pods} of them on pods")) }
    })
    .await;

    // They stand on the group, and on the workloads of its roles. When the first segment may go these are hardly made.
    let [prefill, decode] = ["prefill", "decode"].map(|role| format!("statefulset/{}", group.set_name(role)));
    for object in ["rolebasedgroups.workloads.x-k8s.io/llm", &prefill, &decode] {
        let described = stage.kubectl(&["describe", object]);
        let said = all.iter().filter(|(text, _)| {
            object.ends_with("/llm") || !text.contains("segment 1 (rolegate.dev/segment=0) is released")
        });
        for (text, _) in said {
            let (_, note) = text.split_once(": ").unwrap();
            assert!(described.contains(note), "{note:?} is not in:\n{described}");
        }
    }
}

mod tier2 {
    use super::*;

    #[tokio::test]
    async fn a_hold_that_is_over_says_so() {
        let (stage, _rolegate) = Stage::new("hold-over").await.with_room(12).await.serve().await;
        let group = Group::new("llm").role("prefill", 8, 8);
        let statuses = stage.create_watched(&group).await;
        stage.create_sets(&group.clone().role("prefill", 12, 8)).await;
        // Which of the four is seen first is not for us to say.
        let warning = "Warning BeyondDesired: replica ";
        let released = "Normal Released: segment 1 (rolegate.dev/segment=0) is released: prefill 0-7";
        until_events(&stage, &[(released, 1), (warning, 1)]).await;
        // From here on nothing waits for its turn.
        statuses.until("8 ready", |status| status.ready().starts_with("True")).await;
        stage.scale(&group.clone().role("prefill", 12, 8)).await;
        let over = "Normal HoldCleared: no longer so: replica ";
        let rest = "Normal Released: segment 2 (rolegate.dev/segment=1) is released: prefill 8-11";
        until_events(&stage, &[(over, 1), (released, 1), (rest, 1), (warning, 1)]).await;
    }

    #[tokio::test]
    async fn the_first_held_pod_of_a_segment_says_why_and_the_others_say_nothing() {
        let stage = Stage::new("events-on-pods").await.with_room(18).await;
        let _rolegate = stage.launch().flag("missing-group", "hold").start().await;
        // Nothing but the pods is there to say it. The first of them is there before any other is.
        let group = Group::three_segments();
        let missing = ["llm-decode-0", "GroupMissing", r#"group "llm" is not there"#];
        stage.create_set(&group, "decode").await;
        until_told(&stage, &[missing]).await;
        stage.create_set(&group, "prefill").await;
        stage.pods.until("all held", |now| now.count_all(Pod::is_held) == 18).await;

        stage.create_group(&group).await;
        stage.pods.until("the first segment", |now| now.count_all(Pod::is_released) == 6).await;
        let waits = "PreviousSegmentNotReady";
        let second = ["llm-decode-2", waits, "segment 2 is held: segment 1 has 0/4 prefill and 0/2 decode ready"];
        until_told(&stage, &[missing, second]).await;
        let described = stage.plane.must(&["describe", "pod", "llm-decode-2", "-n", &stage.namespace], "");
        assert!(described.contains(second[2]) && described.contains(waits), "{described}");
        let other = stage.plane.must(&["describe", "pod", "llm-prefill-4", "-n", &stage.namespace], "");
        assert!(!other.contains(waits), "{other}");

        stage.let_ready(Pod::is_released).await;
        stage.pods.until("the second segment", |now| now.count_all(Pod::is_released) == 12).await;
        let third = ["llm-decode-4", waits, "segment 3 is held: segment 2 has 0/4 prefill and 0/2 decode ready"];
        until_told(&stage, &[missing, second, third]).await;
        stage.let_ready(Pod::is_released).await;
        stage.pods.until("the third segment", |now| now.count_all(Pod::is_released) == 18).await;
        stage.let_ready(Pod::is_released).await;
        let statuses = stage.statuses(&group);
        statuses.until("all ready", |status| status.ready() == "True AllReplicasReady: 18/18 pods ready").await;
        until_told(&stage, &[missing, second, third]).await;
    }
}
