//! What a pod gets for the engine in it: variables, labels and annotations of the table of facts, with the values of its place.
//!
//! Everything is computed from the pod, its group and its Grove set; no other pod is looked up. The values are those of the birth of
//! the pod: those of a replica never change, those of a role or a segment are outdated by a scale.

mod born;
mod peers;
mod rendezvous;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::additions::{Additions, Entry};
use super::env::{EngineVariable, EnvValue, Recorded};
use crate::api::Pod;
use crate::api::pod::EnvVar;
use crate::model::engine::{Computed, EngineFault, Fact, Scope, Target, devices_of, read_annotation};
use crate::model::words::words;
use crate::model::{Engine, Group, Meeting, names, revision};
use crate::mutate::context::{Coordinated, Lookups, MutationContext, PodSettings, Subject};

pub use born::{BornWith, born_with};
pub use rendezvous::{NoRendezvous, Rendezvous};

words! {
/// Who asked for the engine of a pod.
pub enum AskedBy {
    /// The annotation of the pod.
    Annotation = "annotation rolegate.dev/engine",
    /// The role of its group.
    Role = "engine of its role",
}
}

/// Returns the engine of a pod: that of its own annotation, else that of its role. `None` where nobody asked for one.
pub fn engine_of(
    pod: &Pod,
    group: Option<&Group>,
    role: Option<&str>,
) -> Option<(AskedBy, Result<Engine, Vec<EngineFault>>)> {
    if let Some(text) = pod.metadata.annotation(names::ENGINE) {
        return Some((AskedBy::Annotation, read_annotation(text)));
    }
    let role = group?.role(role?)?;
    Some((AskedBy::Role, role.engine.clone()?))
}

/// Reports whether the engine of a pod makes its values depend on the group.
pub fn engine_needs_group(pod: &Pod, group: &Group, role: Option<&str>) -> bool {
    let engine = engine_of(pod, Some(group), role);
    engine.is_some_and(|(_, engine)| engine.is_ok_and(|engine| engine.needs_group()))
}

/// A variable, label or annotation that a pod gets, and the fact behind it.
#[derive(Clone, Debug)]
pub struct Given {
    pub fact: &'static Fact,
    pub name: String,
    pub value: EnvValue,
}

/// What a pod gets for its engine.
#[derive(Clone, Debug)]
pub struct Presets {
    pub asked_by: AskedBy,
    pub engine: Engine,
    /// Place of the pod among those that it meets.
    pub rendezvous: Result<Rendezvous, NoRendezvous>,
    /// Processes in the pod; `None` where nobody tells their number.
    pub processes: Option<u32>,
    pub given: Vec<Given>,
    /// What is left out, and why.
    pub warnings: Vec<String>,
}

/// Returns what a pod that is created now gets for its engine: `None` where nobody asked for one.
///
/// # Errors
///
/// When the settings of the engine have faults: the pod gets nothing.
pub fn presets(
    pod: &Pod,
    subject: &Subject,
    lookups: &Lookups<'_>,
    settings: &PodSettings,
) -> Option<Result<Presets, Vec<EngineFault>>> {
    presets_in(&MutationContext::new(pod, subject, lookups, settings))
}

/// Returns a warning for a pod that asks in vain: nothing is known of its place.
pub fn engine_of_foreign(pod: &Pod) -> Option<String> {
    pod.metadata.annotation(names::ENGINE)?;
    Some(format!("annotation {} has no effect: {}", names::ENGINE, NoRendezvous::NoIdentity))
}

/// Adds what the engine of the pod reads. An existing label or annotation of another value stays.
pub(super) fn of_pod(context: &MutationContext<'_>, additions: &mut Additions) {
    let presets = match presets_in(context) {
        None => return,
        Some(Ok(presets)) => presets,
        Some(Err(faults)) => {
            let faults = faults.iter().map(|fault| format!("{}: {}", fault.at, fault.detail()));
            let faults = faults.collect::<Vec<_>>().join("; ");
            additions.warnings.push(format!("the pod gets nothing for its engine: {faults}"));
            return;
        }
    };
    additions.warnings.extend(presets.warnings);
    if let (Scope::Role | Scope::Segment, true, Ok(found)) =
        (presets.engine.scope, presets.engine.meets(), &presets.rendezvous)
    {
        let meeting = Meeting { scope: presets.engine.scope, pods: found.nodes };
        additions.annotations.push((names::ENGINE_PODS.into(), meeting.to_string()));
    }
    for Given { fact, name, value } in presets.given {
        let (word, present, entries) = match fact.target {
            Target::Variable => {
                additions.engine.push(EngineVariable { name, value });
                continue;
            }
            Target::Label => ("label", context.pod.metadata.label(fact.name), &mut additions.labels),
            Target::Annotation => {
                ("annotation", context.pod.metadata.annotation(fact.name), &mut additions.annotations)
            }
        };
        let EnvValue::Text(value) = value else { continue };
        match present.filter(|present| *present != value) {
            Some(present) => additions.warnings.push(format!(
                "{word} {name} is {present:?} where the engine of the pod would get {value:?}: it is left as it is"
            )),
            None => entries.push(Entry::from((name.into(), value))),
        }
    }
}

