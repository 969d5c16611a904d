//! Jobs whose deadline runs while their pods are held: their controller counts from the start of the Job, not of its pods.

use serde_json::Value;

use crate::cli::documents::Document;
use crate::model::{FieldPath, names};
use crate::rules::{Cause, Severity, Violation};

/// Returns a warning for each deadline of a Job whose pods name a group.
pub(super) fn job_deadlines(document: &Document) -> Vec<Violation> {
    let root = FieldPath::new("spec");
    let is_of = |group: &str| document.api_version.starts_with(group);
    if !matches!(document.kind.as_str(), "Job" | "CronJob" | "JobSet")
        || !(is_of("batch/") || is_of("jobset.x-k8s.io/"))
    {
        return Vec::new();
    }
    let object: Value = serde_json::from_str(&document.json).unwrap_or_default();
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let of_set = spec.get("replicatedJobs").and_then(Value::as_array).into_iter().flatten().enumerate();
    let of_set =
        of_set.map(|(index, job)| (root.child("replicatedJobs").index(index).child("template"), job.get("template")));
    let jobs = of_set.chain([(root.child("jobTemplate"), spec.get("jobTemplate"))]);
    let jobs = jobs.filter_map(|(at, template)| Some((at.child("spec"), template?.get("spec")?)));
    jobs.chain([(root.clone(), spec)]).filter_map(|(at, spec)| job_deadline(&at, spec)).collect()
}

fn job_deadline(at: &FieldPath, spec: &Value) -> Option<Violation> {
    let seconds = spec.get("activeDeadlineSeconds").filter(|seconds| !seconds.is_null())?;
    let labels = spec.pointer("/template/metadata/labels")?;
    names::LABEL_SCHEMES.iter().find_map(|(group, _)| labels.get(group)?.as_str())?;
    let detail = format!(
        "it runs from the start of the Job, also while its pods are held: after {seconds} s the Job fails, and pods that are held \
         until then never run"
    );
    Some(Violation {
        rule: "job-deadline",
        severity: Severity::Warning,
        path: at.child("activeDeadlineSeconds"),
        cause: Cause::Notice,
        value: None,
        detail,
        subject: String::new(),
    })
}
