//! Alerts, runbook and dashboard match. `tests/live/monitoring.rs` tests them with Prometheus.

use std::collections::BTreeSet;
use std::fs;

use rolegate::model::HoldReason;
use serde_json::Value;

fn alerts() -> Vec<Value> {
    let file: Value = serde_saphyr::from_str(&fs::read_to_string("deploy/monitoring/alerts.yaml").unwrap()).unwrap();
    let groups = file["groups"].as_array().unwrap();
    groups.iter().flat_map(|group| group["rules"].as_array().unwrap()).cloned().collect()
}

fn names() -> Vec<String> {
    alerts().iter().map(|alert| alert["alert"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn each_alert_says_how_bad_it_is_what_is_wrong_and_where_to_read_on() {
    let alerts = alerts();
    assert!(alerts.len() > 20);
    for alert in &alerts {
        let name = alert["alert"].as_str().unwrap();
        assert!(alert["for"].as_str().is_some_and(|time| time != "0m"), "{name}");
        assert!(["critical", "warning", "info"].contains(&alert["labels"]["severity"].as_str().unwrap()), "{name}");
        let annotation = |key: &str| alert["annotations"][key].as_str().unwrap_or_default();
        assert!(!annotation("summary").is_empty() && !annotation("summary").ends_with('.'), "{name}");
        for key in ["description", "impact", "action"] {
            assert!(annotation(key).ends_with(['.', '`']), "{name}: {key}");
        }
        assert_eq!(annotation("runbook_url"), format!("docs/runbooks.md#{}", name.to_lowercase()));
    }
}

const RUNBOOKS: &str = "\
# Runbooks

<!-- Written by `make docs`, from deploy/monitoring/alerts.yaml. -->

One section for each alert of [deploy/monitoring](metrics.md#monitoring), for the default installation (`rolegate-system/rolegate`,
admin port 9080). Run [`rolegate doctor`](guides/installing.md#check-it) first. If rolegate is down and cannot be repaired soon,
[let pods go without it](guides/outage.md#what-to-do).

<!-- not run: needs a faulty installation -->
```console
$ kubectl -n rolegate-system logs -l app.kubernetes.io/name=rolegate --prefix --tail=200               # the logs
$ kubectl get --raw '/api/v1/namespaces/rolegate-system/pods/POD:9080/proxy/readyz?verbose'            # the readiness checks
$ kubectl get --raw /api/v1/namespaces/rolegate-system/pods/POD:9080/proxy/metrics | grep '^rolegate'  # the metrics
```
";

/// Writes names of alerts and pages as links, and what Prometheus fills in as a word in capitals.
fn on_the_page(text: &str, names: &[String]) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{ $") {
        let (inside, after) = after.split_once(" }}").unwrap();
        let label = inside.strip_prefix("labels.").unwrap_or("n");
        out = out + before + &label.to_uppercase();
        rest = after;
    }
    out += rest;
    let word = |word: &str| {
        let bare = word.trim_matches(['(', ')', '.', ',', ';', ':']);
        let link = if let Some(page) = bare.strip_prefix("docs/") {
            format!("[{page}]({page})")
        } else if names.iter().any(|name| name == bare) {
            format!("[{bare}](#{})", bare.to_lowercase())
        } else {
            return word.to_owned();
        };
        word.replacen(bare, &link, 1)
    };
    out.split('\n').map(|line| line.split(' ').map(word).collect::<Vec<_>>().join(" ")).collect::<Vec<_>>().join("\n")
}

/// Returns the page of the runbooks: what each alert says, whom it affects, and what to do.
fn runbooks() -> String {
    let names = names();
    alerts().iter().fold(RUNBOOKS.to_owned(), |page, alert| {
        let name = alert["alert"].as_str().unwrap();
        let severity = alert["labels"]["severity"].as_str().unwrap();
        let time = alert["for"].as_str().unwrap();
        let text = |key: &str| on_the_page(alert["annotations"][key].as_str().unwrap(), &names);
        let action = text("action").replacen("\n- ", "\n\n- ", 1);
        let (summary, impact) = (text("summary"), text("impact"));
        page + &format!(
            "\n## {name}\n\n{summary} (**{severity}**, after {time}).\n\n**Affected**: {impact}\n\n**Do**: {action}\n"
        )
    })
}

#[test]
fn the_runbooks_are_those_of_the_alerts() {
    let page = runbooks();
    for name in names() {
        let section = page.split(&format!("\n## {name}\n")).nth(1).unwrap().split("\n## ").next().unwrap();
        let at: Vec<_> = ["**, after ", "**Affected**: ", "**Do**: "].map(|part| section.find(part)).into();
        assert!(at.iter().all(Option::is_some) && at.is_sorted(), "{name}: {at:?}");
        assert!(!section.contains("{{"), "{name}: {section}");
    }
    crate::generated::is_current("docs/runbooks.md", &page);
}

#[test]
fn each_alert_is_seen_to_fire_and_not_to_fire() {
    let tests: Value =
        serde_saphyr::from_str(&fs::read_to_string("deploy/monitoring/alerts_test.yaml").unwrap()).unwrap();
    let looks: Vec<_> = tests["tests"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|test| test["promql_expr_test"].as_array())
        .flatten()
        .map(|look| (look["expr"].as_str().unwrap(), look["exp_samples"].as_array().unwrap().is_empty()))
        .collect();
    for name in names() {
        let expr = format!("count(ALERTS{{alertname=\"{name}\",alertstate=\"firing\"}})");
        let of_alert: BTreeSet<_> = looks.iter().filter(|(asked, _)| *asked == expr).map(|(_, quiet)| *quiet).collect();
        assert_eq!(of_alert.len(), 2, "{name}: {of_alert:?}");
    }
}

#[test]
fn reasons_that_alerts_name_are_those_that_hold_pods() {
    let known: BTreeSet<_> = HoldReason::ALL.iter().map(|reason| reason.as_str()).collect();
    let mut named = BTreeSet::new();
    for alert in alerts() {
        let expr = alert["expr"].as_str().unwrap().to_owned();
        for matcher in expr.split("rolegate_held_groups{reason").skip(1) {
            let reasons = matcher.trim_start_matches(['=', '~', '"']).split('"').next().unwrap();
            named.extend(reasons.split('|').map(str::to_owned));
        }
    }
    let unknown: Vec<_> = named.iter().filter(|reason| !known.contains(reason.as_str())).collect();
    assert!(unknown.is_empty() && named.len() > 10, "{unknown:?} of {named:?}");
    // These reasons end by themselves, or an alert covers their cause.
    let others = [
        "BlockedByCoordination",
        "CanaryPaused",
        "GatedByOthers",
        "IncompleteBatch",
        "NodesRequested",
        "PatchFailed",
        "PreviousSegmentNotReady",
        "PreviousStepNotScheduled",
        "Recovering",
        "RoomUnknown",
        "ScaleInDeferred",
        "SegmentGrowing",
        "SegmentNotAccepted",
        "SegmentOutdated",
    ];
    let rest: Vec<_> = known.into_iter().filter(|reason| !named.contains(*reason)).collect();
    assert_eq!(rest, others);
}

#[test]
fn the_dashboard_is_one_that_any_grafana_can_import() {
    let board: Value = serde_json::from_str(&fs::read_to_string("deploy/monitoring/dashboard.json").unwrap()).unwrap();
    assert!(board.get("id").is_none(), "an id is that of one Grafana");
    let variables = board["templating"]["list"].as_array().unwrap();
    let names: Vec<_> = variables.iter().map(|variable| variable["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["datasource", "namespace", "job"]);
    let mut taken = BTreeSet::new();
    let mut ids = BTreeSet::new();
    for panel in board["panels"].as_array().unwrap() {
        let title = panel["title"].as_str().unwrap();
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{title}");
        let [x, y, w, h] = ["x", "y", "w", "h"].map(|key| panel["gridPos"][key].as_u64().unwrap());
        assert!(x + w <= 24, "{title}");
        for cell in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
            assert!(taken.insert(cell), "{title} lies over another panel");
        }
        if panel["type"] == "row" {
            continue;
        }
        assert!(panel["description"].as_str().is_some_and(|text| text.ends_with('.')), "{title}");
        for target in panel["targets"].as_array().unwrap() {
            assert_eq!(target["datasource"]["uid"], "${datasource}", "{title}");
            assert!(target["expr"].as_str().unwrap().contains("job=~\"$job\""), "{title}");
        }
    }
}
