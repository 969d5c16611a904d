//! Runs the control plane and rolegate as child processes, in a folder that is removed at the end.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use k8s_openapi::api::core::v1::{Node, NodeCondition};
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::wait::await_condition;
use kube::{Api, Client};
use serde_json::json;

/// Path of the control plane's program, relative to the project.
const RIG: &str = "target/controlplane/bin/rig";

/// The definition of RoleBasedGroup, which its operator normally installs.
const ROLE_BASED_GROUPS: &str = "deploy/optional/rolebasedgroups.workloads.x-k8s.io.yaml";

/// The error of the demo.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// A program could not be started, or failed.
    #[error("{program}: {why}")]
    Program {
        program: String,
        /// Its message, or why it could not be started.
        why: String,
    },
    /// A request to the API server failed.
    #[error("API server: {0}")]
    Kube(#[from] kube::Error),
    #[error("watch: {0}")]
    Watch(String),
    /// An expected event was not observed.
    #[error("not observed: {0}")]
    NotObserved(String),
}

fn failed(program: &str, why: &impl ToString) -> StageError {
    StageError::Program { program: program.to_owned(), why: why.to_string() }
}

/// How a child is stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// By closing its standard input.
    Input,
    Signal,
}

/// A child that prints a line when it is ready, and does not outlive the demo.
struct Process {
    child: Child,
    end: End,
}

impl Process {
    /// Starts the process; returns its line that begins with `ready`.
    fn start(command: &mut Command, ready: &str, end: End) -> Result<(Self, String), StageError> {
        let program = command.get_program().to_string_lossy().into_owned();
        let child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(|error| failed(&program, &error))?;
        let mut process = Self { child, end };
        let mut lines =
            process.child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines().map_while(Result::ok));
        let line = lines.find(|line| line.starts_with(ready));
        Ok((process, line.ok_or_else(|| failed(&program, &"ended before it was ready"))?))
    }

    /// Stops the process and waits; returns whether it succeeded.
    fn stop(&mut self) -> bool {
        drop(self.child.stdin.take());
        if self.end == End::Signal {
            _ = Command::new("kill").arg(self.child.id().to_string()).stderr(Stdio::null()).status();
        }
        self.child.wait().is_ok_and(|status| status.success())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            self.stop();
        }
    }
}

/// A folder that is removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn make() -> Result<Self, StageError> {
        let path = std::env::temp_dir().join(format!("rolegate-demo-{}", std::process::id()));
        std::fs::create_dir(&path)
            .map_err(|error| failed("temporary folder", &format!("{}: {error}", path.display())))?;
        Ok(Self(path))
    }

    fn remove(&self) -> std::io::Result<()> {
        std::fs::remove_dir_all(&self.0)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // After a successful run, the folder is removed already.
        _ = self.remove();
    }
}

/// The running processes. Fields are dropped in order: rolegate first, the folder last.
pub struct Stage {
    pub client: Client,
    rolegate: Process,
    control_plane: Process,
    kubeconfig: PathBuf,
    folder: Folder,
}

impl Stage {
    /// Starts the control plane and rolegate.
    pub async fn build() -> Result<Self, StageError> {
        let folder = Folder::make()?;
        let data = folder.0.join("cluster");
        let mut rig = Command::new(RIG);
        rig.args(["up", "--until-stdin-closes", "--with", "kwok", "--dir"]).arg(&data);
        let (control_plane, _) = Process::start(&mut rig, "ready", End::Input)?;
        let kubeconfig = data.join("kubeconfig");
        let client = client(&kubeconfig).await?;
        run_kubectl(&kubeconfig, &["create", "namespace", "rolegate-system"])?;
        // Services have no endpoints here: the API server uses the external name as the address.
        let service = ["create", "service", "externalname", "rolegate", "--external-name=127.0.0.1"];
        run_kubectl(&kubeconfig, &[&service[..], &["--namespace=rolegate-system"]].concat())?;
        for definitions in ["deploy/crds/rolecoordinations.rolegate.dev.yaml", ROLE_BASED_GROUPS] {
            run_kubectl(&kubeconfig, &["apply", "--server-side", "-f", definitions])?;
        }
        let rolegate = start_rolegate(&kubeconfig, &folder.0.join("rolegate.log"))?;
        let stage = Self { client, rolegate, control_plane, kubeconfig, folder };
        // Pods created before the webhook is registered would not be held.
        stage.until_registered()?;
        Ok(stage)
    }

    /// Waits for the webhook configurations: the API server calls the webhook as soon as they exist.
    fn until_registered(&self) -> Result<(), StageError> {
        for kind in ["validatingwebhookconfiguration", "mutatingwebhookconfiguration"] {
            let arguments = ["wait", "--for=create", "--timeout=30s", kind, "rolegate"];
            let (success, said) = run_kubectl(&self.kubeconfig, &arguments)?;
            if !success {
                return Err(failed("rolegate serve", &said));
            }
        }
        Ok(())
    }

