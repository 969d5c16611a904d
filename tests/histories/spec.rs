//! The user's specification: roles, replicas and coordinations, and the objects that express it.

use std::sync::OnceLock;

use rolegate::api::rbg::ROLE_BASED_GROUP;
use rolegate::api::role_coordination::ROLE_COORDINATION;
use rolegate::api::status::RecoveryState;
use rolegate::api::{RoleBasedGroup, RoleCoordination};
use rolegate::cluster::index::CarrierObject;

use crate::machines::RACK;
use crate::prelude::*;
use crate::readiness::Readiness;
use crate::requests::provision;

pub const NAMESPACE: &str = "ns";
pub const GROUP: &str = "pd";
pub const ROLES: [&str; 3] = ["prefill", "decode", "router"];

/// The workload that creates the pods of a role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Maker {
    /// A StatefulSet that counts from `start`.
    Set { start: u32 },
    /// A LeaderWorkerSet with `size` pods per replica; with `late`, workers are created when their leader is ready.
    Leaders { size: u32, late: bool },
    /// A Deployment: its pods are interchangeable, and rolegate numbers them.
    #[default]
    Alike,
}

impl Maker {
    fn kind(self) -> &'static str {
        match self {
            Self::Set { .. } => "StatefulSet",
            Self::Leaders { .. } => "LeaderWorkerSet",
            Self::Alike => "Deployment",
        }
    }
}

/// The initial state of a history.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, not states of one machine")]
pub struct Setup {
    /// Whether the carrier is a RoleCoordination that refers to workloads, and not a RoleBasedGroup.
    pub refers: bool,
    pub makers: [Maker; 3],
    pub replicas: [u32; 3],
    pub wish: Wish,
    /// The bounds of lockstep of the first roles, whose StatefulSets are claimed.
    pub rolling: Option<Rolling>,
    /// Number of wanted segments of the first roles, whose StatefulSets are claimed.
    pub segments: Option<u32>,
    /// Whether there are two replicas of rolegate.
    pub two: bool,
    /// Whether the workloads finally have the replicas of the group.
    pub operator: bool,
    /// Whether there are nodes in racks, and batches share one.
    pub racks: bool,
    /// Whether a rack has room for one batch.
    pub tight: bool,
    /// Whether the scheduler has a filter of its own, in place of kubelets that refuse pods.
    pub filters: bool,
    /// Whether pods are created with a gate of others, until everything comes to rest.
    pub gated_by_others: bool,
    /// Number of pods that the controllers of claimed StatefulSets replace at once.
    pub at_once: u32,
    /// Whether pods of one image do not get ready, until everything comes to rest.
    pub broken: bool,
    /// What segments, or steps of a rollout, wait for beside ready pods.
    pub readiness: Option<Readiness>,
    /// Whether objects that are waited for and do not exist at the end never come.
    pub never: bool,
}

/// Where there must be room for the pods of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    Nowhere,
    InRack,
    /// In a rack, and nodes are requested for a batch that fits into none.
    OnDemand,
    InCluster,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coordination {
    pub progression: Progression,
    /// Segment sizes by role; 0 for a role outside the coordination.
    pub sizes: [u32; 3],
    /// The level of its PodGroups, if its batches can have some.
    pub pod_groups: Option<GangLevel>,
    /// Whether its batches recover after the loss of a replica, if they can.
    pub recovers: bool,
    pub placed: Placed,
}

impl Coordination {
    /// Returns batches of these sizes, and no more.
    pub fn of(progression: Progression, sizes: [u32; 3]) -> Self {
        Self { progression, sizes, pod_groups: None, recovers: false, placed: Placed::Nowhere }
    }

    /// Returns the level of the PodGroups. Interchangeable pods do not know their PodGroup, and late workers would wait for the
    /// batch, which waits for them. A PodGroup for each replica needs replicas of several pods.
    pub fn gangs(&self, makers: &[Maker; 3]) -> Option<GangLevel> {
        let own = || (0..ROLES.len()).filter(|role| self.sizes[*role] > 0).map(|role| makers[role]);
        let level = self.pod_groups?;
        if own().any(|maker| matches!(maker, Maker::Alike | Maker::Leaders { late: true, .. })) {
            return None;
        }
        let has_several = own().any(|maker| matches!(maker, Maker::Leaders { .. }));
        Some(if level == GangLevel::Replica && !has_several { GangLevel::Role } else { level })
    }

