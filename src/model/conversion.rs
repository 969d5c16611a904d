//! RoleCoordinations from one version into the other, without loss. What has several spellings in v1alpha1 has one in v1beta1
//! (`api::versions`); how an entry was spelled is kept in an annotation of the object in v1beta1 while that entry means what it
//! meant, and is put back from there. So an object that is read in v1beta1 and written again is stored as it was.
//!
//! Nothing that the schema of either version lets in is refused: an API server that cannot convert one object cannot list any.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::FieldPath;
use super::names::SPELLINGS;
use super::recovery::RECOVERY_POLICIES;
use crate::api::coordination::Recovery;
use crate::api::role_coordination::ROLE_COORDINATION;
use crate::api::versions::{
    ANY, DEPLOY_CONSTRAINT, DEPLOY_STEP, ENUMS, FLAT, OF_V1ALPHA1, RECOVERY, STRATEGIES, STRATEGY, UNAVAILABLE,
    Version, WORDS,
};

/// Why an object cannot be converted.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ConversionError {
    /// Something else, or a version that nobody knows.
    #[error(
        "only RoleCoordinations of rolegate.dev/v1alpha1 and v1beta1 can be converted: this is {kind:?} of {api_version:?}"
    )]
    NotOurs {
        /// As it says.
        api_version: String,
        /// As it says.
        kind: String,
    },
    /// It is to be of a version that nobody knows.
    #[error("a RoleCoordination can be of rolegate.dev/v1alpha1 or v1beta1, and not of {0:?}")]
    UnknownVersion(String),
    /// A field is not what every version says that it is.
    #[error("{at}: {detail}")]
    Malformed {
        /// The field, in the version that the object is of.
        at: FieldPath,
        /// What must hold.
        detail: &'static str,
    },
}

const MUST_BE_AN_OBJECT: &str = "must be an object";
const MUST_BE_A_LIST: &str = "must be a list";
const OTHER_VERSION: &str = "is a field of the other version";

type Fields = Map<String, Value>;

/// The object in another version; as it is, if it is of that one.
///
/// # Errors
/// When it is no RoleCoordination, or has a shape that no schema lets in, or the version is not known.
pub fn convert(mut object: Value, desired: &str) -> Result<Value, ConversionError> {
    let to = Version::parse(desired).ok_or_else(|| ConversionError::UnknownVersion(desired.to_owned()))?;
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let from = Version::parse(api_version)
        .filter(|_| kind == ROLE_COORDINATION.kind)
        .ok_or_else(|| ConversionError::NotOurs { api_version: api_version.to_owned(), kind: kind.to_owned() })?;
    if from == to {
        return Ok(object);
    }
    let Value::Object(fields) = &mut object else { return Ok(object) };
    fields.insert("apiVersion".to_owned(), Value::String(to.api_version()));
    let kept = spellings(fields);
    let mut spelled = Fields::new();
    let at = FieldPath::new("spec");
    match fields.get_mut("spec") {
        None | Some(Value::Null) => {}
        Some(Value::Object(spec)) => {
            if spec.contains_key(to.list()) {
                return Err(ConversionError::Malformed { at: at.child(to.list()), detail: OTHER_VERSION });
            }
            if let Some(mut entries) = spec.remove(from.list()) {
                convert_entries(&mut entries, from, &at.child(from.list()), &kept, &mut spelled)?;
                spec.insert(to.list().to_owned(), entries);
            }
        }
        Some(_) => return Err(ConversionError::Malformed { at, detail: MUST_BE_AN_OBJECT }),
    }
    note(fields, to, &spelled)?;
    Ok(object)
}

fn convert_entries(
    entries: &mut Value,
    from: Version,
    at: &FieldPath,
    kept: &Fields,
    spelled: &mut Fields,
) -> Result<(), ConversionError> {
    let entries = match entries {
        Value::Null => return Ok(()),
        Value::Array(entries) => entries,
        _ => return Err(ConversionError::Malformed { at: at.clone(), detail: MUST_BE_A_LIST }),
    };
    for (index, entry) in entries.iter_mut().enumerate() {
        let at = at.index(index);
        let Value::Object(fields) = entry else {
            return Err(ConversionError::Malformed { at, detail: MUST_BE_AN_OBJECT });
        };
        let name = fields.get("name").and_then(Value::as_str).map(str::to_owned);
        let converted = match from {
            Version::V1alpha1 => {
                let beta = to_beta(fields, &at)?;
                if let Some(name) = name.filter(|_| to_alpha(&beta) != *fields) {
                    spelled.insert(name, Value::Object(fields.clone()));
                }
                beta
            }
            Version::V1beta1 => {
                if let Some(field) = OF_V1ALPHA1.into_iter().find(|field| fields.contains_key(*field)) {
                    return Err(ConversionError::Malformed { at: at.child(field), detail: OTHER_VERSION });
                }
                let was = name.and_then(|name| kept.get(&name)).and_then(Value::as_object);
                // What it is spelled like counts only while that means what is written now.
                let still = was.filter(|was| to_beta(was, &at).is_ok_and(|meant| meant == *fields));
                still.cloned().unwrap_or_else(|| to_alpha(fields))
            }
        };
        *fields = converted;
    }
    Ok(())
}

