//! A group on the status page: its status, a cell for each pod, the rooms of its domains, the bands of its rollouts.

use std::collections::BTreeMap;

use serde::Serialize;

use super::domains::{DomainsDrawn, domains};
use super::{Picture, Status, Story};
use crate::api::status::{Condition, GroupStatus};
use crate::fit::Cluster;
use crate::model::{Group, RollingBounds};
use crate::plan::{PodFacts, RoleView};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Drawing<'a> {
    #[serde(flatten)]
    status: Status<'a>,
    /// The stored conditions, written by the leader, with their times.
    told: &'a [Condition],
    roles: BTreeMap<&'a str, RoleDrawn>,
    /// Sets of roles that are updated at one rate.
    bands: Vec<Band>,
    /// Batches that have lost a replica, and their recovery, as text.
    told_recoveries: Vec<String>,
    /// Requests for nodes, as text.
    told_requests: Vec<String>,
    /// Domains that batches share, for each coordination that asks for one.
    domains: Vec<DomainsDrawn<'a>>,
}

#[derive(Serialize)]
struct RoleDrawn {
    desired: u32,
    /// Number of pods of a complete replica.
    size: u32,
    /// A letter for each pod, replica by replica in order of ordinals: `h` held, `g` without a node, `s` on a node and not
    /// ready, `r` ready, `-` missing or failed. A space separates replicas of several pods.
    cells: String,
}

/// Roles with a limit on the difference of their updated shares.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Band {
    coordination: String,
    roles: Vec<String>,
    /// Percent.
    max_skew: u32,
}

/// One line of the list of groups.
#[derive(Serialize)]
pub struct Line<'a> {
    namespace: &'a str,
    name: &'a str,
    /// Kind of the carrier; absent where there is none.
    carrier: Option<&'static str>,
    segments: &'a str,
    ready: &'a str,
    held: u32,
    /// Reason of the next held batch, in one word; empty when nothing is held.
    reason: &'a str,
    /// Why the batch waits, or the state of the group.
    sentence: &'a str,
}

impl<'a> Line<'a> {
    /// Returns the line of a group: the summary that the loop has written, as kubectl shows it; before that, the current
    /// decision.
    pub fn of(picture: &'a Picture) -> Self {
        let status = &picture.seen.status;
        let summary = picture.told().or(status.summary.as_ref());
        let seen = Story::of(picture)
            .holds()
            .min_by_key(|held| held.reason)
            .map(|held| (held.reason.as_str(), held.message.as_str()));
        let of_loop = picture.told().map(|told| (told.reason.as_str(), told.message.as_str()));
        // A summary of an earlier release has no sentence.
        let of_loop = of_loop.map(|(reason, message)| match seen {
            Some((own, sentence)) if own == reason && message.is_empty() => (reason, sentence),
            _ => (reason, message),
        });
        let (reason, sentence) = of_loop.or(seen).unwrap_or_default();
        let of_condition = || ["Progressing", "Ready"].iter().find_map(|kind| condition(status, kind));
        Self {
            namespace: &picture.key.namespace,
            name: &picture.key.name,
            carrier: picture.carrier().map(|(kind, _)| kind),
            segments: summary.map_or("", |summary| &summary.segments),
            ready: summary.map_or("", |summary| &summary.ready),
            held: picture.told().map_or_else(|| picture.held_pods(), |told| told.held),
            reason,
            sentence: Some(sentence).filter(|text| !text.is_empty()).or_else(of_condition).unwrap_or_default(),
        }
    }
}

/// Returns the message of a condition; `None` when it is empty.
fn condition<'a>(status: &'a GroupStatus, kind: &str) -> Option<&'a str> {
    Some(status.condition(kind)?.message.as_str()).filter(|message| !message.is_empty())
}

impl<'a> Drawing<'a> {
    /// Returns the drawing of a group; `cluster` is `None` where the room is unknown.
    pub fn of(picture: &'a Picture, cluster: Option<&Cluster>) -> Self {
        let group = picture.group();
        let roles = picture.seen.view.roles.iter().map(|(name, role)| (name.as_str(), RoleDrawn::of(role)));
        Self {
            status: Status::of(picture),
            told: group.map(|group| group.status.conditions.as_slice()).unwrap_or_default(),
            roles: roles.collect(),
            told_recoveries: Story::of(picture).recoveries(),
            told_requests: Story::of(picture).requests(),
            bands: group.map(|group| bands(group)).unwrap_or_default(),
            domains: cluster.map(|cluster| domains(picture, cluster)).unwrap_or_default(),
        }
    }
}

fn bands(group: &Group) -> Vec<Band> {
    let band = |RollingBounds { name, roles, max_skew, .. }| Band { coordination: name, roles, max_skew };
    RollingBounds::all_of(group).into_iter().map(band).collect()
}

impl RoleDrawn {
    fn of(role: &RoleView) -> Self {
        let size = role.replica_size();
        let last = role.replicas.iter().last().map_or(0, |(ordinal, _)| ordinal.saturating_add(1));
        let mut cells = String::new();
        // A replica far beyond the desired ones is a stray, not worth a million empty cells.
        for ordinal in 0..role.desired.max(last.min(role.desired.saturating_add(MOST_SURPLUS))) {
            if cells.len() >= MOST_CELLS {
                break;
            }
            if size > 1 && ordinal > 0 {
                cells.push(' ');
            }
            let pods = role.replicas.pods_of(ordinal);
            let complete = role.replicas.get(ordinal).map_or(size, |replica| replica.size);
            cells.extend(pods.iter().map(|pod| cell(pod)));
            let missing = usize::try_from(complete.max(1)).unwrap_or(usize::MAX).saturating_sub(pods.len());
            cells.extend(std::iter::repeat_n('-', missing.min(MOST_CELLS)));
        }
        Self { desired: role.desired, size, cells }
    }
}

/// Largest number of drawn cells of one role: more pods than a cluster has.
const MOST_CELLS: usize = 200_000;
/// Largest number of drawn replicas beyond the desired ones.
const MOST_SURPLUS: u32 = 64;

fn cell(pod: &PodFacts) -> char {
    match pod {
        PodFacts { held: true, .. } => 'h',
        PodFacts { ready: true, .. } => 'r',
        PodFacts { scheduled: true, .. } => 's',
        _ => 'g',
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::view::counts::{ObservedCounts, RoleCounts};

    #[test]
    fn a_role_that_says_that_it_is_larger_than_any_cluster_is_drawn_up_to_a_bound() {
        let group = serde_json::json!({ "metadata": { "name": "g" }, "spec": { "roles": [{ "name": "a" }] } });
        let group = Group::from_rbg(crate::api::rbg::ROLE_BASED_GROUP, &serde_json::from_value(group).unwrap());
        let one = RoleCounts { created: Some(1), ..RoleCounts::default() };
        let observed = ObservedCounts { roles: [("a".to_owned(), one)].into(), ..ObservedCounts::default() };
        let mut view = observed.view(&group, &BTreeMap::new()).unwrap().roles.remove("a").unwrap();
        view.desired = u32::MAX;
        assert_eq!(RoleDrawn::of(&view).cells.len(), MOST_CELLS);
        let mut large = crate::plan::PodFacts::clone(view.replicas.pods().next().unwrap().1);
        large.identity.replica_size = u32::MAX;
        view.replicas.add(&std::sync::Arc::new(large), 1);
        assert!(RoleDrawn::of(&view).cells.len() <= 2 * MOST_CELLS + 2);
    }
}
