//! The files that are kept in the repository: manifests for kustomize, cert-manager's chain, the Helm chart, krew's
//! manifest.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::settings::{Certificates, Choices, Serve, Settings, chart_values};
use super::yaml::{Target, documents, values};
use super::{Part, krew};
use crate::api::crd;
use crate::cli::allow::Allow;

/// Parts that are files of `deploy/base` and templates of the chart, with the names of their files.
const PARTS: &[(Part, &str)] = &[
    (Part::Rbac, "rbac.yaml"),
    (Part::Containment, "containment.yaml"),
    (Part::Network, "network.yaml"),
    (Part::Workload, "workload.yaml"),
    (Part::Webhooks, "webhooks.yaml"),
];

/// Values of the chart that are one of some words.
const WORDS: &[(&str, &[&str])] =
    &[("certificates", &["self-managed", "cert-manager"]), ("whenUnsatisfiable", &["ScheduleAnyway", "DoNotSchedule"])];

/// Values of the chart that are lists of some words.
const LISTS: &[(&str, &[&str])] =
    &[("allow", &[Allow::Scale.word(), Allow::Recovery.word()]), ("serve", &[Serve::V1beta1.word()])];

/// Every generated file: its path from the root of the repository, and its text.
pub fn files() -> Vec<(String, String)> {
    let (settings, choices) = (Settings::default(), Choices::default());
    let of_cert_manager = Choices { certificates: Certificates::CertManager, ..choices };
    let base = |part: Part| part.print(&settings, Target::Cluster(&choices));
    let mut files = vec![
        ("deploy/base/namespace.yaml".to_owned(), base(Part::Namespace)),
        ("certs/chain.yaml".to_owned(), Part::Certificates.print(&settings, Target::Cluster(&of_cert_manager))),
        ("deploy/krew/rolegate.yaml".to_owned(), documents(&[krew::manifest()], Target::Cluster(&choices))),
        ("deploy/chart/Chart.yaml".to_owned(), chart()),
        ("deploy/chart/values.schema.json".to_owned(), schema()),
        ("deploy/chart/values.yaml".to_owned(), values(&chart_values())),
    ];
    files.extend(PARTS.iter().map(|(part, name)| (format!("deploy/base/{name}"), base(*part))));
    let templates = PARTS.iter().copied().chain([(Part::Certificates, "certificates.yaml")]);
    files.extend(templates.map(|(part, name)| {
        let objects = part.objects(&Settings::for_chart());
        (format!("deploy/chart/templates/{name}"), documents(&objects, Target::Chart))
    }));
    files.extend(crd::files(false).into_iter().map(|(name, yaml)| (format!("deploy/chart/crds/{name}"), yaml)));
    files
        .into_iter()
        .map(|(path, text)| {
            let text = with_head(&path, text);
            (path, text)
        })
        .collect()
}

const HEAD: &str = "# Written by `make docs`, from the source of `rolegate manifests`.\n";

/// JSON knows no comments.
fn with_head(path: &str, text: String) -> String {
    if Path::new(path).extension().is_some_and(|extension| extension == "json") {
        text
    } else {
        format!("{HEAD}{text}")
    }
}

/// The schema of the chart's values: a misspelt one is refused by Helm.
fn schema() -> String {
    let property = |key: &str, value: &Value| {
        if let Some((_, words)) = LISTS.iter().find(|(known, _)| *known == key) {
            return json!({ "type": "array", "items": { "enum": words } });
        }
        if let Some((_, words)) = WORDS.iter().find(|(known, _)| *known == key) {
            return json!({ "enum": words });
        }
        match value {
            Value::Number(_) => json!({ "type": "integer", "minimum": 1 }),
            Value::Bool(_) => json!({ "type": "boolean" }),
            Value::Array(_) => json!({ "type": "array" }),
            Value::Object(_) => json!({ "type": "object" }),
            _ => json!({ "type": "string" }),
        }
    };
    let values = chart_values();
    let values = values.iter().filter(|(key, _)| !key.starts_with('#'));
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        // Helm adds `global` to the values of every chart.
        "properties": values
            .map(|(key, value)| (key.clone(), property(key, value)))
            .chain([("global".to_owned(), json!({}))])
            .collect::<Map<_, _>>(),
        "additionalProperties": false,
    });
    format!("{schema:#}\n")
}

fn chart() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let chart = json!({
        "apiVersion": "v2",
        "name": "rolegate",
        "description": env!("CARGO_PKG_DESCRIPTION"),
        "type": "application",
        "version": version,
        "appVersion": version,
        "kubeVersion": ">=1.30.0-0",
    });
    chart.as_object().map(values).unwrap_or_default()
}
