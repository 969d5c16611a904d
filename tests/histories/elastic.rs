//! Checks groups whose workloads scale together, independently of the planner.

use rolegate::cluster::write::writer::mark_patch;
use rolegate::model::ScaledWorkload;
use rolegate::plan::marks::Mark;

use crate::history::{Act, Fate, History, Step};
use crate::prelude::*;
use crate::replica::Fault;
use crate::server::merge_metadata;
use crate::shrink::run;

impl Setup {
    /// Adds a number of wanted segments of the first two roles.
    pub fn elastic(mut self, random: &mut Random) -> Self {
        self.refers = true;
        self.segments = Some(random.below(5));
        self.makers[..ROLLED].fill_with(|| match random.below(5) {
            0 => Maker::Leaders { size: 2, late: false },
            1 => Maker::Alike,
            _ => Maker::Set { start: random.pick(&[0, 0, 3]) },
        });
        self.replicas[..ROLLED].fill_with(|| random.below(3));
        let are_sets = self.makers[..ROLLED].iter().all(|maker| matches!(maker, Maker::Set { .. }));
        self.rolling = (are_sets && random.percent(30)).then(|| Rolling::random(random));
        let progression = random.pick(&[Progression::OrderedReady, Progression::Ordered, Progression::Parallel]);
        let sizes = [1 + random.below(2), 1 + random.below(2), 0];
        self.wish = Wish::All(vec![Coordination::of(progression, sizes)]);
        self
    }
}

/// Returns the single coordination whose segments can be wanted.
fn one_of(wish: &Wish) -> Option<&Coordination> {
    let Wish::All(all) = wish else { return None };
    let [one] = all.as_slice() else { return None };
    let is_claimable = |role: usize| role < ROLLED || one.sizes[role] == 0;
    (one.progression != Progression::Scheduled && (0..ROLES.len()).all(is_claimable)).then_some(one)
}

impl Setup {
    /// Restricts a user's edit, unless it is invalid: with wanted segments, its segments must be possible to want; with
    /// shared racks, the batches stay as they are.
    pub fn admitted(&self, wish: Wish) -> Wish {
        let is_free = !self.racks && (self.segments.is_none() || one_of(&wish).is_some());
        if is_free || wish == Wish::Wrong { wish } else { self.wish.clone() }
    }
}

impl Stored {
    /// Returns the number of wanted segments and their coordination, if in effect as far as the group itself is
    /// concerned.
    pub fn wanted(&self) -> Option<(u32, Coordination)> {
        let segments = self.segments.filter(|_| self.refers)?;
        Some((segments, one_of(&self.wish)?.clone()))
    }
}

impl Server {
    /// Returns the number of wanted segments, if the workloads claim the group.
    pub fn wanted(&self) -> Option<(u32, Coordination)> {
        let (segments, coordination) = self.group.as_ref()?.wanted()?;
        let claimed = (0..ROLLED)
            .all(|role| coordination.sizes[role] == 0 || self.sets.get(role).is_some_and(|set| set.is_claimed()));
        claimed.then_some((segments, coordination))
    }

    /// Returns the replicas of a role that an elastic group wants, and those not yet removed; `None` when the role is
    /// not scaled.
    pub fn elastic_desired(&self, role: usize) -> Option<u32> {
        let (wanted, coordination) = self.wanted()?;
        let sizes = coordination.sizes;
        if sizes[role] == 0 {
            return None;
        }
        let group = self.group.as_ref().unwrap();
        let roles = || (0..ROLES.len()).filter(|role| sizes[*role] > 0);
        let committed = roles().filter_map(|role| Some(group.committed(role)?.div_ceil(sizes[role]))).max();
        let there = || roles().map(|role| self.workloads[role].div_ceil(sizes[role])).max().unwrap();
        let segments = match group.status.draining {
            Some(draining) => wanted.max(draining.from),
            None => wanted.max(committed.unwrap_or_else(there)),
        };
        Some(segments * sizes[role])
    }

    /// Returns the replicas of a role that have places: of a scaled role, those that may run.
    pub fn placed(&self, role: usize) -> u32 {
        let desired = self.desired(role);
        let committed = self.group.as_ref().and_then(|group| group.committed(role));
        committed.filter(|_| self.elastic_desired(role).is_some()).map_or(desired, |committed| committed.min(desired))
    }

    /// Applies `PATCH …/scale` with a JSON Merge Patch; returns the new resourceVersion.
    fn patch_scale(&mut self, role: usize, patch: &Value) -> Answered<String> {
        if patch["metadata"]["resourceVersion"].as_str().is_some_and(|version| version != self.sets[role].version()) {
            return Err(refusal(409, ""));
        }
        let replicas = u32::try_from(patch["spec"]["replicas"].as_u64().unwrap()).unwrap();
        self.scale_workload(role, replicas);
        Ok(self.sets[role].version().to_owned())
    }
}

fn role_of(workload: &ScaledWorkload) -> usize {
    ROLES.iter().position(|role| *role == workload.claim.role).unwrap()
}

