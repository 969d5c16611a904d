//! `rolegate manifests`: prints the installation. What the program's tables say is printed from these, and written beside the
//! templates of the Helm chart as files; everything else is the chart's, as Helm renders it.

pub mod authors;
pub mod containment;
mod files;
mod installation;
mod judged;
mod kubernetes;
mod policies;
mod rendered;
mod rights;
mod webhooks;
mod yaml;

use std::net::{IpAddr, Ipv6Addr};
use std::process::ExitCode;

use clap::{Args, FromArgMatches, ValueEnum};
use serde_json::{Map, Value, json};

use crate::api::selector::LabelSelector;
use crate::api::{ObjectKind, crd};
use crate::cli::allow::Allow;
pub use crate::cli::manifests::files::files;
pub use crate::cli::manifests::installation::{Choice, Installation};
pub use crate::cli::manifests::judged::Policy;
use crate::cli::manifests::kubernetes::Minor;
pub use crate::cli::manifests::rendered::given;
use crate::cli::manifests::yaml::documents;
use crate::cli::numbers::{parse_address, whole};
use crate::cli::options::{RoomArgs, parse_dns_label};
use crate::cli::ready_kinds;
use crate::cli::serve::LogFormat;
use crate::cli::serving::{ModeArgs, parse_selector};
use crate::cli::terminal::print;
use crate::cluster::registration::{Reach, Registration, SERVICE_PORT};
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

/// Source of the serving certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Certificates {
    /// rolegate creates and renews it, and maintains the caBundle.
    #[default]
    SelfManaged,
    /// cert-manager does both.
    CertManager,
}

/// Distribution of replicas over nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Spread {
    /// Prefer different nodes.
    #[default]
    Preferred,
    /// Require different nodes while there are enough.
    Required,
}

impl Spread {
    const fn when_unsatisfiable(self) -> &'static str {
        match self {
            Self::Preferred => "ScheduleAnyway",
            Self::Required => "DoNotSchedule",
        }
    }
}

/// What can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Without {
    /// The NetworkPolicy.
    NetworkPolicy,
    /// The PodDisruptionBudget.
    DisruptionBudget,
    /// `runAsUser`, `runAsGroup` and `fsGroup`, if the platform chooses them, as OpenShift does.
    UserIds,
    /// The ResourceQuota for the class of the pods.
    ResourceQuota,
    /// Additions to the cluster roles view, edit and admin.
    AggregatedRoles,
    /// The webhooks for pods that name a PodGroup of KAI.
    KaiPods,
}

/// All addresses, of both families if the host has both.
const EVERYWHERE: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);

/// Returns an address as written before a port.
fn socket_host(address: IpAddr) -> String {
    if address.is_ipv6() { format!("[{address}]") } else { address.to_string() }
}

/// Returns the name of the Secret with the serving certificate of cert-manager, which the pods mount.
pub fn serving_secret(name: &str) -> String {
    format!("{name}-serving")
}

impl Part {
    /// Returns the objects of the part; none for definitions and for the policies of `policies/`, which are texts.
    fn objects(self, args: &ManifestsArgs) -> Vec<Value> {
        let (installation, labels) = (args.installation(), args.own_labels().into());
        let mut rendered = rendered::objects(args, self);
        let roles = |roles: Vec<rights::Role>| {
            roles.into_iter().flat_map(|role| role.objects(&installation, &labels, &args.try_in)).collect::<Vec<_>>()
        };
        let policies = |policies: Vec<Policy>| {
            policies.into_iter().flat_map(|policy| policy.objects(&args.name, &labels)).collect::<Vec<_>>()
        };
        match self {
            Self::Namespace => vec![namespace(args)],
            Self::Containment => policies(containment::policies(&installation)),
            Self::Webhooks => webhooks::objects(&args.registration(), &args.metadata_of_webhooks()).into(),
            Self::Rbac => {
                [rendered, roles(rights::of_replicas(&installation, &args.ready_kinds)), of_people(args)].concat()
            }
            // The account first, and last what runs.
            Self::Doctor | Self::Uninstall => {
                let runs = rendered.pop();
                let (tries, all) = if self == Self::Doctor {
                    (policies(vec![containment::tries(&installation)]), rights::of_doctor(&installation))
                } else {
                    (Vec::new(), rights::of_uninstall(&installation))
                };
                [tries, rendered, roles(all), runs.into_iter().collect()].concat()
            }
            _ => rendered,
        }
    }

    /// Returns YAML; each document begins with `---`.
    fn print(self, args: &ManifestsArgs) -> String {
        let definitions = |all: &[(ObjectKind, &str)]| all.iter().flat_map(|(_, yaml)| ["---\n", yaml]).collect();
        match self {
            Self::Crds => definitions(crd::OWN),
            Self::OptionalCrds => definitions(crd::OPTIONAL),
            Self::Policies => policies::print(args, args.kubernetes).0,
            _ => documents(self.objects(args).iter().filter(|object| args.kubernetes.lacks(object).is_none())),
        }
    }

