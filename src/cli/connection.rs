//! The cluster that a command talks to, and what is said when it cannot.

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
use crate::cluster::told;
use crate::cluster::write::adoption::AdoptionError;
use crate::model::Serving;
use crate::model::object_name::{label_fault, subdomain_fault};

/// The connection of a command that people run, and the namespace it looks at.
#[derive(Args, Clone, Debug)]
pub struct LiveArgs {
    #[command(flatten)]
    connection: ConnectionArgs,
    /// Namespace; by default that of the kubeconfig's context.
    #[arg(short, long)]
    pub namespace: Option<String>,
    /// Namespace and name of the rolegate that serves the cluster: its Lease tells its mode.
    #[arg(long, value_name = "NAMESPACE/NAME", default_value = "rolegate-system/rolegate", env = "ROLEGATE")]
    rolegate: RolegateName,
}

/// Namespace and name of an installation.
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

/// A client and where it leads.
#[derive(Clone)]
pub struct Connection {
    /// The client.
    pub client: Client,
    /// The namespace to look at.
    pub namespace: String,
    server: String,
    /// Certificates, as DER, that are trusted to sign that of the API server.
    roots: Option<Vec<Vec<u8>>>,
    rolegate: RolegateName,
}

/// How long people wait for a connection, and for an answer.
const PATIENCE: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(30));

impl LiveArgs {
    /// For a command that has a namespace by other means.
    pub fn new(connection: ConnectionArgs, namespace: &str) -> Self {
        Self { connection, namespace: Some(namespace.to_owned()), rolegate: RolegateName::default() }
    }

    /// True when any of them was written on the command line.
    pub fn is_given(&self) -> bool {
        self.namespace.is_some() || self.connection.is_given()
    }

    /// Prepares a client for somebody who waits, or who watches for as long as it takes; nothing is sent yet.
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
            Some(certificate) => Failure::Certificate { certificate, reason: root_cause(&error) },
            None => Failure::Client(error),
        })?;
        Ok(Connection { client, namespace, server, roots, rolegate })
    }
}

impl Connection {
    /// How namespaces are served, as the rolegate that leads tells it; as by default where it tells nobody, or not this user.
    pub async fn serving(&self) -> Serving {
        told::read(&self.client, &self.rolegate.namespace, &self.rolegate.name).await.unwrap_or_default()
    }

    /// A failed request, in one line.
    pub fn failure(&self, error: &kube::Error) -> Failure {
        match error {
            kube::Error::Api(status) if status.code == 401 => {
                Failure::Refused(format!("the API server at {} does not accept these credentials", self.server))
            }
            kube::Error::Api(status) => Failure::Refused(one_line(&status.message)),
            // A name that no object can have: nothing was sent.
            kube::Error::BuildRequest(_) => Failure::Other(root_cause(error)),
            other => {
                let mut reason = root_cause(other);
                if let Some(roots) = self.roots.as_ref().filter(|_| reason.contains("peer certificate")) {
                    reason = format!("{reason}. The kubeconfig trusts {}", certificate_words::trusted(roots));
                }
                Failure::Unreachable { server: self.server.clone(), reason }
            }
        }
    }

    /// A write that failed, or was not answered, in one line.
    pub fn write_failure(&self, error: &AdoptionError) -> Failure {
        match error {
            AdoptionError::Api(error) => self.failure(error),
            AdoptionError::Unfinished(error) => Failure::Other(error.to_string()),
        }
    }
}

/// Runs a command that talks to a cluster.
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
