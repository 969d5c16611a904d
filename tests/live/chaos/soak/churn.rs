//! Groups of several kinds, each of which lives through the same steps again and again.

use crate::common::prelude::*;
use crate::rollouts::support::rolling;

pub const RACK: &str = "example.com/rack";
/// Name of the ClusterTopology with the layer rack.
const TOPOLOGY: &str = "racks";
const OURS: &str = "/apis/rolegate.dev/v1alpha1";
const APPS: &str = "/apis/apps/v1";
const STEPS: usize = 5;

/// What a group is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A RoleBasedGroup of two StatefulSets, in segments.
    Segments,
    /// The same, updated in lockstep.
    Lockstep,
    /// The same, each step in a rack.
    Racks,
    /// A RoleCoordination that names two StatefulSets.
    Coordination,
    /// A RoleCoordination over pods that nobody makes again.
    BarePods,
}

/// What the API server has answered, by its code.
pub type Answers = BTreeMap<u16, u32>;

/// A place in the churn: a group that is made, changed and deleted, and then made again, every other time under a new name.
pub struct Slot {
    number: usize,
    kind: Kind,
    step: usize,
    lives: usize,
}

impl Slot {
    pub fn new(number: usize, kinds: &[Kind]) -> Self {
        Self { number, kind: kinds[number % kinds.len()], step: 0, lives: 0 }
    }

    /// Groups that were made and deleted here.
    pub fn lives(&self) -> usize {
        self.lives
    }

    fn group(&self, more: u32) -> Group {
        let name = format!("g{}-{}", self.number, self.lives / 2);
        Group::new(&name).role("prefill", 4 + 2 * more, 2).role("decode", 2 + more, 1)
    }

    /// Does the next step.
    pub async fn go_on(&mut self, stage: &Stage, answers: &mut Answers) {
        let (small, large) = (self.group(0), self.group(1));
        match self.step {
            0 => self.create(stage, &small, answers).await,
            1 => self.scale(stage, &large, answers).await,
            2 => self.update(stage, &large, answers).await,
            3 => self.scale(stage, &small, answers).await,
            _ => self.delete(stage, &large, answers).await,
        }
        self.step = (self.step + 1) % STEPS;
        self.lives += usize::from(self.step == 0);
    }

    /// Deletes what is there.
    pub async fn end(&mut self, stage: &Stage, answers: &mut Answers) {
        if self.step > 0 {
            self.delete(stage, &self.group(1), answers).await;
            (self.step, self.lives) = (0, self.lives + 1);
        }
    }

    async fn create(&self, stage: &Stage, group: &Group, answers: &mut Answers) {
        let (api, plural, object) = self.carrier(group);
        // Every third group comes after its pods.
        let late = self.lives % 3 == 2;
        if !late {
            count(answers, stage.post(api, plural, &object).await.code);
        }
        for role in &group.roles {
            if self.kind == Kind::BarePods {
                create_pods(stage, group, &role.name, 0..role.replicas, answers).await;
                continue;
            }
            let mut set = group.set(role, &stage.namespace);
            if self.kind == Kind::Lockstep {
                set = group.claimed(&role.name, &stage.namespace);
            }
            count(answers, stage.post(APPS, "statefulsets", &set).await.code);
        }
        if late {
            count(answers, stage.post(api, plural, &object).await.code);
        }
    }

    async fn scale(&self, stage: &Stage, group: &Group, answers: &mut Answers) {
        let (api, plural, object) = self.carrier(group);
        if self.kind != Kind::Coordination {
            let path = format!("{api}/namespaces/{}/{plural}/{}", stage.namespace, group.name);
            patch(stage, &path, &json!({ "spec": { "roles": object["spec"]["roles"] } }), answers).await;
        }
        for role in &group.roles {
            if self.kind == Kind::BarePods {
                let most = self.group(1).find(&role.name).replicas;
                create_pods(stage, group, &role.name, 0..role.replicas, answers).await;
                delete_pods(stage, group, &role.name, role.replicas..most, answers).await;
            } else {
                let replicas = json!({ "spec": { "replicas": role.replicas } });
                patch(stage, &set_path(stage, group, &role.name), &replicas, answers).await;
            }
        }
    }

    /// Another image, for bare pods by others of the same names.
    async fn update(&self, stage: &Stage, group: &Group, answers: &mut Answers) {
        for role in &group.roles {
            if self.kind == Kind::BarePods {
                delete_pods(stage, group, &role.name, 0..1, answers).await;
                create_pods(stage, group, &role.name, 0..1, answers).await;
                continue;
            }
            let container = json!({ "name": "main", "image": format!("registry.invalid/x:{}", self.lives + 2) });
            let template = json!({ "spec": { "template": { "spec": { "containers": [container] } } } });
            patch(stage, &set_path(stage, group, &role.name), &template, answers).await;
        }
    }

