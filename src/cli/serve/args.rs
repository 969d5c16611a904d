//! Options of `rolegate serve`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::api::selector::LabelSelector;
use crate::cli::allow::{Allow, allowed};
use crate::cli::bytes;
use crate::cli::connection::ConnectionArgs;
use crate::cli::duration;
use crate::cli::options::{KaiDialectArg, PodArgs};
use crate::cli::serving::{ModeArgs, parse_selector, serving};
use crate::cluster::registration::SERVICE_PORT;
use crate::cluster::run::{IncompleteBatch, LoopOptions, MissingGroup};
use crate::model::Others;
use crate::model::object_name::label_fault;
use crate::model::{Mode, Serving};
use crate::tls::acceptor::OldestTls;

/// Options of `serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Address of the webhook port; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:9443", env = "ROLEGATE_LISTEN")]
    pub(super) listen: SocketAddr,
    /// Address of the port for /livez, /readyz, /metrics and the status page, /page/.
    #[arg(long, default_value = "127.0.0.1:9080", env = "ROLEGATE_ADMIN_LISTEN")]
    pub(super) admin_listen: SocketAddr,
    /// Whether the admin port shows the status page, or answers 404.
    #[arg(long, value_enum, default_value = "on")]
    pub(super) page: Switch,
    /// Show what the page shows to whoever has the token in this file (`Authorization: Bearer …`; the page asks for it), instead
    /// of to whoever comes from the same machine or through `kubectl port-forward`.
    #[arg(long, value_name = "FILE")]
    pub(super) page_token_file: Option<PathBuf>,
    #[command(flatten)]
    pub(super) connection: ConnectionArgs,
    /// Our own namespace: Secret, Lease and Service live there.
    #[arg(long, default_value = "rolegate-system", env = "POD_NAMESPACE", value_parser = parse_namespace)]
    pub(super) namespace: String,
    /// Name of the webhook configurations and the Lease, prefix of the Secret's.
    #[arg(long, default_value = "rolegate")]
    pub(super) name: String,
    /// Name of this replica, unique among them.
    #[arg(long, env = "POD_NAME")]
    pub(super) identity: Option<String>,
    /// How the API server reaches the webhook: `service/NAME`, `service/NAME:PORT` (443), `loopback` or `https://HOST:PORT`.
    #[arg(long, default_value = "service/rolegate", value_parser = parse_reach)]
    pub(super) reach: ReachArg,
    /// What is kept of the webhook configurations.
    #[arg(long, value_enum, default_value = "ca-bundle")]
    pub(super) webhooks: WebhooksArg,
    /// Whether there are webhooks for pods that name a PodGroup of KAI. Clusters without KAI need none.
    #[arg(long, value_enum, default_value = "on")]
    pub(super) kai_pods: Switch,
    /// Serve this certificate instead of a self-managed one; read again when it changes.
    #[arg(long, value_name = "FILE", requires = "key_file")]
    pub(super) cert_file: Option<PathBuf>,
    /// Key of the certificate.
    #[arg(long, value_name = "FILE", requires = "cert_file")]
    pub(super) key_file: Option<PathBuf>,
    /// Let in only callers with a certificate of these CAs (PEM); read again when it changes.
    #[arg(long, value_name = "FILE", requires = "client_names")]
    pub(super) client_ca: Option<PathBuf>,
    /// Common name or DNS name that a caller's certificate must have; one of them is enough.
    #[arg(long = "client-name", value_delimiter = ',', value_name = "NAME", requires = "client_ca")]
    pub(super) client_names: Vec<String>,
    /// Oldest version of TLS that callers may speak.
    #[arg(long, value_enum, default_value = "1.3", value_name = "VERSION")]
    pub(super) tls_min: TlsMinArg,
    /// How long a new CA is given to become known to every API server before a certificate of it is served.
    #[arg(long, default_value = "1m", value_parser = duration::parse)]
    pub(super) ca_settle: Duration,
    /// Serve these namespaces only.
    #[arg(long, value_delimiter = ',', value_name = "NAMESPACE", value_parser = parse_namespace)]
    pub(super) namespaces: Vec<String>,
    #[command(flatten)]
    pub(super) modes: ModeArgs,
    /// Serve only namespaces with these labels, as `kubectl get -l` takes them; the webhook configurations must say the same.
    #[arg(long, value_name = "SELECTOR", value_parser = parse_selector)]
    pub(super) namespace_selector: Option<LabelSelector>,
    /// Pods that name a group which never appears: `release-after=DURATION` or `hold`.
    #[arg(long, default_value = "release-after=60s", value_parser = parse_missing)]
    pub(super) missing_group: MissingGroup,
    /// How long a group must be gone before its held pods are released.
    #[arg(long, default_value = "30s", value_parser = duration::parse)]
    pub(super) vanished_grace: Duration,
    /// How long nothing may move before a group says ProgressDeadlineExceeded.
    #[arg(long, default_value = "10m", value_parser = duration::parse)]
    pub(super) progress_deadline: Duration,
    /// How long an edited role of a coordinated rollout waits for the edits of the others.
    #[arg(long, default_value = "10s", value_parser = duration::parse)]
    pub(super) settle: Duration,
    /// Batches that are released as a whole and of which pods are never made: `wait` or `release-after=DURATION`.
    #[arg(long, default_value = "wait", value_parser = parse_incomplete)]
    pub(super) incomplete: IncompleteBatch,
    /// Whether batches that must share a domain wait until one has room for them, and are bound to it. Without, they go when it
    /// is their turn, and the scheduler finds them a domain, or does not.
    #[arg(long, value_enum, default_value = "on")]
    pub(super) placement: Switch,
    /// How long pods that were given room may take to get a node, before the room is given to others.
    #[arg(long, default_value = "60s", value_parser = duration::parse)]
    pub(super) bind_timeout: Duration,
    /// Recoveries of all groups that may be under way at once; a tenth of all segments, and at least one, when not given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_recoveries: Option<u32>,
    /// How long the API server may take to answer a write before it counts as failed and is tried again.
    #[arg(long, default_value = "10s", value_parser = duration::parse)]
    pub(super) write_timeout: Duration,
    /// Delete held pods that were made for another batch than theirs, so that they are made again.
    #[arg(long)]
    pub(super) recreate_mis_stamped: bool,
    /// What is done beyond gates, statuses and partitions; takes the rights of `manifests --allow`.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT")]
    pub(super) allow: Vec<Allow>,
    /// How long a leader that went silent is believed.
    #[arg(long, default_value = "15s", value_parser = duration::parse)]
    pub(super) lease_duration: Duration,
    /// How long to go on serving after a signal, so that callers can go elsewhere.
    #[arg(long, default_value = "3s", value_parser = duration::parse)]
    pub(super) drain_grace: Duration,
    /// Which KAI release PodGroups are written for; by the installed definition when not given.
    #[arg(long, value_enum, default_value = "auto")]
    pub(super) kai_dialect: KaiDialectArg,
    /// Role names of a Grove set must be unique in the whole set.
    #[arg(long)]
    pub(super) strict_roles: bool,
    #[command(flatten)]
    pub(super) pods: PodArgs,
    /// Memory for the bodies of all requests that are being read or answered, and for the answers; more are answered 503. A quarter is for small
    /// ones (16 KiB, a pod). Not less than 10Mi, or the largest would never fit.
    #[arg(long, default_value = "32Mi", value_name = "SIZE", value_parser = parse_body_memory)]
    pub(super) body_memory: usize,
    /// Refuse objects that do not have the expected shape, instead of letting them pass.
    #[arg(long)]
    pub(super) strict: bool,
    /// What is logged, as in `info` or `rolegate=debug,warn`.
    #[arg(long, default_value = "info,kube_client=off", env = "ROLEGATE_LOG")]
    pub(super) log: String,
    /// Format of the log.
    #[arg(long, value_enum, default_value = "text")]
    pub(super) log_format: LogFormat,
}

