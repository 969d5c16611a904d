//! The values of the Helm chart: each does what it says, and a wrong one is refused.

use crate::common::prelude::*;
use crate::install::render::{Objects, chart, first, helm, objects, root, template, try_helm};
use crate::install::support::{DRY, DRY_RUN};

/// A value, what it is set to, and what that makes of an object of a kind, at a path.
type Effect = (&'static str, Value, &'static str, String, Value);

const POD: &str = "/spec/template/spec";
const CONTAINER: &str = "/spec/template/spec/containers/0";

/// A part of the Deployment's pods that is what the value is set to.
fn of_pods() -> Vec<Effect> {
    let of = |value, set: Value, field: &str| (value, set.clone(), "Deployment", format!("{POD}{field}"), set);
    let term = json!({ "matchExpressions": [{ "key": "disk", "operator": "Exists" }] });
    let affinity = json!({
        "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [term] } },
    });
    let spread = json!([{ "maxSkew": 2, "topologyKey": "room", "whenUnsatisfiable": "ScheduleAnyway" }]);
    let do_not = json!("DoNotSchedule");
    vec![
        of("affinity", affinity, "/affinity"),
        of("topologySpreadConstraints", spread, "/topologySpreadConstraints"),
        of("tolerations", json!([{ "operator": "Exists" }]), "/tolerations"),
        of("imagePullSecrets", json!([{ "name": "pull" }]), "/imagePullSecrets"),
        of("priorityClassName", json!("mine"), "/priorityClassName"),
        of("dnsPolicy", json!("Default"), "/dnsPolicy"),
        of("hostNetwork", json!(true), "/hostNetwork"),
        of("whenUnsatisfiable", do_not, "/topologySpreadConstraints/1/whenUnsatisfiable"),
        of("extraVolumes", json!([{ "name": "more", "emptyDir": {} }]), "/volumes"),
        of("image.pullPolicy", json!("Always"), "/containers/0/imagePullPolicy"),
        of("extraVolumeMounts", json!([{ "name": "more", "mountPath": "/more" }]), "/containers/0/volumeMounts"),
    ]
}

/// A part of the Deployment that the value changes, or adds to.
fn of_the_deployment() -> Vec<Effect> {
    let of = |value, set: Value, path: &str, expected: Value| (value, set, "Deployment", path.to_owned(), expected);
    let in_pod = |value, set: Value, field: &str, expected: Value| of(value, set, &format!("{POD}{field}"), expected);
    let ssd = json!({ "disk": "ssd", "kubernetes.io/os": "linux" });
    let nobody = json!({ "runAsUser": null, "runAsGroup": null, "fsGroup": null });
    let secure = json!({ "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" } });
    let labels = json!({ "app.kubernetes.io/name": "rolegate", "team": "serving" });
    let inject = json!({ "sidecar.istio.io/inject": "false" });
    let annotations =
        json!({ "kubectl.kubernetes.io/default-container": "rolegate", "sidecar.istio.io/inject": "false" });
    let (two, limits) = (json!({ "limits": { "cpu": "2" } }), json!({ "cpu": "2", "memory": "512Mi" }));
    let backtrace = json!({ "name": "RUST_BACKTRACE", "value": "1" });
    let image = "/containers/0/image";
    vec![
        of("replicas", json!(5), "/spec/replicas", json!(5)),
        of("nameOverride", json!("holder"), "/metadata/name", json!("rolegate-holder")),
        of("podLabels", json!({ "team": "serving" }), "/spec/template/metadata/labels", labels),
        of("podAnnotations", inject, "/spec/template/metadata/annotations", annotations),
        in_pod("nodeSelector", json!({ "disk": "ssd" }), "/nodeSelector", ssd),
        in_pod("podSecurityContext", nobody, "/securityContext", secure),
        in_pod("image.repository", json!("example.invalid/gate"), image, json!("example.invalid/gate:0.1.0")),
        in_pod("image.tag", json!("9"), image, json!("rolegate:9")),
        in_pod("resources", two, "/containers/0/resources/limits", limits),
        in_pod("extraEnv", json!([backtrace]), "/containers/0/env/4", backtrace.clone()),
    ]
}

