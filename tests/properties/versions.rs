//! Any RoleCoordination that the schema of a version lets in, converted into the other version and back: nothing is lost, nothing
//! refused, and what comes out is what the other schema lets in.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use proptest::prelude::*;
use rolegate::api::crd::{Converter, files_with_v1beta1};
use rolegate::api::versions::Version;
use rolegate::model::conversion::convert;
use rolegate::model::names::SPELLINGS;
use serde_json::{Map, Value, json};

use crate::tried;

static SCHEMAS: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
    let files = files_with_v1beta1(Converter { namespace: "ns", name: "us", certificate: None });
    let (_, yaml) = files.into_iter().find(|(name, _)| name.starts_with("rolecoordinations")).unwrap();
    let definition: Value = serde_saphyr::from_str(&yaml).unwrap();
    let versions = definition["spec"]["versions"].as_array().unwrap();
    versions
        .iter()
        .map(|version| (version["name"].as_str().unwrap().to_owned(), version["schema"]["openAPIV3Schema"].clone()))
        .collect()
});

fn schema(version: Version) -> &'static Value {
    &SCHEMAS[version.name()]
}

/// Anything.
fn any_json() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3..9_i64).prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(word(), inner, 0..3).prop_map(|fields| json!(fields)),
        ]
    })
    .boxed()
}

/// Names of roles, words and fields that meet each other.
fn word() -> impl Strategy<Value = String> {
    let words =
        ["", "a", "prefill", "recovery", "policy", "scaling", "strategy", "whenNoFit", "hold", "Hold", "nil", "60s"];
    prop::sample::select(words.map(str::to_owned).to_vec())
}

/// Any value that a schema lets in.
fn of_schema(schema: &Value) -> BoxedStrategy<Value> {
    if let Some(words) = schema["enum"].as_array() {
        return prop::sample::select(words.clone()).boxed();
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return prop_oneof![(0..200_i64).prop_map(Value::from), word().prop_map(Value::from)].boxed();
    }
    match schema["type"].as_str() {
        Some("object") => of_object(schema),
        Some("array") => of_array(schema),
        Some("string") => word().prop_map(Value::from).boxed(),
        Some("boolean") => any::<bool>().prop_map(Value::from).boxed(),
        Some("integer") => {
            let bound = |name: &str, default| schema[name].as_i64().unwrap_or(default);
            (bound("minimum", -5)..=bound("maximum", i64::MAX)).prop_map(Value::from).boxed()
        }
        _ => any_json(),
    }
}

fn of_object(schema: &Value) -> BoxedStrategy<Value> {
    let is_required = |name: &String| schema["required"].as_array().is_some_and(|all| all.contains(&json!(name)));
    let mut fields: Vec<BoxedStrategy<Option<(String, Value)>>> = Vec::new();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let (named, nulls) = (name.clone(), u32::from(field["nullable"] == true));
        let value = if nulls > 0 {
            prop_oneof![6 => of_schema(field), nulls => Just(Value::Null)].boxed()
        } else {
            of_schema(field)
        };
        // What is not nullable is dropped by the API server where it is `null`.
        let value = value
            .prop_map(move |value| Some((named.clone(), value)).filter(|(_, value)| nulls > 0 || !value.is_null()));
        fields.push(if is_required(name) { value.boxed() } else { prop_oneof![value, Just(None)].boxed() });
    }
    let open = schema["x-kubernetes-preserve-unknown-fields"] == true;
    let others = match &schema["additionalProperties"] {
        of @ Value::Object(_) => prop::collection::btree_map(word(), of_schema(of), 0..3).boxed(),
        _ if open => prop::collection::btree_map(word(), any_json(), 0..3).boxed(),
        _ => Just(BTreeMap::new()).boxed(),
    };
    (others, fields)
        .prop_map(|(others, fields)| {
            let all: Map<_, _> = others.into_iter().chain(fields.into_iter().flatten()).collect();
            Value::Object(all)
        })
        .boxed()
}

fn of_array(schema: &Value) -> BoxedStrategy<Value> {
    let key = schema["x-kubernetes-list-map-keys"][0].as_str().map(str::to_owned);
    prop::collection::vec(of_schema(&schema["items"]), 0..4)
        .prop_map(move |mut items| {
            for (number, item) in items.iter_mut().enumerate() {
                if let Some(key) = &key {
                    item[key] = json!(format!("{}{number}", item[key].as_str().unwrap_or_default()));
                }
            }
            items.into()
        })
        .boxed()
}