    /// Reports whether batches are released as a whole.
    pub fn is_whole(&self, makers: &[Maker; 3]) -> bool {
        let starts_together = matches!(self.gangs(makers), Some(GangLevel::Batch | GangLevel::Role));
        self.placed != Placed::Nowhere || starts_together
    }

    /// Reports whether batches recover: late workers would wait for the batch, which waits for them.
    pub fn recovers(&self, makers: &[Maker; 3]) -> bool {
        let can = |role: usize| !matches!(makers[role], Maker::Leaders { late: true, .. });
        self.recovers && (0..ROLES.len()).all(|role| self.sizes[role] == 0 || can(role))
    }
}

/// The `coordination` field as written by a user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Wish {
    #[default]
    Nothing,
    /// Valid coordinations.
    All(Vec<Coordination>),
    /// Two coordinations with different sizes of a role.
    Wrong,
}

impl Setup {
    pub fn random(random: &mut Random) -> Self {
        let maker = |random: &mut Random| match random.below(6) {
            0 => Maker::Leaders { size: 2, late: false },
            1 => Maker::Leaders { size: 2, late: true },
            2 => Maker::Set { start: 3 },
            3 => Maker::Alike,
            _ => Maker::Set { start: 0 },
        };
        Self {
            refers: random.percent(40),
            makers: [maker(random), maker(random), Maker::Set { start: 0 }],
            replicas: [random.below(6), random.below(5), random.below(3)],
            wish: Wish::random(random),
            two: random.percent(60),
            operator: random.percent(85),
            at_once: 1,
            ..Self::default()
        }
    }

    /// Returns a RoleBasedGroup with these replicas, on StatefulSets.
    pub fn plain(replicas: [u32; 3]) -> Self {
        Self { makers: [Maker::Set { start: 0 }; 3], replicas, at_once: 1, ..Self::default() }
    }

    /// Adds roles that are rolled in lockstep.
    pub fn rolled(mut self, random: &mut Random) -> Self {
        self.rolling = Some(Rolling::random(random));
        self.makers[..ROLLED].fill_with(|| Maker::Set { start: random.pick(&[0, 0, 3]) });
        self.replicas[..ROLLED].fill_with(|| 1 + random.below(6));
        self.wish = Wish::rollable(random);
        while self.rolling.is_some_and(|rolling| rolling.by_segment) && self.wish == Wish::Nothing {
            self.wish = Wish::rollable(random);
        }
        self.at_once = random.pick(&[1, 1, 3]);
        self.broken = random.percent(60);
        self
    }
}

impl Wish {
    pub fn random(random: &mut Random) -> Self {
        match random.below(14) {
            0 => return Self::Nothing,
            1 => return Self::Wrong,
            _ => {}
        }
        let progressions = [
            Progression::OrderedReady,
            Progression::OrderedReady,
            Progression::Ordered,
            Progression::Scheduled,
            Progression::Parallel,
            Progression::Canary,
        ];
        let progression = random.pick(&progressions);
        let pod_groups = level(random);
        let recovers = random.percent(50);
        let mut size = || 1 + random.below(3);
        let (prefill, decode, router) = (size(), size(), size());
        let one = |sizes| Coordination { pod_groups, recovers, ..Coordination::of(progression, sizes) };
        let all = match random.below(4) {
            0 => vec![one([prefill, 0, 0])],
            1 => vec![
                one([prefill, decode, 0]),
                // A role has at most one PodGroup.
                Coordination { recovers: random.percent(50), ..Coordination::of(progression, [prefill, 0, router]) },
            ],
            _ => vec![one([prefill, decode, 0])],
        };
        Self::All(all)
    }

    pub fn coordinations(&self) -> Vec<Coordination> {
        let segments = |sizes| Coordination::of(Progression::OrderedReady, sizes);
        match self {
            Self::Nothing => Vec::new(),
            Self::All(all) => all.clone(),
            Self::Wrong => vec![segments([1, 2, 0]), segments([2, 0, 0])],
        }
    }