/// Checks a decision to scale a workload.
pub fn decided(
    (workload, replicas): (&ScaledWorkload, u32),
    group: &Group,
    stored: Option<&Stored>,
    snapshot: &Snapshot,
) -> Result<(), Broken> {
    let role = role_of(workload);
    let name = ROLES[role];
    let Some((stored, (_, Coordination { sizes, .. }))) = stored.and_then(|stored| Some((stored, stored.wanted()?)))
    else {
        return Err(Broken(format!("E: {name} is scaled, and no segments are wanted of it")));
    };
    hold!(snapshot.lets_go().is_none() && !group.deleting, "E: {name} is scaled in a namespace that has opted out");
    let known = snapshot.scaled.iter().find(|known| known.key == workload.key);
    hold!(known == Some(workload), "E: {name} is scaled as what it is not known to be: {workload:?}");
    let (has, committed) = (workload.desired, stored.committed(role).unwrap_or(0));
    hold!(replicas != has, "E4: {name} is scaled to what it has");
    if replicas > has {
        hold!(replicas <= committed, "E3: {name} is scaled to {replicas}, and {committed} are committed");
        return Ok(());
    }
    hold!(replicas >= committed, "E2: {name} is scaled to {replicas}, and {committed} are to run");
    let Some(draining) = stored.status.draining else {
        hold!(has > committed, "E2: {name} is scaled from {has} to {replicas}, and nothing is taken away");
        return Ok(());
    };
    hold!(replicas >= draining.from * sizes[role], "E2: {name} is scaled to {replicas} of {draining:?}");
    if has > draining.to * sizes[role] {
        // Another actor changed it.
        return Ok(());
    }
    let left = replicas / sizes[role];
    for other in &snapshot.scaled {
        let (at, size) = (role_of(other), sizes[role_of(other)]);
        if size == 0 {
            continue;
        }
        let number = |pod: &std::sync::Arc<rolegate::plan::PodFacts>| match pod.identity.ordinal {
            Some(ordinal) => ordinal.to_string(),
            None => pod.pod.name.to_string(),
        };
        let there: std::collections::BTreeSet<_> = snapshot.pods.of_role(ROLES[at]).map(number).collect();
        let has = other.desired.max(u32::try_from(there.len()).unwrap()).div_ceil(size);
        hold!(has <= left + 1, "E1: {name} goes to {replicas} (segment {left}), and {} has {has}", ROLES[at]);
    }
    Ok(())
}

/// E1, E3: checks that a segment of scaled workloads starts only when all earlier segments exist, whatever the
/// progression.
pub fn goes_on(stored: &Stored, segment: u32, exists: impl Fn(usize, u32) -> bool) -> Result<(), Broken> {
    let Some((_, Coordination { sizes, .. })) = stored.wanted() else { return Ok(()) };
    for role in (0..ROLES.len()).filter(|role| sizes[*role] > 0) {
        let missing = (0..segment * sizes[role]).find(|ordinal| !exists(role, *ordinal));
        hold!(
            missing.is_none(),
            "E1: segment {segment} is to be released, and {} {missing:?} is not there",
            ROLES[role]
        );
    }
    Ok(())
}

