//! The dashboard and the alerts of `deploy/monitoring`: they use metrics and labels that a running rolegate has, and Prometheus
//! itself says when each alert fires.

use std::process::Command;

use crate::common::control_plane::{rig_binary, tool};
use crate::common::prelude::*;
use crate::rollouts::support::Duo;

/// Labels that Prometheus adds to what it scrapes.
const OF_TARGETS: &[&str] = &["instance", "job", "namespace", "pod"];
/// Values of labels that are there only once something is wrong.
const NOT_SEEN: &[(&str, &str)] = &[("verdict", "error"), ("code", "409"), ("code", "none")];
/// Metrics of Prometheus itself.
const OF_PROMETHEUS: &[&str] = &["ALERTS", "up"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/monitoring")
}

fn read(name: &str) -> String {
    std::fs::read_to_string(folder().join(name)).unwrap()
}

/// Values of each label of each metric, by the name that a sample has.
type Samples = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// What `/metrics` says, without the numbers.
pub fn samples(metrics: &str) -> Samples {
    let mut all = Samples::new();
    for line in metrics.lines().filter(|line| !line.starts_with('#')) {
        let (sample, _) = line.rsplit_once(' ').unwrap();
        let (name, matchers) = sample.split_once('{').unwrap_or((sample, "}"));
        let labels = all.entry(name.to_owned()).or_default();
        for (label, _, value) in matchers_of(matchers.strip_suffix('}').unwrap()) {
            labels.entry(label).or_default().insert(value);
        }
    }
    all
}

/// `a="b",c=~"d"` as label, operator and value.
fn matchers_of(text: &str) -> Vec<(String, String, String)> {
    let parts: Vec<_> = text.split('"').collect();
    let (pairs, rest) = parts.as_chunks::<2>();
    assert!(rest.iter().all(|rest| rest.trim_matches(',').is_empty()), "{text}");
    let matcher = |[left, value]: &[&str; 2]| {
        let left = left.trim_matches([',', ' ']);
        let label = left.trim_end_matches(['=', '!', '~']);
        (label.to_owned(), left[label.len()..].to_owned(), (*value).to_owned())
    };
    pairs.iter().map(matcher).collect()
}

/// Where a name begins, and where it ends: names of metrics, functions, labels and words of the language.
fn words(query: &str) -> Vec<(usize, &str)> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(start) = query[at..].find(is_of_name).map(|found| at + found) {
        let end = query[start..].find(|c| !is_of_name(c)).map_or(query.len(), |found| start + found);
        words.push((start, &query[start..end]));
        at = end;
    }
    words
}

/// What a query uses that is not there, in words.
fn faults(query: &str, samples: &Samples) -> Vec<String> {
    let mut known: BTreeSet<_> = OF_TARGETS.iter().map(|label| (*label).to_owned()).collect();
    let (mut faults, mut metrics) = (Vec::new(), 0);
    for (start, name) in words(query) {
        if !name.starts_with("rolegate_") && !OF_PROMETHEUS.contains(&name) {
            continue;
        }
        metrics += 1;
        let none = BTreeMap::new();
        let labels = match samples.get(name) {
            Some(labels) => labels,
            None if OF_PROMETHEUS.contains(&name) => &none,
            None => {
                faults.push(format!("there is no metric {name}"));
                continue;
            }
        };
        known.extend(labels.keys().cloned());
        let Some(matchers) = query[start + name.len()..].strip_prefix('{') else { continue };
        for (label, operator, value) in matchers_of(matchers.split_once('}').unwrap().0) {
            if OF_TARGETS.contains(&label.as_str()) || OF_PROMETHEUS.contains(&name) {
                continue;
            }
            let Some(values) = labels.get(&label) else {
                faults.push(format!("{name} has no label {label}"));
                continue;
            };
            let is_plain =
                |value: &&str| operator != "!~" && value.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            let asked = value.split('|').filter(is_plain);
            let unknown =
                asked.filter(|value| !values.contains(*value) && !NOT_SEEN.contains(&(label.as_str(), *value)));
            faults.extend(unknown.map(|value| format!("{name} has no {label} {value}")));
        }
    }
    if metrics == 0 {
        faults.push("no metric is used".to_owned());
    }
    for clause in query.split("by (").skip(1) {
        let labels = clause.split(')').next().unwrap().split(',').map(str::trim);
        faults.extend(labels.filter(|label| !known.contains(*label)).map(|label| format!("by {label}")));
    }
    faults.into_iter().map(|fault| format!("{fault}: {query}")).collect()
}

/// Queries of all panels.
fn of_dashboard() -> Vec<String> {
    let board: Value = serde_json::from_str(&read("dashboard.json")).unwrap();
    let panels = board["panels"].as_array().unwrap().iter();
    let targets = panels.filter_map(|panel| panel["targets"].as_array()).flatten();
    let alerts = board["annotations"]["list"].as_array().unwrap().iter();
    targets.chain(alerts).map(|target| target["expr"].as_str().unwrap().to_owned()).collect()
}

