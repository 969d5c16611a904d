//! A stand-in for cluster-autoscaler, whose modules are not published: it answers ProvisioningRequests as its source does
//! (kubernetes-sigs/cluster-autoscaler at 33c3f97b, in `pkg`: `processors/provreq/injector.go` and `processor.go`,
//! `provisioningrequest/besteffortatomic` and `checkcapacity`, `provisioningrequest/conditions/conditions.go`). The definition
//! is the real one, of the newest of its modules that is published.
//!
//! Its node groups are the racks: a scale-up is in one of them, as there.

use std::process::Command;
use std::sync::Mutex;

use k8s_openapi::api::core::v1::PodTemplate;
use tokio_util::task::AbortOnDropHandle;

use crate::common::control_plane::rig_binary;
use crate::common::prelude::*;
use crate::policies::cluster::define;

/// Key of its node groups.
const RACK: &str = "example.com/rack";
/// The annotation of pods by which a booking is counted as consumed.
pub const CONSUMES: &str = "autoscaling.x-k8s.io/consume-provisioning-request";
/// That of their class.
pub const CLASS: &str = "autoscaling.x-k8s.io/provisioning-class-name";
/// All pods get nodes, or none does; the nodes come later than the word.
pub const ATOMIC: &str = "best-effort-atomic-scale-up.autoscaling.x-k8s.io";
/// It says whether there is room, and makes none.
pub const CHECK: &str = "check-capacity.autoscaling.x-k8s.io";
/// Between two turns; there it is ten seconds, or less after a request.
const TURN: Duration = Duration::from_millis(100);

/// Defines ProvisioningRequests.
pub fn define_requests(plane: &ControlPlane) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/controlplane/build.sh");
    let built = Command::new(script).arg("neighbours/cluster-autoscaler").status().unwrap();
    assert!(built.success(), "the definition could not be had");
    let crds = rig_binary().with_file_name("neighbours/cluster-autoscaler/crds");
    let file = crds.join("autoscaling.x-k8s.io_provisioningrequests.yaml");
    define(plane, &std::fs::read_to_string(file).unwrap());
}

/// What it can, and what befalls it.
#[derive(Clone, Debug)]
pub struct Cloud {
    /// Racks, each with the most nodes that it can have.
    pub racks: Vec<(&'static str, u32)>,
    /// Pods of a node.
    pub room: u32,
    /// From Provisioned to the nodes.
    pub late: Duration,
    /// Nodes of each scale-up that never come.
    pub lost: u32,
    /// It finds no capacity.
    pub refuses: bool,
    /// How long capacity is booked for a request; there it is ten minutes.
    pub booking: Duration,
    /// It takes back what it has promised, as classes of clouds do (`CapacityRevoked` is not set by its own source).
    pub revokes: bool,
    /// Before a request that it did not find capacity for is tried again; there it is a minute, and doubles.
    pub retry: Duration,
    /// After which a node without pods and booking goes; there it is ten minutes.
    pub idle: Duration,
}

impl Default for Cloud {
    fn default() -> Self {
        Self {
            racks: Vec::new(),
            room: 5,
            late: Duration::from_millis(500),
            lost: 0,
            refuses: false,
            booking: Duration::from_secs(600),
            revokes: false,
            retry: Duration::from_millis(500),
            idle: Duration::from_secs(2),
        }
    }
}

/// A running one for the requests of a namespace; it ends with this handle.
pub struct ClusterAutoscaler {
    cloud: Arc<Mutex<Cloud>>,
    said: Arc<Mutex<Vec<String>>>,
    _task: AbortOnDropHandle<()>,
}

impl ClusterAutoscaler {
    pub fn start(stage: &Stage, cloud: Cloud) -> Self {
        let cloud = Arc::new(Mutex::new(cloud));
        let said = Arc::new(Mutex::new(Vec::new()));
        let world = World {
            requests: requests(stage),
            templates: stage.api(),
            pods: stage.api(),
            nodes: Api::all(stage.client.clone()),
            stage: stage.namespace.clone(),
            cloud: cloud.clone(),
            said: said.clone(),
            coming: Vec::new(),
            empty_since: BTreeMap::new(),
            made: 0,
        };
        Self { cloud, said, _task: AbortOnDropHandle::new(tokio::spawn(world.run())) }
    }

