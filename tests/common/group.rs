//! Groups as users write them: a `RoleBasedGroup`, and a `StatefulSet` for each role.

use serde::Serialize;
use serde_json::{Value, json};

use super::build::{self, with};

/// An object without a spec.
pub struct Head(Value);

/// Returns the head of an object.
pub fn object(api_version: &str, kind: &str, name: &str) -> Head {
    Head(json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": name } }))
}

impl Head {
    /// Adds the spec.
    pub fn spec(mut self, spec: impl Serialize) -> Value {
        self.0["spec"] = json!(spec);
        self.0
    }

    /// Merges what it has in place of a spec, or beside it.
    pub fn with(self, more: &Value) -> Value {
        with(self.0, more)
    }
}

/// Values of `segmentPlacement.progression`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progression {
    OrderedReady,
    Ordered,
    Parallel,
}

/// A group that comes up in segments.
#[derive(Clone, Debug)]
pub struct Group {
    pub name: String,
    pub roles: Vec<Role>,
    pub progression: Progression,
    /// Whether workloads are named after their roles alone.
    bare_names: bool,
    /// Patch for the pod template of every role.
    template: Value,
}

#[derive(Clone, Debug)]
pub struct Role {
    pub name: String,
    pub replicas: u32,
    /// Replicas per segment.
    pub segment: u32,
    /// Pods per replica.
    pub size: u32,
}

impl Group {
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            roles: Vec::new(),
            progression: Progression::OrderedReady,
            bare_names: false,
            template: json!({}),
        }
    }

    /// Returns KEP-32's Story 1: 100 prefill and 50 decode pods in ten segments of 10 and 5.
    pub fn story_1(name: &str) -> Self {
        Self::new(name).role("prefill", 100, 10).role("decode", 50, 5)
    }

    /// Returns three segments of 4 prefill and 2 decode pods, which do not become ready by themselves.
    pub fn three_segments() -> Self {
        Self::new("llm").role("prefill", 12, 4).role("decode", 6, 2).held_back()
    }

    /// Adds or replaces a role.
    pub fn role(mut self, name: &str, replicas: u32, segment: u32) -> Self {
        self.roles.retain(|role| role.name != name);
        self.roles.push(Role { name: name.to_owned(), replicas, segment, size: 1 });
        self
    }

    /// Sets the number of pods per replica of the roles so far, as in a `LeaderWorkerSet`.
    pub fn of_pods(mut self, size: u32) -> Self {
        self.roles.iter_mut().for_each(|role| role.size = size);
        self
    }

    pub fn progression(mut self, progression: Progression) -> Self {
        self.progression = progression;
        self
    }

    /// Names workloads after their roles alone, and not as a RoleBasedGroup would name them.
    pub fn bare_names(mut self) -> Self {
        self.bare_names = true;
        self
    }

    /// Merges a patch (RFC 7386) into the template of all pods.
    pub fn template(mut self, patch: &Value) -> Self {
        json_patch::merge(&mut self.template, patch);
        self
    }

    /// Lets pods run, but not become ready before [`super::Stage::let_ready`].
    pub fn held_back(self) -> Self {
        self.template(&json!({ "metadata": { "annotations": { "kwok.rolegate.dev/not-ready": "" } } }))
    }

    pub fn find(&self, role: &str) -> &Role {
        self.roles.iter().find(|known| known.name == role).unwrap()
    }

    /// Returns the number of pods of all roles.
    pub fn pods(&self) -> u32 {
        self.roles.iter().map(|role| role.replicas * role.size).sum()
    }

    /// Returns the name of a role's `StatefulSet`.
    pub fn set_name(&self, role: &str) -> String {
        if self.bare_names { role.to_owned() } else { format!("{}-{role}", self.name) }
    }

    /// Returns the coordination of its segments; `more` is merged into their placement.
    fn segments(&self, more: &Value) -> Value {
        let sizes: Vec<_> = self.roles.iter().map(|role| (role.name.as_str(), role.segment)).collect();
        build::coordination("segments", &build::segments(&sizes, more))
    }

    /// Returns the `RoleBasedGroup`.
    pub fn object(&self) -> Value {
        let roles: Vec<_> = self.roles.iter().map(|role| (role.name.as_str(), role.replicas)).collect();
        let progression = json!({ "progression": format!("{:?}", self.progression) });
        build::group(&self.name, &roles, &json!([self.segments(&progression)]))
    }

    /// Returns the `RoleBasedGroup`; `more` is merged into `segmentPlacement`.
    pub fn placed(&self, more: &Value) -> Value {
        let mut object = self.object();
        json_patch::merge(&mut object["spec"]["coordination"][0]["strategy"]["segmentPlacement"], more);
        object
    }

    /// Returns the `RoleBasedGroup` with these coordinations in place of its segments.
    pub fn coordinated(&self, coordination: &Value) -> Value {
        let mut object = self.object();
        object["spec"]["coordination"] = coordination.clone();
        object
    }

    /// Returns a `RoleCoordination` with the same segments that refers to the StatefulSets.
    pub fn coordination(&self) -> Value {
        self.coordination_of("StatefulSet", &json!({}))
    }

    /// Returns a `RoleCoordination` that refers to workloads of this kind; `more` is merged into `segmentPlacement`.
    pub fn coordination_of(&self, kind: &str, more: &Value) -> Value {
        let roles: Vec<_> = self.roles.iter().map(|role| role.name.as_str()).collect();
        let mut object = build::role_coordination(&self.name, kind, &roles, &json!([self.segments(more)]));
        for (at, role) in roles.iter().enumerate() {
            object["spec"]["roles"][at]["workloadRef"]["name"] = json!(self.set_name(role));
        }
        object
    }

    /// Returns a `RoleCoordination` with the same segments whose roles say how many replicas they have; `more` is merged into
    /// `segmentPlacement`.
    pub fn coordination_of_numbers(&self, more: &Value) -> Value {
        let mut object = self.coordination_of("StatefulSet", more);
        object["spec"]["roles"] = self.object()["spec"]["roles"].take();
        object
    }

    /// Returns a `RoleCoordination` with these coordinations whose roles say how many replicas they have.
    pub fn numbered(&self, coordination: &Value) -> Value {
        let mut object = self.coordination_of_numbers(&json!({}));
        object["spec"]["coordination"] = coordination.clone();
        object
    }

    /// Returns the `Deployment` of a role; `more` is merged into its spec.
    pub fn deployment(&self, role: &str, stage: &str, more: &Value) -> Value {
        let mut object = self.set(self.find(role), stage);
        object["kind"] = json!("Deployment");
        json_patch::merge(&mut object["spec"], &json!({ "podManagementPolicy": null, "serviceName": null }));
        json_patch::merge(&mut object["spec"], more);
        object
    }

    /// Returns the `LeaderWorkerSet` of a role with groups of this size; `more` is merged into it.
    pub fn leader_worker_set(&self, role: &str, size: usize, stage: &str, more: &Value) -> Value {
        let role = self.find(role);
        let template = self.set(role, stage)["spec"]["template"].take();
        with(build::leader_worker_set(&self.set_name(&role.name), role.replicas, size, &template), more)
    }

    /// Returns the `StatefulSet` of a role; its pods use the nodes of one stage.
    pub fn set(&self, role: &Role, stage: &str) -> Value {
        let template = pod_template(&build::labels(&self.name, &role.name), stage);
        let set = build::stateful_set(&self.set_name(&role.name), role.replicas, &template);
        with(set, &json!({ "spec": { "template": self.template } }))
    }

    /// Returns the `StatefulSet` of a role with the labels by which it claims the group.
    pub fn claimed(&self, role: &str, stage: &str) -> Value {
        let mut set = self.set(self.find(role), stage);
        set["metadata"]["labels"] = build::labels(&self.name, role);
        set
    }

    /// Returns a pod of a role without a workload.
    pub fn pod(&self, role: &str, name: &str, stage: &str) -> Value {
        bare_pod(name, &build::labels(&self.name, role), stage)
    }
}