/// An argument at a position.
fn of_arguments() -> Vec<Effect> {
    let argument = |value, set: Value, position: u32, expected: &str| {
        (value, set, "Deployment", format!("{CONTAINER}/args/{position}"), json!(expected))
    };
    let devices = json!(["example.com/device", "gpu.io/*"]);
    let team = json!({ "matchLabels": { "team": "llm" } });
    vec![
        argument("webhookPort", json!(10443), 1, "--listen=[::]:10443"),
        argument("adminPort", json!(10080), 2, "--admin-listen=[::]:10080"),
        argument("listenAddress", json!("10.0.0.1"), 1, "--listen=10.0.0.1:9443"),
        argument("logFormat", json!("text"), 6, "--log-format=text"),
        argument("logLevel", json!("debug"), 7, "--log=debug"),
        argument("namespaces", json!(["a", "b"]), 7, "--namespaces=a,b"),
        argument("extraArguments", json!(["--strict"]), 7, "--strict"),
        argument("mode", json!("warn"), 7, "--mode=warn"),
        argument("rules", json!(["segment-ratio=off"]), 7, "--rule=segment-ratio=off"),
        argument("namespaceSelector", team, 7, r#"--namespace-selector={"matchLabels":{"team":"llm"}}"#),
        argument("allow", json!(["scale"]), 7, "--allow=scale"),
        argument("readyKinds", json!(["Job=jobs.v1.batch"]), 7, "--ready-kinds=Job=jobs.v1.batch"),
        argument("ignoreResources", devices, 7, "--ignore-resources=example.com/device,gpu.io/*"),
        argument("recreateMisStamped", json!(true), 7, "--recreate-mis-stamped"),
        argument("certificates", json!("cert-manager"), 7, "--cert-file=/certificates/tls.crt"),
    ]
}

/// A part of another object than the Deployment; at no path the whole object, which is not there.
fn of_other_objects() -> Vec<Effect> {
    let of = |value, set: Value, kind, path: &str, expected: Value| -> Effect {
        (value, set, kind, path.to_owned(), expected)
    };
    let none = |value, set: Value, kind| of(value, set, kind, "", Value::Null);
    let (mutating, validating) = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration");
    let (budget, network, quota) = ("PodDisruptionBudget", "NetworkPolicy", "ResourceQuota");
    let role = json!({ "cloud/role": "none" });
    let topology = json!("cluster-topology.rolegate.dev");
    let classes = "/spec/scopeSelector/matchExpressions/0/values";
    let selector = "/webhooks/0/namespaceSelector";
    let team = json!({ "matchLabels": { "team": "llm" } });
    vec![
        of("fullnameOverride", json!("gate"), mutating, "/metadata/name", json!("gate")),
        of("commonLabels", json!({ "team": "serving" }), "Service", "/metadata/labels/team", json!("serving")),
        of("serviceAccount.annotations", role.clone(), "ServiceAccount", "/metadata/annotations", role),
        none("podDisruptionBudget.enabled", json!(false), budget),
        of("podDisruptionBudget.maxUnavailable", json!("50%"), budget, "/spec/maxUnavailable", json!("50%")),
        of("policies.enabled", json!(true), "ValidatingAdmissionPolicy", "/metadata/name", topology),
        none("resourceQuota.enabled", json!(false), quota),
        none("priorityClassName", json!("mine"), quota),
        of("priorityClassName", json!("system-node-critical"), quota, classes, json!(["system-node-critical"])),
        none("networkPolicy.enabled", json!(false), network),
        of("kaiPods.enabled", json!(false), validating, "/webhooks/0/name", json!("objects.rolegate.dev")),
        of("kaiPods.enabled", json!(false), mutating, "/webhooks/4/name", json!("workloads.rolegate.dev")),
        none("hostNetwork", json!(true), network),
        of("webhookPort", json!(10443), network, "/spec/ingress/0/ports/0/port", json!(10443)),
        of("adminPort", json!(10080), network, "/spec/ingress/0/ports/1/port", json!(10080)),
        of("mode", json!("observe"), mutating, "/webhooks/0/failurePolicy", json!("Ignore")),
        of("namespaceSelector", team, mutating, &format!("{selector}/matchLabels/team"), json!("llm")),
        of("serviceMonitor", json!(true), "ServiceMonitor", "/metadata/name", json!("rolegate")),
        none("crds.enabled", json!(false), "CustomResourceDefinition"),
        of("crds.keep", json!(false), "CustomResourceDefinition", "/metadata/annotations", Value::Null),
        of("certificates", json!("cert-manager"), "Certificate", "/metadata/name", json!("rolegate")),
        of(
            "namespaces",
            json!(["a", "b"]),
            mutating,
            &format!("{selector}/matchExpressions/2/values"),
            json!(["a", "b"]),
        ),
    ]
}

/// What comes of each value.
fn effects() -> Vec<Effect> {
    [of_pods(), of_the_deployment(), of_arguments(), of_other_objects()].concat()
}

/// Values that another test holds: what is made for a test or an uninstall is rendered apart, and roles for people are among others.
const ELSEWHERE: &[&str] =
    &["test.enabled", "test.tryIn", "uninstall.enabled", "uninstall.deadlineSeconds", "aggregatedRoles.enabled"];
/// Values that are one, whatever is in them.
const WHOLE: &[&str] = &["resources", "podSecurityContext", "nodeSelector"];

/// All values of the chart, as `image.tag`.
fn known() -> BTreeSet<String> {
    fn add(path: &str, value: &Value, all: &mut BTreeSet<String>) {
        match value.as_object().filter(|map| !map.is_empty() && !WHOLE.contains(&path)) {
            Some(map) => map.iter().for_each(|(key, value)| {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                add(&path, value, all);
            }),
            None => _ = all.insert(path.to_owned()),
        }
    }
    let values = std::fs::read_to_string(root().join("deploy/chart/values.yaml")).unwrap();
    let mut all = BTreeSet::new();
    add("", &serde_saphyr::from_str(&values).unwrap(), &mut all);
    all
}

fn rendered(value: &str, set: &Value) -> Objects {
    objects(&template(&["--set-json", &format!("{value}={set}")]))
}

#[test]
fn every_value_does_what_it_says() {
    let by_default = objects(&template(&[]));
    let mut tried: BTreeSet<_> = ELSEWHERE.iter().map(|value| (*value).to_owned()).collect();
    for (value, set, kind, path, expected) in effects() {
        let found = rendered(value, &set);
        let at = first(&found, kind).pointer(&path).cloned().unwrap_or_default();
        assert_eq!(at, expected, "{value}={set}: {kind} {path}");
        assert_ne!(found, by_default, "{value}={set}");
        tried.insert(value.to_owned());
    }
    assert_eq!(known(), tried, "a value without a row, or a row without a value");
}

/// Two pods on the network of one node would want the same ports, and the API server reaches them there.
#[test]
fn on_the_network_of_the_nodes_ports_are_the_nodes_and_a_rollout_makes_room_first() {
    let more = ["--set", "hostNetwork=true", "--set", "webhookPort=10443"];
    let found = objects(&template(&more));
    let deployment = first(&found, "Deployment");
    let ports = deployment.pointer(CONTAINER).unwrap()["ports"].clone();
    assert_eq!((&ports[0]["containerPort"], &ports[0]["hostPort"]), (&json!(10443), &json!(10443)));
    assert_eq!(ports[1]["hostPort"], 9080);
    assert_eq!(deployment.pointer(POD).unwrap()["dnsPolicy"], "ClusterFirstWithHostNet");
    let update = &deployment["spec"]["strategy"]["rollingUpdate"];
    assert_eq!(*update, json!({ "maxSurge": 0, "maxUnavailable": 1 }));
}

#[test]
fn the_api_server_accepts_what_comes_of_every_value() {
    let by_default = objects(&template(&[]));
    let mut changed = Vec::new();
    for (value, set, ..) in effects() {
        // The definition of the Prometheus operator is not there.
        let mut found = rendered(value, &set);
        if value == "extraVolumeMounts" {
            let volume = r#"extraVolumes=[{"name":"more","emptyDir":{}}]"#;
            found = objects(&template(&["--set-json", &format!("{value}={set}"), "--set-json", volume]));
        }
        let found = found.into_iter().filter(|([kind, ..], _)| kind != "ServiceMonitor");
        changed.extend(found.filter(|(key, object)| by_default.get(key) != Some(object)).map(|(_, object)| {
            let name = object["metadata"]["name"].clone();
            (format!("{value}={set}: {} {name}", object["kind"]), object)
        }));
    }
    // One after the other would take a kubectl each.
    for (position, (_, object)) in changed.iter_mut().enumerate() {
        let kind = object["kind"].as_str().unwrap();
        if !["CustomResourceDefinition", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]
            .contains(&kind)
        {
            object["metadata"]["name"] = json!(format!("{}-{position}", object["metadata"]["name"].as_str().unwrap()));
        }
    }
    let yaml: Vec<_> = changed.iter().map(|(_, object)| object.to_string()).collect();
    let done = DRY.get().must(DRY_RUN, &yaml.join("\n---\n"));
    assert!(changed.len() > 60 && done.lines().count() == changed.len(), "{} objects: {done}", changed.len());
}

#[test]
fn the_chart_is_sound_and_refuses_values_that_it_does_not_know() {
    helm(&["lint", "--strict", &chart()]);
    let everything: Vec<_> = effects().into_iter().map(|(value, set, ..)| format!("{value}={set}")).collect();
    let set: Vec<_> = everything.iter().flat_map(|value| ["--set-json", value]).collect();
    helm(&[&["lint", "--strict", &chart()], &set[..]].concat());
    for (wrong, words) in [
        (r#"certificates="none""#, "certificates"),
        ("replicas=0", "replicas"),
        ("replica=3", "replica"),
        (r#"allow=["scaling"]"#, "allow"),
        (r#"mode="dryrun""#, "mode"),
        (r#"rules=["segment-ratio"]"#, "rules"),
        (r#"namespaceSelector={"matchLabel":{}}"#, "matchLabel"),
        (r#"image.repo="x""#, "repo"),
        (r#"image.pullPolicy="Sometimes""#, "pullPolicy"),
        (r#"hostNetwork="yes""#, "hostNetwork"),
        ("webhookPort=70000", "webhookPort"),
        (r#"adminPort="http""#, "adminPort"),
        (r#"dnsPolicy="None""#, "dnsPolicy"),
        (r#"nameOverride="Role_Gate""#, "nameOverride"),
        (r#"logFormat="xml""#, "logFormat"),
        ("podDisruptionBudget.enable=true", "enable"),
        (r#"podDisruptionBudget.maxUnavailable="half""#, "maxUnavailable"),
        ("networkPolicy=false", "networkPolicy"),
        ("crds.keeps=true", "keeps"),
        (r#"extraEnv=["A"]"#, "extraEnv"),
        (r#"extraEnv=[{"nam":"A"}]"#, "extraEnv"),
        (r#"extraVolumes=[{"emptyDir":{}}]"#, "extraVolumes"),
        (r#"tolerations=[{"tolerate":"all"}]"#, "tolerate"),
        (r#"affinity={"nodes":{}}"#, "nodes"),
        (r#"nodeSelector={"a":1}"#, "nodeSelector"),
        (r#"extraArguments="--strict""#, "extraArguments"),
        // The chart gives these itself, and the program refuses one that comes twice.
        (r#"extraArguments=["--strict","--listen=[::]:1"]"#, "extraArguments"),
        (r#"extraArguments=["--admin-listen"]"#, "extraArguments"),
        (r#"listenAddress="localhost""#, "listenAddress"),
        (r#"podSecurityContext={"runAsUsers":1}"#, "runAsUsers"),
        ("resourceQuota.enable=true", "enable"),
        ("uninstall.deadlineSeconds=0", "deadlineSeconds"),
        (r#"namespaces=["A"]"#, "namespaces"),
        // A label that its selectors look for.
        (r#"commonLabels={"app.kubernetes.io/name":"x"}"#, "invalid propertyName"),
        (r#"podLabels={"app.kubernetes.io/name":"x"}"#, "invalid propertyName"),
    ] {
        let output = try_helm(&["template", &chart(), "--set-json", wrong]);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && errors.contains(words), "{wrong}: {errors}");
    }
}
