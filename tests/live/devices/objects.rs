//! The objects of a case, as they are sent to the API server.

use super::cases::{Alternative, Case, Claim, Constraint, Device, GPU, Other, Reach, Request, Slice, Sort};
use super::{CASE, RACK};
use crate::common::prelude::*;

const TAINT: &str = "example.com/bad";
const HOSTNAME: &str = "kubernetes.io/hostname";
pub const API: &str = "resource.k8s.io/v1";

impl Case {
    pub fn node_objects(&self) -> Vec<Value> {
        let node = |(at, node): (usize, &super::cases::Node)| {
            let name = self.node_name(at);
            let mut room = json!({ "cpu": node.cpu.to_string(), "memory": "64Gi", "pods": "20" });
            if let Some(amount) = node.plugin {
                room[self.resource()] = json!(amount.to_string());
            }
            json!({
                "metadata": {
                    "name": name,
                    "annotations": { "kwok.x-k8s.io/node": "fake" },
                    "labels": { HOSTNAME: name, CASE: self.number.to_string(), RACK: self.rack_name(node.rack) },
                },
                "status": { "allocatable": room, "capacity": room },
            })
        };
        self.nodes.iter().enumerate().map(node).collect()
    }

    pub fn rack_name(&self, rack: usize) -> String {
        format!("j{}-{rack}", self.number)
    }

    /// Slices, classes, rules, templates and shared claims, in the namespace.
    pub fn device_objects(&self, namespace: &str) -> Vec<Value> {
        let slices = self.slices.iter().map(|slice| self.slice_object(slice));
        let classes = self.classes.iter().map(|class| {
            let cel = |text: String| json!({ "cel": { "expression": text } });
            let selectors: Vec<_> = class.conditions.iter().map(|condition| cel(condition.cel())).collect();
            let mut spec = json!({ "selectors": selectors });
            if class.resource {
                spec["extendedResourceName"] = json!(self.resource());
            }
            object(API, "DeviceClass", &class.name).spec(spec)
        });
        let ruled = self.slices.iter().flat_map(|slice| slice.devices.iter().map(move |device| (slice, device)));
        let rules = ruled.filter_map(|(slice, device)| {
            let name = format!("{}-{}", slice.name, device.name);
            let selector = json!({ "driver": slice.driver, "pool": slice.pool, "device": device.name });
            let taint = json!({ "key": TAINT, "value": "yes", "effect": device.rule? });
            Some(object(API, "DeviceTaintRule", &name).spec(json!({ "deviceSelector": selector, "taint": taint })))
        });
        let sorts = self.sorts.iter().enumerate();
        let templates =
            sorts.flat_map(|(sort, spec)| spec.claims.iter().enumerate().map(move |(at, claim)| (sort, at, claim)));
        let templates = templates.map(|(sort, at, claim)| {
            let (name, devices) = (self.template(sort, at), json!({ "devices": self.claim(claim) }));
            let mut object = if self.sorts[sort].shares {
                object(API, "ResourceClaim", &name).spec(devices)
            } else {
                object(API, "ResourceClaimTemplate", &name).spec(json!({ "spec": devices }))
            };
            object["metadata"]["namespace"] = json!(namespace);
            object
        });
        slices.chain(classes).chain(rules).chain(templates).collect()
    }

    fn template(&self, sort: usize, claim: usize) -> String {
        format!("j{}-{sort}-{claim}", self.number)
    }

    fn slice_object(&self, slice: &Slice) -> Value {
        let mut spec = json!({
            "driver": slice.driver,
            "pool": { "name": slice.pool, "generation": slice.generation, "resourceSliceCount": slice.of },
            "devices": slice.devices.iter().map(|device| self.device(slice.driver, device)).collect::<Vec<_>>(),
        });
        match slice.reach {
            Reach::Node(node) => spec["nodeName"] = json!(self.node_name(node)),
            Reach::EachDevice => spec["perDeviceNodeSelection"] = json!(true),
            Reach::Selected(node) => {
                let here = json!({ "key": HOSTNAME, "operator": "In", "values": [self.node_name(node)] });
                spec["nodeSelector"] = json!({ "nodeSelectorTerms": [{ "matchExpressions": [here] }] });
            }
        }
        object(API, "ResourceSlice", &slice.name).spec(spec)
    }

    fn device(&self, driver: &str, device: &Device) -> Value {
        let mut written = json!({ "name": device.name, "attributes": {}, "capacity": {} });
        if let Some(root) = device.root {
            written["attributes"]["example.com/root"] = json!({ "string": root });
        }
        if let Some(healthy) = device.healthy {
            written["attributes"]["example.com/healthy"] = json!({ "bool": healthy });
        }
        if driver == GPU {
            written["attributes"]["model"] = json!({ "string": device.model });
            written["attributes"]["gpu.example.com/version"] = json!({ "version": device.version });
            written["capacity"]["memory"] = json!({ "value": format!("{}Gi", device.memory) });
        }
        if let Some(effect) = device.taint {
            written["taints"] = json!([{ "key": TAINT, "value": "yes", "effect": effect }]);
        }
        if let Some(node) = device.node {
            written["nodeName"] = json!(self.node_name(node));
        }
        written
    }

    fn claim(&self, claim: &Claim) -> Value {
        let requests = claim.requests.iter().enumerate().map(|(at, request)| self.request(at, request));
        let name = |(request, alternative): &(usize, Option<usize>)| match alternative {
            Some(alternative) => format!("r{request}/s{alternative}"),
            None => format!("r{request}"),
        };
        let constraint = |constraint: &Constraint| {
            let requests: Vec<_> = constraint.requests.iter().map(name).collect();
            json!({ "matchAttribute": constraint.attribute, "requests": requests })
        };
        let constraints: Vec<_> = claim.constraints.iter().map(constraint).collect();
        json!({ "requests": requests.collect::<Vec<_>>(), "constraints": constraints })
    }

