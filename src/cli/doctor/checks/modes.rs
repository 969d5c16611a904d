//! Checks of the modes of namespaces, and of the namespace selectors of the webhook configurations.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::admission::ours;
use crate::cli::doctor::facts::{Facts, ServedNamespaces};
use crate::cli::doctor::finding::Findings;
use crate::model::wording::counted;
use crate::model::{Mode, Out, Serving, Stance, names};

/// Namespaces to name; further ones are counted.
const NAMED: usize = 5;

/// Reports the modes of rolegate and of labelled namespaces.
pub fn mode(facts: &Facts, found: &mut Findings) {
    let Some(served) = found.known(&facts.served, "how namespaces are served") else { return };
    let Some(told) = &served.told else {
        return found.info("the mode is not known: the leader is of an earlier release, or no replica leads");
    };
    match told.mode {
        Mode::Enforce => found.ok("objects that break a rule are refused, pods are held (--mode enforce)"),
        Mode::Warn => found.warning(
            "objects that break a rule pass with a warning (--mode warn)",
            "when nothing would be refused, start `rolegate serve` with --mode enforce",
        ),
        Mode::Observe => found.warning(
            "only a missing right of the author is refused, nothing held or written (--mode observe)",
            "label a namespace rolegate.dev/mode=enforce, or start `rolegate serve` with --mode warn",
        ),
    }
    let named = |test: &dyn Fn(&Stance) -> bool| {
        let all: Vec<_> =
            served.stances.iter().filter(|(_, stance)| test(stance)).map(|(name, _)| name.as_str()).collect();
        let more = all.len().checked_sub(NAMED).filter(|more| *more > 0).map(|more| format!(" and {more} more"));
        (!all.is_empty())
            .then(|| all.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ") + &more.unwrap_or_default())
    };
    for mode in Mode::ALL.iter().copied().filter(|mode| *mode != told.mode) {
        if let Some(names) = named(&|stance| stance.mode == mode && stance.out.is_none()) {
            found.info(format!("by their labels in mode {}: {names}", mode.as_str()));
        }
    }
    if let Some(names) = named(&|stance| stance.has_unknown_mode) {
        found.warning(
            format!("label {} names no mode, and that of --mode counts: {names}", names::MODE),
            "it must be enforce, warn or observe",
        );
    }
    policy(facts, served, found);
}

/// Warns about failurePolicy Fail when rolegate only observes.
fn policy(facts: &Facts, served: &ServedNamespaces, found: &mut Findings) {
    let closed = |ours: &super::admission::Ours| ours.failure_policy.as_deref() != Some("Ignore");
    let Some(ours) = ours(facts).into_iter().find(closed).filter(|_| served.only_observes()) else { return };
    found.warning(
        format!(
            "{} has failurePolicy Fail, and rolegate only observes: while it is away, pods are refused all the same",
            ours.title
        ),
        "apply `rolegate manifests --mode observe`, or run `rolegate serve` with --webhooks all",
    );
}

/// Checks that the webhook configurations select the served namespaces, and finds groups in namespaces that are not
/// served.
pub fn selection(facts: &Facts, found: &mut Findings) {
    let Some(served) = found.known(&facts.served, "how namespaces are served") else { return };
    let Some(told) = &served.told else { return };
    if let Some(differs) = ours(facts).iter().find(|ours| chosen(ours.namespaces.as_ref()) != wanted(told)) {
        found.warning(
            format!(
                "{} selects other namespaces than the replica that leads serves (--namespace-selector)",
                differs.title
            ),
            "apply the manifests with the same --namespace-selector, or run `rolegate serve` with --webhooks all",
        );
    }
    let left = served.groups.iter().filter(|(namespace, _)| {
        served.stances.get(*namespace).is_some_and(|stance| stance.out == Some(Out::NotSelected))
    });
    let left: Vec<_> = left.collect();
    for (namespace, groups) in left.iter().take(NAMED) {
        found.warning(
            format!(
                "{} in namespace {namespace}, which is not selected: neither judged nor held",
                counted(**groups, "group")
            ),
            "label the namespace as --namespace-selector asks for",
        );
    }
    if let Some(more @ 1..) = left.len().checked_sub(NAMED) {
        found.warning(
            format!("{} more with groups are not selected", counted(more, "namespace")),
            "`rolegate status -A`",
        );
    }
}

type Requirements = BTreeSet<(String, String, Vec<String>)>;

fn wanted(told: &Serving) -> Requirements {
    let labels =
        told.selector.match_labels.iter().map(|(key, value)| (key.clone(), "In".to_owned(), vec![value.clone()]));
    let all = told.selector.match_expressions.iter();
    all.map(|one| (one.key.clone(), one.operator.clone(), one.values.clone())).chain(labels).collect()
}

/// Returns the namespace requirements of a webhook beyond those that all our webhooks have.
fn chosen(selector: Option<&LabelSelector>) -> Requirements {
    let Some(selector) = selector else { return Requirements::new() };
    let labels = selector.match_labels.iter().flatten();
    let labels = labels.map(|(key, value)| (key.clone(), "In".to_owned(), vec![value.clone()]));
    let all = selector.match_expressions.iter().flatten();
    let all = all.map(|one| (one.key.clone(), one.operator.clone(), one.values.clone().unwrap_or_default()));
    let is_own = |key: &str| key == "kubernetes.io/metadata.name" || key == names::IGNORE;
    all.chain(labels).filter(|(key, ..)| !is_own(key)).collect()
}
