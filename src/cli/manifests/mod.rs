//! `rolegate manifests`: prints the installation. It also writes the files in `deploy/` and `certs/`, and the
//! templates of the Helm chart.

pub mod authors;
mod certificates;
mod chart;
mod choices;
pub mod containment;
mod doctor;
mod files;
mod judged;
mod krew;
mod kubernetes;
mod network;
mod once;
mod policies;
mod rights;
mod settings;
mod uninstall;
mod values;
mod webhooks;
mod workload;
mod yaml;

use std::net::IpAddr;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

use crate::api::selector::LabelSelector;
use crate::api::{ObjectKind, crd};
use crate::cli::allow::{Allow, allowed};
pub use crate::cli::manifests::certificates::serving_secret;
use crate::cli::manifests::choices::{Choices, Without};
pub use crate::cli::manifests::files::files;
use crate::cli::manifests::kubernetes::Minor;
pub use crate::cli::manifests::settings::{Certificates, Settings};
use crate::cli::manifests::settings::{PodValues, Spread, socket_host, when_unsatisfiable};
use crate::cli::manifests::yaml::{Target, documents};
use crate::cli::numbers::{parse_address, whole};
use crate::cli::options::{RoomArgs, parse_dns_label};
use crate::cli::ready_kinds;
use crate::cli::serve::LogFormat;
use crate::cli::serving::{ModeArgs, parse_selector, selector_text};
use crate::cli::terminal::print;
use crate::model::Mode;

/// The label of our objects and pods; its value is the name of the installation.
pub(super) const OWN_LABEL: &str = "app.kubernetes.io/name";

/// A part of the installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Namespace with the restricted Pod Security Standard.
    Namespace,
    /// Definitions of RoleCoordination and ClusterTopology.
    Crds,
    /// Definitions in the shape of the designs, for a cluster without an RBG operator.
    OptionalCrds,
    /// ServiceAccount, roles and bindings.
    Rbac,
    /// Policies that limit writes of rolegate's accounts.
    Containment,
    /// Issuers and Certificates of cert-manager.
    Certificates,
    /// Services, NetworkPolicy and ServiceMonitor.
    Network,
    /// Deployment and PodDisruptionBudget.
    Workload,
    /// Webhook configurations, to be applied last.
    Webhooks,
    /// Twins of rules, the guard and the hold: policies that work without the webhook.
    Policies,
    /// Pod that runs `rolegate doctor` once, with its own account.
    Doctor,
    /// Job that runs `rolegate uninstall` once, with its own account.
    Uninstall,
}

impl Part {
    /// Returns the objects of the part; none for definitions and for the policies of `policies/`, which are texts.
    fn objects(self, settings: &Settings) -> Vec<Value> {
        match self {
            Self::Namespace => vec![namespace(settings)],
            Self::Crds | Self::OptionalCrds | Self::Policies => Vec::new(),
            Self::Rbac => rights::objects(settings),
            Self::Containment => containment::objects(settings),
            Self::Certificates => certificates::objects(settings),
            Self::Network => network::objects(settings),
            Self::Workload => workload::objects(settings),
            Self::Webhooks => webhooks::objects(settings),
            Self::Doctor => doctor::objects(settings),
            Self::Uninstall => uninstall::objects(settings),
        }
    }

    /// Returns YAML; each document begins with `---`.
    fn print(self, settings: &Settings, target: Target<'_>) -> String {
        let definitions = match self {
            Self::Crds => crd::OWN,
            Self::OptionalCrds => crd::OPTIONAL,
            _ => &[],
        };
        if !definitions.is_empty() {
            return definitions.iter().flat_map(|(_, yaml)| ["---\n", yaml]).collect();
        }
        let objects = self.objects(settings);
        match target {
            Target::Cluster(choices) if self == Self::Policies => policies::print(settings, choices.kubernetes).0,
            Target::Cluster(choices) => {
                documents(objects.iter().filter(|object| choices.kubernetes.lacks(object).is_none()), target)
            }
            Target::Chart => documents(&objects, target),
        }
    }

    /// Returns what a version of Kubernetes does not accept of the part, and the first that does.
    fn left_out(self, settings: &Settings, kubernetes: Minor) -> Vec<(String, Minor)> {
        if self == Self::Policies {
            let (_, others) = policies::print(settings, kubernetes);
            return others.into_iter().map(|(name, since)| (format!("policies/{name}.yaml"), since)).collect();
        }
        let lacked = self.objects(settings).iter().find_map(|object| kubernetes.lacks(object));
        lacked.map(|(kind, since)| (format!("every {kind}"), since)).into_iter().collect()
    }
}

