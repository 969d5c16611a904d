//! The real control plane of `tests/controlplane`: etcd, API server, scheduler, controllers and fake nodes.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use super::ledger;
use super::swept::{self, Left};
use super::wait::PATIENT;

/// Namespace of the rolegates' Secrets and Leases.
pub const SYSTEM: &str = "rolegate-system";

/// A control plane that ends when this process does, because it reads a pipe that only this process holds.
pub struct ControlPlane {
    /// Kubeconfig of the administrator.
    pub kubeconfig: PathBuf,
    /// URL of the API server, `https://host:port`.
    pub server: String,
    /// Folder of its files, such as `log/audit.jsonl` with `--audit`.
    pub dir: PathBuf,
    kubectl: Vec<String>,
    rig: Mutex<Rig>,
    /// Names of the rolegates that were started, with the namespace that they serve.
    rolegates: Mutex<BTreeSet<(String, String)>>,
}

struct Rig {
    process: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// A control plane shared by several tests: the first one starts it. It ends when no test uses it and another shared one is
/// started, so that the control plane of a suite does not outlive the suite; a later test starts it again.
pub struct Shared {
    start: fn() -> ControlPlane,
    plane: Mutex<Option<Arc<ControlPlane>>>,
}

impl Shared {
    /// Creates one that is started by the first test that needs it.
    pub const fn new(start: fn() -> ControlPlane) -> Self {
        Self { start, plane: Mutex::new(None) }
    }

    /// Returns the control plane, started if there is none.
    pub fn get(&'static self) -> Arc<ControlPlane> {
        if let Some(plane) = self.lock().as_ref() {
            return plane.clone();
        }
        // Not under the lock: the end of a control plane takes a second.
        drop(Self::unused());
        let mut plane = self.lock();
        if plane.is_none() {
            *plane = Some(Arc::new((self.start)()));
            USED.lock().unwrap().push(self);
        }
        plane.clone().unwrap()
    }

