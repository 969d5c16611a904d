//! What a page is run on.

use crate::common::prelude::*;
use crate::install::support::Installation;
use crate::rules::definitions;

/// The namespace of pages: that of a new kubeconfig.
const NAMESPACE: &str = "default";
/// Between two looks at a Deployment.
const LOOK: Duration = Duration::from_millis(200);

/// Kinds of other projects, as the tests define them.
pub type Definitions = fn() -> Vec<Value>;

/// As KAI v0.15 has PodGroups.
pub const KAI: Definitions = || vec![definitions::upstream_pod_groups()];
/// PodGroups of coscheduling, loosely.
pub const COSCHEDULING: Definitions =
    || vec![definitions::loose("scheduling.x-k8s.io", "PodGroup", "podgroups", &[("v1alpha1", true, &[])])];
/// Grove's sets, loosely.
pub const GROVE: Definitions =
    || vec![definitions::loose("grove.io", "PodCliqueSet", "podcliquesets", &[("v1alpha1", true, &[])])];

/// A cluster to come.
#[derive(Clone, Copy)]
pub struct Cluster {
    extras: &'static str,
    definitions: Definitions,
    served: bool,
    /// What the rolegate that serves may do beyond gates.
    allowed: Option<&'static str>,
    /// The kinds whose objects `readyWhen` may name there.
    watched: Option<&'static str>,
    /// The API server keeps an audit log.
    audited: bool,
}

impl Cluster {
    /// One without rolegate, which the page installs.
    pub fn empty() -> Self {
        Self { extras: "kwok", definitions: Vec::new, served: false, allowed: None, watched: None, audited: false }
    }

    /// One in which rolegate serves from the beginning, and groups are defined.
    pub fn served() -> Self {
        Self { served: true, ..Self::empty() }
    }

    /// With these extras of the control plane, as `kwok,lws`.
    pub fn with(self, extras: &'static str) -> Self {
        Self { extras, ..self }
    }

    /// Where rolegate may do this as well.
    pub fn allowing(self, allowed: &'static str) -> Self {
        Self { allowed: Some(allowed), ..self }
    }

    /// Where `readyWhen` may name objects of these kinds.
    pub fn watching(self, kinds: &'static str) -> Self {
        Self { watched: Some(kinds), ..self }
    }

    /// With an audit log, which the page finds by `$AUDIT_LOG`.
    pub fn audited(self) -> Self {
        Self { audited: true, ..self }
    }

    /// With these kinds as well.
    pub fn defining(self, definitions: Definitions) -> Self {
        Self { definitions, ..self }
    }

    /// Starts it.
    pub async fn start(self) -> Running {
        let plane = ControlPlane::own(move || {
            let more: &[&str] = if self.audited { &["--audit"] } else { &[] };
            let plane = ControlPlane::start_with(self.extras, more);
            if self.served {
                plane.define_groups();
            }
            let more = (self.definitions)();
            if !more.is_empty() {
                definitions::install(&plane, &more);
            }
            plane
        })
        .await;
        let stage = Stage::within(plane, NAMESPACE).await;
        let mut running = Running { stage, rolegate: None, installed: None, installs: !self.served };
        if self.served {
            let launch = running.stage.launch().flag("name", "rolegate");
            let flags = [("allow", self.allowed), ("ready-kinds", self.watched)];
            let flags = flags.into_iter().filter_map(|(name, value)| Some((name, value?)));
            let launch = flags.fold(launch, |launch, (name, value)| launch.flag(name, value));
            running.rolegate = Some(launch.start().await);
        }
        running
    }
}

/// A cluster that is there.
pub struct Running {
    stage: Stage,
    rolegate: Option<Rolegate>,
    /// The way from the API server to what the page installed.
    installed: Option<Installation>,
    /// The page installs rolegate, and takes it out.
    installs: bool,
}

impl Running {
    /// Of the administrator.
    pub fn kubeconfig(&self) -> PathBuf {
        self.stage.plane.kubeconfig.clone()
    }

    /// Where the API server's audit log is, if it keeps one.
    pub fn audit_log(&self) -> PathBuf {
        self.stage.plane.dir.join("log/audit.jsonl")
    }

    async fn is_installed(&self) -> bool {
        let deployments: Api<Deployment> = Api::namespaced(self.stage.client.clone(), SYSTEM);
        deployments.get_opt("rolegate").await.unwrap().is_some()
    }

    /// In the place of a kubelet: starts what a Deployment of rolegate asks for, when there is one that does not run, and
    /// returns when the API server reaches it.
    pub async fn settle(&mut self) {
        if self.installs && self.rolegate.is_none() && self.is_installed().await {
            let installed = Installation::of(self.stage.plane.clone()).await;
            self.rolegate = Some(installed.serve(&self.stage).await);
            self.installed = Some(installed);
        }
    }

    /// In the place of a kubelet: ends what runs when its Deployment is gone. It never returns.
    pub async fn tend(&mut self) {
        loop {
            tokio::time::sleep(LOOK).await;
            if self.installs && self.rolegate.is_some() && !self.is_installed().await {
                self.rolegate.take().unwrap().terminate().await;
            }
        }
    }

    /// Waits until nothing is left of what a page made.
    pub async fn until_clean(&self) {
        let plane = &self.stage.plane;
        let ours = plane.must(&["get", "crd", "-o", "name"], "");
        let ours = ours.lines().filter_map(|name| name.strip_prefix("customresourcedefinition.apiextensions.k8s.io/"));
        let kinds: Vec<_> = ["pods", "statefulsets", "deployments", "services"].into_iter().chain(ours).collect();
        eventually(PATIENT, "nothing is left of what the page made", async || {
            let left = plane.must(&["-n", NAMESPACE, "get", &kinds.join(","), "-o", "name"], "");
            let left: Vec<_> = left.lines().filter(|name| *name != "service/kubernetes").collect();
            if left.is_empty() { Ok(()) } else { Err(left.join("\n")) }
        })
        .await;
    }
}
