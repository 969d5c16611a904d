//! Checks of the modes of namespaces, and of the namespace selectors of the webhook configurations.

use std::collections::BTreeSet;

use super::admission::ours;
use crate::api::selector::LabelSelector;
use crate::cli::doctor::facts::{Facts, ServedNamespaces};
use crate::cli::doctor::finding::{Findings, NAMED, SEE_ALL, listed};
use crate::cli::doctor::hooks::Hook;
use crate::cluster::read::installations::read;
use crate::model::wording::counted;
use crate::model::{Mode, Out, Stance, names};

/// Reports the modes of rolegate and of labelled namespaces.
pub fn mode(served: &ServedNamespaces, facts: &Facts, found: &mut Findings) {
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
        let stances = served.stances.iter().filter(|(_, stance)| test(stance));
        Some(listed(stances.map(|(name, _)| name.as_str()), NAMED)).filter(|names| !names.is_empty())
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
    let Some(ours) = ours(facts).into_iter().find(Hook::is_closed).filter(|_| served.only_observes()) else { return };
    let title = ours.title();
    found.warning(
        format!("{title} has failurePolicy Fail, and rolegate only observes: while it is away, pods are refused all the same"),
        "apply `rolegate manifests --mode observe`, or run `rolegate serve` with --webhooks all",
    );
}

/// Checks that the webhook configurations select the served namespaces, and finds groups in namespaces that are not
/// served.
pub fn selection(served: &ServedNamespaces, facts: &Facts, found: &mut Findings) {
    let Some(told) = &served.told else { return };
    let wanted = requirements(&told.selector);
    if let Some(differs) = ours(facts).iter().find(|ours| chosen(ours) != wanted) {
        let title = differs.title();
        found.warning(
            format!("{title} selects other namespaces than the replica that leads serves (--namespace-selector)"),
            "apply the manifests with the same --namespace-selector, or run `rolegate serve` with --webhooks all",
        );
    }
    let is_out = |name: &String| served.stances.get(name).is_some_and(|one| one.out == Some(Out::NotSelected));
    let left: Vec<_> = served.groups.iter().filter(|(namespace, _)| is_out(namespace)).collect();
    for (namespace, groups) in left.iter().take(NAMED) {
        let groups = counted(**groups, "group");
        found.warning(
            format!("{groups} in namespace {namespace}, which is not selected: neither judged nor held"),
            "label the namespace as --namespace-selector asks for",
        );
    }
    if let Some(more @ 1..) = left.len().checked_sub(NAMED) {
        found.warning(format!("{} more with groups are not selected", counted(more, "namespace")), SEE_ALL);
    }
}

type Requirements = BTreeSet<(String, String, Vec<String>)>;

fn requirements(selector: &LabelSelector) -> Requirements {
    let labels = selector.match_labels.iter();
    let labels = labels.map(|(key, value)| (key.clone(), "In".to_owned(), vec![value.clone()]));
    let all = selector.match_expressions.iter();
    all.map(|one| (one.key.clone(), one.operator.clone(), one.values.clone())).chain(labels).collect()
}

/// Returns the namespace requirements of a webhook beyond those that all our webhooks have.
fn chosen(hook: &Hook<'_>) -> Requirements {
    let mut all = requirements(&hook.spec.namespace_selector.as_ref().map(read).unwrap_or_default());
    all.retain(|(key, ..)| key != "kubernetes.io/metadata.name" && key != names::IGNORE);
    all
}