impl ServeArgs {
    /// Returns how namespaces are served.
    pub(super) fn serving(&self) -> Serving {
        let others = if self.namespace_selector.is_some() { Others::Unknown } else { Others::NotAsked };
        Serving { others, ..serving(Mode::from(self.modes.mode), self.namespace_selector.as_ref()) }
    }

    /// Converts the options to options of the loop.
    pub fn loop_options(&self) -> LoopOptions {
        LoopOptions {
            missing_group: self.missing_group,
            vanished_grace: self.vanished_grace,
            settle: self.settle,
            progress_deadline: self.progress_deadline,
            incomplete: self.incomplete,
            bind_timeout: self.bind_timeout,
            max_recoveries: self.max_recoveries,
            frees_unknown_roles: self.pods.settings().frees_unknown_roles,
            recreate_mis_stamped: self.recreate_mis_stamped,
            allowed: allowed(&self.allow),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum WebhooksArg {
    /// Create and correct them.
    All,
    /// Fill in their caBundle.
    CaBundle,
    /// Leave them alone: cert-manager or somebody else keeps them.
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum TlsMinArg {
    /// For API servers and proxies that speak nothing newer.
    #[value(name = "1.2")]
    Tls12,
    /// TLS 1.3 only.
    #[value(name = "1.3")]
    Tls13,
}

impl From<TlsMinArg> for OldestTls {
    fn from(version: TlsMinArg) -> Self {
        match version {
            TlsMinArg::Tls12 => Self::Tls12,
            TlsMinArg::Tls13 => Self::Tls13,
        }
    }
}

/// Something that is on unless it is switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Switch {
    On,
    Off,
}

impl Switch {
    pub(super) fn is_on(self) -> bool {
        self == Self::On
    }
}

/// How the log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

impl LogFormat {
    /// Returns the value on the command line.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ReachArg {
    Service { name: String, port: u16 },
    Loopback,
    Url(String),
}

fn parse_namespace(text: &str) -> Result<String, String> {
    label_fault(text).map_or_else(|| Ok(text.to_owned()), |fault| Err(fault.to_owned()))
}

fn parse_reach(text: &str) -> Result<ReachArg, String> {
    let service = text.strip_prefix("service/").map(|service| match service.split_once(':') {
        None => (service, Some(SERVICE_PORT)),
        Some((name, port)) => (name, port.parse().ok().filter(|port| *port > 0)),
    });
    match (text, service) {
        ("loopback", _) => Ok(ReachArg::Loopback),
        (_, Some((name, Some(port)))) if label_fault(name).is_none() => {
            Ok(ReachArg::Service { name: name.to_owned(), port })
        }
        (url, _) if url.starts_with("https://") => Ok(ReachArg::Url(url.trim_end_matches('/').to_owned())),
        _ => Err("must be service/NAME, service/NAME:PORT, loopback or https://HOST:PORT".to_owned()),
    }
}

/// Three quarters of this hold the largest body.
const LEAST_BODY_MEMORY: usize = 10 << 20;

fn parse_body_memory(text: &str) -> Result<usize, String> {
    let size = bytes::parse(text)?;
    if size < LEAST_BODY_MEMORY { Err("must be 10Mi or more".to_owned()) } else { Ok(size) }
}

fn parse_incomplete(text: &str) -> Result<IncompleteBatch, String> {
    match (text, text.strip_prefix("release-after=")) {
        ("wait", _) => Ok(IncompleteBatch::Wait),
        (_, Some(time)) => duration::parse(time).map(IncompleteBatch::ReleaseAfter),
        _ => Err("must be wait or release-after=DURATION".to_owned()),
    }
}

fn parse_missing(text: &str) -> Result<MissingGroup, String> {
    match (text, text.strip_prefix("release-after=")) {
        ("hold", _) => Ok(MissingGroup::Hold),
        (_, Some(time)) => duration::parse(time).map(MissingGroup::ReleaseAfter),
        _ => Err("must be release-after=DURATION or hold".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::model::Allowed;

    #[derive(clap::Parser)]
    struct Serve {
        #[command(flatten)]
        args: ServeArgs,
    }

    #[test]
    fn without_flags_the_loop_behaves_as_by_default() {
        assert_eq!(Serve::parse_from(["serve"]).args.loop_options(), LoopOptions::default());
    }

    #[test]
    fn a_service_may_have_another_port_and_must_have_one() {
        let reach =
            |text: &str| parse_reach(text).map_err(|error| assert!(error.starts_with("must be service/NAME, ")));
        let service = |port| Ok(ReachArg::Service { name: "rolegate".to_owned(), port });
        assert_eq!((reach("service/rolegate"), reach("service/rolegate:8443")), (service(443), service(8443)));
        for wrong in
            ["", "service/", "service/:443", "service/a:", "service/a:0", "service/a:70000", "service/a/b", "http://a"]
        {
            assert_eq!(reach(wrong), Err(()), "{wrong}");
        }
    }

    #[test]
    fn what_is_allowed_is_said_in_one_word_or_several_and_nothing_else_is_taken() {
        let allowed = |arguments: &[&str]| {
            Serve::try_parse_from([&["serve"], arguments].concat()).map(|serve| serve.args.loop_options().allowed)
        };
        let scale = Allowed { scale: true, recovery: false };
        assert_eq!(allowed(&["--allow", "scale"]).unwrap(), scale);
        assert_eq!(allowed(&["--allow=scale,recovery"]).unwrap(), Allowed::ALL);
        assert_eq!(allowed(&["--allow=recovery", "--allow=scale"]).unwrap(), Allowed::ALL);
        let error = allowed(&["--allow=scaling"]).unwrap_err().to_string();
        assert!(error.contains("'scaling'") && error.contains("scale, recovery"), "{error}");
    }
}