    /// Something happens in its cloud.
    pub fn now(&self, change: impl FnOnce(&mut Cloud)) {
        change(&mut self.cloud.lock().unwrap());
    }

    /// What it has said so far, in order: `REQUEST CONDITION=STATUS/REASON`.
    pub fn said(&self) -> Vec<String> {
        self.said.lock().unwrap().clone()
    }

    /// Waits until it has said this of a request.
    pub async fn until_said(&self, words: &str) {
        until_found(words, async || self.said(), |said| said.iter().any(|line| line.ends_with(words))).await;
    }
}

/// The requests of a namespace.
pub fn requests(stage: &Stage) -> Api<DynamicObject> {
    stage.objects("autoscaling.x-k8s.io", "v1", "ProvisioningRequest")
}

/// What a request asks for.
struct Asked {
    pods: u32,
    /// Whether all must be in one rack.
    together: bool,
    /// Racks in which they may be.
    racks: Vec<(&'static str, u32)>,
}

struct World {
    requests: Api<DynamicObject>,
    templates: Api<PodTemplate>,
    pods: Api<ApiPod>,
    nodes: Api<Node>,
    stage: String,
    cloud: Arc<Mutex<Cloud>>,
    said: Arc<Mutex<Vec<String>>>,
    /// Nodes that were asked for: when each comes, and its rack.
    coming: Vec<(Instant, String)>,
    empty_since: BTreeMap<String, Instant>,
    made: u32,
}

type Turn<T> = Result<T, kube::Error>;

impl World {
    async fn run(mut self) {
        let mut turns = tokio::time::interval(TURN);
        loop {
            turns.tick().await;
            // What fails is done in the next turn, as there.
            _ = self.turn().await;
        }
    }

    async fn turn(&mut self) -> Turn<()> {
        let cloud = self.cloud.lock().unwrap().clone();
        self.make_nodes(&cloud).await?;
        let all = self.requests.list(&ListParams::default()).await?.items;
        let mut booked = false;
        for request in &all {
            booked |= self.look_at(request, &cloud).await?;
        }
        self.scale_down(&cloud, booked).await
    }

    /// Nodes whose time has come.
    async fn make_nodes(&mut self, cloud: &Cloud) -> Turn<()> {
        while let Some(at) = self.coming.iter().position(|(when, _)| *when <= Instant::now()) {
            let (_, rack) = self.coming.swap_remove(at);
            self.made += 1;
            let mut node = node(&format!("{}-{rack}-{}", self.stage, self.made), cloud.room, &self.stage);
            node["metadata"]["labels"][RACK] = json!(label(&self.stage, &rack));
            self.nodes.create(&PostParams::default(), &typed(node)).await?;
        }
        Ok(())
    }

    /// Returns whether capacity is booked for it.
    async fn look_at(&mut self, request: &DynamicObject, cloud: &Cloud) -> Turn<bool> {
        let class = request.data["spec"]["provisioningClassName"].as_str().unwrap();
        let is = |kind: &str| condition(request, kind).is_some_and(|(status, _)| status == "True");
        if ![ATOMIC, CHECK].contains(&class) || is("Failed") || is("BookingExpired") {
            return Ok(false);
        }
        if let Some((status, since)) = condition(request, "Provisioned") {
            if status == "True" {
                return self.keep_booking(request, cloud, since).await;
            }
            if since < cloud.retry {
                return Ok(false);
            }
        }
        let asked = match self.asked(request, cloud).await? {
            Ok(asked) => asked,
            Err(missing) => {
                let message = format!("podTemplate {missing:?} not found");
                self.say(request, "Failed", "True", "FailedToCreatePods", &message).await?;
                return Ok(false);
            }
        };
        let accepted = "ProvisioningRequest is accepted by ClusterAutoscaler";
        self.say(request, "Accepted", "True", "Accepted", accepted).await?;
        let found = "Capacity is found in the cluster";
        let (rooms, nodes) = self.free(&asked, cloud).await?;
        let fits =
            if asked.together { rooms.values().any(|free| *free >= asked.pods) } else { total(&rooms) >= asked.pods };
        if fits && !cloud.refuses {
            self.say(request, "Provisioned", "True", "CapacityIsFound", found).await?;
            return Ok(true);
        }
        let growing = asked.racks.iter().find_map(|(rack, most)| {
            let free = if asked.together { rooms[*rack] } else { total(&rooms) };
            let needed = asked.pods.saturating_sub(free).div_ceil(cloud.room);
            (nodes[*rack] + needed <= *most).then(|| ((*rack).to_owned(), needed))
        });
        let Some((rack, needed)) = growing.filter(|_| class == ATOMIC && !cloud.refuses) else {
            let later = "Capacity is not found, CA will try to find it later.";
            self.say(request, "Provisioned", "False", "CapacityIsNotFound", later).await?;
            return Ok(false);
        };
        let when = Instant::now() + cloud.late;
        self.coming.extend((cloud.lost..needed).map(|_| (when, rack.clone())));
        self.say(request, "Provisioned", "True", "CapacityIsProvisioned", found).await?;
        Ok(true)
    }

