//! Bounds of a coordinated rollout (KEP-30): percentages without decimals, and numbers of replicas.

use serde_json::Value;

use super::Cause;
use crate::api::IntOrString;
use crate::api::coordination::RollingUpdate;
use crate::api::int_or_string::percent;
use crate::model::FieldPath;

/// Path, cause, value and requirement.
pub(super) type Fault = (FieldPath, Cause, Option<String>, &'static str);

const SHARE: &str = "must be a percentage without decimals, from \"0%\" to \"100%\"";
const UNAVAILABLE: &str = "must be a number of replicas greater than 0, or a percentage from \"1%\" to \"100%\"";
const SKEW: &str = "must be a percentage without decimals, from \"1%\" to \"100%\"";

/// Returns the faults of the bounds at `at`.
pub(super) fn rolling_update_faults(update: &RollingUpdate, at: &FieldPath) -> Vec<Fault> {
    let shares = [("maxSkew", &update.max_skew), ("partition", &update.partition)];
    let shares = shares.into_iter().filter_map(|(field, value)| {
        let value = value.as_ref().filter(|value| value.percent().is_none())?;
        Some((at.child(field), Cause::Invalid, Some(value.to_string()), SHARE))
    });
    let counts = [("maxUnavailable", &update.max_unavailable), ("maxUnavailableRatio", &update.max_unavailable_ratio)];
    let counts = counts.into_iter().filter_map(|(field, value)| {
        let value = value.as_ref().filter(|value| !is_some_replicas(value))?;
        Some((at.child(field), Cause::Invalid, Some(value.to_string()), UNAVAILABLE))
    });
    let twice = (update.max_unavailable.is_some() && update.max_unavailable_ratio.is_some()).then(|| {
        (at.child("maxUnavailableRatio"), Cause::Forbidden, None, "may not be set together with `maxUnavailable`")
    });
    shares.chain(counts).chain(twice).collect()
}

/// Returns the fault of the skew of RBG's own lockstep creation: a plain number fails every pass of RBG.
pub(super) fn scaling_skew_fault(value: &Value) -> Option<(String, &'static str)> {
    let fits = match value {
        Value::Null => true,
        Value::String(text) => percent(text).is_some_and(|percent| percent > 0),
        _ => false,
    };
    (!fits).then(|| (value.to_string(), SKEW))
}

fn is_some_replicas(value: &IntOrString) -> bool {
    match value {
        IntOrString::Int(number) => *number > 0,
        IntOrString::String(_) => value.percent().is_some_and(|percent| percent > 0),
    }
}
