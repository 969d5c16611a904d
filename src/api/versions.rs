//! The versions of RoleCoordination: what v1beta1 has where v1alpha1 has something else. `model::conversion` turns objects of
//! the one into objects of the other by these tables, and `crd` the schema.

use serde_json::{Value, json};

use super::role_coordination::ROLE_COORDINATION;

/// A version of RoleCoordination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// The one that is stored, and that rolegate itself reads and writes.
    V1alpha1,
    /// One spelling for each thing, and no strategy around it. Served where somebody has chosen that.
    V1beta1,
}

impl Version {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V1alpha1 => ROLE_COORDINATION.version,
            Self::V1beta1 => "v1beta1",
        }
    }

    /// With the group, as `apiVersion` has it.
    pub fn api_version(self) -> String {
        format!("{}/{}", ROLE_COORDINATION.group, self.name())
    }

    /// The version that an `apiVersion` names.
    pub fn parse(api_version: &str) -> Option<Self> {
        let (group, version) = api_version.split_once('/')?;
        let known = [Self::V1alpha1, Self::V1beta1].into_iter().find(|known| known.name() == version);
        known.filter(|_| group == ROLE_COORDINATION.group)
    }

    /// The field of the spec that lists the coordinations.
    pub const fn list(self) -> &'static str {
        match self {
            Self::V1alpha1 => "coordination",
            Self::V1beta1 => "coordinations",
        }
    }
}

/// Fields of an entry in v1alpha1 that v1beta1 does not have: the one is taken apart, the other says what is said already.
pub const OF_V1ALPHA1: [&str; 2] = [STRATEGY, "type"];
/// What v1alpha1 has around [`STRATEGIES`].
pub const STRATEGY: &str = "strategy";
/// How roles are coordinated: in v1beta1 fields of the entry itself.
pub const STRATEGIES: &[&str] =
    &["rollingUpdate", "affinityScheduling", "segmentPlacement", "rollingDeploy", "scaling"];
/// KEP-30's flat form: fields of `rollingUpdate` directly under `strategy`, where v1beta1 has them no more.
pub const FLAT: [&str; 4] = ["maxSkew", "maxUnavailable", "maxUnavailableRatio", "partition"];
/// Two names of one field of `rollingUpdate`: the one that v1beta1 has, and the other, which counts in v1alpha1.
pub const UNAVAILABLE: [&str; 2] = ["maxUnavailable", "maxUnavailableRatio"];
/// The topology of a step: in v1alpha1 also beside `rollingDeploy`.
pub const DEPLOY_CONSTRAINT: &str = "deployTopologyConstraint";
/// The roles of a step: in v1alpha1 also directly under `rollingDeploy`.
pub const DEPLOY_STEP: &str = "roleDeployStep";
/// Beside the roles of a step: with a number, v1alpha1 takes it for a role.
pub const RECOVERY: &str = "recovery";

/// Words of one field.
pub type Words = (&'static str, &'static [(&'static str, &'static str)]);

/// Words of v1alpha1 and of v1beta1, where all begin with a capital, by field.
pub const WORDS: &[Words] = &[
    ("whenNoFit", &[("hold", "Hold"), ("preempt", "Preempt"), ("release", "Release")]),
    ("constraintMode", &[("hard", "Hard"), ("soft", "Soft")]),
];

/// Fields that are one of some words; in v1alpha1 the empty one stands for the default, in v1beta1 it is none.
pub const ENUMS: &[&str] = &["whenNoFit", "constraintMode", "progression", "batchMode", "policy", "strategy"];

/// Fields that may hold anything: nobody looks into them.
pub const ANY: &[&str] = &["scaling", "podGroupPolicy"];

/// The schema of v1beta1, from that of v1alpha1.
pub(super) fn schema_of_v1beta1(alpha: &Value) -> Value {
    let mut schema = alpha.clone();
    if let Some(mut list) = take(&mut schema, "/properties/spec", Version::V1alpha1.list()) {
        if let Some(entry) = list.get_mut("items") {
            flatten(entry);
        }
        put(&mut schema, "/properties/spec/properties", Version::V1beta1.list(), list);
    }
    // Several managers may each have roles of their own.
    let roles = "/properties/spec/properties/roles";
    put(&mut schema, roles, "x-kubernetes-list-type", json!("map"));
    put(&mut schema, roles, "x-kubernetes-list-map-keys", json!(["name"]));
    schema
}

/// An entry without its strategy, with one spelling for each thing.
fn flatten(entry: &mut Value) {
    strict(entry);
    let mut strategy = take(entry, "", STRATEGY).unwrap_or_default();
    for field in OF_V1ALPHA1 {
        take(entry, "", field);
    }
    let recovery = strategy.pointer("/properties/segmentPlacement/properties/recovery").cloned().unwrap_or_default();
    put(&mut strategy, "/properties/rollingDeploy/properties", RECOVERY, recovery);
    let unavailable = strategy.pointer("/properties/rollingUpdate/properties").and_then(|all| all.get(UNAVAILABLE[0]));
    if unavailable.is_some() {
        take(&mut strategy, "/properties/rollingUpdate", UNAVAILABLE[1]);
    }
    if let Some(deploy) = strategy.pointer_mut("/properties/rollingDeploy").and_then(Value::as_object_mut) {
        deploy.remove("x-kubernetes-preserve-unknown-fields");
    }
    for field in STRATEGIES {
        if let Some(schema) = take(&mut strategy, "", field) {
            put(entry, "/properties", field, schema);
        }
    }
    for (field, words) in WORDS {
        in_capitals(entry, field, words);
    }
}

/// Nothing may be `null`, and no word empty.
fn strict(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.remove("nullable");
            if let Some(Value::Array(words)) = fields.get_mut("enum") {
                words.retain(|word| *word != json!(""));
            }
            fields.values_mut().for_each(strict);
        }
        Value::Array(items) => items.iter_mut().for_each(strict),
        _ => {}
    }
}

/// The words of a field, wherever it stands, with its default and its description.
fn in_capitals(schema: &mut Value, field: &str, words: &[(&str, &str)]) {
    let Value::Object(fields) = schema else { return };
    for (name, below) in fields.iter_mut() {
        if name == field && below.get("enum").is_some() {
            let new = |old: &str| words.iter().find(|(alpha, _)| *alpha == old).map(|(_, beta)| *beta);
            put(below, "", "enum", json!(words.iter().map(|(_, beta)| *beta).collect::<Vec<_>>()));
            if let Some(default) = below.get("default").and_then(Value::as_str).and_then(new) {
                put(below, "", "default", json!(default));
            }
            let said = below.get("description").and_then(Value::as_str).unwrap_or_default();
            let said = words.iter().fold(said.to_owned(), |said, (alpha, beta)| match said.rsplit_once(": ") {
                Some((what, all)) => format!("{what}: {}", all.replace(alpha, beta)),
                None => said.replace(alpha, beta),
            });
            put(below, "", "description", json!(said));
        } else {
            in_capitals(below, field, words);
        }
    }
}

/// Takes a property out of the schema at a path.
fn take(schema: &mut Value, path: &str, property: &str) -> Option<Value> {
    schema.pointer_mut(&format!("{path}/properties"))?.as_object_mut()?.remove(property)
}

fn put(schema: &mut Value, path: &str, field: &str, value: Value) {
    if let Some(Value::Object(fields)) = schema.pointer_mut(path) {
        fields.insert(field.to_owned(), value);
    }
}
