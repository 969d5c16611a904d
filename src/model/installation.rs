//! Rolegates of a cluster, known by the names of their webhooks, and which namespaces they are for.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::api::selector::LabelSelector;
use crate::api::webhook_configuration::MutatingWebhookConfiguration;

/// The webhook that holds pods, in the configuration of every rolegate.
pub const OF_PODS: &str = "pods.rolegate.dev";

/// A rolegate whose webhook configuration is there, whether it runs or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    /// Name of its webhook configurations.
    pub name: String,
    /// Of which namespaces it is.
    pub namespaces: LabelSelector,
}

/// Other rolegates of the cluster, as far as they are looked for: one with a selector of namespaces lets go of what it finds in
/// the others, unless it is theirs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Others {
    /// Nobody looks for them.
    #[default]
    NotAsked,
    /// It is not known (yet) which there are.
    Unknown,
    /// These.
    Known(Arc<[Installation]>),
}

impl Installation {
    /// The rolegate that this configuration is of, if it is one's.
    pub fn of(configuration: &MutatingWebhookConfiguration) -> Option<Self> {
        let hook = configuration.webhooks.iter().find(|hook| hook.name == OF_PODS)?;
        let name = configuration.metadata.display_name().to_owned();
        Some(Self { name, namespaces: hook.namespace_selector.clone() })
    }

    /// True when it holds pods of a namespace with these labels.
    pub fn serves(&self, labels: &BTreeMap<String, String>) -> bool {
        self.namespaces.matches(labels)
    }
}

impl Others {
    /// True when one of them holds pods of a namespace with these labels, or might.
    pub fn may_serve(&self, labels: &BTreeMap<String, String>) -> bool {
        match self {
            Self::NotAsked => false,
            Self::Unknown => true,
            Self::Known(all) => all.iter().any(|one| one.serves(labels)),
        }
    }
}