    /// A booking ends when its pods have nodes, when its time is over, or when it is taken back.
    async fn keep_booking(&self, request: &DynamicObject, cloud: &Cloud, since: Duration) -> Turn<bool> {
        let (name, wanted) = (request.metadata.name.as_deref(), count(request));
        let consumes = |pod: &ApiPod| {
            let annotations = pod.metadata.annotations.as_ref();
            let named = annotations.and_then(|all| all.get(CONSUMES));
            named.map(String::as_str) == name && pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some())
        };
        let pods = self.pods.list(&ListParams::default()).await?.items;
        let ended = if pods.iter().filter(|pod| consumes(pod)).count() >= wanted as usize {
            Some(("BookingExpired", "CapacityBookingConsumed", "Capacity booking consumed: all pods scheduled"))
        } else if since > cloud.booking {
            Some(("BookingExpired", "CapacityReservationTimeExpired", "Capacity reservation time is expired"))
        } else if cloud.revokes && condition(request, "CapacityRevoked").is_none() {
            Some(("CapacityRevoked", "CapacityRevoked", "Capacity is no longer there"))
        } else {
            None
        };
        match ended {
            Some((kind, reason, message)) => self.say(request, kind, "True", reason, message).await.map(|()| false),
            None => Ok(condition(request, "CapacityRevoked").is_none()),
        }
    }

    /// Nodes without pods go, unless they are booked.
    async fn scale_down(&mut self, cloud: &Cloud, booked: bool) -> Turn<()> {
        let pods = self.pods.list(&ListParams::default()).await?.items;
        let used: BTreeSet<_> = pods.into_iter().filter_map(|pod| pod.spec?.node_name).collect();
        let nodes = self.own_nodes().await?;
        let empty = nodes.into_iter().map(|(name, _)| name).filter(|name| !booked && !used.contains(name));
        let since = |name: String| {
            let since = self.empty_since.get(&name).copied().unwrap_or_else(Instant::now);
            (name, since)
        };
        self.empty_since = empty.map(since).collect();
        for name in self.empty_since.iter().filter(|(_, since)| since.elapsed() > cloud.idle).map(|(name, _)| name) {
            self.nodes.delete(name, &DeleteParams::default()).await?;
        }
        Ok(())
    }

    /// Its nodes, each with its rack.
    async fn own_nodes(&self) -> Turn<Vec<(String, String)>> {
        let of_stage = ListParams::default().labels(&format!("rolegate.dev/stage={}", self.stage));
        let nodes = self.nodes.list(&of_stage).await?.items.into_iter();
        let named = |node: Node| {
            let rack = node.metadata.labels?.get(RACK)?.strip_prefix(&label(&self.stage, ""))?.to_owned();
            Some((node.metadata.name?, rack))
        };
        Ok(nodes.filter_map(named).collect())
    }

    /// Room for pods, and nodes, by rack.
    async fn free(&self, asked: &Asked, cloud: &Cloud) -> Turn<(BTreeMap<String, u32>, BTreeMap<String, u32>)> {
        let racks = || asked.racks.iter().map(|(rack, _)| ((*rack).to_owned(), 0)).collect();
        let (mut rooms, mut nodes): (BTreeMap<_, u32>, BTreeMap<_, u32>) = (racks(), racks());
        let pods = self.pods.list(&ListParams::default()).await?.items;
        for (name, rack) in self.own_nodes().await? {
            let is_here = |pod: &&ApiPod| pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref()) == Some(&name);
            let used = u32::try_from(pods.iter().filter(is_here).count()).unwrap();
            if let Some(free) = rooms.get_mut(&rack) {
                *free += cloud.room - used;
                *nodes.get_mut(&rack).unwrap() += 1;
            }
        }
        for (_, rack) in &self.coming {
            nodes.entry(rack.clone()).and_modify(|nodes| *nodes += 1);
        }
        Ok((rooms, nodes))
    }

