//! Starts the serving certificate and the authentication of callers.

use std::net::SocketAddr;

use jiff::SignedDuration;
use kube::Client;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::args::{ReachArg, ServeArgs, WebhooksArg};
use super::{Parts, ServeError};
use crate::cluster::certificates::{Certificates, Policy, Standing};
use crate::cluster::registration::webhooks::{Keep, Webhooks};
use crate::cluster::registration::{Reach, Registration};
use crate::server::http::admin::Check;
use crate::server::http::self_dial::SelfIdentity;
use crate::tls::acceptor::{CertStore, ClientAuth, ClientCas};
use crate::tls::authority::LeafSpec;
use crate::tls::cert_files::cert_files;

/// Returns the allowed callers and the client certificate of the process itself; `None` when anybody may call.
pub(super) async fn callers(
    args: &ServeArgs,
    parts: &mut Parts,
    stop: &CancellationToken,
) -> Result<(Option<ClientAuth>, Option<SelfIdentity>), ServeError> {
    let Some(path) = &args.client_ca else { return Ok((None, None)) };
    let cas = ClientCas::default();
    let mut file = cas.follow(path.clone());
    file.load().await?;
    let own = SelfIdentity::generate().map_err(|error| ServeError::Tls(error.to_string()))?;
    parts.add("client CA", file.run(stop.clone()));
    let callers = ClientAuth { cas, allowed_names: args.client_names.clone(), own: Some(own.certificate()) };
    Ok((Some(callers), Some(own)))
}

/// Who keeps the certificates: the address of the webhook port, and the name of the replica.
pub(super) type Keeper<'a> = (SocketAddr, &'a str);

/// Starts to keep the certificates and the webhook configurations. Returns the standing of the Secret, if there is one.
pub(super) async fn start(
    args: &ServeArgs,
    client: &Client,
    store: &CertStore,
    (keeper, repairs): (Keeper<'_>, Counter),
    parts: &mut Parts,
    stop: &CancellationToken,
) -> Result<Option<watch::Receiver<Standing>>, ServeError> {
    let (address, identity) = keeper;
    if let (Some(cert), Some(key)) = (&args.cert_file, &args.key_file) {
        let mut files = cert_files(cert, key, store.clone());
        files.load().await?;
        parts.add("certificate files", files.run(stop.clone()));
        return Ok(None);
    }
    let of_url = |url: String| {
        let mut leaf = LeafSpec::for_service("rolegate", &args.namespace);
        if let Some((host, _)) = url.strip_prefix("https://").and_then(|authority| authority.rsplit_once(':')) {
            match host.trim_matches(['[', ']']).parse() {
                Ok(ip) => leaf.addresses.push(ip),
                Err(_) => leaf.names.push(host.to_owned()),
            }
        }
        (leaf, Reach::Url(url))
    };
    let (leaf, reach) = match &args.reach {
        ReachArg::Service { name, port } => {
            let (namespace, name) = (args.namespace.clone(), name.clone());
            (LeafSpec::for_service(&name, &namespace), Reach::Service { namespace, name, port: *port })
        }
        ReachArg::Loopback => of_url(format!("https://{address}")),
        ReachArg::Url(url) => of_url(url.clone()),
    };
    let secret = format!("{}-certificates", args.name);
    let settle = SignedDuration::try_from(args.ca_settle).unwrap_or(SignedDuration::MAX);
    let policy = Policy { settle, ..Policy::for_leaf(leaf) };
    let (certificates, publication) =
        Certificates::new(client.clone(), &args.namespace, &secret, identity, policy, store.clone());
    let standing = certificates.standing();
    parts.add("certificates", certificates.run(stop.clone()));
    let keep = match args.webhooks {
        WebhooksArg::All => Keep::All,
        WebhooksArg::CaBundle => Keep::CaBundle,
        WebhooksArg::Off => return Ok(Some(standing)),
    };
    let registration = Registration {
        name: args.name.clone(),
        reach,
        own_namespace: args.namespace.clone(),
        namespaces: args.namespaces.clone(),
        selector: args.serving().selector,
        mode: args.serving().mode,
        kai_pods: args.kai_pods.is_on(),
    };
    parts.add(
        "webhook configurations",
        Webhooks::new(client, registration, keep, repairs).run(publication, stop.clone()),
    );
    Ok(Some(standing))
}

/// Tells of a Secret that is not ours: without a certificate to serve, the replica is not ready.
pub(super) async fn follow(mut standing: watch::Receiver<Standing>, check: Check, foreign: Gauge) {
    loop {
        let now = *standing.borrow_and_update();
        foreign.set(now.foreign.is_some().into());
        let why = now.foreign.map_or_else(
            || "no certificate yet".to_owned(),
            |why| format!("the Secret of the certificates is not rolegate's: {why}; delete it"),
        );
        check.set(now.serves, why);
        if standing.changed().await.is_err() {
            return;
        }
    }
}