    /// Adds fake nodes with room for ten pods each.
    pub async fn nodes(&mut self, numbers: Range<usize>) -> Result<(), StageError> {
        for number in numbers {
            self.node(&format!("node-{number}"), &[], "64", 10).await?;
        }
        Ok(())
    }

    /// Adds a fake node with these labels, CPUs and room for pods.
    pub async fn node(
        &mut self,
        name: &str,
        labels: &[(&str, &str)],
        cpu: &str,
        pods: usize,
    ) -> Result<(), StageError> {
        let labels: BTreeMap<_, _> = labels.iter().copied().collect();
        let room = json!({"cpu": cpu, "memory": "256Gi", "pods": pods.to_string()});
        let node = json!({
            "metadata": {"name": name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}},
            "status": {"allocatable": room, "capacity": room},
        });
        let node = serde_json::from_value(node).map_err(|error| failed("node", &error))?;
        Api::<Node>::all(self.client.clone()).create(&PostParams::default(), &node).await?;
        Ok(())
    }

    /// Waits until a node is ready and has no taints.
    pub async fn until_takes_pods(&self, name: &str) -> Result<(), StageError> {
        let takes_pods = |node: Option<&Node>| {
            let conditions = node.and_then(|node| node.status.as_ref()).and_then(|status| status.conditions.as_ref());
            let is_ready = |condition: &NodeCondition| condition.type_ == "Ready" && condition.status == "True";
            let taints = node.and_then(|node| node.spec.as_ref()).and_then(|spec| spec.taints.as_ref());
            conditions.into_iter().flatten().any(is_ready) && taints.is_none_or(Vec::is_empty)
        };
        let waited = await_condition(Api::<Node>::all(self.client.clone()), name, takes_pods).await;
        waited.map(drop).map_err(|error| StageError::Watch(error.to_string()))
    }

    /// Runs kubectl; returns its output.
    pub fn kubectl(&self, arguments: &[&str]) -> Result<String, StageError> {
        let (success, said) = self.shown_kubectl(arguments)?;
        if success { Ok(said) } else { Err(failed("kubectl", &said)) }
    }

    /// Runs kubectl, which must fail; returns its message.
    pub fn refused(&self, arguments: &[&str]) -> Result<String, StageError> {
        let (success, said) = self.shown_kubectl(arguments)?;
        if success { Err(StageError::NotObserved("kubectl should have been refused".to_owned())) } else { Ok(said) }
    }

    fn shown_kubectl(&self, arguments: &[&str]) -> Result<(bool, String), StageError> {
        println!("   $ kubectl {}", arguments.join(" "));
        run_kubectl(&self.kubeconfig, arguments)
    }

    /// Stops the processes; they must exit successfully.
    pub fn strike(mut self) -> Result<(), StageError> {
        for (name, process) in [("rolegate serve", &mut self.rolegate), (RIG, &mut self.control_plane)] {
            if !process.stop() {
                return Err(failed(name, &"did not end well"));
            }
        }
        self.folder.remove().map_err(|error| failed("temporary folder", &error))
    }
}

fn start_rolegate(kubeconfig: &Path, log: &Path) -> Result<Process, StageError> {
    let own = std::env::current_exe().map_err(|error| failed("demo", &error))?;
    // Cargo builds both into the same folder.
    let binary = own.with_file_name("rolegate");
    let log = std::fs::File::create(log).map_err(|error| failed("log", &error))?;
    let mut rolegate = Command::new(binary);
    let port = free_port()?;
    rolegate.args(["serve", &format!("--listen=127.0.0.1:{port}"), "--admin-listen", "127.0.0.1:0"]);
    rolegate.arg(format!("--reach=service/rolegate:{port}"));
    rolegate.args(["--webhooks", "all", "--drain-grace", "100ms"]);
    rolegate.args(["--allow", "scale,recovery", "--kubeconfig"]).arg(kubeconfig).stderr(log);
    Ok(Process::start(&mut rolegate, "serving", End::Signal)?.0)
}

/// Returns a free port below the kernel's ephemeral ports: no other process gets it by chance.
fn free_port() -> Result<u16, StageError> {
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    (20_000..30_000).find(is_free).ok_or_else(|| failed("port", &"none is free"))
}

fn run_kubectl(kubeconfig: &Path, arguments: &[&str]) -> Result<(bool, String), StageError> {
    let mut command = Command::new(RIG);
    command.args(["kubectl", "--kubeconfig"]).arg(kubeconfig).args(arguments);
    let output = command.output().map_err(|error| failed("kubectl", &error))?;
    let said = [output.stdout, output.stderr].concat();
    let said: Vec<_> = String::from_utf8_lossy(&said).trim_end().lines().map(|line| ["   ", line].concat()).collect();
    Ok((output.status.success(), said.join("\n")))
}

async fn client(kubeconfig: &Path) -> Result<Client, StageError> {
    let file = Kubeconfig::read_from(kubeconfig).map_err(|error| failed("kubeconfig", &error))?;
    let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
    Ok(Client::try_from(config.map_err(|error| failed("kubeconfig", &error))?)?)
}
