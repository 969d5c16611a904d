//! What the rights of an author guard: the fields by which rolegate comes to act, compared as read, after defaults, and without
//! the paths of their spelling. Coordinations and roles are matched by name.

use std::collections::BTreeMap;

use crate::model::rolling::RollingBounds;
use crate::model::topology::Strength;
use crate::model::{
    AwaitedKind, BatchKind, Batching, Coordination, Domain, FieldPath, GangLevel, Group, GroupKey, PodGroupPolicy,
    Provision, ReadyWhen, Recovery, WorkloadKey, names,
};
use crate::rules::{Cause, Violation};

/// Reports whether an update keeps what a missing right guards.
pub(super) fn is_kept(old: &Group, new: &Group, missing: &Violation) -> bool {
    let of = &*missing.subject;
    match missing.rule {
        "segments-scale" => scaled(old) == scaled(new),
        "recovery" | "rollback-right" | "rollout-by" => is_same(old, new, of, deletions),
        "pod-group-rights" => is_same(old, new, of, gangs),
        "ready-when" => is_same(old, new, of, awaited),
        "provision-rights" => is_same(old, new, of, requests),
        "rollback-by-hand" => old.carrier.rolled_back == new.carrier.rolled_back,
        "resume-by-hand" if of == names::RESUMED_AT => old.carrier.resumed == new.carrier.resumed,
        "resume-by-hand" => old.carrier.rollout_resumed == new.carrier.rollout_resumed,
        _ => false,
    }
}

/// Reports whether a coordination is as one of its name was before, in what is read of it.
fn is_same<'a, T: PartialEq>(
    old: &'a Group,
    new: &'a Group,
    of: &str,
    read: fn(&'a Group, &'a Coordination) -> T,
) -> bool {
    let name = |coordination: &'a Coordination| coordination.name.as_deref().unwrap_or_default();
    let was = |now: &'a Coordination| {
        let mut same_name = old.coordinations.iter().filter(|was| name(was) == name(now));
        same_name.any(|was| read(old, was) == read(new, now))
    };
    new.coordinations.iter().filter(|now| now.display_name() == of).all(was)
}

/// The pods of a coordination: those of which group, and of each role its sizes in a batch.
type Members<'a> = (&'a GroupKey, Vec<(&'a str, Vec<(BatchKind, Option<i64>)>)>);

fn members<'a>(group: &'a Group, coordination: &'a Coordination) -> Members<'a> {
    let of_role = |name: &'a str| {
        let sizes = coordination.batchings.iter().map(|batching| (batching.kind, batching.sizes.get(name).copied()));
        (name, sizes.collect())
    };
    (&group.key, coordination.role_names().into_iter().map(of_role).collect())
}

/// The same, and who makes them.
type Made<'a> = (Members<'a>, Vec<Option<&'a WorkloadKey>>);

fn made<'a>(group: &'a Group, coordination: &'a Coordination) -> Made<'a> {
    let roles = coordination.role_names().into_iter();
    let makers = roles.map(|name| group.role(name).and_then(|role| role.workload.key.as_ref()));
    (members(group, coordination), makers.collect())
}

/// What scaling follows: the wanted segments, and what one is made of.
fn scaled(group: &Group) -> (Option<i64>, Vec<Made<'_>>) {
    let batched = group.batched().map(|(coordination, _)| made(group, coordination));
    (group.elastic.as_ref().map(|elastic| elastic.segments), batched.collect())
}

/// What deletions of pods follow: recoveries, and rollouts.
fn deletions<'a>(
    group: &'a Group,
    coordination: &'a Coordination,
) -> (Made<'a>, Vec<Pathless<'a, Recovery>>, Option<RollingBounds>, Vec<Awaited<'a>>) {
    let pathless = |recovery: &Recovery| {
        (Recovery { at: FieldPath::default(), ..recovery.clone() }, unknown_words(group, &recovery.at))
    };
    let recoveries = coordination.batchings.iter().map(|batching| batching.recovery.as_ref().map(pathless));
    let bounds = RollingBounds::all_of(group).into_iter().find(|bounds| bounds.index == coordination.index);
    let bounds = bounds.map(|bounds| RollingBounds {
        index: 0,
        name: String::new(),
        object: None,
        min_ready: BTreeMap::new(),
        ..bounds
    });
    let rolling = coordination.rolling_ready_when.iter().map(|when| awaits(group, when));
    (made(group, coordination), recoveries.collect(), bounds, rolling.collect())
}

/// A block without its path, and the unknown words in it.
type Pathless<'a, T> = Option<(T, Vec<Option<&'a str>>)>;

/// The unknown words of a block.
fn unknown_words<'a>(group: &'a Group, at: &FieldPath) -> Vec<Option<&'a str>> {
    let unknown = group.faults_within(at).filter(|fault| fault.cause == Cause::NotSupported);
    unknown.map(|fault| fault.value.as_deref()).collect()
}

type Gang<'a> = (Option<(&'a PodGroupPolicy, GangLevel)>, Option<(&'a Domain, Strength, bool)>);

/// What PodGroups are made of.
fn gangs<'a>(group: &'a Group, coordination: &'a Coordination) -> (Members<'a>, Vec<Gang<'a>>) {
    let of_batching = |batching: &'a Batching| {
        let gangs = batching.gangs.as_ref().map(|gangs| (&gangs.policy, gangs.level));
        (gangs, batching.topology.as_ref().map(|topology| (&topology.domain, topology.strength, topology.spread)))
    };
    (members(group, coordination), coordination.batchings.iter().map(of_batching).collect())
}

type Awaited<'a> = (u32, Option<(&'a AwaitedKind, &'a str, &'a str)>, bool);

/// What becomes visible of other objects.
fn awaited<'a>(group: &'a Group, coordination: &'a Coordination) -> Vec<Awaited<'a>> {
    coordination.ready_when().map(|when| awaits(group, when)).collect()
}

fn awaits<'a>(group: &Group, when: &'a ReadyWhen) -> Awaited<'a> {
    let object = when.object.as_ref().map(|object| (&object.kind, &*object.name, &*object.condition));
    (when.min_ready_seconds, object, group.faults_within(&when.at).next().is_none())
}

/// What requests for nodes follow.
fn requests<'a>(group: &'a Group, coordination: &'a Coordination) -> (Made<'a>, Pathless<'a, Provision>, Option<i64>) {
    let pathless = |provision: &Provision| {
        (Provision { at: FieldPath::default(), ..provision.clone() }, unknown_words(group, &provision.at))
    };
    let provision = coordination.provision().map(pathless);
    (made(group, coordination), provision, group.elastic.as_ref().map(|elastic| elastic.segments))
}
