//! Runs rolegate as a process that serves one namespace.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use rustls::pki_types::ServerName;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdout, Command};
use tokio_rustls::client::TlsStream;

use super::account::account;
use super::control_plane::{ControlPlane, SYSTEM, rolegate_binary, scratch_dir};
use super::group::Group;
use super::http::{self, Caller};
use super::ledger;
use super::pods::GATE;
use super::proxy::Proxy;
use super::request_proxy::RequestProxy;
use super::stage::typed;
use super::wait::{PATIENT, eventually};

/// Creates a command of rolegate without input, on an ASCII terminal.
pub fn rolegate_command(kubeconfig: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(rolegate_binary());
    command.args(arguments).arg("--kubeconfig").arg(kubeconfig).env("LC_ALL", "C");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

/// The end of a command.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Runs a command of rolegate.
pub async fn ran(kubeconfig: &Path, arguments: &[&str]) -> Ran {
    ledger::count("commands");
    let output = rolegate_command(kubeconfig, arguments).output().await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

/// The parameters of a rolegate; it may be started repeatedly.
#[derive(Clone)]
pub struct Launch {
    plane: Arc<ControlPlane>,
    client: Client,
    namespace: String,
    flags: Vec<(String, String)>,
    /// The proxy to the API server, and its CA certificate if it is not the API server's.
    proxy: Option<(SocketAddr, Option<String>)>,
    program: PathBuf,
    /// Address of the Service, if it is not the listen address.
    behind: Option<SocketAddr>,
    /// Further environment variables.
    environment: Vec<(String, OsString)>,
    /// Number of starts: each has a log of its own, which the next run of the test replaces.
    started: Arc<AtomicUsize>,
}

impl Launch {
    /// Creates a launch for one namespace, with a Service as in a cluster.
    pub fn new(plane: Arc<ControlPlane>, client: Client, namespace: &str) -> Self {
        let (reach, listens) = (format!("service/{namespace}"), plane.listens());
        let launch = Self::bare(plane, client, namespace);
        [
            ("listen", listens.as_str()),
            ("admin-listen", listens.as_str()),
            ("reach", reach.as_str()),
            ("webhooks", "all"),
            ("name", namespace),
            ("namespace", SYSTEM),
            ("namespaces", namespace),
            ("drain-grace", "100ms"),
            ("lease-duration", "3s"),
        ]
        .into_iter()
        .fold(launch, |launch, (name, value)| launch.flag(name, value))
    }

    fn bare(plane: Arc<ControlPlane>, client: Client, namespace: &str) -> Self {
        let (namespace, program) = (namespace.to_owned(), rolegate_binary());
        let (flags, environment) = (Vec::new(), Vec::new());
        let started = Arc::default();
        Self { plane, client, namespace, flags, proxy: None, program, behind: None, environment, started }
    }

    /// Creates a launch with the arguments of a Deployment, except the listen addresses. Its account must exist.
    pub fn as_deployed(plane: Arc<ControlPlane>, client: Client, deployment: &Value) -> Self {
        let namespace = deployment["metadata"]["namespace"].as_str().unwrap().to_owned();
        let launch = Self::bare(plane, client, &namespace);
        let arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"].as_array().unwrap();
        let mut arguments = arguments.iter().map(|argument| argument.as_str().unwrap());
        assert_eq!(arguments.next(), Some("serve"));
        let given =
            arguments.map(|argument| argument.trim_start_matches('-').split_once('=').unwrap_or((argument, "")));
        let here = [("listen", "127.0.0.1:0"), ("admin-listen", "127.0.0.1:0"), ("drain-grace", "100ms")];
        given.chain(here).fold(launch, |launch, (name, value)| launch.flag(name, value))
    }

    /// Sets an option.
    pub fn flag(mut self, name: &str, value: &str) -> Self {
        self.flags.retain(|(known, _)| known != name);
        self.flags.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets an option without a value.
    pub fn switch(self, name: &str) -> Self {
        self.flag(name, "")
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    /// Sets another binary.
    pub fn program(mut self, program: impl Into<PathBuf>) -> Self {
        self.program = program.into();
        self
    }

    /// Sets the address of the Service: a proxy that replaces kube-proxy.
    pub fn behind(mut self, service: SocketAddr) -> Self {
        self.behind = Some(service);
        self
    }

    /// Sets a proxy for the API server.
    pub fn through(mut self, proxy: &Proxy) -> Self {
        self.proxy = Some((proxy.address, None));
        self
    }

    /// Sets a proxy for the API server that parses requests.
    pub fn through_requests(mut self, proxy: &RequestProxy) -> Self {
        self.proxy = Some((proxy.address, Some(proxy.ca.clone())));
        self
    }

    /// Returns the kubeconfig of its account, which has exactly the shipped rights.
    pub async fn kubeconfig(&self) -> PathBuf {
        let takes_rights =
            |flag: &str| ["recreate-mis-stamped", "allow", "namespace-selector", "ready-kinds"].contains(&flag);
        let more: Vec<_> = self.flags.iter().filter(|(flag, _)| takes_rights(flag)).map(as_argument).collect();
        let more: Vec<_> = more.iter().map(String::as_str).collect();
        let file = account(&self.plane, &self.client, self.value("name"), &more).await;
        let Some((proxy, ca)) = &self.proxy else { return file };
        let mut direct = std::fs::read_to_string(file).unwrap();
        if let Some(ca) = ca {
            let field = "certificate-authority-data: ";
            let known = direct.lines().find_map(|line| line.trim_start().strip_prefix(field)).unwrap();
            direct = direct.replace(known, &base64::engine::general_purpose::STANDARD.encode(ca));
        }
        let path = self.plane.dir.join(format!("conf/{}-{}.kubeconfig", self.value("name"), proxy.port()));
        std::fs::write(&path, direct.replace(&self.plane.server, &format!("https://{proxy}"))).unwrap();
        path
    }

    fn value(&self, name: &str) -> &str {
        self.flags.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str()).unwrap()
    }

    /// Starts rolegate, and waits until it is ready and the API server calls it.
    pub async fn start(&self) -> Rolegate {
        let rolegate = self.start_unready().await;
        rolegate.until_ready().await;
        if self.value("webhooks") != "off" {
            self.until_asked(&rolegate).await;
        }
        rolegate
    }

    /// Starts rolegate, and waits only until it listens.
    pub async fn start_unready(&self) -> Rolegate {
        let number = self.started.fetch_add(1, Ordering::SeqCst);
        let log = scratch_dir().join(format!("{}-{number}.rolegate.log", self.value("name")));
        self.plane.has_rolegate(&self.namespace, self.value("name"));
        ledger::count("rolegates");
        let flags = self.reached().await;
        let mut process = Command::new(&self.program)
            .arg("serve")
            .arg("--kubeconfig")
            .arg(self.kubeconfig().await)
            .args(flags.iter().map(as_argument))
            .envs(self.environment.clone())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(&log).unwrap())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap()).lines();
        let first = tokio::time::timeout(PATIENT, output.next_line()).await;
        let Ok(Ok(Some(line))) = first else {
            panic!("rolegate did not start:\n{}", std::fs::read_to_string(&log).unwrap());
        };
        let word = |key: &str| line.split_whitespace().find_map(|word| word.strip_prefix(key));
        let address = |key: &str| {
            let listens: SocketAddr = word(key).and_then(|address| address.parse().ok()).expect("an address");
            let everywhere = listens.ip().is_unspecified();
            SocketAddr::new(if everywhere { self.plane.loopback() } else { listens.ip() }, listens.port())
        };
        let (webhook, admin) = (address("webhook=https://"), address("admin=http://"));
        Rolegate { process, _output: output, log, overlooks_refusals: false, webhook, admin }
    }

    /// Returns the options, and creates the Service. Without kube-proxy, the API server uses the ExternalName as the
    /// address, and the port of the webhooks. An ExternalName cannot be an IPv6 address; there the Service has the
    /// address that `rig ipv6-alone` assigns to this machine.
    async fn reached(&self) -> Vec<(String, String)> {
        let given = |name: &str| self.flags.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let service = given("reach").and_then(|reach| reach.strip_prefix("service/"));
        let Some(service) = service.filter(|_| given("webhooks") == Some("all")) else { return self.flags.clone() };
        let listens: SocketAddr = given("listen").unwrap().parse().unwrap();
        let port = match (self.behind, listens.port()) {
            (Some(service), _) => service.port(),
            (None, 0) => free_port_at(listens.ip()),
            (None, port) => port,
        };
        let spec = match self.plane.loopback() {
            IpAddr::V4(loopback) => json!({ "type": "ExternalName", "externalName": loopback }),
            IpAddr::V6(_) => json!({ "clusterIP": IPV6_SERVICE, "ports": [{ "port": port }] }),
        };
        let metadata = json!({ "name": service, "namespace": SYSTEM });
        let object = json!({ "apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec });
        let services: Api<Service> = Api::namespaced(self.client.clone(), SYSTEM);
        services.patch(service, &PatchParams::apply("tests").force(), &Patch::Apply(object)).await.unwrap();
        let launch = self.clone().flag("reach", &format!("service/{service}:{port}"));
        let listens = SocketAddr::new(listens.ip(), port).to_string();
        let launch = if self.behind.is_some() { launch } else { launch.flag("listen", &listens) };
        launch.flags
    }

    /// Returns the name in its certificate.
    fn host(&self) -> ServerName<'static> {
        let service = self.value("reach").strip_prefix("service/").unwrap();
        format!("{service}.{SYSTEM}.svc").try_into().unwrap()
    }

    /// Opens a connection to a rolegate, verified as the API server does.
    pub async fn tls(&self, rolegate: &Rolegate) -> TlsStream<TcpStream> {
        http::tls_to(rolegate.webhook, self.host(), &self.ca_bundle().await).await.unwrap()
    }

    /// Like [`Launch::tls`], for requests.
    pub async fn caller(&self, rolegate: &Rolegate) -> Caller {
        Caller::over(self.tls(rolegate).await, rolegate.webhook).await.unwrap()
    }

    /// Stops the validation of groups for a while: rolegate restores its webhook configurations when it notices.
    pub async fn stop_judging(&self) {
        let validating: Api<ValidatingWebhookConfiguration> = Api::all(self.client.clone());
        validating.delete(self.value("name"), &DeleteParams::default()).await.unwrap();
        eventually(PATIENT, "a wrong group that passes", async || self.try_wrong_group().await).await;
    }

    async fn try_wrong_group(&self) -> Result<DynamicObject, kube::Error> {
        let kind = GroupVersionKind::gvk("workloads.x-k8s.io", "v1alpha1", "RoleBasedGroup");
        let kind = ApiResource::from_gvk(&kind);
        let groups: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), &self.namespace, &kind);
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        groups.create(&dry_run, &typed(Group::new("probe").role("main", 1, 0).object())).await
    }

    /// Returns the CA bundle of the webhook configurations.
    pub async fn ca_bundle(&self) -> Vec<u8> {
        let configs = client_configs(&self.client, self.value("name")).await.unwrap();
        configs.into_iter().next().unwrap().ca_bundle.unwrap().0
    }

    /// Waits until the API server sends pods and groups to it: configurations reach the API server's caches with a
    /// delay.
    async fn until_asked(&self, rolegate: &Rolegate) {
        let address = self.behind.unwrap_or(rolegate.webhook);
        let leads = |config: &WebhookClientConfig| match (&config.service, &config.url) {
            (Some(service), _) => service.port == Some(address.port().into()),
            (None, Some(url)) => url.starts_with(&format!("https://{address}")),
            (None, None) => false,
        };
        eventually(PATIENT, "webhook configurations that lead to us", async || {
            let configs = client_configs(&self.client, self.value("name")).await?;
            let ours = |config: &WebhookClientConfig| config.ca_bundle.is_some() && leads(config);
            if configs.iter().all(ours) { Ok(()) } else { Err(format!("{configs:?}")) }
        })
        .await;
        let probe = Group::new("probe").role("main", 1, 0);
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        let pod: Pod = typed(probe.pod("main", "probe", &self.namespace));
        eventually(PATIENT, "a dry-run pod that is held", async || {
            let pod = pods.create(&dry_run, &pod).await.map_err(|error| error.to_string())?;
            let gates = pod.spec.unwrap_or_default().scheduling_gates.unwrap_or_default();
            if gates.iter().any(|gate| gate.name == GATE) { Ok(()) } else { Err(format!("{gates:?}")) }
        })
        .await;
        eventually(PATIENT, "a wrong group that is refused", async || match self.try_wrong_group().await {
            // 404: groups are not defined (yet).
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 422) => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
    }
}

/// Address of the IPv6 Service for `rig ipv6-alone`, in the range of `rig up --ipv6`.
pub const IPV6_SERVICE: &str = "fd00:10:96::2";

/// Returns a free port below the kernel's ephemeral ports: no other process gets it by chance.
pub fn free_port() -> u16 {
    free_port_at(Ipv4Addr::LOCALHOST.into())
}

fn free_port_at(address: IpAddr) -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = u16::try_from(std::process::id() * 50 % 20_000).unwrap();
    let mut ports = std::iter::repeat_with(|| 10_000 + (first + NEXT.fetch_add(1, Ordering::SeqCst)) % 20_000);
    ports.find(|port| std::net::TcpListener::bind((address, *port)).is_ok()).unwrap()
}