    fn to_json(&self, makers: &[Maker; 3]) -> Value {
        let entry = |(index, coordination): (usize, &Coordination)| {
            let named = ROLES.iter().zip(coordination.sizes).filter(|(_, size)| *size > 0);
            let sizes: BTreeMap<_, _> = named.collect();
            let gangs = coordination.gangs(makers);
            let policy = gangs.map(|level| json!({ "kubeScheduling": {}, "level": format!("{level:?}") }));
            let (field, mut strategy) = match coordination.progression {
                Progression::Scheduled => ("rollingDeploy", json!({ "roleDeployStep": sizes })),
                word => ("segmentPlacement", json!({ "segmentSize": sizes, "progression": word.as_str() })),
            };
            if let (Progression::Canary, Some(soak)) = (coordination.progression, coordination.soak()) {
                strategy["soak"] = json!(format!("{}s", soak.as_secs()));
            }
            match (policy, field) {
                (None, _) => {}
                (Some(policy), "rollingDeploy") if gangs == Some(GangLevel::Batch) => {
                    let constraint = json!({ "topologyLayerName": "host", "podGroupPolicy": policy });
                    strategy["deployTopologyConstraint"] = constraint;
                }
                (Some(policy), "rollingDeploy") => {
                    strategy["deployTopologyConstraint"] = json!({ "podGroupPolicy": policy });
                }
                (Some(policy), _) => strategy["podGroupPolicy"] = policy,
            }
            match coordination.placed {
                Placed::Nowhere => {}
                Placed::InRack | Placed::OnDemand => {
                    let affinity = json!({ "topologyKey": RACK, "strategy": "RequireSegmentAffinity" });
                    strategy["topologyAffinity"] = affinity;
                }
                Placed::InCluster => strategy["whole"] = json!(true),
            }
            if coordination.recovers(makers) {
                strategy["recovery"] = json!({ "policy": "Recreate", "unreadyFor": "30s", "limit": 2 });
            }
            let strategy = json!({ (field): strategy });
            let mut entry = json!({ "name": format!("c{index}"), "strategy": strategy });
            if coordination.placed == Placed::OnDemand {
                entry["whenNoFit"] = json!("provision");
                entry["provision"] = provision();
            }
            entry
        };
        self.coordinations().iter().enumerate().map(entry).collect()
    }

    /// Returns the coordinations that contain the role.
    pub fn of_role(&self, role: usize) -> Vec<Coordination> {
        self.coordinations().into_iter().filter(|coordination| coordination.sizes[role] > 0).collect()
    }
}

/// A stored version of the group.
#[derive(Clone, Debug, Default)]
pub struct Stored {
    pub meta: Meta,
    pub wish: Wish,
    pub rolling: Option<Rolling>,
    pub segments: Option<u32>,
    pub replicas: [u32; 3],
    pub status: GroupStatus,
    pub refers: bool,
    pub makers: [Maker; 3],
    pub readiness: Option<Readiness>,
    /// The parsed object, cached.
    pub object: OnceLock<CarrierObject>,
    /// The group as the webhook knows it, cached.
    pub group: OnceLock<Arc<Group>>,
}

impl Stored {
    pub fn uid(&self) -> &str {
        self.meta.uid.as_deref().unwrap()
    }

    pub fn version(&self) -> u64 {
        self.meta.resource_version.as_deref().unwrap().parse().unwrap()
    }

    /// Reports whether the loop writes a status: it does not for a RoleBasedGroup that coordinates nothing.
    pub fn is_told(&self) -> bool {
        self.refers || self.wish != Wish::Nothing || self.rolling.is_some()
    }

    /// Returns the highest committed released count of the role.
    pub fn committed(&self, role: usize) -> Option<u32> {
        released(&self.status, ROLES[role])
    }

    /// Returns the PodGroup that a replica's pods wait for.
    pub fn pod_group_of(&self, role: usize, ordinal: u32) -> Option<String> {
        let (index, coordination, level) =
            self.with_pod_groups().find(|(_, coordination, _)| coordination.sizes[role] > 0)?;
        self.pod_group(index, level, (role, ordinal), ordinal / coordination.sizes[role])
    }

