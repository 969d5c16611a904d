//! Checks of the leader and of held pods.

use crate::cli::doctor::facts::{Facts, HeldGroup, Strangers, Uncoordinated};
use crate::cli::doctor::finding::Findings;
use crate::cli::terminal::age;
use crate::model::wording::counted;
use crate::plan::reconcile::events::is_warning;

/// Tolerated clock skew of the Lease, in seconds.
const SKEW: i64 = 5;

/// Checks that a replica leads.
pub fn leader(facts: &Facts, found: &mut Findings) {
    let Some(lease) = found.known(&facts.lease, "the Lease") else { return };
    let start = "start `rolegate serve`; see its log";
    let Some(spec) = lease.as_ref().and_then(|lease| lease.spec.as_ref()) else {
        found.error("no replica has ever led: held pods are not released", start);
        return;
    };
    let holder = spec.holder_identity.as_deref().unwrap_or_default();
    let renewed = spec.renew_time.as_ref().map(|time| time.0);
    let since = renewed.map_or(i64::MAX, |renewed| facts.now.as_second().saturating_sub(renewed.as_second()));
    let duration = i64::from(spec.lease_duration_seconds.unwrap_or_default());
    match holder {
        "" => found.error("no replica leads, the last one gave up its Lease: held pods are not released", start),
        _ if since > duration + SKEW => {
            let ago = age(u64::try_from(since).unwrap_or_default());
            found.error(format!("{holder} led and has been silent for {ago}: held pods are not released"), start);
        }
        _ => found.ok(format!("{holder} leads")),
    }
}

/// Groups to name; further ones are counted.
const NAMED: usize = 5;

/// Checks that no pod is held for a missing group.
pub fn orphans(facts: &Facts, found: &mut Findings) {
    let Some(orphans) = found.known(&facts.orphans, "held pods") else { return };
    if orphans.is_empty() {
        found.ok("no pod is held for a group that is missing");
    }
    for orphan in orphans.iter().take(NAMED) {
        let pods = counted(orphan.pods, "pod");
        found.warning(
            format!("{pods} held for group {}, which is not there", orphan.group),
            format!("apply the group, or `rolegate release {}`", named(&orphan.group)),
        );
    }
    more(orphans.len(), "group", "with held pods are missing", found);
}

/// Lists the groups that hold pods or wait. Reasons that end by themselves, such as a turn, are info only.
pub fn held(facts: &Facts, found: &mut Findings) {
    let Some(all) = found.known(&facts.held, "groups") else { return };
    if all.is_empty() {
        found.ok("nothing waits in any group");
    }
    let (to_see_to, waiting): (Vec<_>, Vec<_>) = all.iter().partition(|held| is_warning(held.reason));
    for held in to_see_to.iter().chain(&waiting).take(NAMED) {
        let HeldGroup { group, reason, message, pods } = held;
        let pods = if *pods == 0 { String::new() } else { format!(" ({} held)", counted(*pods, "pod")) };
        let (what, hint) =
            (format!("group {group}: {reason}: {message}{pods}"), format!("`rolegate explain {}`", named(group)));
        if is_warning(*reason) { found.warning(what, hint) } else { found.note(what, hint) }
    }
    if let Some(more @ 1..) = all.len().checked_sub(NAMED) {
        found.note(format!("{} more", counted(more, "hold")), "`rolegate status -A`");
    }
}

/// Returns the arguments that name a group, from its namespace and name.
fn named(group: &str) -> String {
    let (namespace, name) = group.split_once('/').unwrap_or_default();
    format!("group {name} -n {namespace}")
}

/// Checks that no pod runs that was held for a group that is missing.
pub fn uncoordinated(facts: &Facts, found: &mut Findings) {
    let Some(groups) = found.known(&facts.uncoordinated, "pods") else { return };
    if groups.is_empty() {
        found.ok("every pod that was held has its group");
    }
    for Uncoordinated { group, pods, was_there } in groups.iter().take(NAMED) {
        let what =
            format!("{} of group {group} run, and it is not there: nothing coordinates them", counted(*pods, "pod"));
        if *was_there {
            found.note(what, "it was deleted; apply it again if this was a mistake");
        } else {
            found.warning(
                what,
                "they were released without it: apply the group, or correct its name in the labels of the pod template",
            );
        }
    }
    more(groups.len(), "group", "with pods that run are missing", found);
}

/// Checks that every pod with our gate names a group.
pub fn nobodys(facts: &Facts, found: &mut Findings) {
    let Some(pods) = found.known(&facts.nobodys, "held pods") else { return };
    if pods.is_empty() {
        found.ok("every held pod names a group or PodGroup");
    }
    for pod in pods.iter().take(NAMED) {
        let (namespace, name) = pod.split_once('/').unwrap_or_default();
        found.warning(
            format!("pod {pod} has the gate of rolegate and names no group: it is never released"),
            format!("put the labels of its group back, delete it, or `rolegate release pod {name} -n {namespace}`"),
        );
    }
    more(pods.len(), "pod", "that carry our gate name no group", found);
}

/// Checks that every pod's role exists in its group.
pub fn strangers(facts: &Facts, found: &mut Findings) {
    let Some(strangers) = found.known(&facts.strangers, "pods") else { return };
    if strangers.is_empty() {
        found.ok("every pod's role is in its group");
    }
    for Strangers { group, role, pods } in strangers.iter().take(NAMED) {
        let pods = counted(*pods as usize, "pod");
        found.warning(
            format!("{pods} of role {role:?}, which group {group} does not have"),
            "add the role to the group; or correct its name in the labels of the pod template, then delete the held pods",
        );
    }
    more(strangers.len(), "role", "with pods are not in their group", found);
}

fn more(all: usize, what: &str, are: &str, found: &mut Findings) {
    if let Some(more @ 1..) = all.checked_sub(NAMED) {
        found.warning(format!("{} more {are}", counted(more, what)), "`rolegate status -A`");
    }
}
