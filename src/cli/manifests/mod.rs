//! `rolegate manifests`: everything to install, from one source. The files in `deploy/` and `certs/` are written by it, the
//! templates of the Helm chart too.

mod certificates;
mod containment;
mod files;
mod krew;
mod network;
mod rights;
mod settings;
mod webhooks;
mod workload;
mod yaml;

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::api::crd::{self, Converter};
use crate::cli::allow::{Allow, allowed};
pub use crate::cli::manifests::certificates::serving_secret;
pub use crate::cli::manifests::files::files;
pub use crate::cli::manifests::settings::{Certificates, Serve};
use crate::cli::manifests::settings::{Choices, Settings, Spread, when_unsatisfiable};
use crate::cli::manifests::yaml::{Target, documents};

/// Port of the webhook in a pod.
const WEBHOOK_PORT: u16 = 9443;
/// Port of `/livez`, `/readyz` and `/metrics` in a pod.
const ADMIN_PORT: u16 = 9080;

/// A part of the installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// The namespace, under the restricted Pod Security Standard.
    Namespace,
    /// Definitions of RoleCoordination and ClusterTopology.
    Crds,
    /// ServiceAccount, roles and bindings.
    Rbac,
    /// Policies over what our own account may change of pods, workloads and webhook configurations.
    Containment,
    /// cert-manager's issuers and certificates, when it is chosen.
    Certificates,
    /// Services, NetworkPolicy and, when chosen, ServiceMonitor.
    Network,
    /// Deployment and PodDisruptionBudget.
    Workload,
    /// Webhook configurations. The last: from then on pods of groups wait for us.
    Webhooks,
}

impl Part {
    /// What it consists of; nothing for definitions, which are texts.
    fn objects(self, settings: &Settings) -> Vec<Value> {
        match self {
            Self::Namespace => vec![namespace(settings)],
            Self::Crds => Vec::new(),
            Self::Rbac => rights::objects(settings),
            Self::Containment => containment::objects(settings),
            Self::Certificates => certificates::objects(settings),
            Self::Network => network::objects(settings),
            Self::Workload => workload::objects(settings),
            Self::Webhooks => webhooks::objects(settings),
        }
    }

    /// As YAML, each document after `---`.
    fn print(self, settings: &Settings, target: Target<'_>) -> String {
        if self == Self::Crds {
            let definitions = match target {
                Target::Cluster(Choices { v1beta1: true, certificates, .. }) => {
                    definitions_with_v1beta1(&settings.namespace, &settings.name, *certificates)
                }
                _ => crd::files(false),
            };
            return definitions.into_iter().flat_map(|(_, yaml)| ["---\n".to_owned(), yaml]).collect();
        }
        documents(&self.objects(settings), target)
    }
}

/// The definitions with v1beta1 served, whose objects the installation of this name converts.
pub fn definitions_with_v1beta1(namespace: &str, name: &str, certificates: Certificates) -> Vec<(String, String)> {
    let certificate = (certificates == Certificates::CertManager).then_some(name);
    crd::files_with_v1beta1(Converter { namespace, name, certificate })
}

/// Options of `manifests`.
#[derive(Debug, Args)]
pub struct ManifestsArgs {
    /// Print these parts only.
    #[arg(long, value_enum, value_delimiter = ',')]
    part: Vec<Part>,
    /// Our own namespace.
    #[arg(long, default_value = "rolegate-system")]
    namespace: String,
    /// Name of every object.
    #[arg(long, default_value = "rolegate")]
    name: String,
    /// The image.
    #[arg(long, default_value = concat!("rolegate:", env!("CARGO_PKG_VERSION")))]
    image: String,
    /// Replicas of the Deployment.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..))]
    replicas: u16,
    /// How replicas are spread over nodes.
    #[arg(long, value_enum, default_value = "preferred")]
    spread: Spread,
    /// Where the serving certificate comes from.
    #[arg(long, value_enum, default_value = "self-managed")]
    certificates: Certificates,
    /// Add a ServiceMonitor of the Prometheus operator.
    #[arg(long)]
    service_monitor: bool,
    /// Delete held pods that were made for another batch, so that they are made again.
    #[arg(long)]
    recreate_mis_stamped: bool,
    /// Add the rights to do more than gates, statuses and partitions, and have it done.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT")]
    allow: Vec<Allow>,
    /// Serve RoleCoordination in another version as well, with the right to keep the bundle of its conversion.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "VERSION")]
    serve: Vec<Serve>,
    /// Serve these namespaces only.
    #[arg(long, value_delimiter = ',', value_name = "NAMESPACE")]
    namespaces: Vec<String>,
    /// More arguments of `rolegate serve`.
    #[arg(last = true, value_name = "ARGUMENT")]
    arguments: Vec<String>,
}

/// Prints them.
pub fn run(args: &ManifestsArgs) -> ExitCode {
    let settings = Settings {
        name: args.name.clone(),
        namespace: args.namespace.clone(),
        image: args.image.clone(),
        replicas: json!(args.replicas),
        when_unsatisfiable: when_unsatisfiable(args.spread).to_owned(),
        namespaces: args.namespaces.clone(),
        allow: args.allow.iter().map(|allow| allow.word()).collect::<Vec<_>>().join(","),
        arguments: json!(args.arguments),
        ..Settings::default()
    };
    let choices = Choices {
        certificates: args.certificates,
        service_monitor: args.service_monitor,
        recreate_mis_stamped: args.recreate_mis_stamped,
        allowed: allowed(&args.allow),
        v1beta1: args.serve.contains(&Serve::V1beta1),
    };
    let all = Part::value_variants();
    for part in all.iter().filter(|part| args.part.is_empty() || args.part.contains(part)) {
        print!("{}", part.print(&settings, Target::Cluster(&choices)));
    }
    ExitCode::SUCCESS
}

fn namespace(settings: &Settings) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": settings.namespace,
            "labels": {
                "app.kubernetes.io/name": settings.name,
                "pod-security.kubernetes.io/enforce": "restricted",
                "pod-security.kubernetes.io/audit": "restricted",
                "pod-security.kubernetes.io/warn": "restricted",
            },
        },
    })
}

/// Labels of every object.
fn labels(settings: &Settings) -> Value {
    selector(settings)
}

/// Labels by which pods are found.
fn selector(settings: &Settings) -> Value {
    json!({ "app.kubernetes.io/name": settings.name })
}
