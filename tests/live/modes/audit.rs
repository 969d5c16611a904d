//! What the API server notes of verdicts, and what status, metrics and doctor say of them.

use crate::common::prelude::*;
use crate::modes::{stage, try_group, wrong_group};

/// What the webhooks have had noted of the creation of an object, by key without the webhook's name.
async fn noted(stage: &Stage, resource: &str, name: &str) -> Vec<(String, String)> {
    let log = stage.plane.dir.join("log/audit.jsonl");
    eventually(PATIENT, "it is noted", async || {
        let log = std::fs::read_to_string(&log).unwrap();
        // The last line may be half written.
        let lines = log.lines().filter(|line| line.contains(&stage.namespace));
        let mut events = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let is_it = |event: &Value| {
            let object = &event["objectRef"];
            event["verb"] == "create"
                && event["stage"] == "ResponseComplete"
                && object["resource"] == resource
                && object["namespace"] == *stage.namespace
                && (object["name"] == name || event["responseObject"]["metadata"]["name"] == name)
        };
        let event = events.rfind(is_it).ok_or("no such request")?;
        let notes = event["annotations"].as_object().unwrap().iter();
        let ours = notes.filter_map(|(key, value)| {
            let key = key.split_once(".rolegate.dev/")?.1;
            Some((key.to_owned(), value.as_str().unwrap().to_owned()))
        });
        let ours: Vec<_> = ours.collect();
        if ours.is_empty() { Err("nothing is noted") } else { Ok(ours) }
    })
    .await
}