/// Why a schema does not let a value in, its limits of numbers aside: roles directly under `rollingDeploy` have none.
fn fault(schema: &Value, value: &Value, at: &str) -> Option<String> {
    let wrong = |why: &str| Some(format!("{at}: {why}: {value}"));
    if value.is_null() {
        return if schema["nullable"] == true || schema["type"].is_null() { None } else { wrong("null") };
    }
    if schema["enum"].as_array().is_some_and(|words| !words.contains(value)) {
        return wrong("not one of the words");
    }
    match (schema["type"].as_str(), value) {
        (Some("object"), Value::Object(fields)) => {
            let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            if let Some(missing) = required.into_iter().find(|field| !fields.contains_key(*field)) {
                return wrong(&format!("lacks {missing}"));
            }
            fields.iter().find_map(|(name, value)| {
                let at = format!("{at}.{name}");
                let known = schema["properties"].get(name).or_else(|| schema.get("additionalProperties"));
                match known {
                    Some(schema) => fault(schema, value, &at),
                    None if schema["x-kubernetes-preserve-unknown-fields"] == true => None,
                    None => Some(format!("{at}: no such field")),
                }
            })
        }
        (Some("array"), Value::Array(items)) => {
            items.iter().enumerate().find_map(|(index, item)| fault(&schema["items"], item, &format!("{at}[{index}]")))
        }
        (Some("string"), Value::String(_))
        | (Some("boolean"), Value::Bool(_))
        | (Some("integer"), Value::Number(_))
        | (None, _) => None,
        _ => wrong("another type"),
    }
}

fn object(version: Version) -> BoxedStrategy<Value> {
    of_schema(schema(version))
        .prop_map(move |fields| {
            let mut object = fields;
            object["apiVersion"] = json!(version.api_version());
            object["kind"] = json!("RoleCoordination");
            object["metadata"] = json!({
                "name": "pd", "resourceVersion": "7", "annotations": { "theirs": "kept" },
                "managedFields": [{ "manager": "m", "apiVersion": "rolegate.dev/v1alpha1", "fieldsV1": { "f:spec": {} } }],
            });
            object
        })
        .boxed()
}

/// Without what every object has.
fn own_fields(object: &Value) -> Value {
    json!({ "spec": object["spec"], "status": object.get("status").cloned().unwrap_or_else(|| json!({})) })
}

proptest! {
    #![proptest_config(tried(600))]

    #[test]
    fn what_v1alpha1_lets_in_comes_back_from_v1beta1_as_it_was(alpha in object(Version::V1alpha1)) {
        prop_assert_eq!(fault(schema(Version::V1alpha1), &own_fields(&alpha), ""), None);
        let beta = convert(alpha.clone(), &Version::V1beta1.api_version()).unwrap();
        prop_assert_eq!(fault(schema(Version::V1beta1), &own_fields(&beta), ""), None);
        prop_assert_eq!(&beta["status"], &alpha["status"]);
        prop_assert_eq!(&beta["metadata"]["managedFields"], &alpha["metadata"]["managedFields"]);
        prop_assert_eq!(convert(beta, &Version::V1alpha1.api_version()).unwrap(), alpha);
    }

    #[test]
    fn what_v1beta1_lets_in_is_stored_as_v1alpha1_and_read_as_it_was(beta in object(Version::V1beta1)) {
        let alpha = convert(beta.clone(), &Version::V1alpha1.api_version()).unwrap();
        prop_assert_eq!(fault(schema(Version::V1alpha1), &own_fields(&alpha), ""), None);
        prop_assert_eq!(&alpha["metadata"], &beta["metadata"]);
        let read = convert(alpha, &Version::V1beta1.api_version()).unwrap();
        prop_assert_eq!(read["metadata"]["annotations"].get(SPELLINGS), None);
        prop_assert_eq!(read, beta);
    }

    /// Somebody edits one entry in v1beta1: it gets the one spelling, and the others keep theirs.
    #[test]
    fn an_edit_in_v1beta1_leaves_the_other_entries_as_they_are_spelled(alpha in object(Version::V1alpha1)) {
        let entries = alpha["spec"]["coordination"].as_array().cloned().unwrap_or_default();
        if entries.len() < 2 {
            return Ok(());
        }
        let mut beta = convert(alpha, &Version::V1beta1.api_version()).unwrap();
        beta["spec"]["coordinations"][0]["roles"] = json!(["another"]);
        let edited = convert(beta, &Version::V1alpha1.api_version()).unwrap();
        prop_assert_eq!(&edited["spec"]["coordination"][0]["roles"], &json!(["another"]));
        prop_assert_eq!(&edited["spec"]["coordination"].as_array().unwrap()[1..], &entries[1..]);
        prop_assert_eq!(edited["metadata"]["annotations"].clone(), json!({ "theirs": "kept" }));
    }
}