/// Applies a scale at the API server, which first checks that the group is unchanged since the plan.
pub fn scale(
    server: &mut Server,
    (group, workload, replicas): (&Group, &ScaledWorkload, u32),
    (looks, versioned): (bool, bool),
) -> Result<Option<Answered<String>>, Broken> {
    let role = role_of(workload);
    let is_same = |now: &Stored| {
        let read = now.read();
        let wanted = group.elastic.as_ref().map(rolegate::model::Elastic::wanted);
        read.uid() == group.carrier.uid
            && now.segments == wanted
            && now.wanted().is_some()
            && now.status.draining == group.status.draining
            && (0..ROLLED).all(|role| now.committed(role) == group.committed(ROLES[role]))
    };
    if looks && !server.group.as_ref().is_some_and(|now| is_same(now)) {
        return Ok(None);
    }
    let mut patch = json!({
        "metadata": { "resourceVersion": workload.resource_version, "uid": &*workload.uid },
        "spec": { "replicas": replicas },
    });
    if !versioned {
        patch["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    }
    let before = server.workloads[role];
    let done = server.patch_scale(role, &patch);
    if let (Ok(_), Some((wanted, Coordination { sizes, .. }))) = (&done, server.wanted()) {
        let committed = server.group.as_ref().unwrap().committed(role).unwrap_or(0);
        let (name, stays) = (ROLES[role], committed.min(wanted * sizes[role]));
        hold!(replicas != before, "E4: {name} is scaled to {replicas} once more");
        hold!(replicas > before || replicas >= stays, "E2: {name} is scaled to {replicas}, and {stays} are wanted");
        hold!(
            replicas < before || replicas <= committed,
            "E3: {name} is scaled to {replicas}, and {committed} may run"
        );
    }
    Ok(Some(done))
}

/// Applies a mark at the API server; with `priced` as decided, otherwise without the deletion cost for the Deployment.
pub fn mark(server: &mut Server, mark: &Mark, priced: bool) -> bool {
    let Some(pod) = server.pods.get(&*mark.pod.name) else { return false };
    if pod.metadata.uid.as_deref() != Some(&*mark.pod.uid) {
        return false;
    }
    let patch = mark_patch(&Mark { cheapest: mark.cheapest.filter(|_| priced), ..mark.clone() });
    server.edit_pod(&mark.pod.name, |pod| merge_metadata(&mut pod.metadata, &patch));
    true
}

/// Checks that at rest the wanted number of segments exists and no pod is marked; during a rollout no segment is
/// removed.
pub fn judge(server: &Server) -> Result<(), Broken> {
    let Some((wanted, Coordination { sizes, .. })) = server.wanted().filter(|_| !server.ignored) else {
        return Ok(());
    };
    hold!(server.taken.is_empty(), "E2: {:?} were taken away before pods that were to go", server.taken);
    let group = server.group.as_ref().unwrap();
    let open = server.sets.iter().any(|set| set.is_open());
    for role in (0..ROLLED).filter(|role| sizes[*role] > 0) {
        let (has, is_to) = (server.workloads[role], wanted * sizes[role]);
        let told = group.status.conditions.iter().find(|condition| condition.r#type == "Elastic");
        hold!(
            has == is_to || (open && has > is_to),
            "E: {} has {has} at rest, and {is_to} are wanted: {told:?}",
            ROLES[role]
        );
    }
    hold!(group.status.draining.is_none(), "E: at rest something is taken away: {:?}", group.status.draining);
    let marked = server.pods_that(|pod| pod.metadata.label(rolegate::model::names::DRAINING).is_some());
    hold!(marked.is_empty(), "E: at rest {marked:?} are marked");
    let told = group.status.segments;
    hold!(open || told == Some(wanted), "E: {wanted} segments are wanted and there, and the status says {told:?}");
    autoscalers_count_segments(server, sizes, told.unwrap_or(0))
}

/// Checks that at rest autoscalers select exactly one pod of each released segment: the first running pod of the first
/// role with replicas in segments.
fn autoscalers_count_segments(server: &Server, sizes: [u32; ROLES.len()], segments: u32) -> Result<(), Broken> {
    let group = server.group.as_ref().unwrap();
    let selector = format!("{}=pd", names::SCALE_POD);
    hold!(group.status.selector.as_ref() == Some(&selector), "autoscalers select {:?}", group.status.selector);
    let counted = server.pods_that(|pod| pod.metadata.label(names::SCALE_POD) == Some("pd"));
    let labelled = server.pods_that(|pod| pod.metadata.label(names::SCALE_POD).is_some());
    hold!(counted == labelled, "{labelled:?} say that they are counted, and {counted:?} are");
    let first = (0..ROLES.len()).find(|role| sizes[*role] > 0).unwrap();
    let runs = |name: &String| !crate::server::is_held(&server.pods[name]);
    for segment in 0..segments {
        let places = server.places();
        let in_segment =
            places.iter().filter(|(_, place)| place.role == first && place.ordinal / sizes[first] == segment);
        let lowest = in_segment.filter(|(name, _)| runs(name)).min_by_key(|(_, place)| (place.ordinal, place.member));
        let lowest = lowest.map(|(name, _)| name);
        hold!(
            lowest.is_some_and(|lowest| counted.contains(lowest)),
            "segment {segment} is released, {lowest:?} runs in it, and {counted:?} are counted"
        );
    }
    hold!(counted.len() == segments as usize, "{segments} segments are released, and {counted:?} are counted");
    Ok(())
}

/// A running pod of a Deployment moves down when its group shrinks. Its group grows again before the label of its new number is
/// written, and no other pod gets that number.
#[test]
fn a_pod_that_moves_keeps_its_new_number_while_it_is_being_written() {
    let one = |sizes, pod_groups| Coordination { pod_groups, ..Coordination::of(Progression::OrderedReady, sizes) };
    let setup = Setup {
        refers: true,
        makers: [Maker::Leaders { size: 2, late: false }, Maker::Alike, Maker::Set { start: 0 }],
        replicas: [1, 2, 2],
        wish: Wish::All(vec![one([2, 2, 0], None)]),
        segments: Some(2),
        two: false,
        operator: true,
        ..Setup::random(&mut Random::new(0))
    };
    let serve = |n| Step::At(0, Act::Serve { n, fault: Fault::None });
    let steps = [
        Step::Flow(1),
        Step::Pod(Fate::Evicted, 23),
        serve(21),
        serve(23),
        Step::Edit(Wish::All(vec![one([1, 1, 0], Some(GangLevel::Replica))])),
        Step::Want(2),
        Step::Pod(Fate::Evicted, 37),
        Step::Want(3),
        Step::At(0, Act::Answer { n: 20 }),
        Step::At(0, Act::Answer { n: 0 }),
        Step::Want(5),
        Step::Flow(1),
        Step::Want(1),
        Step::Pod(Fate::Failed, 27),
        Step::Flow(1),
        Step::Want(5),
    ];
    run(&History { setup, steps: steps.into() }, None).unwrap();
}
