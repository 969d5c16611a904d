//! What admission adds to pods, and their templates lack: the overhead, node selector and tolerations of a RuntimeClass, and
//! tolerations of taints that are named like an extended resource (ExtendedResourceToleration).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::needs::{Needs, NotModelled};
use super::volumes::VolumeSight;
use crate::api::runtime_class::RuntimeClass;
use crate::api::scheduling::{ResourceList, SchedulingPod, Toleration};
use crate::model::quantity::NoQuantity;
use crate::plan::devices::is_extended;

/// The known RuntimeClasses.
#[derive(Clone, Debug, Default)]
pub struct RuntimeClasses {
    pub sight: VolumeSight,
    classes: BTreeMap<Arc<str>, RuntimeClass>,
}

/// The additions to one pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Added {
    node_selector: BTreeMap<String, String>,
    tolerations: Vec<Toleration>,
    overhead: ResourceList,
}

impl RuntimeClasses {
    pub fn count(&self) -> usize {
        self.classes.len()
    }

    /// Adds or updates a class; returns whether it has changed.
    pub fn apply(&mut self, class: &RuntimeClass) -> bool {
        let before = self.classes.insert(class.metadata.display_name().into(), class.clone());
        before.as_ref().map(|before| (&before.overhead, &before.scheduling))
            != Some((&class.overhead, &class.scheduling))
    }

    pub fn remove(&mut self, name: &str) -> bool {
        self.classes.remove(name).is_some()
    }

    /// Sets the classes: there are no others.
    pub fn set_all(&mut self, classes: &[RuntimeClass]) {
        self.classes.clear();
        classes.iter().for_each(|class| _ = self.apply(class));
        self.sight = VolumeSight::Known;
    }

    /// Returns what is added to a pod that does not exist yet.
    pub fn added(&self, pod: &SchedulingPod) -> Added {
        let class = pod.spec.runtime_class_name.as_deref().and_then(|name| self.classes.get(name));
        let mut added = class.map_or_else(Added::default, |class| Added {
            node_selector: class.scheduling.node_selector.clone(),
            tolerations: class.scheduling.tolerations.clone(),
            overhead: class.overhead.pod_fixed.clone(),
        });
        let containers = pod.spec.containers.iter().chain(&pod.spec.init_containers).map(|one| &one.resources);
        let names = containers.flat_map(|resources| resources.requests.keys().chain(resources.limits.keys()));
        let extended: BTreeSet<_> = names.filter(|name| is_extended(name)).collect();
        added.tolerations.extend(extended.into_iter().map(|resource| Toleration {
            key: resource.clone(),
            operator: "Exists".to_owned(),
            effect: "NoSchedule".to_owned(),
            ..Toleration::default()
        }));
        added
    }

    /// Returns the needs of a pod that does not exist yet.
    ///
    /// # Errors
    ///
    /// Fails on an amount that is no quantity.
    pub fn needs(&self, template: &SchedulingPod) -> Result<Needs, NoQuantity> {
        let mut pod = template.clone();
        self.added(template).add_to(&mut pod);
        let mut needs = Needs::of(&pod)?;
        needs.not_modelled.extend(self.unknown(&pod).map(NotModelled::RuntimeClass));
        Ok(needs)
    }

    /// Returns what is not known of the class of a pod.
    fn unknown(&self, pod: &SchedulingPod) -> Option<Arc<str>> {
        let name = pod.spec.runtime_class_name.as_deref().filter(|name| !name.is_empty())?;
        let why = match &self.sight {
            VolumeSight::Refused(why) => format!(" ({why})"),
            _ if !self.classes.contains_key(name) => ", which is not there".to_owned(),
            _ => return None,
        };
        Some(format!("RuntimeClass {name:?}{why}").into())
    }
}

impl Added {
    fn add_to(self, pod: &mut SchedulingPod) {
        pod.spec.node_selector.extend(self.node_selector);
        pod.spec.tolerations.extend(self.tolerations);
        pod.spec.overhead.extend(self.overhead);
    }

    /// Adds them to the spec of a pod template.
    pub fn add_to_template(&self, spec: &mut Map<String, Value>) {
        let text = |name: &str, value: &str| (!value.is_empty()).then(|| (name.to_owned(), json!(value)));
        let toleration = |one: &Toleration| {
            let fields =
                [("key", &one.key), ("operator", &one.operator), ("value", &one.value), ("effect", &one.effect)];
            fields.into_iter().filter_map(|(name, value)| text(name, value)).collect::<Map<_, _>>()
        };
        let tolerations: Vec<_> = self.tolerations.iter().map(toleration).map(Value::from).collect();
        match spec.get_mut("tolerations") {
            Some(Value::Array(known)) => known.extend(tolerations),
            _ if tolerations.is_empty() => {}
            _ => _ = spec.insert("tolerations".to_owned(), json!(tolerations)),
        }
        let overhead = self.overhead.iter().map(|(name, amount)| (name, &*amount.0)).collect();
        let selector = self.node_selector.iter().map(|(key, value)| (key, value.as_str())).collect();
        let maps: [(&str, BTreeMap<&String, &str>); 2] = [("nodeSelector", selector), ("overhead", overhead)];
        for (field, more) in maps.into_iter().filter(|(_, more)| !more.is_empty()) {
            let at = spec.entry(field).or_insert(Value::Null);
            let mut all = at.as_object().cloned().unwrap_or_default();
            all.extend(more.into_iter().map(|(name, value)| (name.clone(), json!(value))));
            *at = Value::Object(all);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::typed;

    #[test]
    fn what_admission_adds_stands_in_requests_for_nodes() {
        let class = json!({
            "metadata": { "name": "kata" },
            "overhead": { "podFixed": { "cpu": "2" } },
            "scheduling": { "nodeSelector": { "runtime": "kata" }, "tolerations": [{ "key": "sandboxed", "operator": "Exists" }] },
        });
        let mut classes = RuntimeClasses::default();
        classes.set_all(&[typed(class)]);
        let gpu = json!([{ "resources": { "limits": { "cpu": "1", "nvidia.com/gpu": "1" } } }]);
        let template =
            json!({ "spec": { "runtimeClassName": "kata", "nodeSelector": { "pool": "gpu" }, "containers": gpu } });
        let mut spec = template["spec"].as_object().unwrap().clone();
        classes.added(&typed(template)).add_to_template(&mut spec);
        let tolerations = json!([
            { "key": "sandboxed", "operator": "Exists" },
            { "key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule" },
        ]);
        let expected = json!({
            "runtimeClassName": "kata",
            "nodeSelector": { "pool": "gpu", "runtime": "kata" },
            "overhead": { "cpu": "2" },
            "tolerations": tolerations,
            "containers": gpu,
        });
        assert_eq!(Value::Object(spec), expected);
        let plain = json!({ "containers": [{ "name": "main" }] });
        let mut spec = plain.as_object().unwrap().clone();
        classes.added(&typed(json!({ "spec": plain }))).add_to_template(&mut spec);
        assert_eq!(Value::Object(spec), plain);
    }
}
