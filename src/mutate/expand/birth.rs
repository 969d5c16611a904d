//! From a pod template to a pod.

use serde_json::{Map, Value, json};

use super::text;

/// What a controller adds to the template of a pod.
#[derive(Debug, Default)]
pub(super) struct Birth {
    /// The pod's name; only a prefix where the API server makes the rest.
    pub name: Name,
    /// Labels, over those of the template.
    pub labels: Vec<(String, String)>,
    /// Annotations, over those of the template.
    pub annotations: Vec<(String, String)>,
    /// The owner that manages it.
    pub owner: Owner,
    /// Variables, in front of those of every container.
    pub env: Vec<Value>,
    /// First part of its DNS name.
    pub hostname: Option<String>,
    /// Governing Service.
    pub subdomain: Option<String>,
    /// Gate of the controller's own.
    pub gate: Option<&'static str>,
}

/// A pod's name.
#[derive(Debug)]
pub(super) enum Name {
    /// Given, with the prefix that controllers set as well.
    Given(String),
    /// Generated from this prefix.
    Generated(String),
}

impl Default for Name {
    fn default() -> Self {
        Self::Generated(String::new())
    }
}

/// The owner that manages a pod.
#[derive(Debug, Default)]
pub(super) struct Owner {
    /// Its group and version.
    pub api_version: &'static str,
    /// Its kind.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// Its unique id, where it is known.
    pub uid: Option<String>,
}

impl Owner {
    /// The workload itself.
    pub fn workload(api_version: &'static str, kind: &'static str, workload: &Value) -> Self {
        let uid = Some(text(workload, "/metadata/uid")).filter(|uid| !uid.is_empty()).map(str::to_owned);
        Self { api_version, kind, name: text(workload, "/metadata/name").to_owned(), uid }
    }

    fn to_json(&self) -> Value {
        let mut owner = json!({
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            "controller": true,
            "blockOwnerDeletion": true,
        });
        if let (Some(uid), Some(owner)) = (&self.uid, owner.as_object_mut()) {
            owner.insert("uid".to_owned(), json!(uid));
        }
        owner
    }
}

impl Birth {
    /// The pod, in the namespace of its workload.
    pub fn of(self, template: &Value, workload: &Value) -> Value {
        let mut metadata = Map::new();
        match &self.name {
            Name::Given(name) => _ = metadata.insert("name".to_owned(), json!(name)),
            Name::Generated(prefix) => _ = metadata.insert("generateName".to_owned(), json!(prefix)),
        }
        if let Some(namespace) = workload.pointer("/metadata/namespace") {
            metadata.insert("namespace".to_owned(), namespace.clone());
        }
        for (field, added) in [("labels", self.labels), ("annotations", self.annotations)] {
            let mut entries = object(template.pointer(&format!("/metadata/{field}")));
            entries.extend(added.into_iter().map(|(key, value)| (key, Value::String(value))));
            if !entries.is_empty() {
                metadata.insert(field.to_owned(), Value::Object(entries));
            }
        }
        metadata.insert("ownerReferences".to_owned(), json!([self.owner.to_json()]));
        let mut spec = object(template.get("spec"));
        for list in ["containers", "initContainers"] {
            if let Some(Value::Array(containers)) = spec.get_mut(list) {
                containers.iter_mut().for_each(|container| put_first(container, &self.env));
            }
        }
        for (field, value) in [("hostname", self.hostname), ("subdomain", self.subdomain)] {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                spec.insert(field.to_owned(), Value::String(value));
            }
        }
        if let Some(gate) = self.gate {
            spec.insert("schedulingGates".to_owned(), json!([{ "name": gate }]));
        }
        json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec })
    }
}

fn object(value: Option<&Value>) -> Map<String, Value> {
    value.and_then(Value::as_object).cloned().unwrap_or_default()
}

/// Puts variables in front; the container's own of the same name give way.
fn put_first(container: &mut Value, variables: &[Value]) {
    let Some(fields) = container.as_object_mut().filter(|_| !variables.is_empty()) else { return };
    let mut env = variables.to_vec();
    let own = fields.get("env").and_then(Value::as_array).into_iter().flatten();
    let is_set = |variable: &&Value| !variables.iter().any(|set| set.get("name") == variable.get("name"));
    env.extend(own.filter(is_set).cloned());
    fields.insert("env".to_owned(), Value::Array(env));
}
