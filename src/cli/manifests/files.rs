//! The generated files of the repository: manifests for kustomize, cert-manager's chain, the Helm chart, krew's
//! manifest.

use std::path::Path;

use serde_json::json;

use super::choices::Choices;
use super::settings::{Certificates, Settings};
use super::values::chart_values;
use super::yaml::{Target, documents, values};
use super::{Part, chart, krew, policies};
use crate::api::ObjectKind;
use crate::api::cluster_topology::CLUSTER_TOPOLOGY;
use crate::api::role_coordination::ROLE_COORDINATION;

/// Parts that are files of `deploy/base` and templates of the chart, with their file names.
const PARTS: &[(Part, &str)] = &[
    (Part::Rbac, "rbac.yaml"),
    (Part::Containment, "containment.yaml"),
    (Part::Network, "network.yaml"),
    (Part::Workload, "workload.yaml"),
    (Part::Webhooks, "webhooks.yaml"),
];

/// Returns every generated file: path from the root of the repository, and text.
pub fn files() -> Vec<(String, String)> {
    let (settings, choices) = (Settings::default(), Choices::default());
    let of_cert_manager = Choices { certificates: Certificates::CertManager, ..choices.clone() };
    let base = |part: Part| part.print(&settings, Target::Cluster(&choices));
    let mut files = vec![
        ("deploy/base/namespace.yaml".to_owned(), base(Part::Namespace)),
        ("certs/chain.yaml".to_owned(), Part::Certificates.print(&settings, Target::Cluster(&of_cert_manager))),
        ("deploy/krew/rolegate.yaml".to_owned(), documents(&[krew::manifest()], Target::Cluster(&choices))),
        ("deploy/chart/Chart.yaml".to_owned(), metadata()),
        ("deploy/chart/values.schema.json".to_owned(), chart::schema()),
        ("deploy/chart/templates/_helpers.tpl".to_owned(), chart::HELPERS.to_owned()),
        ("deploy/chart/templates/crds.yaml".to_owned(), chart::definitions()),
        ("deploy/chart/values.yaml".to_owned(), values(&chart_values())),
    ];
    files.extend(PARTS.iter().map(|(part, name)| (format!("deploy/base/{name}"), base(*part))));
    let of_chart = [
        (Part::Certificates, "certificates.yaml"),
        (Part::Doctor, "tests/doctor.yaml"),
        (Part::Uninstall, "uninstall.yaml"),
    ];
    let templates = PARTS.iter().copied().chain(of_chart);
    files.extend(templates.map(|(part, name)| {
        let objects = part.objects(&Settings::for_chart());
        (format!("deploy/chart/templates/{name}"), documents(&objects, Target::Chart))
    }));
    files.push(("deploy/chart/templates/policies.yaml".to_owned(), policies::template()));
    files.extend(
        policies::POLICIES
            .iter()
            .map(|policy| (format!("deploy/chart/policies/{}.yaml", policy.name), policy.text.to_owned())),
    );
    files
        .into_iter()
        .map(|(path, text)| {
            let text = with_head(&path, text);
            (path, text)
        })
        .collect()
}

const HEAD: &str = "# Written by `make docs`, from the source of `rolegate manifests`.\n";

/// Adds the generated-by comment; not to JSON, which has no comments, and not to helpers, which have their own.
fn with_head(path: &str, text: String) -> String {
    if Path::new(path).extension().is_some_and(|extension| extension == "json" || extension == "tpl") {
        text
    } else {
        format!("{HEAD}{text}")
    }
}

/// Returns the definitions for Artifact Hub: YAML as text, written as JSON.
fn crds_of_hub() -> String {
    let of = |(kind, text): (ObjectKind, &str)| {
        let (name, version) = (kind.crd_name(), kind.version);
        json!({ "kind": kind.kind, "version": version, "name": name, "displayName": kind.kind, "description": text })
    };
    let all = [
        (
            ROLE_COORDINATION,
            "Coordinates the replicas of roles: in which order, how far apart, and in which domains they start.",
        ),
        (CLUSTER_TOPOLOGY, "Names the layers of a cluster, as rack and host, by the labels of its nodes."),
    ];
    json!(all.map(of)).to_string()
}

/// Returns `Chart.yaml`.
fn metadata() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let chart = json!({
        "apiVersion": "v2",
        "name": "rolegate",
        "description": env!("CARGO_PKG_DESCRIPTION"),
        "type": "application",
        "version": version,
        "appVersion": version,
        "kubeVersion": ">=1.30.0-0",
        "#annotations": "What Artifact Hub shows.",
        "annotations": {
            "artifacthub.io/category": "ai-machine-learning",
            "artifacthub.io/license": env!("CARGO_PKG_LICENSE"),
            "artifacthub.io/operator": "true",
            "artifacthub.io/operatorCapabilities": "Full Lifecycle",
            "artifacthub.io/crds": crds_of_hub(),
        },
    });
    chart.as_object().map(values).unwrap_or_default()
}
