//! Every golden case, asked of the API server: twin and rule must agree, but for what the README lists.

use futures::StreamExt;
use rolegate::api::ObjectKind;
use rolegate::rules::{Judged, KaiDialect, Violation, judged_kinds};

use crate::common::prelude::*;
use crate::policies::cluster::{
    AT_ONCE, Answer, api_of, define, define_loosely, define_ours, install, may_create, pod_group_definition,
    refuse_on_error,
};
use crate::policies::mutants;
use crate::policies::readme::{Coverage, coverage, disagreements};
use crate::policies::trial::{Trial, arrange, authors};

#[tokio::test(flavor = "multi_thread")]
async fn twins_agree_with_the_rules() {
    let plane = Arc::new(ControlPlane::start());
    define_loosely(&plane);
    let client = plane.client().await;
    let mut trials = arrange(&client, &authors(&plane).await).await;
    install(&plane);
    refuse_on_error(&client).await;
    for (kind, object) in wrong_objects() {
        until(&client, kind, &object, |answer| matches!(answer, Answer::Refused(_))).await;
    }
    let coverage = coverage();
    let answers = ask_all(&plane, &client, &trials).await;
    check(&trials, &answers, &coverage);

    serve_dialect(&plane, &client, KaiDialect::Auto).await;
    let found = mutants::disagreements(&client, &trials, &coverage).await;
    assert!(found.is_empty(), "{} mutants\n{}", found.len(), found.join("\n\n"));
    large_objects_are_judged(&client).await;

    define_ours(&plane);
    // Our definitions serve no other version of RoleBasedGroups.
    trials.retain(|trial| trial.kind != rolegate::api::rbg::ROLE_BASED_GROUP_V1ALPHA2);
    for (kind, object) in misshapen_objects() {
        until(&client, kind, &object, |answer| matches!(answer, Answer::Invalid(_))).await;
    }
    schemas_refuse_nothing_else(&trials, &answers, &ask_all(&plane, &client, &trials).await);
}

/// What the API server says to each trial, by name. Cases of each dialect are asked while the definition of that dialect is
/// served.
pub async fn ask_all(plane: &ControlPlane, client: &Client, trials: &[Trial]) -> BTreeMap<String, Answer> {
    let mut answers = BTreeMap::new();
    for dialect in [KaiDialect::Auto, KaiDialect::Proposal, KaiDialect::Upstream, KaiDialect::Pods] {
        serve_dialect(plane, client, dialect).await;
        let of_dialect = trials.iter().filter(|trial| trial.case.dialect() == dialect);
        let asked = of_dialect.map(|trial| async move { (trial.name.clone(), trial.ask().await) });
        let of_dialect: Vec<_> = futures::stream::iter(asked).buffer_unordered(AT_ONCE).collect().await;
        answers.extend(of_dialect);
    }
    answers
}

/// Twins and rules disagree about what the README lists, and about nothing else.
pub fn check(trials: &[Trial], answers: &BTreeMap<String, Answer>, coverage: &BTreeMap<String, Coverage>) {
    let found: BTreeMap<_, _> = trials
        .iter()
        .filter_map(|trial| {
            let judged = trial.case.judge().unwrap_or_else(|error| panic!("{}: {error}", trial.name));
            Some((trial.name.as_str(), disagreement(&judged, &answers[&trial.name], coverage)?))
        })
        .collect();
    let listed = disagreements();
    let new = found.iter().filter(|(name, (what, _))| listed.get(**name).map(String::as_str) != Some(what));
    let new: Vec<_> = new.map(|(name, (what, details))| format!("{name}\n  {what}\n{details}")).collect();
    let stale: Vec<_> = listed.keys().filter(|name| !found.contains_key(name.as_str())).collect();
    let (count, new) = (new.len(), new.join("\n"));
    assert!(count == 0 && stale.is_empty(), "not in the README: {count}\n{new}\n\nno longer so: {stale:#?}");
}

