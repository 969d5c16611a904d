//! The objects that the Helm chart writes by hand: Deployment, Services, and what is around them. The program knows them as Helm
//! renders them with the values of `deploy/render.sh`, and changes what an installation chooses.

use serde_json::{Map, Value, json};

use super::installation::Choice;
use super::{ManifestsArgs, Part, Without};
use crate::cli::ready_kinds;
use crate::cli::serving::selector_text;
use crate::model::Mode;

/// What `deploy/render.sh` has written.
const RENDERED: &str = include_str!("../../../deploy/rendered.yaml");
/// A label of every object that the rendering has in place of `--label`.
const LABEL: &str = "label-of-rolegate";
const POD: &str = "/spec/template/spec";

/// Returns the objects of a part.
pub fn objects(args: &ManifestsArgs, part: Part) -> Vec<Value> {
    changed(RENDERED, args, part)
}

/// Returns the flags of `serve` that are always given: it refuses a flag given twice.
pub fn given() -> Vec<String> {
    let workload = objects(&ManifestsArgs::default(), Part::Workload);
    let arguments =
        workload.iter().find_map(|object| object.pointer("/spec/template/spec/containers/0/args")?.as_array());
    let flags = arguments.into_iter().flatten().filter_map(|one| one.as_str()?.strip_prefix("--")?.split_once('='));
    flags.map(|(flag, _)| flag.to_owned()).collect()
}

fn changed(rendered: &str, args: &ManifestsArgs, part: Part) -> Vec<Value> {
    let all: Vec<Value> = serde_saphyr::from_multiple(rendered).unwrap_or_default();
    let mut objects: Vec<_> =
        all.into_iter().filter(|object| part_of(object) == Some(part) && args.has(object)).collect();
    let texts = args.texts();
    for object in &mut objects {
        fill(object, args, &texts);
        annotations(object);
        for path in ["/spec/securityContext", "/spec/template/spec/securityContext"] {
            user_ids(object, args, path);
        }
        if object["kind"] == "Deployment" {
            deployment(object, args);
        }
    }
    objects
}

/// Returns the part of an object that it knows.
fn part_of(object: &Value) -> Option<Part> {
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let part = match object["kind"].as_str().unwrap_or_default() {
        "Deployment" | "PodDisruptionBudget" | "ResourceQuota" => Part::Workload,
        "Service" | "NetworkPolicy" | "ServiceMonitor" => Part::Network,
        "Issuer" | "Certificate" => Part::Certificates,
        "Job" => Part::Uninstall,
        "Pod" => Part::Doctor,
        "ServiceAccount" if name.ends_with("-uninstall") => Part::Uninstall,
        "ServiceAccount" if name.ends_with("-doctor") => Part::Doctor,
        "ServiceAccount" => Part::Rbac,
        _ => return None,
    };
    Some(part)
}

impl ManifestsArgs {
    /// Reports whether an object is wanted.
    fn has(&self, object: &Value) -> bool {
        let with = |what: Without| !self.without.contains(&what);
        match object["kind"].as_str().unwrap_or_default() {
            "NetworkPolicy" => with(Without::NetworkPolicy) && !self.host_network,
            "PodDisruptionBudget" => with(Without::DisruptionBudget),
            "ResourceQuota" => with(Without::ResourceQuota) && self.priority_class.starts_with("system-"),
            "ServiceMonitor" => self.service_monitor,
            "Issuer" | "Certificate" => !self.chooses(Choice::SelfManaged),
            _ => true,
        }
    }

    /// Returns what stands in the rendering for texts, and these.
    fn texts(&self) -> [(&'static str, String); 9] {
        [
            ("namespace-of-rolegate", self.namespace.clone()),
            ("name-of-rolegate", self.name.clone()),
            ("image-of-rolegate:tag", self.image.clone()),
            ("system-class-of-rolegate", self.priority_class.clone()),
            ("namespace-to-try", self.try_in.clone()),
            ("[::]", super::socket_host(self.listen_address)),
            (":10001", format!(":{}", self.webhook_port)),
            (":10002", format!(":{}", self.admin_port)),
            ("--log-format=json", format!("--log-format={}", self.log_format.word())),
        ]
    }

    /// Returns the arguments of `serve` that stand for themselves, in two parts: those of certificates are between.
    fn options(&self) -> [Vec<String>; 2] {
        let list = |flag: &str, all: Vec<String>| (!all.is_empty()).then(|| format!("--{flag}={}", all.join(",")));
        let (mode, rules) = (Mode::from(self.modes.mode), self.modes.rules().unwrap_or_default().to_string());
        let ignored = self.room.ignored().list();
        let options = [
            self.recreate_mis_stamped.then(|| "--recreate-mis-stamped".to_owned()),
            (mode != Mode::Enforce).then(|| format!("--mode={}", mode.as_str())),
            (!rules.is_empty()).then(|| format!("--rule={rules}")),
            self.namespace_selector
                .as_ref()
                .map(|selector| format!("--namespace-selector={}", selector_text(selector))),
            list("allow", self.allow.iter().map(|allow| allow.word().to_owned()).collect()),
            list("ready-kinds", self.ready_kinds.iter().map(|kind| ready_kinds::text(*kind)).collect()),
            (!ignored.is_empty()).then(|| format!("--ignore-resources={ignored}")),
            self.without.contains(&Without::KaiPods).then(|| "--kai-pods=off".to_owned()),
        ];
        let namespaces = list("namespaces", self.namespaces.clone());
        [namespaces.into_iter().collect(), options.into_iter().flatten().chain(self.arguments.clone()).collect()]
    }
}

/// Writes names, ports and labels where the rendering has others.
fn fill(value: &mut Value, args: &ManifestsArgs, texts: &[(&str, String)]) {
    match value {
        Value::String(text) => {
            for (from, to) in texts.iter().filter(|(from, _)| text.contains(from)).collect::<Vec<_>>() {
                *text = text.replace(from, to);
            }
        }
        Value::Number(number) => match number.as_u64() {
            Some(10_001) => *value = json!(args.webhook_port),
            Some(10_002) => *value = json!(args.admin_port),
            _ => {}
        },
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, args, texts)),
        Value::Object(map) => {
            map.values_mut().for_each(|value| fill(value, args, texts));
            if map.remove(LABEL).is_some() {
                map.extend(args.common_labels());
            }
        }
        _ => {}
    }
}

