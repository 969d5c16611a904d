//! The generated files of the repository: manifests for kustomize, cert-manager's chain, and what the templates of the Helm chart
//! read of the program's tables.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::installation::{Choice, Installation};
use super::yaml::text;
use super::{Certificates, ManifestsArgs, Part, containment, policies, rights, webhooks};
use crate::api::crd;

/// Parts that are files of `deploy/base`, with their file names.
const PARTS: &[(Part, &str)] = &[
    (Part::Namespace, "namespace.yaml"),
    (Part::Rbac, "rbac.yaml"),
    (Part::Containment, "containment.yaml"),
    (Part::Network, "network.yaml"),
    (Part::Workload, "workload.yaml"),
    (Part::Webhooks, "webhooks.yaml"),
];

const HEAD: &str = "# Written by `make docs`, from the source of `rolegate manifests`.\n";

/// Returns every generated file: path from the root of the repository, and text.
pub fn files() -> Vec<(String, String)> {
    let args = ManifestsArgs::default();
    let of_cert_manager = ManifestsArgs { certificates: Certificates::CertManager, ..ManifestsArgs::default() };
    let mut files = vec![("certs/chain.yaml".to_owned(), Part::Certificates.print(&of_cert_manager))];
    files.extend(PARTS.iter().map(|(part, name)| (format!("deploy/base/{name}"), part.print(&args))));
    let of_chart = of_tables(&args).into_iter().map(|(name, value)| (name, text(&value)));
    let definitions = crd::files(false).into_iter().map(|(name, yaml)| (format!("definitions/{name}"), yaml));
    let policies =
        policies::POLICIES.iter().map(|policy| (format!("policies/{}.yaml", policy.name), policy.text.to_owned()));
    let of_chart = of_chart.chain(definitions).chain(policies);
    files.extend(of_chart.map(|(name, text)| (format!("deploy/chart/generated/{name}"), text)));
    files.into_iter().map(|(path, text)| (path, format!("{HEAD}{text}"))).collect()
}

/// Returns what the chart reads of the tables.
fn of_tables(args: &ManifestsArgs) -> Vec<(String, Value)> {
    let chart = Installation::of_chart();
    let roles = [rights::of_replicas(&chart, &[]), rights::of_doctor(&chart), rights::of_uninstall(&chart)];
    let roles = roles.into_iter().flatten().map(rights::Role::file);
    let people = rights::of_people(&chart).map(|(suffix, _, rules)| (format!("{suffix}.clusterrole"), rules));
    let rights = roles.chain(people).map(|(name, rules)| (format!("rights/{name}.yaml"), rules));
    let policies = containment::policies(&chart);
    let mut index: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for policy in &policies {
        index.entry(policy.when.map_or("always", Choice::word)).or_default().push(policy.suffix.clone());
    }
    let contained = policies.iter().map(|policy| (format!("containment/{}.yaml", policy.suffix), policy.spec()));
    let [validating, mutating] = webhooks::objects(&args.registration(), &Value::Null);
    let more = [
        ("containment.yaml".to_owned(), json!(index)),
        ("containment/doctor.yaml".to_owned(), containment::tries(&chart).spec()),
        ("webhooks/validate.yaml".to_owned(), webhooks::asked_about(&validating)),
        ("webhooks/mutate.yaml".to_owned(), webhooks::asked_about(&mutating)),
        ("policies.yaml".to_owned(), policies::of_chart()),
    ];
    rights.chain(contained).chain(more).collect()
}
