//! Checks of the leader and of held pods.

use crate::cli::doctor::facts::{Facts, Strangers, Uncoordinated, Warned};
use crate::cli::doctor::finding::{Findings, NAMED, SEE_ALL};
use crate::cli::terminal::age;
use crate::model::wording::counted;
use crate::plan::Held;

/// Tolerated clock skew of the Lease, in seconds.
const SKEW: i64 = 5;

/// Checks that a replica leads.
pub fn leader(facts: &Facts, found: &mut Findings) {
    let Some(lease) = found.known(facts.lease.as_ref(), "the Lease") else { return };
    let start = "start `rolegate serve`; see its log";
    let Some(spec) = lease.as_ref().and_then(|lease| lease.spec.as_ref()) else {
        found.error("no replica has ever led: held pods are not released", start);
        return;
    };
    let holder = spec.holder_identity.as_deref().unwrap_or_default();
    let renewed = spec.renew_time.as_ref().map(|time| time.0.as_second());
    let since = renewed.map_or(i64::MAX, |renewed| facts.now.as_second().saturating_sub(renewed));
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

/// Checks that no pod is held for a missing group.
pub fn orphans(all: &[(String, u32)], _: &Facts, found: &mut Findings) {
    let more = ("group", "with held pods are missing", SEE_ALL);
    found.each(all, "no pod is held for a group that is missing", more, |found, (group, pods)| {
        found.warning(
            format!("{} held for group {group}, which is not there", counted(*pods, "pod")),
            format!("apply the group, or `rolegate release {}`", named("group", group)),
        );
    });
}

/// Lists the groups that hold pods or wait. Reasons that end by themselves, such as a turn, are info only.
pub fn held(all: &[(String, Held)], _: &Facts, found: &mut Findings) {
    if all.is_empty() {
        found.ok("nothing waits in any group");
    }
    let (to_see_to, waiting): (Vec<_>, Vec<_>) = all.iter().partition(|(_, held)| held.reason.is_warning());
    for (group, held) in to_see_to.into_iter().chain(waiting).take(NAMED) {
        let (Held { reason, message, .. }, count) = (held, held.count());
        let pods = if count == 0 { String::new() } else { format!(" ({} held)", counted(count, "pod")) };
        let what = format!("group {group}: {reason}: {message}{pods}");
        let hint = format!("`rolegate explain {}`", named("group", group));
        if reason.is_warning() { found.warning(what, hint) } else { found.note(what, hint) }
    }
    if let Some(more @ 1..) = all.len().checked_sub(NAMED) {
        found.note(format!("{} more", counted(more, "hold")), SEE_ALL);
    }
}

/// Returns the arguments that name an object, from its namespace and name.
fn named(kind: &str, key: &str) -> String {
    let (namespace, name) = key.split_once('/').unwrap_or_default();
    format!("{kind} {name} -n {namespace}")
}

/// Checks that no pod runs that was held for a group that is missing.
pub fn uncoordinated(all: &[Uncoordinated], _: &Facts, found: &mut Findings) {
    let more = ("group", "with pods that run are missing", SEE_ALL);
    found.each(
        all,
        "every pod that was held has its group",
        more,
        |found, Uncoordinated { group, pods, was_there }| {
            let what = format!(
                "{} of group {group} run, and it is not there: nothing coordinates them",
                counted(*pods, "pod")
            );
            if *was_there {
                found.note(what, "it was deleted; apply it again if this was a mistake");
            } else {
                found.warning(
                what,
                "they were released without it: apply the group, or correct its name in the labels of the pod template",
            );
            }
        },
    );
}

/// Checks that every pod with our gate names a group.
pub fn nobodys(all: &[String], _: &Facts, found: &mut Findings) {
    let more = ("pod", "that carry our gate name no group", SEE_ALL);
    found.each(all, "every held pod names a group or PodGroup", more, |found, pod| {
        let release = named("pod", pod);
        found.warning(
            format!("pod {pod} has the gate of rolegate and names no group: it is never released"),
            format!("put the labels of its group back, delete it, or `rolegate release {release}`"),
        );
    });
}

/// Checks that every pod's role exists in its group.
pub fn strangers(all: &[Strangers], _: &Facts, found: &mut Findings) {
    let more = ("role", "with pods are not in their group", SEE_ALL);
    found.each(all, "every pod's role is in its group", more, |found, Strangers { group, role, pods }| {
        found.warning(
            format!("{} of role {role:?}, which group {group} does not have", counted(*pods, "pod")),
            "add the role to the group; or correct its name in the labels of the pod template, then delete the held pods",
        );
    });
}

/// Checks that no autoscaler scales a workload of a group that is scaled by segments, and that only one scales the
/// group.
pub fn rivals(all: &[Warned], _: &Facts, found: &mut Findings) {
    let mend = "let one autoscaler scale the RoleCoordination, and none its workloads";
    warned(all, "no autoscaler is in the way of another", mend, found);
}

/// Checks that the addresses given to pods resolve.
pub fn addresses(all: &[Warned], _: &Facts, found: &mut Findings) {
    let mend = "apply the Service with `clusterIP: None` and `publishNotReadyAddresses: true`";
    warned(all, "the addresses that pods are given resolve", mend, found);
}

/// Tells the warnings of a rule for stored groups.
fn warned(all: &[Warned], none: &str, mend: &str, found: &mut Findings) {
    found.each(all, none, ("case", "of this kind", mend), |found, Warned { group, why }| {
        found.warning(format!("group {group}: {why}"), mend);
    });
}