    fn request(&self, at: usize, request: &Request) -> Value {
        let alternative = |one: &Alternative| {
            let cel = |text: String| json!({ "cel": { "expression": text } });
            let mut written = json!({
                "deviceClassName": self.classes[one.class].name,
                "selectors": one.conditions.iter().map(|condition| cel(condition.cel())).collect::<Vec<_>>(),
            });
            match one.count {
                // What is left out is one.
                Some(1) => {}
                Some(count) => written["count"] = json!(count),
                None => written["allocationMode"] = json!("All"),
            }
            if one.tolerates {
                written["tolerations"] = json!([{ "key": TAINT, "operator": "Exists", "effect": "NoSchedule" }]);
            }
            written
        };
        if let [only] = &*request.alternatives {
            return json!({ "name": format!("r{at}"), "exactly": alternative(only) });
        }
        let all = request.alternatives.iter().enumerate().map(|(number, one)| {
            let mut written = alternative(one);
            written["name"] = json!(format!("s{number}"));
            written
        });
        json!({ "name": format!("r{at}"), "firstAvailable": all.collect::<Vec<_>>() })
    }

    /// A pod of a sort, which goes to this node if there is one.
    pub fn pod(&self, name: &str, sort: usize, node: Option<&str>) -> Value {
        let Sort { cpu, claims, extended, by_class, shares } = &self.sorts[sort];
        let mut limits = json!({ "cpu": cpu.to_string() });
        if *extended > 0 {
            let of_class = || format!("deviceclass.resource.kubernetes.io/{}", self.classes[0].name);
            let resource = if *by_class { of_class() } else { self.resource() };
            limits[resource] = json!(extended.to_string());
        }
        let names = (0..claims.len()).map(|at| (format!("c{at}"), self.template(sort, at)));
        let named = names.clone().map(|(name, _)| json!({ "name": name })).collect::<Vec<_>>();
        let source = if *shares { "resourceClaimName" } else { "resourceClaimTemplateName" };
        let of_pod = names.map(|(name, of)| json!({ "name": name, source: of }));
        let mut selector = json!({ CASE: self.number.to_string() });
        if let Some(node) = node {
            selector[HOSTNAME] = json!(node);
        }
        let mut pod = self.bare_pod(name, &limits);
        pod["spec"]["nodeSelector"] = selector;
        pod["spec"]["resourceClaims"] = json!(of_pod.collect::<Vec<_>>());
        pod["spec"]["containers"][0]["resources"]["claims"] = json!(named);
        pod
    }

    fn bare_pod(&self, name: &str, limits: &Value) -> Value {
        let container = json!({ "name": "main", "image": "registry.invalid/x:1", "resources": { "limits": limits } });
        json!({
            "metadata": { "name": name, "labels": { CASE: self.number.to_string() } },
            "spec": {
                "terminationGracePeriodSeconds": 0,
                "automountServiceAccountToken": false,
                "containers": [container],
            },
        })
    }

    fn other_name(&self, at: usize) -> String {
        format!("other-{}-{at}", self.number)
    }

    /// The pods that are bound already.
    pub fn other_pods(&self) -> Vec<Value> {
        let pod = |(at, other): (usize, &Other)| {
            let mut limits = json!({ "cpu": other.cpu.to_string() });
            if other.extended > 0 {
                limits[self.resource()] = json!(other.extended.to_string());
            }
            let mut pod = self.bare_pod(&self.other_name(at), &limits);
            pod["spec"]["nodeName"] = json!(self.node_name(other.node));
            if !other.devices.is_empty() {
                pod["spec"]["resourceClaims"] = json!([{ "name": "c", "resourceClaimName": self.other_name(at) }]);
                pod["spec"]["containers"][0]["resources"]["claims"] = json!([{ "name": "c" }]);
            }
            pod
        };
        self.others.iter().enumerate().map(pod).collect()
    }

    /// The claims of these pods, each with its status as it is once the pod has this uid.
    pub fn other_claims(&self, uid: impl Fn(&str) -> String) -> Vec<(Value, Value)> {
        let with_devices = self.others.iter().enumerate().filter(|(_, other)| !other.devices.is_empty());
        let claim = |(at, other): (usize, &Other)| {
            let name = self.other_name(at);
            let request = json!({ "name": "r", "exactly": { "deviceClassName": self.classes[0].name, "count": other.devices.len() } });
            let claim = object(API, "ResourceClaim", &name).spec(json!({ "devices": { "requests": [request] } }));
            let device = |(slice, device): &(usize, usize)| {
                let slice = &self.slices[*slice];
                json!({ "request": "r", "driver": slice.driver, "pool": slice.pool, "device": slice.devices[*device].name })
            };
            let here = json!({ "key": "metadata.name", "operator": "In", "values": [self.node_name(other.node)] });
            let allocation = json!({
                "devices": { "results": other.devices.iter().map(device).collect::<Vec<_>>() },
                "nodeSelector": { "nodeSelectorTerms": [{ "matchFields": [here] }] },
            });
            let user = json!({ "resource": "pods", "name": name, "uid": uid(&name) });
            (claim, json!({ "status": { "allocation": allocation, "reservedFor": [user] } }))
        };
        with_devices.map(claim).collect()
    }
}