/// Removes the annotations for Helm.
fn annotations(object: &mut Value) {
    let Some(metadata) = fields(object, "/metadata") else { return };
    if let Some(all) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        all.retain(|key, _| !key.starts_with("helm.sh/"));
    }
    metadata.retain(|_, value| *value != json!({}));
}

/// Removes what the platform chooses, if it does.
fn user_ids(object: &mut Value, args: &ManifestsArgs, path: &str) {
    if args.without.contains(&Without::UserIds)
        && let Some(fields) = fields(object, path)
    {
        fields.retain(|field, _| !["runAsUser", "runAsGroup", "fsGroup"].contains(&field.as_str()));
    }
}

fn fields<'a>(object: &'a mut Value, path: &str) -> Option<&'a mut Map<String, Value>> {
    object.pointer_mut(path)?.as_object_mut()
}

/// Sets a field that the rendering has.
fn set(object: &mut Value, path: &str, value: Value) {
    if let Some(field) = object.pointer_mut(path) {
        *field = value;
    }
}

fn deployment(object: &mut Value, args: &ManifestsArgs) {
    set(object, "/spec/replicas", json!(args.replicas));
    let spread = format!("{POD}/topologySpreadConstraints/1/whenUnsatisfiable");
    set(object, &spread, json!(args.spread.when_unsatisfiable()));
    let container = format!("{POD}/containers/0");
    if let Some(arguments) = object.pointer_mut(&format!("{container}/args")).and_then(Value::as_array_mut) {
        let of_files = |argument: &Value| argument.as_str().is_some_and(|text| text.starts_with("--cert-file="));
        let of_files = arguments.split_off(arguments.iter().position(of_files).unwrap_or(arguments.len()));
        let [namespaces, others] = args.options();
        arguments.extend(namespaces.into_iter().map(Value::from));
        if !args.chooses(Choice::SelfManaged) {
            arguments.extend(of_files);
        }
        arguments.extend(others.into_iter().map(Value::from));
    }
    if args.chooses(Choice::SelfManaged) {
        fields(object, POD).and_then(|pod| pod.remove("volumes"));
        fields(object, &container).and_then(|container| container.remove("volumeMounts"));
    }
    if args.host_network {
        on_host_network(object, &container);
    }
}

/// Moves the pods to the network of their nodes, where two of them cannot share the ports of a node: a surge could not be scheduled.
fn on_host_network(deployment: &mut Value, container: &str) {
    set(deployment, "/spec/strategy/rollingUpdate", json!({ "maxSurge": 0, "maxUnavailable": 1 }));
    if let Some(pod) = fields(deployment, POD) {
        pod.insert("hostNetwork".to_owned(), json!(true));
        pod.insert("dnsPolicy".to_owned(), json!("ClusterFirstWithHostNet"));
    }
    let ports = deployment.pointer_mut(&format!("{container}/ports")).and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
        let number = port.get("containerPort").cloned().unwrap_or_default();
        port.insert("hostPort".to_owned(), number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The program is built before the rendering is written anew.
    #[test]
    fn of_a_rendering_that_lacks_something_the_rest_is_printed() {
        let stale = "kind: Deployment\nmetadata: {name: name-of-rolegate}\nspec: {replicas: 2}\n---\nkind: Job\n";
        let args = ManifestsArgs { host_network: true, replicas: 3, ..ManifestsArgs::default() };
        let found = changed(stale, &args, Part::Workload);
        assert_eq!(
            found,
            [json!({ "kind": "Deployment", "metadata": { "name": "rolegate" }, "spec": { "replicas": 3 } })]
        );
        assert_eq!(changed("", &args, Part::Workload), [Value::Null; 0]);
        assert_eq!(changed("{", &args, Part::Workload), [Value::Null; 0]);
    }
}