fn notes(of: &[(&str, &str)]) -> Vec<(String, String)> {
    of.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

async fn status(stage: &Stage, arguments: &[&str]) -> String {
    let name = format!("rolegate-system/{}", stage.namespace);
    let ran = stage.run(&[&["status", "--rolegate", &name], arguments].concat()).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    ran.out
}

#[tokio::test]
async fn every_verdict_is_noted_and_in_each_mode_as_it_is() {
    let (stage, rolegate) = stage("modes-audit").await.with_room(2).await.serve().await;
    let group = Group::three_segments();
    stage.deploy(&group).await;
    stage.pods.until("all are made", |now| now.count_all(|_| true) == 18).await;
    assert_eq!(noted(&stage, "rolebasedgroups", "llm").await, notes(&[("verdict", "allowed")]));
    let held = notes(&[("held-by", "llm/segments"), ("verdict", "held")]);
    assert_eq!(noted(&stage, "pods", "llm-prefill-11").await, held);
    assert_eq!(try_group(&stage, &wrong_group("enforced")).await.0, 422);
    let refused = notes(&[("rules", "segment-size-conflict"), ("verdict", "denied")]);
    assert_eq!(noted(&stage, "rolebasedgroups", "enforced").await, refused);

    stage.label("rolegate.dev/mode=warn");
    let tried = async || try_group(&stage, &wrong_group("warned")).await;
    let (_, warned) = until_found("it is let in with a warning", tried, |(code, _)| *code == 201).await;
    assert_eq!(warned.len(), 1, "{warned:?}");
    assert!(warned[0].ends_with("but another coordination has 2 (refused once rolegate enforces)"), "{warned:?}");
    let let_in = notes(&[("mode", "warn"), ("rules", "segment-size-conflict"), ("verdict", "would-deny")]);
    assert_eq!(noted(&stage, "rolebasedgroups", "warned").await, let_in);
    let shown = status(&stage, &["warned"]).await;
    assert!(shown.contains("in mode warn") && shown.contains("would be refused: segment-size-conflict"), "{shown}");

    stage.label("rolegate.dev/mode=observe");
    stage.pods.until("what was held goes", |now| now.count_all(Pod::is_held) == 0).await;
    assert_eq!(try_group(&stage, &wrong_group("observed")).await, (201, Vec::new()));
    let observed = notes(&[("mode", "observe"), ("rules", "segment-size-conflict"), ("verdict", "would-deny")]);
    assert_eq!(noted(&stage, "rolebasedgroups", "observed").await, observed);
    stage.deploy(&Group::new("later").role("main", 4, 1).held_back()).await;
    stage.pods.until("all are made", |now| now.count("main", |_| true) == 4).await;
    let would = notes(&[("held-by", "later/segments"), ("mode", "observe"), ("verdict", "would-hold")]);
    assert_eq!(noted(&stage, "pods", "later-main-3").await, would);
    let born = stage.pods.births().into_iter().find(|pod| pod.name == "later-main-3").unwrap();
    let is_ours = |key: &String| key.starts_with("rolegate.dev/");
    let ours: Vec<_> = born.annotations.keys().filter(|key| is_ours(key)).collect();
    assert!(!born.is_held() && ours.is_empty() && !born.labels.contains_key("rolegate.dev/segment"), "{born:?}");

    let shown = status(&stage, &[]).await;
    assert!(shown.contains("would be refused: segment-size-conflict"), "{shown}");
    let json: Value = serde_json::from_str(&status(&stage, &["later", "-o", "json"]).await).unwrap();
    let seen = &json["groups"][0];
    assert_eq!((&seen["mode"], &seen["letsGo"]), (&"observe".into(), &"Observed".into()), "{seen:#}");
    let held: u64 = seen["would"]["holds"].as_array().unwrap().iter().map(|hold| hold["pods"].as_u64().unwrap()).sum();
    assert_eq!(held, 3, "{seen:#}");

    let found =
        |verdict: &str| format!(r#"rolegate_findings_total{{rule="segment-size-conflict",verdict="{verdict}"}}"#);
    let counted = async |verdict: &str| rolegate.metric(&found(verdict)).await;
    assert!(counted("denied").await >= 1 && counted("would-deny").await >= 2);
    let would = r#"rolegate_reviews_total{resource="pods",operation="CREATE",verdict="would-patch"}"#;
    assert!(rolegate.metric(would).await >= 4, "{}", rolegate.metrics().await);
    assert_eq!(rolegate.metric(r#"rolegate_namespaces{served="observe"}"#).await, 1);
    assert_eq!(rolegate.metric(r#"rolegate_mode{mode="enforce"}"#).await, 1);
    assert!(rolegate.log().contains("would be refused in mode enforce"), "{}", rolegate.log());

    stage.label("rolegate.dev/mode-");
    eventually(PATIENT, "it is refused again", async || match try_group(&stage, &wrong_group("again")).await {
        (422, _) => Ok(()),
        other => {
            stage.kubectl(&["delete", "rolebasedgroup", "again"]);
            Err(format!("{other:?}"))
        }
    })
    .await;
}

#[tokio::test]
async fn a_label_that_names_no_mode_is_said_and_the_flag_counts() {
    let stage = stage("modes-unknown").await;
    stage.label("rolegate.dev/mode=dryrun");
    let rolegate = stage.launch().start().await;
    assert_eq!(try_group(&stage, &wrong_group("wrong")).await.0, 422);
    let log = rolegate.log();
    assert!(log.contains("the label names no mode") && log.contains("dryrun"), "{log}");
    assert_eq!(rolegate.metric(r#"rolegate_namespaces{served="unknown-mode"}"#).await, 1);
}

#[tokio::test]
async fn who_only_observes_says_so_and_keeps_nobody_out_while_it_is_away() {
    let stage = stage("modes-flag").await;
    let rolegate = stage.launch().flag("mode", "observe").start_unready().await;
    rolegate.until_ready().await;
    let mut tried = 0;
    eventually(PATIENT, "the API server asks", async || {
        // A name of its own: one that was just deleted may still be taken.
        tried += 1;
        let name = format!("wrong-{tried}");
        let (code, warnings) = try_group(&stage, &wrong_group(&name)).await;
        stage.kubectl(&["delete", "--ignore-not-found", "rolebasedgroup", &name]);
        assert_eq!((code, warnings), (201, Vec::new()));
        let asked = r#"rolegate_reviews_total{resource="rolebasedgroups",operation="CREATE",verdict="would-deny"}"#;
        if rolegate.metric(asked).await > 0 { Ok(()) } else { Err("not asked yet") }
    })
    .await;
    let (_, ready) = crate::common::http::get(rolegate.admin, "/readyz?verbose").await.unwrap();
    assert!(ready.contains("mode observe\n"), "{ready}");
    rolegate.until_metric("rolegate_leader", 1).await;
    let shown = stage.doctor().await;
    assert!(shown.contains(" only a missing right of the author is refused, nothing held or written"), "{shown}");
    assert!(!shown.contains("failurePolicy Fail") && !shown.lines().any(|line| line.starts_with("error")), "{shown}");
    rolegate.kill().await;
    assert_eq!(try_group(&stage, &wrong_group("alone")).await, (201, Vec::new()));
}