/// The schemas of our definitions come before the twins, and refuse only what some rule refuses as well.
fn schemas_refuse_nothing_else(trials: &[Trial], before: &BTreeMap<String, Answer>, behind: &BTreeMap<String, Answer>) {
    let wrong = trials.iter().filter(|trial| match (&before[&trial.name], &behind[&trial.name]) {
        (Answer::Refused(_), answer) => *answer == Answer::Admitted,
        (_, Answer::Admitted) => false,
        (_, _) => trial.case.judge().unwrap().errors.is_empty() && !trial.case.is_being_deleted(),
    });
    let wrong: Vec<_> = wrong.map(|trial| format!("{}: {:?}", trial.name, behind[&trial.name])).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Expressions have a budget: objects larger than any that is in use stay within it, and their faults are found.
pub async fn large_objects_are_judged(client: &Client) {
    let roles: Vec<_> = (0..100).map(|n| json!({"name": format!("role-{n}"), "replicas": 100})).collect();
    let coordination = (0..10).map(|c| {
        let sizes: serde_json::Map<_, _> = (0..10).map(|n| (format!("role-{}", 10 * c + n), json!(5))).collect();
        json!({"strategy": {"segmentPlacement": {"segmentSize": sizes}}})
    });
    let mut coordination: Vec<_> = coordination.collect();
    coordination.push(json!({"strategy": {"segmentPlacement": {"segmentSize": {"role-99": 4}}}}));
    let subgroups = (0..200).map(|n| match n {
        0..50 => json!({"name": format!("g-{n}")}),
        199 => json!({"name": "g-199", "parent": "g-200", "minMember": 1}),
        _ => json!({"name": format!("g-{n}"), "parent": format!("g-{}", n % 50), "minMember": 1}),
    });
    let cliques = (0..200).map(|n| {
        json!({"name": format!("c-{n}"), "spec": {"roleName": if n == 199 { "ROLE_0".to_owned() } else { format!("ROLE_{n}") }}})
    });
    let group = json!({"roles": roles, "coordination": coordination});
    let large = [
        ("RoleBasedGroup", group, "segment size conflict for role \"role-99\""),
        ("PodGroup", json!({"subGroups": subgroups.collect::<Vec<_>>()}), "Not found: \"g-200\""),
        ("PodCliqueSet", json!({"template": {"cliques": cliques.collect::<Vec<_>>()}}), "Duplicate value: \"ROLE_0\""),
    ];
    for (kind, spec, fault) in large {
        let kind = kind_of(kind);
        let answer = may_create(&api_of(client, kind, "default"), &probe(kind, &spec)).await;
        assert!(matches!(&answer, Answer::Refused(text) if text.contains(fault)), "{}: {answer:?}", kind.kind);
    }
}

/// What twin and rule do not agree about, with details; `None` when they do.
pub fn disagreement(
    judged: &Judged,
    answer: &Answer,
    coverage: &BTreeMap<String, Coverage>,
) -> Option<(&'static str, String)> {
    let has_twin = |violation: &&Violation| coverage.get(violation.rule).is_some_and(|c| *c != Coverage::None);
    let mut faults: Vec<_> = judged.errors.iter().filter(has_twin).map(fault).collect();
    // A longer one may hold a shorter one.
    faults.sort_by_key(|fault| (std::cmp::Reverse(fault.len()), fault.clone()));
    faults.dedup();
    let expected = || faults.iter().fold(String::new(), |text, fault| format!("{text}    rule: {fault}\n"));
    match answer {
        Answer::Admitted if faults.is_empty() => None,
        Answer::Admitted => Some(("admits", expected())),
        // The schema of the definition says it already; then no policy is asked.
        Answer::Invalid(_) if !judged.errors.is_empty() => None,
        Answer::Invalid(text) => Some(("the schema refuses", format!("    schema: {text}\n"))),
        Answer::Refused(text) => {
            let details = || format!("{}    twin: {text}\n", expected());
            if text.contains("resulted in error") {
                return Some(("cannot say", details()));
            }
            if faults.is_empty() {
                return Some(("refuses", details()));
            }
            let mut rest = text.clone();
            if faults.len() > SHOWN {
                // Which ten are shown is up to the twin.
                return (!rest.contains(&format!("and {} more", faults.len() - SHOWN)))
                    .then(|| ("other words", details()));
            }
            for fault in &faults {
                let Some(at) = rest.find(fault.as_str()) else { return Some(("other words", details())) };
                rest.replace_range(at..at + fault.len(), "");
            }
            (!rest.trim_matches([';', ' ']).is_empty()).then(|| ("more", details()))
        }
    }
}

/// Faults that a twin's message shows.
const SHOWN: usize = 10;

/// A violation as a twin says it: without the name that was probably meant.
fn fault(violation: &Violation) -> String {
    let text = violation.to_string();
    text.split("; did you mean ").next().unwrap().to_owned()
}

fn kind_of(name: &str) -> ObjectKind {
    judged_kinds().find(|kind| kind.kind == name).unwrap()
}

fn probe(kind: ObjectKind, spec: &Value) -> Value {
    object(&kind.api_version(), kind.kind, "probe").spec(spec)
}

/// An object for each policy, which it refuses.
pub fn wrong_objects() -> Vec<(ObjectKind, Value)> {
    let clique = json!({"name": "a", "spec": {"roleName": "1"}});
    let rows = [
        ("ClusterTopology", json!({"layers": []})),
        ("RoleBasedGroup", json!({"roles": [{"name": ""}]})),
        ("CoordinatedPolicy", json!({"policies": [{}]})),
        ("PodGroup", json!({"subGroups": [{"name": ""}]})),
        ("PodCliqueSet", json!({"template": {"cliques": [clique]}})),
    ];
    rows.into_iter().map(|(kind, spec)| (kind_of(kind), probe(kind_of(kind), &spec))).collect()
}

/// An object for each definition of ours, which its schema refuses.
fn misshapen_objects() -> Vec<(ObjectKind, Value)> {
    let ours = judged_kinds();
    let ours = ours.filter(|kind| ["RoleBasedGroup", "RoleCoordination"].contains(&kind.kind));
    let ours = ours.filter(|kind| kind.version == "v1alpha1");
    ours.chain([kind_of("ClusterTopology")])
        .map(|kind| (kind, probe(kind, &json!({"roles": "none", "layers": "none"}))))
        .collect()
}

/// Waits until the API server answers so: definitions and policies reach it by its own watches.
pub async fn until(client: &Client, kind: ObjectKind, object: &Value, is_so: impl Fn(&Answer) -> bool) {
    let api = api_of(client, kind, "default");
    until_found("the policies and definitions are in force", async || may_create(&api, object).await, is_so).await;
}

/// Has the API server serve PodGroups as releases of KAI with this dialect do, and waits until the twin knows.
async fn serve_dialect(plane: &ControlPlane, client: &Client, dialect: KaiDialect) {
    let fields = match dialect {
        KaiDialect::Auto => json!({}),
        KaiDialect::Proposal => json!({"topologyConstraints": {"x-kubernetes-preserve-unknown-fields": true}}),
        KaiDialect::Upstream => json!({"minSubGroup": {"type": "integer"}}),
        KaiDialect::Pods => json!({"minMember": {"type": "integer"}}),
    };
    define(plane, &pod_group_definition(&fields).to_string());
    // The last looks like upstream, and is judged so where no definition tells.
    let probes: [(&[KaiDialect], Value); 3] = [
        (&[KaiDialect::Proposal], json!({"minMember": 2, "subGroups": [{"name": "a", "minMember": 1}]})),
        (&[KaiDialect::Upstream], json!({"subGroups": [{"name": "a"}]})),
        (&[KaiDialect::Upstream, KaiDialect::Auto], json!({"preemptibility": "x", "subGroups": [{"name": "a"}]})),
    ];
    let kind = kind_of("PodGroup");
    for (wrong_in, spec) in probes {
        let is_so = |answer: &Answer| matches!(answer, Answer::Refused(_)) == wrong_in.contains(&dialect);
        until(client, kind, &probe(kind, &spec), is_so).await;
    }
}