fn presets_in(context: &MutationContext<'_>) -> Option<Result<Presets, Vec<EngineFault>>> {
    let group = context.coordinated.map(|coordinated| coordinated.group);
    let (asked_by, engine) = engine_of(context.pod, group, context.subject.role())?;
    let engine = match engine {
        Ok(engine) => engine,
        Err(faults) => return Some(Err(faults)),
    };
    let rendezvous = rendezvous::of(context, &engine);
    let processes = engine.procs_per_pod.or_else(|| written(context.pod, &engine)).or_else(|| devices_of(context.pod));
    let processes = processes.map(|processes| processes.max(1));
    let mut presets = Presets { asked_by, engine, rendezvous, processes, given: Vec::new(), warnings: Vec::new() };
    presets.fill(context);
    Some(Ok(presets))
}

/// Returns the number of processes that a container says itself, by a variable that the engine reads.
fn written(pod: &Pod, engine: &Engine) -> Option<u32> {
    let recorded = Recorded::of(pod);
    let containers = pod.spec.containers.iter().chain(&pod.spec.init_containers);
    let own = containers.flat_map(|container| {
        let ours = recorded.of_container(&container.name);
        container.env.iter().flatten().filter(move |variable| !ours.contains(variable.name.as_str()))
    });
    let counts = |variable: &&EnvVar| engine.counts_by(&variable.name);
    own.filter(counts).find_map(|variable| variable.value.as_ref()?.parse().ok())
}

impl Presets {
    fn fill(&mut self, context: &MutationContext<'_>) {
        let facts: Vec<_> = self.engine.facts().collect();
        let mut left_out: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for fact in facts {
            if fact.computed == Computed::Peers {
                match peers::of(context) {
                    Ok(peers) => self.given.extend(peers.into_iter().map(|(name, value)| Given {
                        fact,
                        name,
                        value: EnvValue::Text(value),
                    })),
                    Err(why) => self.warnings.push(why),
                }
            } else if let Some(value) = self.value(fact, context) {
                self.given.push(Given { fact, name: fact.name.to_owned(), value });
            } else if let Some(why) = self.lacks(fact.computed) {
                left_out.entry(why).or_default().push(fact.name);
            }
        }
        let engine = self.engine.words();
        let told =
            left_out.into_iter().map(|(why, names)| format!("engine {engine}: {} left out: {why}", names.join(", ")));
        self.warnings.extend(told);
    }

    /// Returns the reason for which a value that several pods count is missing.
    fn lacks(&self, computed: Computed) -> Option<NoRendezvous> {
        match &self.rendezvous {
            Err(why) if computed.needs_rendezvous() => Some(*why),
            Ok(Rendezvous { leader: None, .. }) if matches!(computed, Computed::Leader | Computed::Endpoint) => {
                Some(NoRendezvous::NoService)
            }
            _ if computed.counts_processes() => self.processes.is_none().then_some(NoRendezvous::Claimed),
            _ => None,
        }
    }

    /// Returns the value of a fact; `None` where it has none for this pod.
    fn value(&self, fact: &Fact, context: &MutationContext<'_>) -> Option<EnvValue> {
        let rendezvous = self.rendezvous.as_ref().ok();
        let role = context.role_name();
        let text = match fact.computed {
            Computed::Field(path) => return Some(EnvValue::Field(path)),
            Computed::Fixed(value) => value.to_owned(),
            Computed::Leader => rendezvous?.leader.clone()?,
            Computed::Port => self.engine.port_of(fact.kind)?.to_string(),
            Computed::Endpoint => format!("{}:{}", rendezvous?.leader.as_ref()?, self.engine.port_of(fact.kind)?),
            Computed::Nodes => rendezvous?.nodes.to_string(),
            Computed::NodeRank => rendezvous?.rank.to_string(),
            Computed::Processes => self.processes?.to_string(),
            Computed::WorldSize => product(rendezvous?.nodes, self.processes?),
            Computed::FirstRank => product(rendezvous?.rank, self.processes?),
            Computed::Serves => self.engine.serves_in(role)?.to_owned(),
            Computed::Role => names::label_value(role?),
            Computed::BootstrapPort => {
                let serves = self.engine.serves_in(role)?;
                serves.contains("prefill").then(|| self.engine.bootstrap_port().to_string())?
            }
            Computed::Cohort => {
                let Coordinated { group, role, .. } = context.coordinated?;
                let cohort = group.cohort(role, revision(&context.pod.metadata)?).filter(|_| group.rolls(role));
                names::label_value(cohort?)
            }
            Computed::Segment => context.segment_name()?,
            Computed::Peers => return None,
        };
        Some(EnvValue::Text(text))
    }
}

fn product(one: u32, other: u32) -> String {
    (u64::from(one) * u64::from(other)).to_string()
}

impl MutationContext<'_> {
    /// Returns the name of the pod's role: in a group that of its label, in a Grove set that of its clique.
    fn role_name(&self) -> Option<&str> {
        if let Some(place) = &self.subject.place {
            let clique = || self.lookups.clique_set?.cliques.iter().find(|clique| clique.name == place.clique);
            return Some(clique().and_then(|clique| clique.role.as_deref()).unwrap_or(&place.clique));
        }
        self.subject.role()
    }

    /// Returns the name of the pod's segment; in a Grove set, of the copy of its scaling group.
    fn segment_name(&self) -> Option<String> {
        if let Some(place) = &self.subject.place {
            let (_, copy) = place.scaling_group.as_ref()?;
            return Some(format!("{}-{copy}", place.set_replica));
        }
        let Coordinated { group, role, ordinal } = self.coordinated?;
        Some(group.batching_of(role)?.batch_of(role, ordinal?)?.to_string())
    }
}
