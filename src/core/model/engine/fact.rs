//! A fact about an engine: a name that it reads or that its command line takes, and the value.

use super::EngineKind;
use crate::model::words::words;

words! {
/// Where a name stands on a pod.
pub enum Target {
    /// An environment variable of every container.
    Variable = "variable",
    Label = "label",
    Annotation = "annotation",
}
}

/// How a value is computed. Numbers are plain: a command line cannot multiply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Computed {
    /// DNS name of the first pod of the process group; `localhost` for a pod alone.
    Leader,
    /// Port at which the processes meet.
    Port,
    /// Both of these, with a colon.
    Endpoint,
    /// Number of pods in the process group.
    Nodes,
    /// Place of the pod among them, from 0.
    NodeRank,
    /// Number of processes in the pod.
    Processes,
    /// Number of processes in the group: pods × processes in a pod.
    WorldSize,
    /// Rank of the first process of the pod: place × processes in a pod.
    FirstRank,
    /// A field of the pod, which kubelet fills in.
    Field(&'static str),
    /// The same for all.
    Fixed(&'static str),
    /// Addresses of the replicas of a role in the segment of the pod; a variable for each role.
    Peers,
    /// Phase that the pod serves.
    Serves,
    /// Role of the pod.
    Role,
    /// Cohort of the pod: equal for pods that were rolled together.
    Cohort,
    /// Segment of the pod.
    Segment,
    /// Port of SGLang's bootstrap server; prefills only.
    BootstrapPort,
}

impl Computed {
    /// Reports whether the value depends on the process group of the pod.
    pub const fn needs_rendezvous(self) -> bool {
        matches!(self, Self::Leader | Self::Endpoint | Self::Nodes | Self::NodeRank | Self::WorldSize | Self::FirstRank)
    }

    /// Reports whether the value counts the processes of a pod.
    pub const fn counts_processes(self) -> bool {
        matches!(self, Self::Processes | Self::WorldSize | Self::FirstRank)
    }

    /// Returns the value in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Leader => "DNS name of the first pod of the process group, `localhost` for a pod alone",
            Self::Port => "port at which the processes meet",
            Self::Endpoint => "DNS name of the first pod of the process group, and the port",
            Self::Nodes => "pods in the process group",
            Self::NodeRank => "place of the pod in the process group, from 0",
            Self::Processes => "processes in the pod",
            Self::WorldSize => "pods × processes in a pod",
            Self::FirstRank => "place of the pod × processes in a pod",
            Self::Field(_) => "field of the pod",
            Self::Fixed(_) => "always the same",
            Self::Peers => "addresses of the replicas of the role in the pod's segment, comma-separated",
            Self::Serves => "phase that the pod serves",
            Self::Role => "role of the pod",
            Self::Cohort => "cohort of the pod, equal for pods that were rolled together",
            Self::Segment => "segment of the pod",
            Self::BootstrapPort => "port of the bootstrap server, on prefills",
        }
    }
}

/// A row of the table of facts.
#[derive(Clone, Copy, Debug)]
pub struct Fact {
    pub kind: EngineKind,
    pub target: Target,
    /// Name of the variable; `<ROLE>` stands for the name of a role. Key of the label or annotation.
    pub name: &'static str,
    pub computed: Computed,
    /// What reads it: the engine by itself, or the flag of a command line that takes it.
    pub read_by: &'static str,
    /// Where this was read.
    pub read: &'static Read,
}

/// A file in which facts were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// Version of the engine.
    pub version: &'static str,
    /// Repository or package, commit where known, and file.
    pub source: &'static str,
}