    /// Returns the name of the PodGroup of a replica; `None` for one that needs none.
    fn pod_group(&self, index: usize, level: GangLevel, (role, ordinal): (usize, u32), batch: u32) -> Option<String> {
        let name = ROLES[role];
        let has_several = matches!(self.makers[role], Maker::Leaders { .. });
        match level {
            GangLevel::Batch => Some(format!("{GROUP}-c{index}-{batch}")),
            GangLevel::Role => Some(format!("{GROUP}-c{index}-{batch}.{name}")),
            GangLevel::Replica => has_several.then(|| format!("{GROUP}-c{index}.{name}.{ordinal}")),
        }
    }

    /// Returns the PodGroups of all committed batches for these desired replicas.
    pub fn committed_pod_groups(&self, desired: impl Fn(usize) -> u32) -> Vec<String> {
        self.committed_pod_groups_of(&|role| self.committed(role), desired)
    }

    /// Like [`Stored::committed_pod_groups`], for these committed replicas.
    pub fn committed_pod_groups_of(
        &self,
        committed: &dyn Fn(usize) -> Option<u32>,
        desired: impl Fn(usize) -> u32,
    ) -> Vec<String> {
        let batches = |coordination: &Coordination| {
            let with_size = (0..ROLES.len()).filter(|role| coordination.sizes[*role] > 0);
            let batches = with_size.map(|role| {
                let committed = committed(role).unwrap_or(0).min(desired(role));
                committed.div_ceil(coordination.sizes[role])
            });
            batches.max().unwrap_or(0)
        };
        let mut names = BTreeSet::new();
        for (index, coordination, level) in self.with_pod_groups() {
            for batch in 0..batches(&coordination) {
                for role in (0..ROLES.len()).filter(|role| coordination.sizes[*role] > 0) {
                    let size = coordination.sizes[role];
                    let ordinals = batch * size..((batch + 1) * size).min(desired(role));
                    names.extend(ordinals.filter_map(|ordinal| self.pod_group(index, level, (role, ordinal), batch)));
                }
            }
        }
        names.into_iter().collect()
    }

    /// Reports whether a replica's batch is released as a whole (it has a PodGroup or is placed), lacks pods, and
    /// has none that runs. `pods` returns the existing and the held pods of a replica, `size` the required ones.
    pub fn waits_for_batch(
        &self,
        (role, ordinal): (usize, u32),
        desired: impl Fn(usize) -> u32,
        size: impl Fn(usize) -> u32,
        pods: impl Fn(usize, u32) -> (u32, u32),
    ) -> bool {
        let all: Vec<_> = self.wish.coordinations().into_iter().filter(|one| one.is_whole(&self.makers)).collect();
        let Some(first) = all.iter().position(|one| one.sizes[role] > 0) else { return false };
        let batch = ordinal / all[first].sizes[role];
        let ordinals = |one: &Coordination, role: usize| {
            let size = one.sizes[role];
            (batch * size).min(desired(role))..((batch + 1) * size).min(desired(role))
        };
        let state = |one: &Coordination| {
            let (mut runs, mut lacks) = (false, false);
            for (role, ordinal) in (0..ROLES.len()).flat_map(|role| ordinals(one, role).map(move |at| (role, at))) {
                let (there, held) = pods(role, ordinal);
                runs |= held < there;
                lacks |= there < size(role);
            }
            (runs, lacks)
        };
        // Batches that share replicas, directly or through others, wait for each other if none of their pods runs.
        let mut together = vec![first];
        let mut next = 0;
        while let Some(at) = together.get(next).copied().filter(|at| !state(&all[*at]).0) {
            let shares = |other: &Coordination| {
                (0..ROLES.len()).any(|role| other.sizes[role] > 0 && !ordinals(&all[at], role).is_empty())
            };
            let more = (0..all.len()).filter(|other| !together.contains(other) && shares(&all[*other]));
            together.extend(more.filter(|other| !state(&all[*other]).0).collect::<Vec<_>>());
            next += 1;
        }
        // A replica of two batches waits for each of them.
        let own = (0..all.len()).filter(|at| all[*at].sizes[role] > 0);
        own.chain(together).any(|at| state(&all[at]) == (false, true))
    }

