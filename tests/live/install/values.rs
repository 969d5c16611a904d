//! The values of the Helm chart: each does what it says, and a wrong one is refused.

use crate::common::prelude::*;
use crate::install::render::{Objects, chart, first, helm, objects, root, template, try_helm};
use crate::install::support::{DRY, DRY_RUN};

/// A value, what it is set to, and what that makes of an object of a kind, at a path.
type Effect = (&'static str, Value, &'static str, &'static str, Value);

const POD: &str = "/spec/template/spec";
const CONTAINER: &str = "/spec/template/spec/containers/0";

/// What comes of each value.
fn effects() -> Vec<Effect> {
    [of_pods(), of_containers(), of_the_whole()].concat()
}

fn of_pods() -> Vec<Effect> {
    let of = |value, set: Value, field: &'static str| (value, set.clone(), "Deployment", field, set);
    let term = json!({ "matchExpressions": [{ "key": "disk", "operator": "Exists" }] });
    let affinity = json!({
        "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [term] } },
    });
    let spread = json!([{ "maxSkew": 2, "topologyKey": "room", "whenUnsatisfiable": "ScheduleAnyway" }]);
    vec![
        of("affinity", affinity, "/spec/template/spec/affinity"),
        of("topologySpreadConstraints", spread, "/spec/template/spec/topologySpreadConstraints"),
        (
            "nodeSelector",
            json!({ "disk": "ssd" }),
            "Deployment",
            "/spec/template/spec/nodeSelector",
            json!({ "disk": "ssd", "kubernetes.io/os": "linux" }),
        ),
        (
            "podSecurityContext",
            json!({ "runAsUser": null, "runAsGroup": null, "fsGroup": null }),
            "Deployment",
            "/spec/template/spec/securityContext",
            json!({ "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" } }),
        ),
        of("tolerations", json!([{ "operator": "Exists" }]), "/spec/template/spec/tolerations"),
        of("imagePullSecrets", json!([{ "name": "pull" }]), "/spec/template/spec/imagePullSecrets"),
        of("priorityClassName", json!("mine"), "/spec/template/spec/priorityClassName"),
        of("dnsPolicy", json!("Default"), "/spec/template/spec/dnsPolicy"),
        of("hostNetwork", json!(true), "/spec/template/spec/hostNetwork"),
        of("replicas", json!(5), "/spec/replicas"),
        (
            "whenUnsatisfiable",
            json!("DoNotSchedule"),
            "Deployment",
            "/spec/template/spec/topologySpreadConstraints/1/whenUnsatisfiable",
            json!("DoNotSchedule"),
        ),
        (
            "podLabels",
            json!({ "team": "serving" }),
            "Deployment",
            "/spec/template/metadata/labels",
            json!({ "app.kubernetes.io/name": "rolegate", "team": "serving" }),
        ),
        (
            "podAnnotations",
            json!({ "sidecar.istio.io/inject": "false" }),
            "Deployment",
            "/spec/template/metadata/annotations",
            json!({ "kubectl.kubernetes.io/default-container": "rolegate", "sidecar.istio.io/inject": "false" }),
        ),
        (
            "extraVolumes",
            json!([{ "name": "more", "emptyDir": {} }]),
            "Deployment",
            "/spec/template/spec/volumes",
            json!([{ "name": "more", "emptyDir": {} }]),
        ),
    ]
}

fn of_containers() -> Vec<Effect> {
    let argument = |value, set: Value, position, expected: &str| (value, set, "Deployment", position, json!(expected));
    let image = "/spec/template/spec/containers/0/image";
    vec![
        ("image.repository", json!("example.invalid/gate"), "Deployment", image, json!("example.invalid/gate:0.1.0")),
        ("image.tag", json!("9"), "Deployment", image, json!("rolegate:9")),
        (
            "image.pullPolicy",
            json!("Always"),
            "Deployment",
            "/spec/template/spec/containers/0/imagePullPolicy",
            json!("Always"),
        ),
        (
            "resources",
            json!({ "limits": { "cpu": "2" } }),
            "Deployment",
            "/spec/template/spec/containers/0/resources/limits",
            json!({ "cpu": "2", "memory": "512Mi" }),
        ),
        (
            "extraEnv",
            json!([{ "name": "RUST_BACKTRACE", "value": "1" }]),
            "Deployment",
            "/spec/template/spec/containers/0/env/4",
            json!({ "name": "RUST_BACKTRACE", "value": "1" }),
        ),
        (
            "extraVolumeMounts",
            json!([{ "name": "more", "mountPath": "/more" }]),
            "Deployment",
            "/spec/template/spec/containers/0/volumeMounts",
            json!([{ "name": "more", "mountPath": "/more" }]),
        ),
        argument("webhookPort", json!(10443), "/spec/template/spec/containers/0/args/1", "--listen=[::]:10443"),
        argument("adminPort", json!(10080), "/spec/template/spec/containers/0/args/2", "--admin-listen=[::]:10080"),
        argument(
            "listenAddress",
            json!("10.0.0.1"),
            "/spec/template/spec/containers/0/args/1",
            "--listen=10.0.0.1:9443",
        ),
        argument("logFormat", json!("text"), "/spec/template/spec/containers/0/args/6", "--log-format=text"),
        argument("logLevel", json!("debug"), "/spec/template/spec/containers/0/args/7", "--log=debug"),
        argument("namespaces", json!(["a", "b"]), "/spec/template/spec/containers/0/args/7", "--namespaces=a,b"),
        argument("extraArguments", json!(["--strict"]), "/spec/template/spec/containers/0/args/7", "--strict"),
        argument("mode", json!("warn"), "/spec/template/spec/containers/0/args/7", "--mode=warn"),
        argument(
            "rules",
            json!(["segment-ratio=off"]),
            "/spec/template/spec/containers/0/args/7",
            "--rule=segment-ratio=off",
        ),
        argument(
            "namespaceSelector",
            json!({ "matchLabels": { "team": "llm" } }),
            "/spec/template/spec/containers/0/args/7",
            r#"--namespace-selector={"matchLabels":{"team":"llm"}}"#,
        ),
        argument("allow", json!(["scale"]), "/spec/template/spec/containers/0/args/7", "--allow=scale"),
        argument(
            "readyKinds",
            json!(["Job=jobs.v1.batch"]),
            "/spec/template/spec/containers/0/args/7",
            "--ready-kinds=Job=jobs.v1.batch",
        ),
        argument(
            "ignoreResources",
            json!(["example.com/device", "gpu.io/*"]),
            "/spec/template/spec/containers/0/args/7",
            "--ignore-resources=example.com/device,gpu.io/*",
        ),
        argument(
            "recreateMisStamped",
            json!(true),
            "/spec/template/spec/containers/0/args/7",
            "--recreate-mis-stamped",
        ),
        argument(
            "certificates",
            json!("cert-manager"),
            "/spec/template/spec/containers/0/args/7",
            "--cert-file=/certificates/tls.crt",
        ),
    ]
}

