//! Options of several commands.

use clap::{Args, ValueEnum};

use super::data::Data;
use crate::model::object_name::{label_fault, subdomain_fault};
use crate::model::{IgnoredResources, ignored_resources};
use crate::mutate::PodSettings;
use crate::rules::{KaiDialect, label_key_fault};

/// How a command prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Text.
    Text,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

impl Output {
    /// Returns the data format; `None` for text.
    pub fn data(self) -> Option<Data> {
        match self {
            Self::Text => None,
            Self::Json => Some(Data::Json),
            Self::Yaml => Some(Data::Yaml),
        }
    }
}

/// How a command prints that has more to tell people than they want at first sight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WideOutput {
    /// Text.
    Text,
    /// Text with details.
    Wide,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

impl WideOutput {
    /// Returns the data format; `None` for text.
    pub fn data(self) -> Option<Data> {
        match self {
            Self::Text | Self::Wide => None,
            Self::Json => Some(Data::Json),
            Self::Yaml => Some(Data::Yaml),
        }
    }
}

/// What a command looks at in a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Subject {
    /// A pod.
    #[value(alias = "pods", alias = "po")]
    Pod,
    /// A group or RoleCoordination with all its pods.
    #[value(aliases = ["groups", "rbg", "rolebasedgroup", "rcoord", "rolecoordination"])]
    Group,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal only.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Color {
    /// Reports whether standard output is coloured.
    pub fn is_used(self) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => super::terminal::use_color(),
        }
    }
}

/// What the counts of KAI's PodGroups mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KaiDialectArg {
    /// That of the installed definition, else of the fields that are set.
    Auto,
    /// The hierarchical PodGroups of KAI's proposal.
    #[value(alias = "seed")]
    Proposal,
    /// KAI v0.15 and later.
    Upstream,
    /// KAI v0.10 to v0.14, where `minMember` counts pods on every level.
    Pods,
}

impl From<KaiDialectArg> for KaiDialect {
    fn from(dialect: KaiDialectArg) -> Self {
        match dialect {
            KaiDialectArg::Auto => Self::Auto,
            KaiDialectArg::Proposal => Self::Proposal,
            KaiDialectArg::Upstream => Self::Upstream,
            KaiDialectArg::Pods => Self::Pods,
        }
    }
}

/// How pods are mutated.
#[derive(Args, Clone, Debug)]
pub struct PodArgs {
    /// Treatment of pods that name a group by `rolegate.dev/group` and a role that the group lacks.
    #[arg(long, value_enum, default_value = "hold")]
    unknown_role: UnknownRole,
    /// Add environment variables by which pods of Grove sets, and of groups with `rolegate.dev/discovery`, find each
    /// other.
    #[arg(long, value_enum, default_value = "on")]
    discovery: Switch,
    /// DNS domain of the cluster.
    #[arg(long, value_name = "DOMAIN", default_value = "cluster.local", value_parser = parse_subdomain)]
    cluster_domain: String,
    /// Additional label key for the segment of a pod, on pods with a number at creation.
    #[arg(long, value_name = "KEY", value_parser = parse_label_key)]
    segment_label: Option<String>,
    /// Additional label key for the cohort of a pod, on pods with a revision at creation.
    #[arg(long, value_name = "KEY", value_parser = parse_label_key)]
    cohort_label: Option<String>,
}

impl PodArgs {
    /// Converts the options to the settings of mutation.
    pub fn settings(&self) -> PodSettings {
        PodSettings {
            discovery: self.discovery == Switch::On,
            frees_unknown_roles: self.unknown_role == UnknownRole::Pass,
            cluster_domain: self.cluster_domain.clone(),
            segment_label: self.segment_label.clone(),
            cohort_label: self.cohort_label.clone(),
            ..PodSettings::default()
        }
    }
}

/// How room is counted.
#[derive(Args, Clone, Debug)]
pub struct RoomArgs {
    /// Extended resources that keep no pod back where no node has them, as example.com/device or example.com/*: an extender of
    /// the scheduler gives them.
    #[arg(long, value_delimiter = ',', value_name = "NAME|PREFIX/*", value_parser = ignored_resources::parse)]
    ignore_resources: Vec<String>,
}

impl RoomArgs {
    pub fn ignored(&self) -> IgnoredResources {
        IgnoredResources::of(self.ignore_resources.clone())
    }
}

/// Pods that name a group by our own label, and a role that it does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum UnknownRole {
    /// Hold them until the group has the role.
    Hold,
    /// Admit them with a warning.
    Pass,
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

/// Parses a DNS label, such as the name of a namespace.
///
/// # Errors
///
/// When the text is none.
pub fn parse_dns_label(text: &str) -> Result<String, String> {
    unless(label_fault(text), text)
}

/// Parses a DNS subdomain, such as the name of most objects.
///
/// # Errors
///
/// When the text is none.
pub fn parse_subdomain(text: &str) -> Result<String, String> {
    unless(subdomain_fault(text), text)
}

fn parse_label_key(text: &str) -> Result<String, String> {
    unless(label_key_fault(text), text)
}

fn unless(fault: Option<&str>, text: &str) -> Result<String, String> {
    fault.map_or_else(|| Ok(text.to_owned()), |fault| Err(fault.to_owned()))
}
