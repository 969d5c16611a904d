//! The place of a pod among those whose processes form one group: how many there are, which it is, and the first of them.
//!
//! The numbers of a replica come from the pod alone. Those of a role or a segment come from its group, and a segment counts with
//! its full size, so that a scale changes none of its numbers.

use std::fmt;

use crate::model::Meeting;
use crate::model::clique_set::{Clique, clique_name};
use crate::model::engine::Scope;
use crate::model::{CliquePod, CliqueSet, Engine, Hosts, PodIdentity, names};
use crate::mutate::context::{Coordinated, GroupLookup, MutationContext};

/// The place of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendezvous {
    /// Pods in the group of processes, at least 1.
    pub nodes: u32,
    /// Index of the pod among them, from 0.
    pub rank: u32,
    /// DNS name of the first of them, `localhost` for a pod alone; `None` without a governing Service.
    pub leader: Option<String>,
}

/// The reason for which a pod has no place, or its processes no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoRendezvous {
    NoIdentity,
    NoGroup,
    NoRole,
    NoOrdinal,
    NoMember,
    UnknownReplicas,
    BeyondReplicas,
    NoSegment,
    NoSet,
    NoIndex,
    NoService,
    Claimed,
}

impl fmt::Display for NoRendezvous {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoIdentity => "the pod names no group",
            Self::NoGroup => "its group is not there, and the scope reaches beyond its replica",
            Self::NoRole => "its group lacks the role of the pod, and the scope reaches beyond its replica",
            Self::NoOrdinal => "its replica has no number, and the scope reaches beyond its replica",
            Self::NoMember => "the pod has no number in its replica",
            Self::UnknownReplicas => "the number of replicas of its role is not known",
            Self::BeyondReplicas => "its replica is one more than its role wants",
            Self::NoSegment => "its role is in no segments",
            Self::NoSet => "its Grove set is not there",
            Self::NoIndex => "the pod has no number in its clique",
            Self::NoService => "the pod has no governing Service, so nobody knows the address of the first pod",
            Self::Claimed => "its devices are those of resource claims, whose number no pod tells: set `procsPerPod`",
        })
    }
}

/// Returns the place of a pod under this engine.
pub(super) fn of(context: &MutationContext<'_>, engine: &Engine) -> Result<Rendezvous, NoRendezvous> {
    let suffix = format!("{}.svc.{}", context.subject.namespace(), context.settings.cluster_domain);
    let Found { nodes, rank, leader } = match (&context.subject.place, &context.subject.identity) {
        (Some(place), _) => in_set(context, place, engine.scope)?,
        (None, Some(identity)) => in_group(context, identity, engine.scope)?,
        (None, None) => return Err(NoRendezvous::NoIdentity),
    };
    let leader = if nodes == 1 { Some("localhost".to_owned()) } else { leader.map(|host| format!("{host}.{suffix}")) };
    Ok(Rendezvous { nodes, rank, leader })
}

/// A place; the leader is within the namespace.
struct Found {
    nodes: u32,
    rank: u32,
    leader: Option<String>,
}

fn in_group(context: &MutationContext<'_>, identity: &PodIdentity, scope: Scope) -> Result<Found, NoRendezvous> {
    let size = identity.replica_size.max(1);
    let member = if size == 1 { 0 } else { identity.member.ok_or(NoRendezvous::NoMember)? };
    let group_name = &*identity.group.name;
    let hosts = Hosts::of_pod(context.pod, identity.ordinal, group_name, identity.role.as_deref().unwrap_or_default());
    if scope == Scope::Replica {
        let leader = hosts.and_then(|hosts| hosts.of_own(identity.ordinal));
        return within(size, member).map(|(nodes, rank)| Found { nodes, rank, leader });
    }
    let Some(Coordinated { group, role, ordinal }) = context.coordinated else {
        let is_there = matches!(context.lookups.group, GroupLookup::Found(_));
        return Err(if is_there { NoRendezvous::NoRole } else { NoRendezvous::NoGroup });
    };
    let (ordinal, role) = (ordinal.ok_or(NoRendezvous::NoOrdinal)?, group.role(role).ok_or(NoRendezvous::NoRole)?);
    let unknown = if scope == Scope::Segment { NoRendezvous::NoSegment } else { NoRendezvous::UnknownReplicas };
    let nodes = Meeting::now(group, role, scope, size).ok_or(unknown)?.pods;
    let first = if scope == Scope::Segment { ordinal - ordinal % (nodes / size).max(1) } else { 0 };
    let rank = (ordinal - first).saturating_mul(size).saturating_add(member);
    let leader = hosts.and_then(|hosts| hosts.of(first));
    within(nodes, rank).map(|(nodes, rank)| Found { nodes, rank, leader })
}

fn within(nodes: u32, rank: u32) -> Result<(u32, u32), NoRendezvous> {
    if rank < nodes { Ok((nodes, rank)) } else { Err(NoRendezvous::BeyondReplicas) }
}

/// Returns the place of a Grove pod. A copy of a scaling group is a replica: those of its cliques that ask for the same engine. A
/// pod of a clique without a scaling group is a replica itself.
fn in_set(context: &MutationContext<'_>, place: &CliquePod, scope: Scope) -> Result<Found, NoRendezvous> {
    let set = context.lookups.clique_set.ok_or(NoRendezvous::NoSet)?;
    let index = place.index.ok_or(NoRendezvous::NoIndex)?;
    let cliques = match (scope, &place.scaling_group) {
        (Scope::Segment, _) => return Err(NoRendezvous::NoSegment),
        (Scope::Replica, None) => return Ok(Found { nodes: 1, rank: 0, leader: None }),
        (Scope::Replica, Some((group, _))) => {
            let engine = context.pod.metadata.annotation(names::ENGINE).map(str::trim);
            set.together(group, &place.clique, engine)
        }
        (Scope::Role, _) => named(set, &place.clique).into_iter().collect(),
    };
    let before = cliques.iter().take_while(|clique| clique.name != place.clique);
    let before = before.map(|clique| clique.replicas).fold(0, u32::saturating_add);
    let nodes = cliques.iter().map(|clique| clique.replicas).fold(0, u32::saturating_add);
    let service = place.service(context.pod);
    let group = place.scaling_group.as_ref().map(|(name, copy)| (name.as_str(), *copy));
    let leader = cliques.first().map(|first| {
        let clique = clique_name(&place.set, place.set_replica, group, &first.name);
        format!("{clique}-0.{service}")
    });
    within(nodes, before.saturating_add(index)).map(|(nodes, rank)| Found { nodes, rank, leader })
}

fn named<'a>(set: &'a CliqueSet, clique: &str) -> Option<&'a Clique> {
    set.cliques.iter().find(|known| known.name == clique)
}