    /// What its templates say of racks; the name of one that is missing.
    async fn asked(&self, request: &DynamicObject, cloud: &Cloud) -> Turn<Result<Asked, String>> {
        let mut asked = Asked { pods: count(request), together: false, racks: cloud.racks.clone() };
        for set in sets(request) {
            let name = set["podTemplateRef"]["name"].as_str().unwrap();
            let Some(template) = self.templates.get_opt(name).await? else { return Ok(Err(name.to_owned())) };
            let spec = serde_json::to_value(template.template.and_then(|template| template.spec)).unwrap();
            let required = "requiredDuringSchedulingIgnoredDuringExecution";
            let attracted = spec["affinity"]["podAffinity"][required].as_array().into_iter().flatten();
            asked.together |= attracted.into_iter().any(|term| term["topologyKey"] == RACK);
            asked.together |= !spec["nodeSelector"][RACK].is_null();
            let terms = &spec["affinity"]["nodeAffinity"][required]["nodeSelectorTerms"];
            asked.racks.retain(|(rack, _)| admits(&spec["nodeSelector"], terms, &label(&self.stage, rack)));
        }
        Ok(Ok(asked))
    }

    async fn say(&self, request: &DynamicObject, kind: &str, status: &str, reason: &str, message: &str) -> Turn<()> {
        if kind == "Accepted" && condition(request, kind).is_some() {
            return Ok(());
        }
        let name = request.metadata.name.as_deref().unwrap();
        let mut conditions = match self.requests.get_opt(name).await? {
            Some(now) => now.data["status"]["conditions"].as_array().cloned().unwrap_or_default(),
            None => return Ok(()),
        };
        conditions.retain(|condition| condition["type"] != kind);
        conditions.push(json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "observedGeneration": request.metadata.generation, "lastTransitionTime": jiff::Timestamp::now().to_string(),
        }));
        let patch = json!({ "status": { "conditions": conditions } });
        let by = PatchParams { field_manager: Some("cluster-autoscaler".to_owned()), ..PatchParams::default() };
        self.requests.patch_status(name, &by, &Patch::Merge(patch)).await?;
        self.said.lock().unwrap().push(format!("{name} {kind}={status}/{reason}"));
        Ok(())
    }
}

/// The value of the rack's label: no other stage has it.
pub fn label(stage: &str, rack: &str) -> String {
    format!("{stage}-{rack}")
}

/// Whether a pod may be in a rack.
fn admits(selector: &Value, terms: &Value, rack: &str) -> bool {
    let holds = |expression: &Value| {
        let named = expression["values"].as_array().is_some_and(|values| values.iter().any(|value| value == rack));
        match expression["operator"].as_str() {
            _ if expression["key"] != RACK => true,
            Some("In") => named,
            Some("NotIn") => !named,
            _ => true,
        }
    };
    let term = |term: &Value| term["matchExpressions"].as_array().into_iter().flatten().all(&holds);
    let selected = selector[RACK].is_null() || selector[RACK] == rack;
    selected && terms.as_array().is_none_or(|terms| terms.iter().any(term))
}

fn sets(request: &DynamicObject) -> impl Iterator<Item = &Value> {
    request.data["spec"]["podSets"].as_array().into_iter().flatten()
}

/// All pods of a request.
fn count(request: &DynamicObject) -> u32 {
    let all: u64 = sets(request).filter_map(|set| set["count"].as_u64()).sum();
    all.try_into().unwrap()
}

fn total(rooms: &BTreeMap<String, u32>) -> u32 {
    rooms.values().sum()
}

/// The status of a condition, and for how long it has been so.
fn condition<'a>(request: &'a DynamicObject, kind: &str) -> Option<(&'a str, Duration)> {
    let conditions = request.data["status"]["conditions"].as_array()?;
    let found = conditions.iter().find(|condition| condition["type"] == kind)?;
    let since: jiff::Timestamp = found["lastTransitionTime"].as_str()?.parse().ok()?;
    let elapsed = jiff::Timestamp::now().duration_since(since);
    Some((found["status"].as_str()?, elapsed.try_into().unwrap_or_default()))
}
