//! Options of `rolegate serve`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::api::ObjectKind;
use crate::api::selector::LabelSelector;
use crate::cli::allow::{Allow, allowed};
use crate::cli::bytes;
use crate::cli::connection::ConnectionArgs;
use crate::cli::duration;
use crate::cli::numbers::{parse_socket, whole};
use crate::cli::options::{KaiDialectArg, PodArgs, RoomArgs, parse_dns_label, parse_subdomain};
use crate::cli::ready_kinds;
use crate::cli::serving::{ModeArgs, parse_selector, serving};
use crate::cluster::registration::SERVICE_PORT;
use crate::cluster::run::{IncompleteBatch, LoopOptions, MissingGroup};
use crate::model::Others;
use crate::model::object_name::label_fault;
use crate::model::provision::request_kinds;
use crate::model::{Mode, Serving};
use crate::tls::acceptor::OldestTls;

/// Options of `serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Address of the webhook port; port 0 selects a free port.
    #[arg(long, default_value = "127.0.0.1:9443", env = "ROLEGATE_LISTEN", value_parser = parse_socket)]
    pub(super) listen: SocketAddr,
    /// Address of the port for /livez, /readyz, /metrics and the status page, /page/.
    #[arg(long, default_value = "127.0.0.1:9080", env = "ROLEGATE_ADMIN_LISTEN", value_parser = parse_socket)]
    pub(super) admin_listen: SocketAddr,
    /// Serve the status page on the admin port.
    #[arg(long, value_enum, default_value = "on")]
    pub(super) page: Switch,
    /// File with the token that callers of the status page must send (`Authorization: Bearer …`; the page asks for it).
    /// Without it, the page answers callers on the same machine, also through `kubectl port-forward`.
    #[arg(long, value_name = "FILE")]
    pub(super) page_token_file: Option<PathBuf>,
    #[command(flatten)]
    pub(super) connection: ConnectionArgs,
    /// Namespace of rolegate's Secret, Lease and Service.
    #[arg(long, default_value = "rolegate-system", env = "POD_NAMESPACE", value_parser = parse_dns_label)]
    pub(super) namespace: String,
    /// Name of the webhook configurations and the Lease, and prefix of the Secret's name.
    #[arg(long, default_value = "rolegate", value_parser = parse_subdomain)]
    pub(super) name: String,
    /// Unique name of this replica.
    #[arg(long, env = "POD_NAME")]
    pub(super) identity: Option<String>,
    /// Address of the webhook for the API server: `service/NAME`, `service/NAME:PORT` (443), `loopback` or
    /// `https://HOST:PORT`.
    #[arg(long, default_value = "service/rolegate", value_parser = parse_reach)]
    pub(super) reach: ReachArg,
    /// Part of the webhook configurations that rolegate maintains.
    #[arg(long, value_enum, default_value = "ca-bundle")]
    pub(super) webhooks: WebhooksArg,
    /// Register webhooks for pods that name a PodGroup of KAI.
    #[arg(long, value_enum, default_value = "on")]
    pub(super) kai_pods: Switch,
    /// Certificate to serve instead of a self-managed one; read again when it changes.
    #[arg(long, value_name = "FILE", requires = "key_file")]
    pub(super) cert_file: Option<PathBuf>,
    /// Key of the certificate.
    #[arg(long, value_name = "FILE", requires = "cert_file")]
    pub(super) key_file: Option<PathBuf>,
    /// CAs (PEM) of the certificates that callers must show; read again when the file changes.
    #[arg(long, value_name = "FILE", requires = "client_names")]
    pub(super) client_ca: Option<PathBuf>,
    /// Common name or DNS name that a caller's certificate must have; one of several is enough.
    #[arg(long = "client-name", value_delimiter = ',', value_name = "NAME", requires = "client_ca")]
    pub(super) client_names: Vec<String>,
    /// Minimum version of TLS.
    #[arg(long, value_enum, default_value = "1.3", value_name = "VERSION")]
    pub(super) tls_min: TlsMinArg,
    /// Duration between the publication of a new CA and the use of its certificate.
    #[arg(long, default_value = "1m", value_parser = duration::parse)]
    pub(super) ca_settle: Duration,
    /// Namespaces to serve; all by default.
    #[arg(long, value_delimiter = ',', value_name = "NAMESPACE", value_parser = parse_dns_label)]
    pub(super) namespaces: Vec<String>,
    #[command(flatten)]
    pub(super) modes: ModeArgs,
    /// Label selector of the namespaces to serve, as for `kubectl get -l`; the webhook configurations must have the
    /// same.
    #[arg(long, value_name = "SELECTOR", value_parser = parse_selector)]
    pub(super) namespace_selector: Option<LabelSelector>,
    /// Treatment of pods whose group never appears: `release-after=DURATION` or `hold`. Pods whose engine gets variables of
    /// the group are not released.
    #[arg(long, default_value = "release-after=60s", value_parser = parse_missing)]
    pub(super) missing_group: MissingGroup,
    /// Duration until the held pods of a deleted group are released.
    #[arg(long, default_value = "30s", value_parser = duration::parse)]
    pub(super) vanished_grace: Duration,
    /// Duration without progress until a group reports ProgressDeadlineExceeded; a new leader goes on counting.
    #[arg(long, default_value = "10m", value_parser = duration::parse)]
    pub(super) progress_deadline: Duration,
    /// Duration for which an edited role of a coordinated rollout waits for edits of the others, and a whole segment for the other roles to be scaled.
    #[arg(long, default_value = "10s", value_parser = duration::parse)]
    pub(super) settle: Duration,
    /// Treatment of batches that are released as a whole and lack pods: `wait` or `release-after=DURATION`, which begins again with a new
    /// leader.
    #[arg(long, default_value = "wait", value_parser = parse_incomplete)]
    pub(super) incomplete: IncompleteBatch,
    /// Release a batch that must share a domain when a domain has room for all of it, and bind it to that domain.
    #[arg(long, value_enum, default_value = "on")]
    pub(super) placement: Switch,
    #[command(flatten)]
    pub(super) room: RoomArgs,
    /// Duration until placed pods without a node lose their room; begins again with a new leader.
    #[arg(long, default_value = "60s", value_parser = duration::parse)]
    pub(super) bind_timeout: Duration,
    /// Maximum number of concurrent recoveries of all groups; by default a tenth of all segments, at least one.
    #[arg(long, value_name = "N", value_parser = whole(1..=u32::MAX))]
    pub(super) max_recoveries: Option<u32>,
    /// Time-out of a write to the API server; the write is then retried.
    #[arg(long, default_value = "10s", value_parser = duration::parse)]
    pub(super) write_timeout: Duration,
    /// Delete held pods that were created for another batch, so that they are recreated.
    #[arg(long)]
    pub(super) recreate_mis_stamped: bool,
    /// Actions beyond gates, statuses and partitions; they need the rights of `manifests --allow`.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT")]
    pub(super) allow: Vec<Allow>,
    /// Kinds whose objects `readyWhen` may name, as Job=jobs.v1.batch; they need the rights of `manifests --ready-kinds`.
    #[arg(long, value_delimiter = ',', value_name = "KIND=RESOURCE", value_parser = ready_kinds::parse)]
    pub(super) ready_kinds: Vec<ObjectKind>,
    /// Duration after which a silent leader is replaced.
    #[arg(long, default_value = "15s", value_parser = duration::parse)]
    pub(super) lease_duration: Duration,
    /// Duration for which a replica serves after a signal.
    #[arg(long, default_value = "3s", value_parser = duration::parse)]
    pub(super) drain_grace: Duration,
    /// Version of KAI for which PodGroups are written.
    #[arg(long, value_enum, default_value = "auto")]
    pub(super) kai_dialect: KaiDialectArg,
    /// Require role names that are unique in a Grove set.
    #[arg(long)]
    pub(super) strict_roles: bool,
    #[command(flatten)]
    pub(super) pods: PodArgs,
    /// Memory for the bodies and answers of all open requests; requests beyond it are answered 503. A quarter is
    /// reserved for bodies of up to 16 KiB. At least 10Mi.
    #[arg(long, default_value = "32Mi", value_name = "SIZE", value_parser = parse_body_memory)]
    pub(super) body_memory: usize,
    /// Refuse objects that cannot be read.
    #[arg(long)]
    pub(super) strict: bool,
    /// Log levels, as in `info` or `rolegate=debug,warn`.
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
        let ready_kinds = Some(self.watched_kinds());
        let ignored_resources = self.room.ignored();
        let serving = serving(Mode::from(self.modes.mode), self.namespace_selector.as_ref());
        Serving { others, ready_kinds, ignored_resources, ..serving }
    }

    /// Returns the kinds whose objects groups may wait for and by which nodes may be requested; they live as long as the process.
    pub(super) fn awaited_kinds(&self) -> &'static [ObjectKind] {
        self.watched_kinds().leak()
    }

    fn watched_kinds(&self) -> Vec<ObjectKind> {
        let requests = request_kinds().filter(|_| allowed(&self.allow).provision);
        let mut all = self.ready_kinds.clone();
        all.extend(requests.filter(|kind| !self.ready_kinds.contains(kind)));
        all
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
            discovery_is_off: !self.pods.settings().discovery,
            recreate_mis_stamped: self.recreate_mis_stamped,
            allowed: allowed(&self.allow),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum WebhooksArg {
    /// Create and correct the configurations.
    All,
    /// Fill in the caBundle.
    CaBundle,
    /// Write nothing: cert-manager or another program maintains them.
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum TlsMinArg {
    /// For API servers and proxies without TLS 1.3.
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
    /// Text.
    Text,
    /// One JSON object for each line.
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
        let scale = Allowed { scale: true, ..Allowed::default() };
        assert_eq!(allowed(&["--allow", "scale"]).unwrap(), scale);
        assert_eq!(allowed(&["--allow=scale,recovery,provision"]).unwrap(), Allowed::ALL);
        assert_eq!(allowed(&["--allow=recovery", "--allow=provision,scale"]).unwrap(), Allowed::ALL);
        let error = allowed(&["--allow=scaling"]).unwrap_err().to_string();
        assert!(error.contains("'scaling'") && error.contains("scale, recovery, provision"), "{error}");
    }
}