/// Options of `manifests`.
#[derive(Debug, Args)]
pub struct ManifestsArgs {
    /// Parts to print; by default all but `optional-crds`, `policies`, `doctor` and `uninstall`.
    #[arg(long, value_enum, value_delimiter = ',')]
    part: Vec<Part>,
    /// Version of the cluster; what an older one does not accept is written in its words or left out.
    #[arg(long, default_value_t = Minor::default(), value_name = "VERSION", value_parser = Minor::parse)]
    kubernetes: Minor,
    /// Namespace of rolegate.
    #[arg(long, default_value = "rolegate-system", value_parser = parse_dns_label)]
    namespace: String,
    /// Name of every object.
    #[arg(long, default_value = "rolegate", value_parser = parse_dns_label)]
    name: String,
    /// Container image.
    #[arg(long, default_value = concat!("rolegate:", env!("CARGO_PKG_VERSION")))]
    image: String,
    /// Replicas of the Deployment.
    #[arg(long, default_value_t = 2, value_parser = whole(1..=u16::MAX))]
    replicas: u16,
    /// Distribution of replicas over nodes.
    #[arg(long, value_enum, default_value = "preferred")]
    spread: Spread,
    /// Source of the serving certificate.
    #[arg(long, value_enum, default_value = "self-managed")]
    certificates: Certificates,
    /// Add a ServiceMonitor of the Prometheus operator.
    #[arg(long)]
    service_monitor: bool,
    /// Delete held pods that were created for another batch, so that they are recreated.
    #[arg(long)]
    recreate_mis_stamped: bool,
    /// Actions beyond gates, statuses and partitions, and their rights.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT")]
    allow: Vec<Allow>,
    /// Kinds whose objects `readyWhen` may name, as Job=jobs.v1.batch, and the right to watch them.
    #[arg(long, value_delimiter = ',', value_name = "KIND=RESOURCE", value_parser = ready_kinds::parse)]
    ready_kinds: Vec<ObjectKind>,
    #[command(flatten)]
    room: RoomArgs,
    /// Namespaces to serve; all by default.
    #[arg(long, value_delimiter = ',', value_name = "NAMESPACE", value_parser = parse_dns_label)]
    namespaces: Vec<String>,
    #[command(flatten)]
    modes: ModeArgs,
    /// Label selector of the namespaces to serve, as for `kubectl get -l`.
    #[arg(long, value_name = "SELECTOR", value_parser = parse_selector)]
    namespace_selector: Option<LabelSelector>,
    /// Run on the host network, for clusters whose API server cannot reach pods.
    #[arg(long)]
    host_network: bool,
    /// Port of the webhook in a pod.
    #[arg(long, default_value_t = 9443, value_name = "PORT", value_parser = whole(1..=u16::MAX))]
    webhook_port: u16,
    /// Port of /livez, /readyz, /metrics and the status page in a pod.
    #[arg(long, default_value_t = 9080, value_name = "PORT", value_parser = whole(1..=u16::MAX))]
    admin_port: u16,
    /// Address on which the pods listen; `::` is every address of IPv4 and IPv6.
    #[arg(long, default_value_t = settings::EVERYWHERE, value_name = "ADDRESS", value_parser = parse_address)]
    listen_address: IpAddr,
    /// PriorityClass of the pods; a class of the system comes with a ResourceQuota.
    #[arg(long, default_value = "system-cluster-critical", value_name = "CLASS")]
    priority_class: String,
    /// Format of the log.
    #[arg(long, value_enum, default_value = "json")]
    log_format: LogFormat,
    /// Additional labels of every object, as `team=serving`.
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = parse_label)]
    labels: Vec<(String, String)>,
    /// Parts to leave out.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT")]
    without: Vec<Without>,
    /// Namespace of the dry-run pod of the part `doctor`.
    #[arg(long, default_value = "default", value_name = "NAMESPACE", value_parser = parse_dns_label)]
    try_in: String,
    /// Arguments of `rolegate serve`.
    #[arg(last = true, value_name = "ARGUMENT")]
    arguments: Vec<String>,
}

/// Returns the first argument that is already given: `serve` would refuse both.
fn given_twice(arguments: &[String]) -> Option<&String> {
    let given = workload::given();
    let flag =
        |argument: &str| argument.strip_prefix("--").map(|text| text.split('=').next().unwrap_or_default().to_owned());
    arguments.iter().find(|argument| flag(argument).is_some_and(|flag| given.contains(&flag)))
}

fn parse_label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("must be KEY=VALUE")?;
    if key == OWN_LABEL { Err(format!("{key} is ours")) } else { Ok((key.to_owned(), value.to_owned())) }
}

