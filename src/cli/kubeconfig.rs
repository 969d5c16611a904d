//! Reads the kubeconfig, and the proxy for the API server.

use std::env;
use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;
use http::{HeaderValue, Uri, header};
use hyper_util::client::proxy::matcher::Matcher;
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};

use super::failure::Failure;
use super::kubeconfig_words::{SERVER, kubeconfig_words, nowhere};

/// Where the API server is.
#[derive(Args, Clone, Debug)]
pub struct ConnectionArgs {
    /// Kubeconfig; by default $KUBECONFIG, ~/.kube/config or the pod's service account.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig.
    #[arg(long)]
    context: Option<String>,
}

/// `User-Agent` of requests to the API server.
const USER_AGENT: &str = concat!("rolegate/", env!("CARGO_PKG_VERSION"));

impl ConnectionArgs {
    /// Reads the kubeconfig, or the pod's service account.
    pub async fn config(&self) -> Result<Config, Failure> {
        let mut config = self.read().await?;
        // Audit logs identify the client by this header.
        config.headers.push((header::USER_AGENT, HeaderValue::from_static(USER_AGENT)));
        Ok(config)
    }

    /// Reports whether the command line has any of these arguments.
    pub fn is_given(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some()
    }

    async fn read(&self) -> Result<Config, Failure> {
        let fault = |error: &KubeconfigError| Failure::Config(kubeconfig_words(error));
        let file = match self.kubeconfig.as_ref().map_or_else(Kubeconfig::read, Kubeconfig::read_from) {
            Ok(file) => file,
            Err(error) if !self.is_given() => {
                return Config::infer().await.map_err(|_| Failure::Config(nowhere(&error)));
            }
            Err(error) => return Err(fault(&error)),
        };
        let named = named_proxy(&file, self.context.as_ref());
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let read = Config::from_custom_kubeconfig(file, &options).await;
        let mut config = read.map_err(|error| fault(&error))?;
        // The client panics at the first request to an address without a scheme.
        if !matches!(config.cluster_url.scheme_str(), Some("http" | "https")) {
            return Err(Failure::Config(SERVER.to_owned()));
        }
        let proxy = named.or_else(|| proxy_of_environment(&config.cluster_url));
        config.proxy_url = proxy.map(|proxy| proxy_address(&proxy)).transpose()?;
        Ok(config)
    }
}

/// Returns `proxy-url` of the kubeconfig's cluster. `NO_PROXY` does not apply to it.
fn named_proxy(file: &Kubeconfig, context: Option<&String>) -> Option<String> {
    let name = context.or(file.current_context.as_ref())?;
    let context = file.contexts.iter().find(|context| context.name == *name)?.context.as_ref()?;
    let cluster = file.clusters.iter().find(|cluster| cluster.name == context.cluster)?.cluster.as_ref()?;
    cluster.proxy_url.clone().filter(|proxy| !proxy.is_empty())
}

/// Returns the proxy that `HTTPS_PROXY` and `NO_PROXY` name for a server; none for this machine, as kubectl does. The
/// client library would compare `NO_PROXY` with the proxy instead.
fn proxy_of_environment(server: &Uri) -> Option<String> {
    let value = |names: [&str; 2]| names.iter().find_map(|name| env::var(name).ok().filter(|value| !value.is_empty()));
    let proxy = value(["HTTPS_PROXY", "https_proxy"])?;
    let excepted = value(["NO_PROXY", "no_proxy"]).unwrap_or_default();
    let host = server.host()?.trim_matches(['[', ']']);
    let is_here = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    let matcher = Matcher::builder().https(proxy.as_str()).no(excepted).build();
    (!is_here && matcher.intercept(server).is_some()).then_some(proxy)
}

/// Parses the address of a proxy; without a scheme it is an HTTP proxy.
fn proxy_address(text: &str) -> Result<Uri, Failure> {
    let full = match text.split_once("://") {
        None => format!("http://{text}"),
        Some(("socks5h", rest)) => format!("socks5://{rest}"),
        Some(_) => text.to_owned(),
    };
    // The error omits the address: it may contain a password.
    let fault = |why: &str| Failure::Config(format!("the proxy of the kubeconfig, or of HTTPS_PROXY: {why}"));
    let address = full.parse::<Uri>().ok();
    let address = address.filter(|address| matches!(address.scheme_str(), Some("http" | "https" | "socks5")));
    address.ok_or_else(|| fault("must be a URL that begins with http://, https:// or socks5://"))
}
