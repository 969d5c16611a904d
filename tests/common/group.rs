//! Groups as users write them: a `RoleBasedGroup`, and a `StatefulSet` for each role.

use serde::Serialize;
use serde_json::{Value, json};

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

    /// Returns the `RoleBasedGroup`.
    pub fn object(&self) -> Value {
        let roles = self.roles.iter().map(|role| json!({ "name": role.name, "replicas": role.replicas }));
        let sizes = self.roles.iter().map(|role| (role.name.clone(), json!(role.segment)));
        let segments = json!({
            "segmentSize": sizes.collect::<serde_json::Map<_, _>>(),
            "progression": format!("{:?}", self.progression),
        });
        object("workloads.x-k8s.io/v1alpha1", "RoleBasedGroup", &self.name).spec(json!({
            "roles": roles.collect::<Vec<_>>(),
            "coordination": [{ "name": "segments", "strategy": { "segmentPlacement": segments } }],
        }))
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
        let role = |role: &Role| json!({ "name": role.name, "workloadRef": { "kind": kind, "name": self.set_name(&role.name) } });
        let sizes: serde_json::Map<_, _> =
            self.roles.iter().map(|role| (role.name.clone(), json!(role.segment))).collect();
        let mut placement = json!({ "segmentSize": sizes });
        json_patch::merge(&mut placement, more);
        object("rolegate.dev/v1alpha1", "RoleCoordination", &self.name).spec(json!({
            "roles": self.roles.iter().map(role).collect::<Vec<_>>(),
            "coordination": [{ "name": "segments", "strategy": { "segmentPlacement": placement } }],
        }))
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
        let spec =
            json!({ "replicas": role.replicas, "leaderWorkerTemplate": { "size": size, "workerTemplate": template } });
        let mut set = object("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", &self.set_name(&role.name)).spec(spec);
        json_patch::merge(&mut set, more);
        set
    }

    /// Returns the `StatefulSet` of a role; its pods use the nodes of one stage.
    pub fn set(&self, role: &Role, stage: &str) -> Value {
        let labels = json!({ "rolegate.dev/group": self.name, "rolegate.dev/role": role.name });
        let mut template = pod_template(&labels, stage);
        json_patch::merge(&mut template, &self.template);
        let name = self.set_name(&role.name);
        object("apps/v1", "StatefulSet", &name).spec(json!({
            "replicas": role.replicas,
            "podManagementPolicy": "Parallel",
            "serviceName": name,
            "selector": { "matchLabels": labels },
            "template": template,
        }))
    }

    /// Returns the `StatefulSet` of a role with the labels by which it claims the group.
    pub fn claimed(&self, role: &str, stage: &str) -> Value {
        let mut set = self.set(self.find(role), stage);
        set["metadata"]["labels"] = json!({ "rolegate.dev/group": self.name, "rolegate.dev/role": role });
        set
    }

    /// Returns a pod of a role without a workload.
    pub fn pod(&self, role: &str, name: &str, stage: &str) -> Value {
        bare_pod(name, &json!({ "rolegate.dev/group": self.name, "rolegate.dev/role": role }), stage)
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
    let mut pod = pod_template(labels, stage);
    json_patch::merge(&mut pod, &json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name } }));
    pod
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
