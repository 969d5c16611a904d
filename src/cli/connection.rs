//! The connection of a command to a cluster, and its error messages.

use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use http::Uri;
use kube::Client;

use super::certificate_words;
pub use super::failure::Failure;
use super::failure::{one_line, root_cause};
pub use super::kubeconfig::ConnectionArgs;
use super::kubeconfig_words::client_words;
use super::options::parse_dns_label;
use crate::cluster::leader_flags;
use crate::cluster::write::deadline::Unfinished;
use crate::model::Serving;
use crate::model::object_name::{label_fault, subdomain_fault};

/// The connection of a command that people run, and the namespace it looks at.
#[derive(Args, Clone, Debug)]
pub struct LiveArgs {
    #[command(flatten)]
    connection: ConnectionArgs,
    /// Namespace; by default that of the kubeconfig's context.
    #[arg(short, long, value_parser = parse_dns_label)]
    pub namespace: Option<String>,
    /// Namespace and name of the Lease of the rolegate that serves the cluster.
    #[arg(long, value_name = "NAMESPACE/NAME", default_value = "rolegate-system/rolegate", env = "ROLEGATE")]
    rolegate: RolegateName,
}

/// Namespace and name of an installation of rolegate.
#[derive(Clone, Debug)]
pub struct RolegateName {
    namespace: String,
    name: String,
}

impl Default for RolegateName {
    fn default() -> Self {
        Self { namespace: "rolegate-system".to_owned(), name: "rolegate".to_owned() }
    }
}

impl FromStr for RolegateName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (namespace, name) = text.split_once('/').ok_or("must be NAMESPACE/NAME")?;
        if label_fault(namespace).is_some() || subdomain_fault(name).is_some() {
            return Err("must be NAMESPACE/NAME, both of which can be names of objects");
        }
        Ok(Self { namespace: namespace.to_owned(), name: name.to_owned() })
    }
}

/// A client, and the server and namespace that it talks to.
#[derive(Clone)]
pub struct Connection {
    pub client: Client,
    pub namespace: String,
    server: String,
    /// CA certificates for the API server, as DER.
    roots: Option<Vec<Vec<u8>>>,
    rolegate: RolegateName,
}

/// Time limits of a connection, and of an answer.
const PATIENCE: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(30));

impl LiveArgs {
    /// Creates arguments for a command that takes its namespace elsewhere.
    pub fn new(connection: ConnectionArgs, namespace: &str) -> Self {
        Self { connection, namespace: Some(namespace.to_owned()), rolegate: RolegateName::default() }
    }

    /// Reports whether the command line has any of these arguments.
    pub fn is_given(&self) -> bool {
        self.namespace.is_some() || self.connection.is_given()
    }

    /// Creates a client, without a read timeout when the command watches; sends nothing.
    pub async fn connect(&self, watches: bool) -> Result<Connection, Failure> {
        let mut config = self.connection.config().await?;
        config.connect_timeout = Some(PATIENCE.0);
        if !watches {
            config.read_timeout = Some(PATIENCE.1);
        }
        let namespace = self.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        let mut server = config.cluster_url.to_string();
        if let Some(authority) = config.proxy_url.as_ref().and_then(Uri::authority) {
            let at = authority.as_str().rsplit('@').next().unwrap_or_default();
            server = format!("{server} through the proxy at {at}");
        }
        let rolegate = self.rolegate.clone();
        let (roots, user) = (config.root_cert.clone(), config.auth_info.clone());
        let client = Client::try_from(config).map_err(|error| match certificate_words::client_certificate(&user) {
            Some(certificate) if matches!(error, kube::Error::RustlsTls(_)) => {
                Failure::Certificate { certificate, reason: root_cause(&error) }
            }
            _ => Failure::Client(client_words(&error, &user)),
        })?;
        Ok(Connection { client, namespace, server, roots, rolegate })
    }
}

impl Connection {
    /// Returns how namespaces are served, as the leader publishes it; the default when it is missing or cannot be read.
    pub async fn serving(&self) -> Serving {
        leader_flags::read(&self.client, &self.rolegate.namespace, &self.rolegate.name).await.unwrap_or_default()
    }

    /// Describes a failed request in one line.
    pub fn failure(&self, error: &kube::Error) -> Failure {
        match error {
            kube::Error::Api(status) if status.code == 401 => {
                Failure::Refused(format!("the API server at {} does not accept these credentials", self.server))
            }
            // An API server answers with a Status, not with a page.
            kube::Error::Api(status) if status.message.trim_start().starts_with('<') => {
                let reason = format!("it answers with a page and code {}, as no API server does", status.code);
                Failure::Unreachable { server: self.server.clone(), reason }
            }
            kube::Error::Api(status) => Failure::Refused(one_line(&status.message)),
            // The name is invalid: nothing was sent.
            kube::Error::BuildRequest(_) => Failure::Other(root_cause(error)),
            other => {
                let mut reason = root_cause(other);
                if let Some(roots) = self.roots.as_ref().filter(|_| reason.starts_with("its certificate")) {
                    reason = format!("{reason}. The kubeconfig trusts {}", certificate_words::trusted(roots));
                }
                Failure::Unreachable { server: self.server.clone(), reason }
            }
        }
    }

    /// Describes a failed or unanswered write in one line.
    pub fn write_failure(&self, error: &kube::Error) -> Failure {
        match error {
            kube::Error::Service(cause) if cause.is::<Unfinished>() => Failure::Other(cause.to_string()),
            error => self.failure(error),
        }
    }
}

/// Runs a command on a single-threaded runtime.
pub fn block_on(command: impl Future<Output = Result<ExitCode, Failure>>) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let outcome = match runtime {
        Ok(runtime) => runtime.block_on(command),
        Err(error) => Err(Failure::Other(format!("runtime: {error}"))),
    };
    outcome.unwrap_or_else(|failure| {
        eprintln!("rolegate: {}", super::as_called(&failure.to_string()));
        ExitCode::FAILURE
    })
}