fn of_the_whole() -> Vec<Effect> {
    vec![
        ("nameOverride", json!("holder"), "Deployment", "/metadata/name", json!("rolegate-holder")),
        ("fullnameOverride", json!("gate"), "MutatingWebhookConfiguration", "/metadata/name", json!("gate")),
        ("commonLabels", json!({ "team": "serving" }), "Service", "/metadata/labels/team", json!("serving")),
        (
            "serviceAccount.annotations",
            json!({ "cloud/role": "none" }),
            "ServiceAccount",
            "/metadata/annotations",
            json!({ "cloud/role": "none" }),
        ),
        ("podDisruptionBudget.enabled", json!(false), "PodDisruptionBudget", "", Value::Null),
        (
            "podDisruptionBudget.maxUnavailable",
            json!("50%"),
            "PodDisruptionBudget",
            "/spec/maxUnavailable",
            json!("50%"),
        ),
        (
            "policies.enabled",
            json!(true),
            "ValidatingAdmissionPolicy",
            "/metadata/name",
            json!("cluster-topology.rolegate.dev"),
        ),
        ("resourceQuota.enabled", json!(false), "ResourceQuota", "", Value::Null),
        ("priorityClassName", json!("mine"), "ResourceQuota", "", Value::Null),
        (
            "priorityClassName",
            json!("system-node-critical"),
            "ResourceQuota",
            "/spec/scopeSelector/matchExpressions/0/values",
            json!(["system-node-critical"]),
        ),
        ("networkPolicy.enabled", json!(false), "NetworkPolicy", "", Value::Null),
        (
            "kaiPods.enabled",
            json!(false),
            "ValidatingWebhookConfiguration",
            "/webhooks/0/name",
            json!("objects.rolegate.dev"),
        ),
        (
            "kaiPods.enabled",
            json!(false),
            "MutatingWebhookConfiguration",
            "/webhooks/4/name",
            json!("workloads.rolegate.dev"),
        ),
        ("hostNetwork", json!(true), "NetworkPolicy", "", Value::Null),
        ("webhookPort", json!(10443), "NetworkPolicy", "/spec/ingress/0/ports/0/port", json!(10443)),
        ("adminPort", json!(10080), "NetworkPolicy", "/spec/ingress/0/ports/1/port", json!(10080)),
        ("mode", json!("observe"), "MutatingWebhookConfiguration", "/webhooks/0/failurePolicy", json!("Ignore")),
        (
            "namespaceSelector",
            json!({ "matchLabels": { "team": "llm" } }),
            "MutatingWebhookConfiguration",
            "/webhooks/0/namespaceSelector/matchLabels/team",
            json!("llm"),
        ),
        ("serviceMonitor", json!(true), "ServiceMonitor", "/metadata/name", json!("rolegate")),
        ("crds.enabled", json!(false), "CustomResourceDefinition", "", Value::Null),
        ("crds.keep", json!(false), "CustomResourceDefinition", "/metadata/annotations", Value::Null),
        ("certificates", json!("cert-manager"), "Certificate", "/metadata/name", json!("rolegate")),
        (
            "namespaces",
            json!(["a", "b"]),
            "MutatingWebhookConfiguration",
            "/webhooks/0/namespaceSelector/matchExpressions/2/values",
            json!(["a", "b"]),
        ),
    ]
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
        let at = first(&found, kind).pointer(path).cloned().unwrap_or_default();
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