fn of_alerts() -> Vec<String> {
    let file: Value = serde_saphyr::from_str(&read("alerts.yaml")).unwrap();
    let rules = file["groups"].as_array().unwrap().iter().flat_map(|group| group["rules"].as_array().unwrap());
    rules.map(|rule| rule["expr"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn dashboard_and_alerts_use_what_a_running_rolegate_shows() {
    let duo = Duo::serve("monitoring", 3, 3, json!({ "maxSkew": "50%" }), &[("settle", "1s")]).await.ready().await;
    duo.edit_held_back("prefill", "registry.invalid/x:2");
    let look = async || samples(&duo.rolegate.metrics().await);
    let is_there = |samples: &Samples| {
        ["rolegate_rollout_skew", "rolegate_held_groups"].iter().all(|name| samples.contains_key(*name))
    };
    let samples = until_found("an open rollout, and a pass after it", look, is_there).await;
    let queries = [of_dashboard(), of_alerts()].concat();
    assert!(queries.len() > 60, "{}", queries.len());
    let found: Vec<_> = queries.iter().flat_map(|query| faults(query, &samples)).collect();
    assert!(found.is_empty(), "{found:#?}");
    // This is how one that is not there is found.
    for (query, fault) in [
        ("rate(rolegate_nothing_total[5m])", "there is no metric rolegate_nothing_total"),
        ("rolegate_held_pods{role=\"a\"} > 0", "rolegate_held_pods has no label role"),
        ("rolegate_held_pods{reason=\"Lunch\"}", "rolegate_held_pods has no reason Lunch"),
        ("sum by (role) (rolegate_leader)", "by role"),
        ("1 > 0", "no metric is used"),
    ] {
        assert_eq!(faults(query, &samples), [format!("{fault}: {query}")]);
    }
}

#[test]
fn the_operators_objects_fit_what_is_installed() {
    let output = Command::new(rig_binary()).args(["kubectl", "kustomize"]).arg(folder()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let built: Vec<Value> = serde_saphyr::from_multiple(&String::from_utf8(output.stdout).unwrap()).unwrap();
    let of = |kind: &str| built.iter().find(|object| object["kind"] == kind).unwrap();
    assert_eq!(built.len(), 3);

    let alerts: Value = serde_saphyr::from_str(&read("alerts.yaml")).unwrap();
    assert_eq!(of("PrometheusRule")["spec"], alerts);
    assert_eq!(of("ConfigMap")["data"]["dashboard.json"], read("dashboard.json"));

    let workload = std::fs::read_to_string(folder().join("../base/workload.yaml")).unwrap();
    let installed: Vec<Value> = serde_saphyr::from_multiple(&workload).unwrap();
    let deployment = installed.iter().find(|object| object["kind"] == "Deployment").unwrap();
    let (template, monitor) = (&deployment["spec"]["template"], of("PodMonitor"));
    assert_eq!(monitor["metadata"]["namespace"], deployment["metadata"]["namespace"]);
    let labels = template["metadata"]["labels"].as_object().unwrap();
    let selector = monitor["spec"]["selector"]["matchLabels"].as_object().unwrap();
    assert!(!selector.is_empty() && selector.iter().all(|(key, value)| labels.get(key) == Some(value)));
    let [endpoint] = monitor["spec"]["podMetricsEndpoints"].as_array().unwrap().as_slice() else { panic!("{monitor}") };
    let ports = template["spec"]["containers"][0]["ports"].as_array().unwrap();
    assert!(ports.iter().any(|port| port["name"] == endpoint["port"]), "{ports:?}");
}

/// promtool takes minutes to build.
mod tier2 {
    use super::*;

    fn promtool(arguments: &[&str]) {
        let output = Command::new(tool("promtool")).args(arguments).current_dir(folder()).output().unwrap();
        let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        assert!(output.status.success(), "promtool {arguments:?}:\n{out}{err}");
    }

    #[test]
    fn prometheus_takes_the_alerts_and_each_fires_when_it_must() {
        promtool(&["check", "rules", "--lint=all", "--lint-fatal", "alerts.yaml"]);
        promtool(&["test", "rules", "alerts_test.yaml"]);
    }

    #[test]
    fn prometheus_takes_the_queries_of_the_dashboard() {
        let queries = of_dashboard().into_iter().enumerate().map(|(number, query)| {
            json!({ "record": format!("dashboard:query:{number}"), "expr": query.replace("$__rate_interval", "5m") })
        });
        let rules = json!({ "groups": [{ "name": "dashboard", "rules": queries.collect::<Vec<_>>() }] });
        let file = scratch_dir().join("dashboard-rules.yaml");
        std::fs::write(&file, rules.to_string()).unwrap();
        promtool(&["check", "rules", file.to_str().unwrap()]);
    }
}
