//! Flags of the leader, published on its Lease for the command line.

use std::collections::BTreeMap;

use kube::Client;
use kube::api::DynamicObject;

use crate::api::selector::LabelSelector;
use crate::cluster::lease::leases;
use crate::cluster::read::installations;
use crate::model::ready_kind::{list, parse_list};
use crate::model::{IgnoredResources, Mode, Others, Serving, names};

/// Returns the annotations with the mode, the namespace selector, the resources that need not be on a node, and the kinds whose
/// objects groups may wait for.
pub fn annotations(serving: &Serving) -> BTreeMap<String, String> {
    let selector = serde_json::to_string(&serving.selector).unwrap_or_default();
    let kinds = serving.ready_kinds.as_ref().map(|kinds| (names::READY_KINDS, list(kinds)));
    let all = [
        (names::MODE, serving.mode.as_str().to_owned()),
        (names::NAMESPACE_SELECTOR, selector),
        (names::IGNORED_RESOURCES, serving.ignored_resources.list()),
    ];
    all.into_iter().chain(kinds).map(|(key, value)| (key.to_owned(), value)).collect()
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
    let mode = Mode::of_word(annotations.get(names::MODE)?)?;
    let selector =
        annotations.get(names::NAMESPACE_SELECTOR).and_then(|text| serde_json::from_str::<LabelSelector>(text).ok());
    let ready_kinds = annotations.get(names::READY_KINDS).map(|text| parse_list(text));
    let ignored = annotations.get(names::IGNORED_RESOURCES).map(|text| IgnoredResources::parse_list(text));
    Some(Serving {
        mode,
        selector: selector.unwrap_or_default(),
        ready_kinds,
        ignored_resources: ignored.unwrap_or_default(),
        ..Serving::default()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn flags_are_read_as_they_are_published() {
        let read = |annotations: &BTreeMap<String, String>| {
            let lease = json!({ "metadata": { "name": "rolegate", "annotations": annotations } });
            serving(&serde_json::from_value(lease).unwrap()).unwrap()
        };
        for kinds in ["Job=jobs.v1.batch,Pod=pods.v1", ""] {
            let told = Serving {
                mode: Mode::Warn,
                ready_kinds: Some(parse_list(kinds)),
                ignored_resources: IgnoredResources::parse_list("example.com/device,gpu.io/*"),
                ..Serving::default()
            };
            assert_eq!(read(&annotations(&told)), told);
        }
        let mut of_earlier_release = annotations(&Serving { ready_kinds: Some(Vec::new()), ..Serving::default() });
        of_earlier_release.retain(|key, _| ![names::READY_KINDS, names::IGNORED_RESOURCES].contains(&&**key));
        assert_eq!(read(&of_earlier_release), Serving::default());
    }
}