    /// Returns the recoveries of the replica's batches in the status, and whether each batch was complete.
    pub fn recoveries_of(&self, role: usize, ordinal: u32) -> Vec<(Option<&RecoveryState>, bool)> {
        let all = self.wish.coordinations().into_iter().enumerate();
        let entry = |(index, one): &(usize, Coordination)| {
            let (name, batch) = (format!("c{index}"), ordinal / one.sizes[role]);
            self.status.recoveries.iter().find(|entry| entry.coordination == name && entry.batch == batch)
        };
        // Without a policy, batches are recreated to move.
        let own = all.filter(|(_, one)| one.sizes[role] > 0);
        let own = own.filter(|one| one.1.recovers(&self.makers) || entry(one).is_some());
        own.map(|(index, one)| {
            let (name, batch) = (format!("c{index}"), ordinal / one.sizes[role]);
            let entry = self.status.recoveries.iter().find(|entry| entry.coordination == name && entry.batch == batch);
            let states = self.status.coordination_state.iter().filter(|state| state.name == name);
            let was_complete = states.flat_map(|state| state.complete_batches.split(',')).any(|run| {
                let (first, last) = run.split_once('-').unwrap_or((run, run));
                first.parse().is_ok_and(|first: u32| (first..=last.parse().unwrap()).contains(&batch))
            });
            (entry, was_complete)
        })
        .collect()
    }

    pub fn with_pod_groups(&self) -> impl Iterator<Item = (usize, Coordination, GangLevel)> {
        let all = self.wish.coordinations().into_iter().enumerate();
        all.filter_map(|(index, coordination)| {
            let level = coordination.gangs(&self.makers)?;
            Some((index, coordination, level))
        })
    }

    /// Returns the object as watches and answers deliver it.
    pub fn read(&self) -> CarrierObject {
        self.object.get_or_init(|| self.read_anew()).clone()
    }

    fn read_anew(&self) -> CarrierObject {
        if self.refers {
            CarrierObject::coordination(self.role_coordination())
        } else {
            CarrierObject::rbg(ROLE_BASED_GROUP, &self.role_based_group())
        }
    }

    /// Returns the group as the webhook knows it.
    pub fn group(&self) -> Arc<Group> {
        let read = || {
            Arc::new(if self.refers {
                Group::from_role_coordination(ROLE_COORDINATION, &self.role_coordination(), &())
            } else {
                Group::from_rbg(ROLE_BASED_GROUP, &self.role_based_group())
            })
        };
        self.group.get_or_init(read).clone()
    }

    fn coordination(&self) -> Value {
        let mut all = self.wish.to_json(&self.makers);
        all.as_array_mut().unwrap().extend(self.rolling.map(Rolling::to_json));
        all.as_array_mut().unwrap().iter_mut().for_each(|one| self.add_readiness(one));
        all
    }

    fn role_coordination(&self) -> RoleCoordination {
        let roles = ROLES
            .iter()
            .zip(self.makers)
            .map(|(name, maker)| json!({ "name": name, "workloadRef": { "kind": maker.kind(), "name": name } }));
        let mut spec = json!({ "roles": roles.collect::<Vec<_>>(), "coordination": self.coordination() });
        if let Some(segments) = self.segments {
            spec["segments"] = json!(segments);
        }
        let spec = serde_json::from_value(spec).unwrap();
        RoleCoordination { metadata: self.meta.clone(), spec, status: self.status.clone() }
    }

    fn role_based_group(&self) -> RoleBasedGroup {
        let roles = ROLES.iter().zip(self.replicas).zip(self.makers).map(|((name, replicas), maker)| {
            json!({ "name": name, "replicas": replicas, "workload": { "kind": maker.kind() } })
        });
        let spec = json!({ "roles": roles.collect::<Vec<_>>(), "coordination": self.coordination() });
        let spec = serde_json::from_value(spec).unwrap();
        RoleBasedGroup { metadata: self.meta.clone(), spec, status: self.status.clone() }
    }
}

/// Returns the level of PodGroups, or none.
pub fn level(random: &mut Random) -> Option<GangLevel> {
    let levels = [GangLevel::Batch, GangLevel::Batch, GangLevel::Role, GangLevel::Replica];
    random.percent(50).then(|| random.pick(&levels))
}

/// Returns the highest committed released count of a role in a status.
pub fn released(status: &GroupStatus, role: &str) -> Option<u32> {
    status.coordination_state.iter().filter_map(|state| state.progress.get(role)?.released).max()
}