fn as_argument((name, value): &(String, String)) -> String {
    if value.is_empty() { format!("--{name}") } else { format!("--{name}={value}") }
}

/// Returns the client configurations of the webhooks in both configurations of this name.
pub async fn client_configs(client: &Client, name: &str) -> Result<Vec<WebhookClientConfig>, String> {
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let (mutating, validating) = tokio::try_join!(mutating.get(name), validating.get(name))
        .map_err(|error| format!("webhook configurations: {error}"))?;
    let mutating: Vec<_> = mutating.webhooks.into_iter().flatten().map(|webhook| webhook.client_config).collect();
    let validating: Vec<_> = validating.webhooks.into_iter().flatten().map(|webhook| webhook.client_config).collect();
    if mutating.is_empty() || validating.is_empty() {
        Err("no webhooks".to_owned())
    } else {
        Ok([mutating, validating].concat())
    }
}

/// A running rolegate; it ends on drop.
pub struct Rolegate {
    process: Child,
    _output: Lines<BufReader<ChildStdout>>,
    log: PathBuf,
    /// Whether refused requests are expected: an API server that has just started knows no rights for a moment.
    pub overlooks_refusals: bool,
    pub webhook: SocketAddr,
    pub admin: SocketAddr,
}

impl Rolegate {
    pub async fn until_ready(&self) {
        eventually(PATIENT, "/readyz", async || match http::get(self.admin, "/readyz").await {
            Ok((200, _)) => Ok(()),
            other => Err(format!("{other:?}\n{}", self.log())),
        })
        .await;
    }

