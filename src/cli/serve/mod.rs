//! `rolegate serve`: runs the webhook on every replica, and the loop on the leader.

mod args;
mod certificates;
mod log;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::registry::Registry;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use args::{LogFormat, ServeArgs};

use crate::cli::connection::Failure;
use crate::cli::terminal::in_words;
use crate::cluster::capacity::SharedCapacity;
use crate::cluster::gauges;
use crate::cluster::index::SharedIndex;
use crate::cluster::leader_flags;
use crate::cluster::lease::{Election, LeaseOptions};
use crate::cluster::metrics::ApiRequests;
use crate::cluster::metrics::LoopMetrics;
use crate::cluster::read::lookup::Lookup;
use crate::cluster::read::shortages::Shortages;
use crate::cluster::run::GateLoop;
use crate::cluster::watch::cache_age::CacheAges;
use crate::cluster::watch::capacity;
use crate::cluster::watch::client::client;
use crate::cluster::watch::sources::Sources;
use crate::cluster::write::events::Events;
use crate::cluster::write::executor::Executor;
use crate::cluster::write::topologies::TopologyKeeper;
use crate::cluster::write::writer::Writer;
use crate::model::Others;
use crate::model::{Mode, Serving};
use crate::mutate::PodSettings;
use crate::rules::rule_setting::SettingError;
use crate::rules::{Options, RuleSettings};
use crate::server::admission::Admission;
use crate::server::admission::beside::Beside;
use crate::server::admission::metrics::AdmissionMetrics;
use crate::server::http::accept::{Drain, Listener};
use crate::server::http::admin;
use crate::server::http::admin::{Check, Readiness};
use crate::server::http::body::Bodies;
use crate::server::http::limits::Limits;
use crate::server::http::listen::Listening;
use crate::server::http::metrics;
use crate::server::http::process::{ProcessUsage, open_files};
use crate::server::http::self_dial::SelfDial;
use crate::server::page::{self, Access, Feeds, Source, TokenError};
use crate::tls::acceptor::{CertStore, ClientAuthError, server_config};
use crate::tls::cert_info::CertError;
use crate::tls::files::FilesError;