/// Returns the patch of a template whose pods ask for this.
pub fn asking(resources: &Value) -> Value {
    let main = json!({ "name": "main", "image": "registry.invalid/x:1", "resources": resources });
    json!({ "spec": { "containers": [main] } })
}

/// Returns the part of `segmentPlacement` by which segments are near each other: `more` is its strategy.
pub fn near(key: &str, strategy: &str) -> Value {
    json!({ "topologyAffinity": { "topologyKey": key, "strategy": strategy } })
}

/// Returns the reference of an object to its controller.
pub fn owner(api_version: &str, kind: &str, name: &str, uid: &str) -> Value {
    json!({ "apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": true })
}

/// Returns a pod without a workload that has these labels.
pub fn bare_pod(name: &str, labels: &Value, stage: &str) -> Value {
    object("v1", "Pod", name).with(&pod_template(labels, stage))
}

pub fn pod_template(labels: &Value, stage: &str) -> Value {
    json!({
        "metadata": { "labels": labels },
        "spec": {
            "nodeSelector": { STAGE: stage },
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": false,
            "containers": [{ "name": "main", "image": "registry.invalid/x:1" }],
        },
    })
}

/// Label of nodes: the stage whose pods they accept.
pub const STAGE: &str = "rolegate.dev/stage";

/// Returns a fake node with room for this number of pods.
pub fn node(name: &str, room: u32, stage: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": { "kwok.x-k8s.io/node": "fake" },
            "labels": { STAGE: stage, "kubernetes.io/hostname": name, "kubernetes.io/os": "linux" },
        },
        "status": {
            "allocatable": { "cpu": "1000", "memory": "1000Gi", "pods": room.to_string() },
            "capacity": { "cpu": "1000", "memory": "1000Gi", "pods": room.to_string() },
        },
    })
}
