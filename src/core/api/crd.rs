//! CustomResourceDefinitions: the files of `deploy/`, and their source, the types. `make docs` writes the files.

use std::sync::LazyLock;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use super::ObjectKind;
use super::cluster_topology::{CLUSTER_TOPOLOGY, CLUSTER_TOPOLOGY_KEP75, ClusterTopologySpec, ClusterTopologyStatus};
use super::rbg::{ROLE_BASED_GROUP, ROLE_BASED_GROUP_INSTAI, RoleBasedGroupSpec};
use super::role_coordination::{ROLE_COORDINATION, RoleCoordinationSpec};
use super::status::GroupStatus;

pub const CUSTOM_RESOURCE_DEFINITION: ObjectKind =
    ObjectKind::cluster_scoped("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions");

/// The definitions of rolegate's own kinds, as they are installed.
pub const OWN: &[(ObjectKind, &str)] = &[
    (ROLE_COORDINATION, include_str!("../../../deploy/crds/rolecoordinations.rolegate.dev.yaml")),
    (CLUSTER_TOPOLOGY, include_str!("../../../deploy/crds/clustertopologies.rolegate.dev.yaml")),
];

/// The definitions of kinds of others in the shape of the designs, for clusters that have none.
pub const OPTIONAL: &[(ObjectKind, &str)] = &[
    (ROLE_BASED_GROUP, include_str!("../../../deploy/optional/rolebasedgroups.workloads.x-k8s.io.yaml")),
    (ROLE_BASED_GROUP_INSTAI, include_str!("../../../deploy/optional/rolebasedgroups.workloads.instai.io.yaml")),
    (CLUSTER_TOPOLOGY_KEP75, include_str!("../../../deploy/optional/clustertopologies.workloads.x-k8s.io.yaml")),
];

/// A print column: name, type, JSON path.
type Column = (&'static str, &'static str, &'static str);

/// Print columns of objects that carry a coordination.
const GROUP_COLUMNS: &[Column] = &[
    ("Segments", "string", ".status.summary.segments"),
    ("Ready", "string", ".status.summary.ready"),
    ("Held", "integer", ".status.summary.held"),
    ("Reason", "string", ".status.summary.reason"),
    ("Age", "date", ".metadata.creationTimestamp"),
];

const TOPOLOGY_COLUMNS: &[Column] = &[
    ("CurrentTopologyLevel", "string", ".status.currentTopologyLevel"),
    ("Valid", "boolean", ".status.validate"),
    ("Age", "date", ".metadata.creationTimestamp"),
];

/// Returns the RoleBasedGroup and ClusterTopology definitions in the shape and under the API groups of the designs. They are
/// optional and never applied over an existing definition.
fn of_others() -> Vec<Value> {
    // Two kinds must not share a short name: the API server would warn at every use.
    let groups = [(ROLE_BASED_GROUP, ["rbg"].as_slice()), (ROLE_BASED_GROUP_INSTAI, &[])]
        .map(|(kind, short)| crd::<RoleBasedGroupSpec, GroupStatus>(kind, "rolebasedgroup", short, GROUP_COLUMNS));
    groups.into_iter().chain([topology(CLUSTER_TOPOLOGY_KEP75)]).collect()
}

/// Returns the definitions of rolegate's own kinds: RoleCoordination and ClusterTopology.
fn own() -> Vec<Value> {
    let mut coordination =
        crd::<RoleCoordinationSpec, GroupStatus>(ROLE_COORDINATION, "rolecoordination", &["rcoord"], GROUP_COLUMNS);
    let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
    // The key of a map list must be required.
    let entry = format!("{spec}/properties/coordination/items");
    set(&mut coordination, &entry, "required", json!(["name"]));
    remove(&mut coordination, &format!("{entry}/properties/name"), "nullable");
    let one_of = json!([{
        "rule": "has(self.groupRef) != has(self.roles)",
        "message": "exactly one of `groupRef` and `roles` must be set",
    }]);
    set(&mut coordination, spec, "x-kubernetes-validations", one_of);
    let one_source = json!([{
        "rule": "has(self.workloadRef) != has(self.replicas)",
        "message": "exactly one of `workloadRef` and `replicas` must be set",
    }]);
    set(&mut coordination, &format!("{spec}/properties/roles/items"), "x-kubernetes-validations", one_source);
    let scale = json!({
        "specReplicasPath": ".spec.segments",
        "statusReplicasPath": ".status.segments",
        "labelSelectorPath": ".status.selector",
    });
    set(&mut coordination, "/spec/versions/0/subresources", "scale", scale);
    vec![coordination, topology(CLUSTER_TOPOLOGY)]
}

/// Returns the schema of one of rolegate's own kinds; `None` for other kinds.
pub fn schema_of(kind: ObjectKind) -> Option<&'static Value> {
    static SCHEMAS: LazyLock<Vec<(ObjectKind, Value)>> = LazyLock::new(|| schemas(OWN));
    schema_in(&SCHEMAS, kind)
}

fn schemas(files: &[(ObjectKind, &str)]) -> Vec<(ObjectKind, Value)> {
    let schema = |yaml| {
        let definition: Value = serde_saphyr::from_str(yaml).ok()?;
        definition.pointer("/spec/versions/0/schema/openAPIV3Schema").cloned()
    };
    files.iter().filter_map(|(kind, yaml)| Some((*kind, schema(yaml)?))).collect()
}