/// The error when `serve` cannot start, or ends by itself.
#[derive(Debug, thiserror::Error)]
enum ServeError {
    #[error("--log: must be a level such as info, or TARGET=LEVEL, separated by commas, and is {0:?}")]
    Log(String),
    #[error(transparent)]
    Connection(#[from] Failure),
    #[error("client: {0}")]
    Client(#[from] kube::Error),
    #[error("{0} cannot be listened on: {1}")]
    Listen(SocketAddr, std::io::Error),
    #[error("certificate files: {0}")]
    CertFiles(#[from] FilesError<CertError>),
    #[error("client CA: {0}")]
    ClientCa(#[from] FilesError<ClientAuthError>),
    #[error("--page-token-file: {0}")]
    PageToken(#[from] TokenError),
    #[error("--rule: {0}")]
    Rule(#[from] SettingError),
    #[error("TLS: {0}")]
    Tls(String),
    #[error("runtime: {0}")]
    Runtime(std::io::Error),
    #[error("{0} ended by itself")]
    Ended(&'static str),
}

/// Runs until a signal arrives or a part ends.
pub fn run(args: ServeArgs) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(ServeError::Runtime);
    let outcome = start_log(&args).and(runtime).and_then(|runtime| runtime.block_on(serve(args)));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("rolegate: {}", in_words(&error.to_string()));
            ExitCode::FAILURE
        }
    }
}

fn start_log(args: &ServeArgs) -> Result<(), ServeError> {
    let filter = tracing_subscriber::EnvFilter::try_new(&args.log).map_err(|_| ServeError::Log(args.log.clone()))?;
    log::start(filter, args.log_format);
    Ok(())
}

async fn serve(args: ServeArgs) -> Result<(), ServeError> {
    let (webhook, admin) = (listen(args.listen)?, listen(args.admin_listen)?);
    let (draining, stop) = (CancellationToken::new(), CancellationToken::new());
    let (mut registry, readiness, mut parts) =
        (Registry::with_prefix("rolegate"), Readiness::default(), Parts::default());
    let requests = ApiRequests::register(&mut registry);
    let ages = CacheAges::register(&mut registry);
    let client = client(&ages, &requests, args.connection.config().await?)?;
    readiness.show(&mut registry);
    readiness.tell_mode(Mode::from(args.modes.mode).as_str());
    registry.register_collector(Box::new(ProcessUsage));
    let server_metrics = metrics::register(&mut registry);
    let admission_metrics = AdmissionMetrics::register(&mut registry);
    let loop_metrics = LoopMetrics::register(&mut registry);

    let store = CertStore::empty();
    parts.add("certificate metrics", server_metrics.clone().follow_certificate(store.changes()));
    let repairs = admission_metrics.webhook_repairs.clone();
    let identity = args.identity.clone().unwrap_or_else(|| format!("{}-{}", args.name, std::process::id()));
    let keeper = (webhook.address, identity.as_str());
    let standing = certificates::start(&args, &client, &store, (keeper, repairs), &mut parts, &stop).await?;
    if let Some(standing) = standing {
        let foreign = server_metrics.foreign_secret.clone();
        parts.add("Secret", certificates::follow(standing, readiness.register("certificates"), foreign));
    }
    let (callers, own) = certificates::callers(&args, &mut parts, &stop).await?;
    let tls = server_config(args.tls_min.into(), &store, callers);
    let tls = tls.map_err(|error| ServeError::Tls(error.to_string()))?;
    let dial = SelfDial::new(webhook.address, store, own).map_err(|error| ServeError::Tls(error.to_string()))?;
    parts.add("self dial", dial.run(readiness.register("tls"), stop.clone()));

    let (serving, rules) = (args.serving(), args.modes.rules()?);
    let index = prepared_index(&args, &serving, rules);
    tell_mode(&args, &serving, rules);
    gauges::show_stances(&mut registry, index.clone(), serving.mode);
    let sources = sources(&args, &serving, &client, &index);
    parts.add("cache check", follow_caches(readiness.register("caches"), index.synced()));

    let options = options(&args, rules);
    let lookup = Lookup::new(client.clone(), index.clone(), options);
    let writer = Writer::new(client.clone(), args.write_timeout);
    let events = Events::new(writer.clone(), &identity, loop_metrics.clone());
    let (election, leader) = Election::new(&client, lease_options(&args, &identity, &serving));
    let unled = election.unled();
    parts.add("election", election.run(draining.clone()));
    // Its budget of reads is separate from that of reviews.
    let own = Lookup::new(client.clone(), index.clone(), options);
    let topologies = TopologyKeeper::new(writer.clone(), own, leader.clone(), serving.mode);
    parts.add("topologies", topologies.run(draining.clone()));
    let pods = PodSettings { places: args.placement.is_on(), ..args.pods.settings() };
    lookup.index().write(|index| index.choose_dialect(options.kai_dialect.chosen()));
    let executor = Executor::new(writer, lookup.clone(), events, loop_metrics.clone());
    let capacity = args.placement.is_on().then(|| SharedCapacity::ignoring(serving.ignored_resources));
    if let Some(capacity) = capacity.clone() {
        parts.add("nodes and pods", capacity::keep(client.clone(), ages, capacity));
    }
    gauges::show_entries(&mut registry, lookup.clone(), capacity.clone());
    let source = Source {
        client: client.clone(),
        index: lookup.index().clone(),
        capacity: capacity.clone(),
        leader: leader.clone(),
        identity,
        readiness: readiness.clone(),
        mode: serving.mode,
    };
    let page = status_page(&args, source, &stop)?;
    let shortages = Shortages::new(client.clone(), lookup.index().clone(), capacity.clone());
    let gates = GateLoop::new(executor, args.loop_options(), loop_metrics, leader.clone(), unled, capacity);
    parts.add("loop", gates.run(draining.clone()));

    let limits = Limits { body_memory: args.body_memory, ..Limits::default() }.within(open_files());
    let admission = Admission {
        lookup,
        shortages,
        strict: args.strict,
        kai_pods: args.kai_pods.is_on(),
        pods,
        bodies: Bodies::new(&limits),
        beside: Beside::default(),
        metrics: admission_metrics,
    };
    let drain = Drain { grace: args.drain_grace, ..Drain::default() };
    let listener =
        |socket, tls, app, drain| Listener { socket, tls, app, limits, metrics: server_metrics.clone(), drain };
    println!("serving webhook=https://{} admin=http://{}", webhook.address, admin.address);
    let at_once = Drain { grace: Duration::ZERO, deadline: Duration::from_secs(1) };
    let app = admin::router(readiness.clone(), Arc::new(registry)).merge(page.unwrap_or_default());
    let admin = listener(admin.socket, None, app, at_once);
    parts.add("admin port", run_listener(admin, stop.clone()));
    let webhook = listener(webhook.socket, Some(Arc::new(tls)), admission.router(), drain);
    let serving = tokio::spawn(webhook.run(draining.clone()));

    let outcome = tokio::select! {
        () = termination() => Ok(()),
        part = parts.ended() => Err(ServeError::Ended(part)),
    };
    tracing::info!("stopping");
    readiness.register("serving").set(false, "stopping");
    draining.cancel();
    _ = serving.await;
    stop.cancel();
    parts.finish().await;
    drop(sources);
    outcome
}

/// Starts all watches.
fn sources(args: &ServeArgs, serving: &Serving, client: &kube::Client, index: &SharedIndex) -> Sources {
    let mut sources = Sources::start(client, index, &args.namespaces);
    sources.add_awaited(args.awaited_kinds(), &args.namespaces);
    if serving.others != Others::NotAsked {
        sources.add_others(&args.name);
    }
    sources
}

/// Creates an index with the modes and rule weights, before any object is added.
fn prepared_index(args: &ServeArgs, serving: &Serving, rules: RuleSettings) -> SharedIndex {
    let index = SharedIndex::default();
    index.write(|index| {
        index.allow_scale(args.loop_options().allowed.scale);
        index.serve(serving.clone());
        index.weigh_rules(rules);
    });
    index
}

/// Returns the options of the rules. Findings are weighed later, by the mode of each namespace.
fn options(args: &ServeArgs, rules: RuleSettings) -> Options {
    Options {
        kai_dialect: args.kai_dialect.into(),
        strict_roles: args.strict_roles,
        allowed: args.loop_options().allowed,
        ready_kinds: args.awaited_kinds(),
        rules,
        ..Options::default()
    }
}

fn lease_options(args: &ServeArgs, identity: &str, serving: &Serving) -> LeaseOptions {
    LeaseOptions {
        namespace: args.namespace.clone(),
        name: args.name.clone(),
        identity: identity.to_owned(),
        duration: args.lease_duration,
        told: leader_flags::annotations(serving),
    }
}

/// Logs the mode at the start; a mode other than `enforce` as a warning.
fn tell_mode(args: &ServeArgs, serving: &Serving, rules: RuleSettings) {
    let (mode, rules) = (serving.mode.as_str(), rules.to_string());
    match serving.mode {
        Mode::Enforce => tracing::info!(mode, rules, "objects that break a rule are refused, pods are held"),
        Mode::Warn => {
            tracing::warn!(mode, rules, "objects that break a rule pass with a warning, pods are held");
        }
        Mode::Observe => {
            tracing::warn!(mode, rules, "only a missing right of the author is refused, nothing held or written");
        }
    }
    args.modes.without_effect().into_iter().for_each(|what| tracing::warn!("{what}"));
}

/// Sets the check when every watch has listed.
async fn follow_caches(check: Check, mut synced: watch::Receiver<bool>) {
    check.set(false, "not every watch has listed yet");
    if synced.wait_for(|synced| *synced).await.is_ok() {
        check.set(true, "");
    }
    std::future::pending::<()>().await;
}

/// Creates the status page; `None` when it is off.
fn status_page(args: &ServeArgs, source: Source, stop: &CancellationToken) -> Result<Option<axum::Router>, TokenError> {
    if !args.page.is_on() {
        return Ok(None);
    }
    let access = args.page_token_file.as_deref().map_or(Ok(Access::Loopback), Access::of_file)?;
    Ok(Some(page::router(Feeds::new(source), access, stop.clone())))
}

async fn run_listener(listener: Listener, stop: CancellationToken) {
    listener.run(stop).await;
}

/// Tasks of the server that run until they are told to stop.
#[derive(Default)]
struct Parts(JoinSet<&'static str>);

impl Parts {
    fn add(&mut self, name: &'static str, part: impl Future<Output = ()> + Send + 'static) {
        self.0.spawn(async move {
            part.await;
            name
        });
    }

    /// Waits for the first part that ends by itself, and returns its name.
    async fn ended(&mut self) -> &'static str {
        match self.0.join_next().await {
            Some(Ok(name)) => name,
            Some(Err(_)) => "a part of the server",
            None => std::future::pending().await,
        }
    }

    /// Waits up to a second for every part to end.
    async fn finish(mut self) {
        let all = async { while self.0.join_next().await.is_some() {} };
        _ = tokio::time::timeout(Duration::from_secs(1), all).await;
    }
}

/// Waits for SIGTERM, or SIGINT from a terminal.
async fn termination() {
    let (Ok(mut term), Ok(mut interrupt)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = term.recv() => {}
        _ = interrupt.recv() => {}
    }
}

fn listen(address: SocketAddr) -> Result<Listening, ServeError> {
    Listening::at(address).map_err(|error| ServeError::Listen(address, error))
}
