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

use crate::api::crd;
use crate::api::selector::LabelSelector;
use crate::cli::allow::{Allow, allowed};
pub use crate::cli::manifests::certificates::serving_secret;
pub use crate::cli::manifests::files::files;
use crate::cli::manifests::settings::{Certificates, Choices, Settings, Spread, when_unsatisfiable};
use crate::cli::manifests::yaml::{Target, documents};
use crate::cli::serving::{ModeArgs, parse_selector, selector_text};
use crate::model::Mode;

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
            return crd::files(false).into_iter().flat_map(|(_, yaml)| ["---\n".to_owned(), yaml]).collect();
        }
        documents(&self.objects(settings), target)
    }
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
    /// Serve these namespaces only.
    #[arg(long, value_delimiter = ',', value_name = "NAMESPACE")]
    namespaces: Vec<String>,
    #[command(flatten)]
    modes: ModeArgs,
    /// Serve only namespaces with these labels, as `kubectl get -l` takes them.
    #[arg(long, value_name = "SELECTOR", value_parser = parse_selector)]
    namespace_selector: Option<LabelSelector>,
    /// More arguments of `rolegate serve`.
    #[arg(last = true, value_name = "ARGUMENT")]
    arguments: Vec<String>,
}

/// Prints them.
pub fn run(args: &ManifestsArgs) -> ExitCode {
    let rules = match args.modes.rules() {
        Ok(rules) => rules.to_string(),
        Err(error) => {
            eprintln!("rolegate: --rule: {error}");
            return ExitCode::from(2);
        }
    };
    args.modes.without_effect().into_iter().for_each(|what| eprintln!("rolegate: {what}"));
    let mode = Mode::from(args.modes.mode);
    let (selects, sets_rules) = (args.namespace_selector.is_some(), !rules.is_empty());
    let selector = args.namespace_selector.clone().unwrap_or_default();
    let selector_text = selector_text(&selector);
    let settings = Settings {
        name: args.name.clone(),
        namespace: args.namespace.clone(),
        image: args.image.clone(),
        replicas: json!(args.replicas),
        when_unsatisfiable: when_unsatisfiable(args.spread).to_owned(),
        namespaces: args.namespaces.clone(),
        selector,
        selector_argument: format!("--namespace-selector={selector_text}"),
        mode,
        mode_argument: format!("--mode={}", mode.as_str()),
        rules,
        allow: args.allow.iter().map(|allow| allow.word()).collect::<Vec<_>>().join(","),
        arguments: json!(args.arguments),
        ..Settings::default()
    };
    let choices = Choices {
        certificates: args.certificates,
        service_monitor: args.service_monitor,
        recreate_mis_stamped: args.recreate_mis_stamped,
        allowed: allowed(&args.allow),
        mode,
        sets_rules,
        selects,
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