    pub fn pid(&self) -> u32 {
        self.process.id().expect("it runs")
    }

    pub async fn kill(mut self) {
        ledger::add_process("cpu rolegate", self.pid());
        self.process.kill().await.unwrap();
    }

    /// Sends SIGTERM; returns the exit status and the elapsed time.
    pub async fn terminate(mut self) -> (ExitStatus, Duration) {
        let start = Instant::now();
        self.ask_to_end().await;
        (self.ended().await, start.elapsed())
    }

    /// Waits until it exits, and returns the status.
    pub async fn ended(&mut self) -> ExitStatus {
        tokio::time::timeout(PATIENT, self.process.wait()).await.expect("ends by itself").unwrap()
    }

    pub async fn ask_to_end(&self) {
        self.signal("TERM").await;
    }

    /// Sends a signal, such as `STOP`.
    pub async fn signal(&self, name: &str) {
        let arguments = [format!("-{name}"), self.pid().to_string()];
        assert!(Command::new("kill").args(arguments).status().await.unwrap().success());
    }

    /// Returns the value of a metric, such as `rolegate_leader` or `rolegate_held_pods{reason="GroupMissing"}`; 0
    /// before it exists.
    pub async fn metric(&self, name: &str) -> i64 {
        // The values are integers, some of them written with `.0`.
        self.sample(name).await.map_or(0, |value| value.trim_end_matches(".0").parse().unwrap())
    }