/// How entries are spelled, by name, as it was noted.
fn spellings(object: &Fields) -> Fields {
    let annotations = object.get("metadata").and_then(|metadata| metadata.get("annotations"));
    let noted = annotations.and_then(|all| all.get(SPELLINGS)).and_then(Value::as_str);
    noted.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// Notes how entries are spelled, in v1beta1 alone.
fn note(object: &mut Fields, to: Version, spelled: &Fields) -> Result<(), ConversionError> {
    let metadata_at = FieldPath::new("metadata");
    let malformed = |at: &FieldPath| ConversionError::Malformed { at: at.clone(), detail: MUST_BE_AN_OBJECT };
    if to == Version::V1alpha1 {
        let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
        let Some(metadata) = metadata else { return Ok(()) };
        if let Some(Value::Object(annotations)) = metadata.get_mut("annotations")
            && annotations.remove(SPELLINGS).is_some()
            && annotations.is_empty()
        {
            metadata.remove("annotations");
        }
        return Ok(());
    }
    if spelled.is_empty() {
        return Ok(());
    }
    let text = serde_json::to_string(spelled).unwrap_or_default();
    let metadata = object.entry("metadata").or_insert_with(|| Value::Object(Fields::new()));
    let metadata = metadata.as_object_mut().ok_or_else(|| malformed(&metadata_at))?;
    let annotations = metadata.entry("annotations").or_insert(Value::Null);
    if annotations.is_null() {
        *annotations = Value::Object(Fields::new());
    }
    let annotations = annotations.as_object_mut().ok_or_else(|| malformed(&metadata_at.child("annotations")))?;
    annotations.insert(SPELLINGS.to_owned(), Value::String(text));
    Ok(())
}

/// An entry of v1alpha1 in v1beta1: one spelling of what it says.
fn to_beta(alpha: &Fields, at: &FieldPath) -> Result<Fields, ConversionError> {
    let mut beta = alpha.clone();
    beta.remove("type");
    let mut strategy = match beta.remove(STRATEGY) {
        None | Some(Value::Null) => Fields::new(),
        Some(Value::Object(strategy)) => strategy,
        Some(_) => return Err(ConversionError::Malformed { at: at.child(STRATEGY), detail: MUST_BE_AN_OBJECT }),
    };
    without_nulls(&mut strategy);
    let flat: Fields = FLAT.into_iter().filter_map(|field| strategy.remove_entry(field)).collect();
    if !flat.is_empty() {
        strategy.entry("rollingUpdate").or_insert(Value::Object(flat));
    }
    if let Some(Value::Object(update)) = strategy.get_mut("rollingUpdate") {
        let [name, other] = UNAVAILABLE;
        if let Some(value) = update.remove(other) {
            update.insert(name.to_owned(), value);
        }
    }
    // Beside the strategy they mean nothing.
    STRATEGIES.iter().for_each(|field| _ = beta.remove(*field));
    let constraint = strategy.remove(DEPLOY_CONSTRAINT);
    if let Some(Value::Object(deploy)) = strategy.get_mut("rollingDeploy") {
        one_form_of_steps(deploy, constraint);
    }
    beta.extend(STRATEGIES.iter().filter_map(|field| strategy.remove_entry(*field)));
    without_nulls(&mut beta);
    rename_words(&mut beta, |(alpha, beta)| (alpha, beta));
    Ok(beta)
}

/// The roles of a step under `roleDeployStep`, and its topology within.
fn one_form_of_steps(deploy: &mut Fields, constraint: Option<Value>) {
    let mut direct = Fields::new();
    let mut one_form = Fields::new();
    for (field, value) in std::mem::take(deploy) {
        let is_role = field != DEPLOY_CONSTRAINT && field != DEPLOY_STEP && value.is_i64();
        if is_role {
            direct.insert(field, value);
        } else if field == DEPLOY_CONSTRAINT || field == DEPLOY_STEP || (field == RECOVERY && is_recovery(&value)) {
            one_form.insert(field, value);
        }
    }
    if !direct.is_empty() {
        one_form.entry(DEPLOY_STEP).or_insert(Value::Object(direct));
    }
    if let Some(constraint) = constraint {
        one_form.entry(DEPLOY_CONSTRAINT).or_insert(constraint);
    }
    *deploy = one_form;
}

/// In v1alpha1 anything may stand there.
fn is_recovery(value: &Value) -> bool {
    let Ok(read) = serde_json::from_value::<Recovery>(value.clone()) else { return false };
    let is_known =
        read.policy.as_deref().is_none_or(|policy| RECOVERY_POLICIES.iter().any(|(word, _)| *word == policy));
    is_known && serde_json::to_value(&read).is_ok_and(|read| read == *value)
}

/// An entry of v1beta1 in v1alpha1.
fn to_alpha(beta: &Fields) -> Fields {
    let mut alpha = beta.clone();
    let strategy: Fields = STRATEGIES.iter().filter_map(|field| alpha.remove_entry(*field)).collect();
    if !strategy.is_empty() {
        alpha.insert(STRATEGY.to_owned(), Value::Object(strategy));
    }
    rename_words(&mut alpha, |(alpha, beta)| (beta, alpha));
    alpha
}

/// Fields without a value, and words that are none, are as good as not there.
fn without_nulls(fields: &mut Fields) {
    fields.retain(|field, value| !(value.is_null() || *value == "" && ENUMS.contains(&field.as_str())));
    for (field, value) in fields {
        if let Value::Object(below) = value
            && !ANY.contains(&field.as_str())
        {
            without_nulls(below);
        }
    }
}

fn rename_words(fields: &mut Fields, of: fn((&'static str, &'static str)) -> (&'static str, &'static str)) {
    for (field, value) in fields {
        if let Some((_, words)) = WORDS.iter().find(|(known, _)| known == field)
            && let Some((_, new)) = words.iter().copied().map(of).find(|(old, _)| *value == *old)
        {
            *value = Value::String(new.to_owned());
        } else if let Value::Object(below) = value
            && !ANY.contains(&field.as_str())
        {
            rename_words(below, of);
        }
    }
}

/// The path of a field in v1beta1, from that in v1alpha1.
pub fn path_in_v1beta1(path: &FieldPath) -> FieldPath {
    let is_ours = path.steps().nth(1).is_some_and(|(_, step)| step == Version::V1alpha1.list());
    path.renamed(|depth, field| match (depth, field) {
        (0, _) if field.contains('.') => Some(text_in_v1beta1(field).into()),
        (1, _) if is_ours => Some(Cow::Borrowed(Version::V1beta1.list())),
        (3, STRATEGY) if is_ours => None,
        _ => Some(field.to_owned().into()),
    })
}

/// A text that names fields by their paths, as they are in v1beta1.
pub fn text_in_v1beta1(text: &str) -> String {
    let list = "spec.coordination";
    let (mut out, mut rest) = (String::with_capacity(text.len() + 1), text);
    while let Some((before, after)) = rest.split_once(list) {
        out.push_str(before);
        out.push_str(list);
        rest = after;
        if after.starts_with(|next: char| next.is_alphanumeric()) {
            continue;
        }
        out.push('s');
        let index = after.strip_prefix('[').and_then(|after| after.split_once(']'));
        if let Some((index, below)) = index.filter(|(index, _)| index.chars().all(|c| c.is_ascii_digit())) {
            out.push('[');
            out.push_str(index);
            out.push(']');
            let shorter = below.strip_prefix('.').and_then(|below| below.strip_prefix(STRATEGY));
            rest = shorter.filter(|rest| !rest.starts_with(|next: char| next.is_alphanumeric())).unwrap_or(below);
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_the_version_that_is_written() {
        let list = FieldPath::new("spec").child("coordination");
        let path = list.index(1).child("strategy").child("segmentPlacement").key("strategy");
        assert_eq!(path_in_v1beta1(&path).to_string(), "spec.coordinations[1].segmentPlacement[strategy]");
        for (alpha, beta) in [
            ("spec.coordination[0].strategy", "spec.coordinations[0]"),
            ("spec.coordination[0].strategy.rollingUpdate.maxSkew", "spec.coordinations[0].rollingUpdate.maxSkew"),
            ("spec.coordination[10].name and spec.coordination", "spec.coordinations[10].name and spec.coordinations"),
            ("spec.coordination[x].strategyless", "spec.coordinations[x].strategyless"),
            ("spec.coordinationx[0].strategy.a", "spec.coordinationx[0].strategy.a"),
            ("spec.roles[0].strategy", "spec.roles[0].strategy"),
        ] {
            assert_eq!(text_in_v1beta1(alpha), beta);
            assert_eq!(path_in_v1beta1(&FieldPath::verbatim(alpha.to_owned())).to_string(), beta);
        }
        let role = FieldPath::new("spec").child("roles").index(0).child("strategy");
        assert_eq!(path_in_v1beta1(&role), role);
    }
}