    /// Every other time the group goes before what it is made of.
    async fn delete(&self, stage: &Stage, group: &Group, answers: &mut Answers) {
        let (api, plural, _) = self.carrier(group);
        let carrier = format!("{api}/namespaces/{}/{plural}/{}", stage.namespace, group.name);
        let group_first = self.lives.is_multiple_of(2);
        if group_first {
            delete(stage, &carrier, answers).await;
        }
        if self.kind != Kind::BarePods {
            for role in &group.roles {
                delete(stage, &set_path(stage, group, &role.name), answers).await;
            }
        }
        // The garbage collector takes its time.
        let pods =
            format!("{CORE}/namespaces/{}/pods?labelSelector=rolegate.dev/group%3D{}", stage.namespace, group.name);
        delete(stage, &pods, answers).await;
        if !group_first {
            delete(stage, &carrier, answers).await;
        }
    }

    /// Where the object that carries the group is made, and the object.
    fn carrier(&self, group: &Group) -> (&'static str, &'static str, Value) {
        let mut object = group.object();
        match self.kind {
            Kind::Segments => {}
            Kind::Lockstep => {
                let rolling = rolling(json!({ "maxSkew": "50%", "maxUnavailable": "50%" }))[0].take();
                object["spec"]["coordination"].as_array_mut().unwrap().push(rolling);
            }
            Kind::Racks => {
                let steps: BTreeMap<_, _> = group.roles.iter().map(|role| (&role.name, role.segment)).collect();
                let rack =
                    json!({ "clusterTopologyName": TOPOLOGY, "topologyLayerName": "rack", "constraintMode": "hard" });
                let deploy = json!({ "roleDeployStep": steps, "deployTopologyConstraint": rack });
                object["spec"]["coordination"] = json!([{ "name": "steps", "strategy": { "rollingDeploy": deploy } }]);
            }
            Kind::Coordination | Kind::BarePods => {
                let of_pods = self.kind == Kind::BarePods;
                let order = json!({ "progression": format!("{:?}", group.progression) });
                object = if of_pods {
                    group.coordination_of_numbers(&order)
                } else {
                    group.coordination_of("StatefulSet", &order)
                };
                return (OURS, "rolecoordinations", object);
            }
        }
        (GROUPS, "rolebasedgroups", object)
    }
}

async fn create_pods(stage: &Stage, group: &Group, role: &str, numbers: std::ops::Range<u32>, answers: &mut Answers) {
    for number in numbers {
        let pod = group.pod(role, &format!("{}-{role}-{number}", group.name), &stage.namespace);
        count(answers, stage.post(CORE, "pods", &pod).await.code);
    }
}

async fn delete_pods(stage: &Stage, group: &Group, role: &str, numbers: std::ops::Range<u32>, answers: &mut Answers) {
    for number in numbers {
        let path = format!("{CORE}/namespaces/{}/pods/{}-{role}-{number}", stage.namespace, group.name);
        delete(stage, &path, answers).await;
    }
}

fn set_path(stage: &Stage, group: &Group, role: &str) -> String {
    format!("{APPS}/namespaces/{}/statefulsets/{}", stage.namespace, group.set_name(role))
}

async fn patch(stage: &Stage, path: &str, change: &Value, answers: &mut Answers) {
    count(answers, stage.send("PATCH", path, change).await.code);
}

async fn delete(stage: &Stage, path: &str, answers: &mut Answers) {
    let options = json!({ "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background" });
    count(answers, stage.send("DELETE", path, &options).await.code);
}

fn count(answers: &mut Answers, code: u16) {
    *answers.entry(code).or_default() += 1;
}

/// Two racks of two nodes, and the ClusterTopology that names them.
pub async fn add_racks(stage: &Stage) {
    let topology = object("rolegate.dev/v1alpha1", "ClusterTopology", TOPOLOGY)
        .spec(json!({ "layers": [{ "name": "rack", "key": RACK }] }));
    let made = stage.send("POST", &format!("{OURS}/clustertopologies"), &topology).await;
    assert_eq!(made.code, 201, "{made:?}");
    for (rack, host) in [("a", "1"), ("a", "2"), ("b", "1"), ("b", "2")] {
        stage.add_node_with(&format!("{rack}-{host}"), 400, json!({ (RACK): rack })).await;
    }
}
