//! The roles that a Grove pod finds, by the variables that it was created with.

use serde::Serialize;

use crate::api::grove::{POD_CLIQUE_SET, POD_GANG_SET};
use crate::api::{Pod, PodCliqueSet};
use crate::cli::connection::Connection;
use crate::cluster::objects::api;
use crate::model::{CliquePod, CliqueSet, identify_clique_pod};
use crate::mutate::{Outdated, born};

/// The discovery of a pod.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Finds {
    /// Name of the Grove set.
    set: String,
    /// Variables with the addresses of roles.
    addresses: Vec<String>,
    /// Variables that are others in pods that are created now.
    outdated: Vec<Outdated>,
    message: String,
}

/// The Grove set of a pod.
pub(super) enum OfSet {
    Known(CliquePod, CliqueSet),
    /// The reason for which it is not known.
    Unknown(CliquePod, String),
}

impl OfSet {
    /// Reads the Grove set of a pod; `None` for other pods.
    pub(super) async fn read(pod: &Pod, connection: &Connection) -> Option<Self> {
        let place = identify_clique_pod(pod)?;
        for kind in [POD_CLIQUE_SET, POD_GANG_SET] {
            let sets = api::<PodCliqueSet>(&connection.client, kind, Some(&connection.namespace));
            match sets.get(&place.set).await {
                Ok(set) => return Some(Self::Known(place, CliqueSet::from_set(kind, &set))),
                // The set is not there, or its kind is not served.
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                Err(error) => {
                    let why = format!("cannot be read: {}", connection.failure(&error));
                    return Some(Self::Unknown(place, why));
                }
            }
        }
        Some(Self::Unknown(place, "is not there".to_owned()))
    }
}

/// Variables whose values are shown.
const SHOWN: usize = 5;

impl Finds {
    /// Compares a pod with its Grove set; `None` where there is nothing to be found.
    pub(super) fn of(pod: &Pod, namespace: &str, of: &OfSet) -> Option<Self> {
        match of {
            OfSet::Known(place, set) => Self::seen(pod, namespace, place, set),
            OfSet::Unknown(place, why) => Some(Self::unknown(place, why)),
        }
    }

    fn unknown(place: &CliquePod, why: &str) -> Self {
        let message = format!("Grove set {:?} {why}", place.set);
        Self { set: place.set.clone(), addresses: Vec::new(), outdated: Vec::new(), message }
    }

    fn seen(pod: &Pod, namespace: &str, place: &CliquePod, set: &CliqueSet) -> Option<Self> {
        let born = born(pod, namespace, place, set)?;
        let found = match (born.without, &*born.addresses) {
            (true, _) => "nothing: it was created without variables, as under `serve --discovery=off`".to_owned(),
            (false, []) => "no address".to_owned(),
            (false, addresses) => addresses.join(", "),
        };
        let message = format!("{found} (of Grove set {:?})", place.set);
        Some(Self { set: place.set.clone(), addresses: born.addresses, outdated: born.outdated, message })
    }

    /// Returns the lines of the text.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.message.clone()];
        for Outdated { name, value, now } in self.outdated.iter().take(SHOWN) {
            lines.push(match (value, now) {
                (Some(value), Some(now)) => format!("{name}={value}; a pod created now gets {now}"),
                (None, Some(now)) => format!("lacks {name}; a pod created now gets {now}"),
                (value, None) => format!("{name}={}; a pod created now has none", value.as_deref().unwrap_or_default()),
            });
        }
        if let Some(more) = self.outdated.len().checked_sub(SHOWN).filter(|more| *more > 0) {
            lines.push(format!("and {more} more that a pod created now gets otherwise"));
        }
        lines
    }
}