    /// Returns the value of a metric as a float; `None` before it exists.
    pub async fn seconds(&self, name: &str) -> Option<f64> {
        self.sample(name).await.map(|value| value.parse().unwrap())
    }

    async fn sample(&self, name: &str) -> Option<String> {
        let text = self.metrics().await;
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).map(str::to_owned)
    }

    pub async fn metrics(&self) -> String {
        http::get(self.admin, "/metrics").await.unwrap().1
    }

    pub async fn until_metric(&self, name: &str, value: i64) {
        let found = async || {
            let found = self.metric(name).await;
            if found == value { Ok(()) } else { Err(found) }
        };
        eventually(PATIENT, &format!("{name} {value}"), found).await;
    }

    /// Returns the file of its log, which stays when it has ended.
    pub fn log_file(&self) -> PathBuf {
        self.log.clone()
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }
}

impl Drop for Rolegate {
    fn drop(&mut self) {
        if let Some(pid) = self.process.id() {
            ledger::add_process("cpu rolegate", pid);
        }
        let log = self.log();
        if std::thread::panicking() {
            let tail: Vec<_> = log.lines().rev().take(60).collect();
            eprintln!("the end of {}:", self.log.display());
            tail.into_iter().rev().for_each(|line| eprintln!("  {line}"));
        } else if !self.overlooks_refusals {
            let refused = log.lines().find(|line| line.contains("is forbidden: User"));
            assert_eq!(refused, None, "a right is missing: src/cli/rights.rs");
        }
    }
}
