//! Flags of the leader, published on its Lease for the command line.

use std::collections::BTreeMap;

use kube::Client;
use kube::api::DynamicObject;

use crate::api::selector::LabelSelector;
use crate::cluster::lease::leases;
use crate::cluster::read::installations;
use crate::model::{Mode, Others, Serving, names};

/// Returns the annotations with the mode and the namespace selector.
pub fn annotations(serving: &Serving) -> BTreeMap<String, String> {
    let selector = serde_json::to_string(&serving.selector).unwrap_or_default();
    let all = [(names::MODE, serving.mode.as_str().to_owned()), (names::NAMESPACE_SELECTOR, selector)];
    all.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Returns the flags of the leader, and the other installations where it serves only selected namespaces; `None` where nobody
/// leads, or the Lease may not be read.
pub async fn read(client: &Client, namespace: &str, name: &str) -> Option<Serving> {
    let told = serving(&leases(client, namespace).get_opt(name).await.ok()??)?;
    if told.selector == LabelSelector::default() {
        return Some(told);
    }
    // Without the right to list configurations, unselected namespaces count as unserved.
    let others = installations::others(client, name).await.map_or(Others::NotAsked, |all| Others::Known(all.into()));
    Some(Serving { others, ..told })
}

/// Returns the flags on a Lease; `None` where it has none, as of an earlier release.
pub fn serving(lease: &DynamicObject) -> Option<Serving> {
    let annotations = lease.metadata.annotations.as_ref()?;
    let mode = Mode::parse(annotations.get(names::MODE)?)?;
    let selector =
        annotations.get(names::NAMESPACE_SELECTOR).and_then(|text| serde_json::from_str::<LabelSelector>(text).ok());
    Some(Serving { mode, selector: selector.unwrap_or_default(), ..Serving::default() })
}
