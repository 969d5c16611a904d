//! The engine in a pod: which variables, labels and annotations it reads, and the settings from which they are computed.
//!
//! Asked for by the annotation `rolegate.dev/engine` of a pod, `vllm, llm-d; procsPerPod=8; scope=role`, or by
//! `spec.roles[].engine` of the group.

use crate::model::words::words;

mod devices;
mod fact;
mod facts;
mod serves;
mod settings;
mod template;

pub use devices::devices_of;
pub use fact::{Computed, Fact, Target};
pub use facts::FACTS;
pub use serves::serves_of_role;
pub use settings::{EngineFault, FaultKind, SETTINGS, Setting, Values, read_annotation, read_settings};
pub use template::{TemplateEngine, half_groups, sizes};

/// An engine, or a router that reads labels of pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EngineKind {
    /// PyTorch and torchrun.
    Torch,
    Vllm,
    Sglang,
    /// NVIDIA Dynamo, whose discovery is the API server.
    Dynamo,
    /// llm-d's router.
    LlmD,
}

/// Words of the kinds, with the port at which the processes meet: the default of the engine.
pub const KINDS: &[(&str, EngineKind, Option<u16>)] = &[
    ("torch", EngineKind::Torch, Some(29_500)),
    ("vllm", EngineKind::Vllm, Some(29_501)),
    ("sglang", EngineKind::Sglang, Some(20_000)),
    ("dynamo", EngineKind::Dynamo, None),
    ("llm-d", EngineKind::LlmD, None),
];

impl EngineKind {
    /// Returns the word for the kind.
    pub fn as_str(self) -> &'static str {
        KINDS.iter().find(|(_, kind, _)| *kind == self).map_or("", |(word, ..)| *word)
    }

    /// Returns the facts of the kind.
    pub fn facts(self) -> impl Iterator<Item = &'static Fact> {
        FACTS.iter().filter(move |fact| fact.kind == self)
    }

    /// Reports whether the processes of several pods meet.
    pub fn meets(self) -> bool {
        KINDS.iter().any(|(_, kind, port)| *kind == self && port.is_some())
    }

    fn port(self) -> Option<u16> {
        KINDS.iter().find(|(_, kind, _)| *kind == self).and_then(|(.., port)| *port)
    }
}

words! {
/// The pods whose processes form one process group.
#[derive(Default)]
pub enum Scope {
    /// The pods of one replica: of a LeaderWorkerSet group, an instance, a copy of a scaling group. A StatefulSet has one pod in a
    /// replica.
    #[default]
    Replica = "replica",
    /// All pods of the role.
    Role = "role",
    /// The pods of the role in one segment.
    Segment = "segment",
}
}

/// The engines of a pod, with valid settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Engine {
    /// At least one, each once, in the order of the user.
    pub kinds: Vec<EngineKind>,
    /// Processes in a pod; `None` for the number of its devices.
    pub procs_per_pod: Option<u32>,
    pub scope: Scope,
    /// Port at which the processes meet.
    port: Option<u16>,
    /// Port of SGLang's bootstrap server.
    bootstrap_port: Option<u16>,
    /// Phase that the pods serve, as written; one of the phases.
    pub serves: Option<&'static str>,
}

/// SGLang's own default.
const BOOTSTRAP_PORT: u16 = 8998;

impl Engine {
    /// Returns the facts of all kinds. Of two with one name, that of the first kind counts.
    pub fn facts(&self) -> impl Iterator<Item = &'static Fact> {
        let mut seen = std::collections::BTreeSet::new();
        self.kinds.iter().flat_map(|kind| kind.facts()).filter(move |fact| seen.insert((fact.target, fact.name)))
    }

    /// Reports whether the processes of several pods may meet.
    pub fn meets(&self) -> bool {
        self.kinds.iter().any(|kind| kind.meets())
    }

    /// Reports whether any value counts the processes of a pod.
    pub fn counts_processes(&self) -> bool {
        self.facts().any(|fact| fact.computed.counts_processes())
    }

    /// Reports whether the processes of several replicas meet.
    pub fn meets_beyond_replica(&self) -> bool {
        self.meets() && self.scope != Scope::Replica
    }

    /// Reports whether pods get the addresses of other replicas.
    pub fn names_peers(&self) -> bool {
        self.facts().any(|fact| fact.computed == Computed::Peers)
    }

    /// Reports whether variables depend on the group, and not on the pod alone.
    pub fn takes_variables_of_group(&self) -> bool {
        self.meets_beyond_replica() || self.names_peers()
    }

    /// Reports whether the values depend on the group, and not on the pod alone.
    pub fn needs_group(&self) -> bool {
        self.takes_variables_of_group()
            || self.facts().any(|fact| matches!(fact.computed, Computed::Cohort | Computed::Segment))
    }

    /// Returns the port at which the processes meet: the port of the user, else the default of a kind.
    pub fn port_of(&self, kind: EngineKind) -> Option<u16> {
        self.port.or_else(|| kind.port())
    }

    /// Returns the port of SGLang's bootstrap server.
    pub fn bootstrap_port(&self) -> u16 {
        self.bootstrap_port.unwrap_or(BOOTSTRAP_PORT)
    }

    /// Returns the phase that the pods of a role serve.
    pub fn serves_in(&self, role: Option<&str>) -> Option<&'static str> {
        self.serves.or_else(|| serves_of_role(role?))
    }

    /// Returns the kinds as the user writes them.
    pub fn words(&self) -> String {
        self.kinds.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(", ")
    }
}