    /// Takes the control planes that no test uses.
    fn unused() -> Vec<Arc<ControlPlane>> {
        let (mut used, mut ended) = (USED.lock().unwrap(), Vec::new());
        used.retain(|shared| {
            // One that is just being started is used.
            let Ok(mut plane) = shared.plane.try_lock() else { return true };
            let unused = plane.as_ref().is_some_and(|plane| Arc::strong_count(plane) == 1);
            if unused {
                ended.extend(plane.take());
            }
            !unused
        });
        ended
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<ControlPlane>>> {
        // Whoever failed to start it has said so.
        self.plane.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The shared control planes that run, but the one that most suites use.
static USED: Mutex<Vec<&'static Shared>> = Mutex::new(Vec::new());
static SHARED: LazyLock<Arc<ControlPlane>> = LazyLock::new(|| Arc::new(ControlPlane::start_with_groups("kwok", &[])));
static STARTED: AtomicUsize = AtomicUsize::new(0);

impl ControlPlane {
    /// Returns the control plane for tests that break nothing of it, with groups defined.
    pub fn shared() -> Arc<Self> {
        SHARED.clone()
    }

    /// Starts a control plane for a test that stops or breaks parts of it, without blocking other tasks of the test.
    pub async fn own(start: impl FnOnce() -> Self + Send + 'static) -> Arc<Self> {
        let test = ledger::test();
        Arc::new(tokio::task::spawn_blocking(|| ledger::on_behalf_of(test, start)).await.unwrap())
    }

    /// Starts a control plane of one's own, with groups defined.
    pub async fn own_with_groups() -> Arc<Self> {
        Self::own(|| Self::start_with_groups("kwok", &[])).await
    }

    /// Starts a control plane without definitions of groups.
    pub fn start() -> Self {
        Self::start_with("kwok", &[])
    }

    /// Starts the minor version before the one that is tried (`ROLEGATE_KUBERNETES_BEFORE`), with groups defined.
    /// `exchange COMPONENT` brings the one that is tried.
    pub async fn to_be_upgraded() -> Arc<Self> {
        let before = std::env::var("ROLEGATE_KUBERNETES_BEFORE").expect("`make versions` names the version before");
        let next = kubernetes().map(|version| format!("--next={}", programs(&version).display()));
        let more = [vec![format!("--programs={}", programs(&before).display())], next.into_iter().collect()].concat();
        Self::own(move || Self::start_with_groups("kwok", &more.iter().map(String::as_str).collect::<Vec<_>>())).await
    }

    /// Starts a control plane that emulates a minor version, as far as API server, scheduler and controllers support
    /// it.
    pub fn emulating(version: &str) -> Self {
        let flag = |component: &str| [format!("--{component}-flag"), format!("emulated-version={version}")];
        let flags: Vec<_> = ["apiserver", "scheduler", "controller-manager"].into_iter().flat_map(flag).collect();
        Self::start_with("kwok", &flags.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Starts a control plane with definitions of groups, extras and further arguments.
    pub fn start_with_groups(extras: &str, more: &[&str]) -> Self {
        let plane = Self::start_with(extras, more);
        plane.define_groups();
        plane
    }

    /// Starts a control plane with extras, such as `kwok,lws`, and further arguments, such as `--audit`.
    pub fn start_with(extras: &str, more: &[&str]) -> Self {
        ledger::count("planes");
        let rig = rig_binary();
        let number = STARTED.fetch_add(1, Ordering::SeqCst);
        let dir = scratch_dir().join(format!("controlplane-{}-{number}", std::process::id()));
        let log = dir.with_extension("log");
        let mut process = Command::new(&rig)
            .args(["up", "--with", extras, "--until-stdin-closes", "--dir"])
            .arg(&dir)
            .args(kubernetes().map(|version| format!("--programs={}", programs(&version).display())))
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", rig.display()));
        let commands = process.stdin.take().unwrap();
        let mut answers = BufReader::new(process.stdout.take().unwrap());
        let file = loop {
            let mut line = String::new();
            let read = answers.read_line(&mut line).unwrap();
            assert!(read > 0, "the control plane did not start:\n{}", std::fs::read_to_string(&log).unwrap());
            if let Some(file) = line.trim().strip_prefix("ready ") {
                break PathBuf::from(file);
            }
        };
        let cluster: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        let plane = Self {
            kubeconfig: text(&cluster["kubeconfig"]).into(),
            server: text(&cluster["server"]),
            dir,
            kubectl: cluster["kubectl"].as_array().unwrap().iter().map(text).collect(),
            rig: Mutex::new(Rig { process, commands, answers }),
            rolegates: Mutex::default(),
        };
        plane.must(&["create", "namespace", SYSTEM], "");
        plane
    }

    /// Installs the definitions of `rolegate manifests`, including those of groups.
    pub fn define_groups(&self) {
        let arguments = ["manifests", "--part", "crds,optional-crds"];
        let crds = Command::new(rolegate_binary()).args(arguments).output().unwrap().stdout;
        self.must(&["apply", "--server-side", "-f", "-"], &String::from_utf8(crds).unwrap());
        self.until_defined();
    }

    /// Waits until all definitions are served. kubectl fails for a definition without conditions, so it is retried.
    pub fn until_defined(&self) {
        let (began, wait) = (Instant::now(), ["wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"]);
        loop {
            let output = self.kubectl(&wait, "");
            if output.status.success() {
                return;
            }
            assert!(began.elapsed() < PATIENT, "definitions: {}", String::from_utf8_lossy(&output.stderr));
        }
    }

    /// Notes that a rolegate of this name serves a namespace.
    pub fn has_rolegate(&self, namespace: &str, name: &str) {
        self.rolegates.lock().unwrap().insert((namespace.to_owned(), name.to_owned()));
    }

    /// Has the objects of a test that has ended deleted.
    pub fn forget(self: &Arc<Self>, namespace: &str) {
        // One that only this test used ends with it.
        if Arc::strong_count(self) > 1 {
            let known = self.rolegates.lock().unwrap();
            let rolegates = known.iter().filter(|(of, _)| of == namespace).map(|(_, name)| name.clone()).collect();
            swept::later(Left { kubeconfig: self.kubeconfig.clone(), namespace: namespace.to_owned(), rolegates });
        }
    }

    /// Returns the loopback address of all components.
    pub fn loopback(&self) -> IpAddr {
        let host = self.server.trim_start_matches("https://").rsplit_once(':').unwrap().0;
        host.trim_matches(['[', ']']).parse().unwrap()
    }

    /// Returns the listen address for a rolegate, with a free port: this address only; on IPv6 all addresses, as in a
    /// deployment.
    pub fn listens(&self) -> String {
        if self.loopback().is_ipv6() { "[::]:0".to_owned() } else { format!("{}:0", self.loopback()) }
    }

    /// Returns a client of the administrator. Each runtime needs its own.
    pub async fn client(&self) -> Client {
        client_of(&self.kubeconfig).await
    }

    /// Runs kubectl with this standard input.
    pub fn kubectl(&self, arguments: &[&str], stdin: &str) -> Output {
        ledger::count("kubectl");
        let (program, first) = self.kubectl.split_first().unwrap();
        let mut process = Command::new(program)
            .args(first)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        process.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
        process.wait_with_output().unwrap()
    }

    /// Runs kubectl, which must succeed, and returns its output.
    pub fn must(&self, arguments: &[&str], stdin: &str) -> String {
        let output = self.kubectl(arguments, stdin);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {arguments:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs `start`, `stop`, `kill`, `restart`, `pause` or `resume` for a component; returns when it has taken effect.
    /// Other tasks continue meanwhile.
    pub async fn command(self: &Arc<Self>, verb: &str, component: &str) {
        let (plane, line) = (self.clone(), format!("{verb} {component}"));
        let carry_out = move || {
            let mut rig = plane.rig.lock().unwrap();
            writeln!(rig.commands, "{line}").unwrap();
            let mut answer = String::new();
            rig.answers.read_line(&mut answer).unwrap();
            assert_eq!(answer.trim(), format!("ok {line}"));
        };
        tokio::task::spawn_blocking(carry_out).await.unwrap();
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        let Ok(rig) = self.rig.get_mut() else { return };
        // The rig also stops at the end of its input, but waiting for it makes sure that its files are removed.
        _ = Command::new("kill").arg(rig.process.id().to_string()).status();
        _ = rig.process.wait();
    }
}

/// Returns a client for a kubeconfig.
pub async fn client_of(kubeconfig: &Path) -> Client {
    Client::try_from(config_of(kubeconfig).await).unwrap()
}

/// Returns the configuration of a kubeconfig.
pub async fn config_of(kubeconfig: &Path) -> Config {
    let file = Kubeconfig::read_from(kubeconfig).unwrap();
    Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap()
}

/// Returns the folder of logs and control planes.
pub fn scratch_dir() -> PathBuf {
    option_env!("CARGO_TARGET_TMPDIR").map_or_else(std::env::temp_dir, PathBuf::from)
}

/// Returns the binary under test: built by cargo for a suite, beside the program for an example.
pub fn rolegate_binary() -> PathBuf {
    let built = option_env!("CARGO_BIN_EXE_rolegate").map(PathBuf::from);
    built.unwrap_or_else(|| std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("rolegate"))
}

/// Returns the control plane's binary, built if missing; `ROLEGATE_RIG` names another.
pub fn rig_binary() -> PathBuf {
    if let Some(rig) = std::env::var_os("ROLEGATE_RIG") {
        return rig.into();
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let rig = root.join("target/controlplane/bin/rig");
    if !rig.exists() {
        let built = Command::new(root.join("tests/controlplane/build.sh")).arg("rig").status().unwrap();
        assert!(built.success(), "the control plane could not be built");
    }
    rig
}

/// The version of rig's own Kubernetes.
pub const NEWEST: &str = "1.37";

/// The versions that it emulates: by the rules of Kubernetes the three before its own.
pub const EMULATED: [&str; 3] = ["1.34", "1.35", "1.36"];

/// Returns the version of Kubernetes that runs in place of rig's own, as 1.33: `make versions` names it.
pub fn kubernetes() -> Option<String> {
    std::env::var("ROLEGATE_KUBERNETES").ok()
}

/// Returns the programs of another version, which `build.sh versions/VERSION` builds.
pub fn programs(version: &str) -> PathBuf {
    rig_binary().with_file_name("versions").join(version)
}

/// Returns a program of `tests/controlplane/tools`, built if missing.
pub fn tool(name: &str) -> PathBuf {
    let tool = rig_binary().with_file_name(name);
    if !tool.exists() {
        let build = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/controlplane/build.sh");
        let target = if name == "helm" { "tools" } else { name };
        assert!(Command::new(build).arg(target).status().unwrap().success(), "{name} could not be built");
    }
    tool
}
