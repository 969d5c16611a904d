//! The rolegate installations of a cluster, found by the names of their webhooks, and their namespaces.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::api::selector::LabelSelector;
use crate::api::webhook_configuration::MutatingWebhookConfiguration;

/// Name of the webhook that holds pods, in the configuration of every rolegate.
pub const OF_PODS: &str = "pods.rolegate.dev";
/// Name of the policy that holds pods without the webhook, and of its binding.
pub const HOLD_POLICY: &str = "hold.rolegate.dev";

/// A rolegate with a webhook configuration, whether it runs or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    /// Name of its webhook configurations.
    pub name: String,
    /// Selector of the namespaces that it serves.
    pub namespaces: LabelSelector,
}

/// Other rolegates of the cluster. A rolegate with a namespace selector releases the pods held in other namespaces, unless
/// another rolegate serves these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Others {
    /// They are not looked for.
    #[default]
    NotAsked,
    /// They are not known, or not yet.
    Unknown,
    Known(Arc<[Installation]>),
}

impl Installation {
    /// Returns the rolegate of this webhook configuration, if it has one.
    pub fn of(configuration: &MutatingWebhookConfiguration) -> Option<Self> {
        let hook = configuration.webhooks.iter().find(|hook| hook.name == OF_PODS)?;
        let name = configuration.metadata.display_name().to_owned();
        Some(Self { name, namespaces: hook.namespace_selector.clone() })
    }

    /// Reports whether it holds pods of a namespace with these labels.
    pub fn serves(&self, labels: &BTreeMap<String, String>) -> bool {
        self.namespaces.matches(labels)
    }
}

impl Others {
    /// Reports whether another rolegate holds pods of a namespace with these labels, or may hold them.
    pub fn may_serve(&self, labels: &BTreeMap<String, String>) -> bool {
        match self {
            Self::NotAsked => false,
            Self::Unknown => true,
            Self::Known(all) => all.iter().any(|one| one.serves(labels)),
        }
    }
}