fn schema_in(schemas: &[(ObjectKind, Value)], kind: ObjectKind) -> Option<&Value> {
    let found = schemas.iter().find(|(known, _)| (known.group, known.plural) == (kind.group, kind.plural));
    found.map(|(_, schema)| schema)
}

/// Returns the schema of the fields that rolegate reads of a kind: of its own kinds, and of those that others define; `None` where
/// it has no schema.
pub fn schema_of_read(kind: ObjectKind) -> Option<&'static Value> {
    static SCHEMAS: LazyLock<Vec<(ObjectKind, Value)>> = LazyLock::new(|| schemas(OPTIONAL));
    schema_of(kind).or_else(|| schema_in(&SCHEMAS, kind))
}

fn topology(kind: ObjectKind) -> Value {
    let mut topology =
        crd::<ClusterTopologySpec, ClusterTopologyStatus>(kind, "clustertopology", &[], TOPOLOGY_COLUMNS);
    let immutable = json!([{ "rule": "self == oldSelf", "message": "the spec may not change" }]);
    set(
        &mut topology,
        "/spec/versions/0/schema/openAPIV3Schema/properties/spec",
        "x-kubernetes-validations",
        immutable,
    );
    topology
}

/// Sets a field of the object at a JSON pointer.
fn set(definition: &mut Value, path: &str, field: &str, value: Value) {
    if let Some(Value::Object(object)) = definition.pointer_mut(path) {
        object.insert(field.to_owned(), value);
    }
}

/// Removes a field of the object at a JSON pointer.
fn remove(definition: &mut Value, path: &str, field: &str) {
    if let Some(Value::Object(object)) = definition.pointer_mut(path) {
        object.remove(field);
    }
}

fn crd<Spec: JsonSchema, Status: JsonSchema>(
    kind: ObjectKind,
    singular: &str,
    short_names: &[&str],
    columns: &[Column],
) -> Value {
    let spec = require(schema::<Spec>());
    let columns: Vec<_> =
        columns.iter().map(|(name, kind, path)| json!({"name": name, "type": kind, "jsonPath": path})).collect();
    let mut definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.crd_name()},
        "spec": {
            "group": kind.group,
            "names": {
                "kind": kind.kind,
                "listKind": format!("{}List", kind.kind),
                "plural": kind.plural,
                "singular": singular,
            },
            "conversion": {"strategy": "None"},
            "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
            "versions": [{
                "name": kind.version,
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "additionalPrinterColumns": columns,
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "required": ["spec"],
                    "properties": {"spec": spec, "status": schema::<Status>()},
                }},
            }],
        },
    });
    // The API server drops an empty list, and then reports a conflict when another manager applies it too.
    if !short_names.is_empty() {
        set(&mut definition, "/spec/names", "shortNames", json!(short_names));
    }
    definition
}

/// Required fields, by the path of their object in the spec; `*` is a list item.
const REQUIRED: &[(&str, &[&str])] = &[
    ("/groupRef", &["name"]),
    ("/roles/*", &["name"]),
    ("/roles/*/workloadRef", &["kind", "name"]),
    ("/coordination/*/strategy/segmentPlacement", &["segmentSize"]),
    ("/coordination/*/strategy/affinityScheduling", &["topologyKey", "ratios"]),
    ("/coordinationRequirements/*/strategy/segmentPlacement", &["segmentSize"]),
    ("/coordinationRequirements/*/strategy/affinityScheduling", &["topologyKey", "ratios"]),
    ("/layers/*", &["name", "key"]),
    ("/Layers/*", &["name", "key"]),
];

/// Marks the required fields, since serde's defaults make every field optional.
fn require(mut spec: Value) -> Value {
    for (path, fields) in REQUIRED {
        let step = |step| if step == "*" { "/items".to_owned() } else { format!("/properties/{step}") };
        let pointer: String = path.split('/').skip(1).map(step).collect();
        set(&mut spec, &pointer, "required", json!(fields));
        for field in *fields {
            remove(&mut spec, &format!("{pointer}/properties/{field}"), "nullable");
        }
    }
    spec
}

/// Returns the schema of a type in the form that an API server accepts.
fn schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::openapi3().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = serde_json::to_value(settings.into_generator().into_root_schema_for::<T>()).unwrap_or_default();
    tidy(&mut schema);
    schema
}

/// Drops keywords that an API server does not know or ignores with a warning.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            for key in ["title", "$schema"] {
                if object.get(key).is_some_and(Value::is_string) {
                    object.remove(key);
                }
            }
            // The API server knows int32 and int64, not the widths of Rust's integers.
            if object.get("format").is_some_and(|format| format == "uint32") {
                object.insert("format".to_owned(), json!("int64"));
            }
            // Without `nullable`, the API server drops `null` and fills in the default.
            if object.contains_key("enum") || object.get("default").is_some_and(Value::is_string) {
                object.remove("nullable");
            }
            if object
                .get("default")
                .is_some_and(|default| default.is_null() || *default == json!("") || *default == json!({}))
                && object.contains_key("type")
            {
                object.remove("default");
            }
            object.values_mut().for_each(tidy);
        }
        Value::Array(list) => list.iter_mut().for_each(tidy),
        _ => {}
    }
}

/// Returns the names and contents that the files of the optional definitions, or of rolegate's own, are to have.
pub fn files(optional: bool) -> Vec<(String, String)> {
    if optional { of_others() } else { own() }.iter().map(named).collect()
}

fn named(crd: &Value) -> (String, String) {
    let name = crd.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
    (format!("{name}.yaml"), serde_saphyr::to_string(crd).unwrap_or_default())
}