    /// Returns what a version of Kubernetes does not accept of the part, and the first that does.
    fn left_out(self, args: &ManifestsArgs) -> Vec<(String, Minor)> {
        if self == Self::Policies {
            let (_, others) = policies::print(args, args.kubernetes);
            return others.into_iter().map(|(name, since)| (format!("policies/{name}.yaml"), since)).collect();
        }
        let lacked = self.objects(args).iter().find_map(|object| args.kubernetes.lacks(object));
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
    #[arg(long, default_value_t = EVERYWHERE, value_name = "ADDRESS", value_parser = parse_address)]
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

impl Default for ManifestsArgs {
    fn default() -> Self {
        let matches = Self::augment_args(clap::Command::default()).get_matches_from(["manifests"]);
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }
}

impl ManifestsArgs {
    fn chooses(&self, choice: Choice) -> bool {
        match choice {
            Choice::SelfManaged => self.certificates == Certificates::SelfManaged,
            Choice::Selection => self.namespace_selector.is_some(),
            Choice::Recreation => self.recreate_mis_stamped,
            Choice::Allow(allow) => self.allow.contains(&allow),
        }
    }

    fn installation(&self) -> Installation {
        Installation {
            name: self.name.clone(),
            namespace: self.namespace.clone(),
            ready_kinds: self.ready_kinds.iter().map(|kind| ready_kinds::text(*kind)).collect::<Vec<_>>().join(","),
            chosen: Some(Choice::ALL.into_iter().filter(|choice| self.chooses(*choice)).collect()),
        }
    }

    /// Returns the further labels of every object.
    fn common_labels(&self) -> Map<String, Value> {
        self.labels.iter().map(|(key, value)| (key.clone(), json!(value))).collect()
    }

    /// Returns the labels of every object.
    fn own_labels(&self) -> Map<String, Value> {
        let mut labels = self.common_labels();
        labels.insert(OWN_LABEL.to_owned(), json!(self.name));
        labels
    }

    fn registration(&self) -> Registration {
        let (name, namespace) = (self.name.clone(), self.namespace.clone());
        Registration {
            reach: Reach::Service { namespace: namespace.clone(), name: name.clone(), port: SERVICE_PORT },
            name,
            own_namespace: namespace,
            namespaces: self.namespaces.clone(),
            selector: self.namespace_selector.clone().unwrap_or_default(),
            mode: Mode::from(self.modes.mode),
            kai_pods: !self.without.contains(&Without::KaiPods),
        }
    }

    fn metadata_of_webhooks(&self) -> Value {
        let from = format!("{}/{}", self.namespace, self.name);
        let annotations =
            (!self.chooses(Choice::SelfManaged)).then(|| json!({ "cert-manager.io/inject-ca-from": from }));
        json!({ "name": self.name, "labels": self.own_labels(), "annotations": annotations })
    }
}

/// Returns the first argument that is already given: `serve` would refuse both.
fn given_twice(arguments: &[String]) -> Option<&String> {
    let given = given();
    let flag =
        |argument: &str| argument.strip_prefix("--").map(|text| text.split('=').next().unwrap_or_default().to_owned());
    arguments.iter().find(|argument| flag(argument).is_some_and(|flag| given.contains(&flag)))
}

fn parse_label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("must be KEY=VALUE")?;
    if key == OWN_LABEL { Err(format!("{key} is ours")) } else { Ok((key.to_owned(), value.to_owned())) }
}

pub fn run(args: &ManifestsArgs) -> ExitCode {
    if let Err(error) = args.modes.rules() {
        eprintln!("rolegate: --rule: {error}");
        return ExitCode::from(2);
    }
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
    let is_asked_for = |part: &&Part| {
        if args.part.is_empty() {
            !matches!(part, Part::OptionalCrds | Part::Policies | Part::Doctor | Part::Uninstall)
        } else {
            args.part.contains(part)
        }
    };
    for part in Part::value_variants().iter().filter(is_asked_for) {
        for (what, since) in part.left_out(args) {
            eprintln!(
                "rolegate: {what} is left out: it needs Kubernetes {since}, and --kubernetes is {}",
                args.kubernetes
            );
        }
        print(&part.print(args));
    }
    ExitCode::SUCCESS
}

fn namespace(args: &ManifestsArgs) -> Value {
    // The only Pod Security Standard that allows the network of the nodes.
    let standard = if args.host_network { "privileged" } else { "restricted" };
    let mut labels = args.own_labels();
    for level in ["enforce", "audit", "warn"] {
        labels.insert(format!("pod-security.kubernetes.io/{level}"), json!(standard));
    }
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": args.namespace, "labels": labels } })
}

/// Returns the roles that aggregate into the cluster's roles for users.
fn of_people(args: &ManifestsArgs) -> Vec<Value> {
    let wanted = !args.without.contains(&Without::AggregatedRoles);
    let installation = args.installation();
    let roles = rights::of_people(&installation).filter(|_| wanted);
    let role = |(suffix, mut labels, rules): (&str, Map<String, Value>, Value)| {
        labels.extend(args.own_labels());
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": { "name": format!("{}-{suffix}", args.name), "labels": labels },
            "rules": rules,
        })
    };
    roles.map(role).collect()
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
