//! What the replica that leads tells of its flags, on its Lease: whoever looks at a cluster from outside knows them by that.

use std::collections::BTreeMap;

use kube::Client;
use kube::api::DynamicObject;

use crate::api::selector::LabelSelector;
use crate::cluster::lease::leases;
use crate::cluster::read::installations;
use crate::model::{Mode, Others, Serving, names};

/// The annotations by which it is told.
pub fn annotations(serving: &Serving) -> BTreeMap<String, String> {
    let selector = serde_json::to_string(&serving.selector).unwrap_or_default();
    let all = [(names::MODE, serving.mode.as_str().to_owned()), (names::NAMESPACE_SELECTOR, selector)];
    all.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// What the replica that leads tells, and who else serves namespaces where it serves some only; `None` where nobody leads, or
/// the Lease may not be read.
pub async fn read(client: &Client, namespace: &str, name: &str) -> Option<Serving> {
    let told = serving(&leases(client, namespace).get_opt(name).await.ok()??)?;
    if told.selector == LabelSelector::default() {
        return Some(told);
    }
    // Who may not read them sees all that is not selected as nobody's.
    let others = installations::others(client, name).await.map_or(Others::NotAsked, |all| Others::Known(all.into()));
    Some(Serving { others, ..told })
}

/// What a Lease tells; `None` where it tells nothing: an earlier release leads.
pub fn serving(lease: &DynamicObject) -> Option<Serving> {
    let annotations = lease.metadata.annotations.as_ref()?;
    let mode = Mode::parse(annotations.get(names::MODE)?)?;
    let selector =
        annotations.get(names::NAMESPACE_SELECTOR).and_then(|text| serde_json::from_str::<LabelSelector>(text).ok());
    Some(Serving { mode, selector: selector.unwrap_or_default(), ..Serving::default() })
}
