//! From a pod template to a pod.

use serde_json::{Map, Value, json};

use super::text;

/// The additions of a controller to a pod template.
#[derive(Debug, Default)]
pub(super) struct Birth {
    /// Name of the pod; a prefix where the API server generates the name.
    pub name: Name,
    /// Labels; override those of the template.
    pub labels: Vec<(String, String)>,
    /// Annotations; override those of the template.
    pub annotations: Vec<(String, String)>,
    /// The controller of the pod.
    pub owner: Owner,
    /// Variables at the start of the environment of every container.
    pub env: Vec<Value>,
    pub hostname: Option<String>,
    /// Governing Service.
    pub subdomain: Option<String>,
    /// Scheduling gate of the controller.
    pub gate: Option<&'static str>,
}

#[derive(Debug)]
pub(super) enum Name {
    /// A fixed name; `generateName` is set as well, as controllers do.
    Given(String),
    Generated(String),
}

impl Default for Name {
    fn default() -> Self {
        Self::Generated(String::new())
    }
}

#[derive(Debug, Default)]
pub(super) struct Owner {
    pub api_version: &'static str,
    pub kind: &'static str,
    pub name: String,
    pub uid: Option<String>,
}

impl Owner {
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
    /// Returns the pod, in the namespace of its workload.
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

/// Puts variables first; replaces the container's own of the same name.
fn put_first(container: &mut Value, variables: &[Value]) {
    let Some(fields) = container.as_object_mut().filter(|_| !variables.is_empty()) else { return };
    let mut env = variables.to_vec();
    let own = fields.get("env").and_then(Value::as_array).into_iter().flatten();
    let is_set = |variable: &&Value| !variables.iter().any(|set| set.get("name") == variable.get("name"));
    env.extend(own.filter(is_set).cloned());
    fields.insert("env".to_owned(), Value::Array(env));
}