pub fn run(args: &ManifestsArgs) -> ExitCode {
    let labels: Map<_, _> = args.labels.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
    let rules = match args.modes.rules() {
        Ok(rules) => rules.to_string(),
        Err(error) => {
            eprintln!("rolegate: --rule: {error}");
            return ExitCode::from(2);
        }
    };
    if let Some(argument) = given_twice(&args.arguments) {
        eprintln!(
            "rolegate: {argument}: the manifests give this flag themselves; see --listen-address, --webhook-port, --name"
        );
        return ExitCode::from(2);
    }
    if args.ready_kinds.len() > authors::MOST_READY_KINDS {
        let most = authors::MOST_READY_KINDS;
        eprintln!("rolegate: --ready-kinds: at most {most} kinds: the policy on authors asks for a right to each");
        return ExitCode::from(2);
    }
    args.modes.without_effect().into_iter().for_each(|what| eprintln!("rolegate: {what}"));
    let mode = Mode::from(args.modes.mode);
    let selector_argument = args.namespace_selector.as_ref().map(selector_text);
    let defaults = Settings::default();
    let settings = Settings {
        name: args.name.clone(),
        namespace: args.namespace.clone(),
        image: args.image.clone(),
        replicas: json!(args.replicas),
        when_unsatisfiable: when_unsatisfiable(args.spread).to_owned(),
        namespaces: args.namespaces.clone(),
        selector: args.namespace_selector.clone().unwrap_or_default(),
        selector_argument: selector_argument.map(|text| format!("--namespace-selector={text}")),
        mode,
        mode_argument: format!("--mode={}", mode.as_str()),
        rules,
        allow: args.allow.iter().map(|allow| allow.word()).collect::<Vec<_>>().join(","),
        ready_kinds: args.ready_kinds.iter().map(|kind| ready_kinds::text(*kind)).collect::<Vec<_>>().join(","),
        ignored_resources: args.room.ignored().list(),
        ready_rules: rights::to_watch(&args.ready_kinds),
        arguments: json!(args.arguments),
        common_labels: json!(labels),
        webhook_port: args.webhook_port.to_string(),
        admin_port: args.admin_port.to_string(),
        log_format: args.log_format.word().to_owned(),
        try_in: args.try_in.clone(),
        listen_address: socket_host(args.listen_address),
        priority_class: json!(args.priority_class),
        more: PodValues { labels: json!(labels), ..defaults.more },
        ..defaults
    };
    let settings = if args.host_network { settings.on_host_network() } else { settings };
    let mut without = args.without.clone();
    if !args.priority_class.starts_with("system-") {
        without.push(Without::ResourceQuota);
    }
    let choices = Choices {
        certificates: args.certificates,
        service_monitor: args.service_monitor,
        recreate_mis_stamped: args.recreate_mis_stamped,
        allowed: allowed(&args.allow),
        ready_kinds: args.ready_kinds.clone(),
        ignored_resources: args.room.ignored(),
        mode,
        host_network: args.host_network,
        without,
        kubernetes: args.kubernetes,
    };
    let all = Part::value_variants();
    let is_asked_for = |part: &&Part| {
        if args.part.is_empty() {
            !matches!(part, Part::OptionalCrds | Part::Policies | Part::Doctor | Part::Uninstall)
        } else {
            args.part.contains(part)
        }
    };
    for part in all.iter().filter(is_asked_for) {
        for (what, since) in part.left_out(&settings, args.kubernetes) {
            eprintln!(
                "rolegate: {what} is left out: it needs Kubernetes {since}, and --kubernetes is {}",
                args.kubernetes
            );
        }
        print(&part.print(&settings, Target::Cluster(&choices)));
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
                OWN_LABEL: settings.name,
                "pod-security.kubernetes.io/enforce": settings.pod_security,
                "pod-security.kubernetes.io/audit": settings.pod_security,
                "pod-security.kubernetes.io/warn": settings.pod_security,
                "+": settings.common_labels,
            },
        },
    })
}

/// Returns the labels of every object.
fn labels(settings: &Settings) -> Value {
    json!({ OWN_LABEL: settings.name, "+": settings.common_labels })
}

/// Returns the metadata of an object in our namespace; `null` for no annotations.
fn metadata(settings: &Settings, name: &str, annotations: &Value) -> Value {
    json!({ "name": name, "namespace": settings.namespace, "labels": labels(settings), "annotations": annotations })
}

/// Returns the labels that select the pods.
fn selector(settings: &Settings) -> Value {
    json!({ OWN_LABEL: settings.name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_that_the_manifests_give_themselves_is_not_given_twice() {
        let found = |arguments: &[&str]| {
            let arguments: Vec<_> = arguments.iter().map(ToString::to_string).collect();
            given_twice(&arguments).cloned()
        };
        assert_eq!(found(&["--strict", "--log=debug", "--resync=1m"]), None);
        for twice in ["--listen=[::]:1", "--listen", "--admin-listen=[::]:1", "--name=x", "--log-format=text"] {
            assert_eq!(found(&["--strict", twice]).as_deref(), Some(twice));
        }
    }
}
