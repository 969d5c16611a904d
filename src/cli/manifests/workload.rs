//! The Deployment and its PodDisruptionBudget.

use serde_json::{Value, json};

use super::certificates::serving_secret;
use super::settings::{Settings, port};

/// Mount path of the serving certificate.
const MOUNT: &str = "/certificates";

pub fn objects(settings: &Settings) -> Vec<Value> {
    let metadata = super::metadata(settings, &settings.name, &Value::Null);
    let selector = json!({ "matchLabels": super::selector(settings) });
    let [max_surge, max_unavailable] = &settings.surge;
    let deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {
            "#replicas": "The webhook answers on all of them; the loop runs on the one that holds the Lease.",
            "replicas": settings.replicas,
            "revisionHistoryLimit": 3,
            "progressDeadlineSeconds": 600,
            "selector": selector,
            "#strategy": "Never fewer than are asked for: pods of groups are refused while none answers.",
            "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": max_unavailable, "maxSurge": max_surge } },
            "template": {
                "metadata": {
                    "labels": { super::OWN_LABEL: settings.name, "+": settings.more.labels },
                    "annotations": {
                        "kubectl.kubernetes.io/default-container": "rolegate",
                        "+": settings.more.annotations,
                    },
                },
                "spec": pod(settings),
            },
        },
    });
    let budget = json!({
        "?": "disruption-budget",
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata,
        "spec": {
            "maxUnavailable": settings.disruption,
            "selector": selector,
            "#unhealthyPodEvictionPolicy": "A replica that does not answer is no reason to keep a node from being drained.",
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    });
    let quota = json!({
        "?": "resource-quota",
        "#": "Some platforms admit pods of the system's classes only where a quota is for them. Of other pods it says nothing.",
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": metadata,
        "spec": {
            "hard": { "pods": "1k" },
            "scopeSelector": {
                "matchExpressions": [
                    { "scopeName": "PriorityClass", "operator": "In", "values": [settings.priority_class] },
                ],
            },
        },
    });
    vec![quota, deployment, budget]
}

fn pod(settings: &Settings) -> Value {
    let selector = json!({ "matchLabels": super::selector(settings) });
    let secret = json!({ "secretName": serving_secret(&settings.name), "defaultMode": 0o440 });
    let certificates = json!({ "name": "certificates", "secret": secret });
    json!({
        "serviceAccountName": settings.name,
        "automountServiceAccountToken": true,
        "#priorityClassName": "Pods of groups cannot start without us.",
        "priorityClassName": settings.priority_class,
        "#terminationGracePeriodSeconds": "Ten seconds of serving on while endpoints are updated, and what is in flight.",
        "terminationGracePeriodSeconds": 40,
        "imagePullSecrets": settings.more.pull_secrets,
        "nodeSelector": settings.more.node_selector,
        "tolerations": settings.more.tolerations,
        "securityContext": security_of_pods(settings),
        "affinity": or_ours(&settings.more.affinity, json!({
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{
                    "weight": 100,
                    "podAffinityTerm": { "topologyKey": "kubernetes.io/hostname", "labelSelector": selector },
                }],
            },
        })),
        "topologySpreadConstraints": or_ours(&settings.more.spread, json!([
            {
                "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": selector,
                "matchLabelKeys": ["pod-template-hash"],
            },
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": settings.when_unsatisfiable,
                "labelSelector": selector,
                "#matchLabelKeys": "Each revision is spread by itself, or the last replica of a rollout finds no node.",
                "matchLabelKeys": ["pod-template-hash"],
            },
        ])),
        "?hostNetwork": "host-network",
        "hostNetwork": true,
        "dnsPolicy": settings.dns_policy,
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "containers": [container(settings)],
        "?volumes": "volumes",
        "volumes": [
            { "=": certificates, "?": "cert-manager" },
            settings.more.volumes,
        ],
    })
}

/// Returns the pod `securityContext` that the restricted Pod Security Standard requires.
pub fn pod_security() -> Value {
    json!({
        "runAsNonRoot": true,
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "fsGroup": 65532,
        "seccompProfile": { "type": "RuntimeDefault" },
    })
}

/// Returns the chart's pod `securityContext`, or ours.
pub fn security_of_pods(settings: &Settings) -> Value {
    if settings.more.by_helm {
        return settings.more.pod_security.clone();
    }
    let mut ours = pod_security();
    if let Some(fields) = ours.as_object_mut() {
        fields.extend(["runAsUser", "runAsGroup", "fsGroup"].map(|key| (format!("?{key}"), json!("user-ids"))));
    }
    ours
}

/// Returns the flags of `serve` that are always given: it refuses a flag given twice.
pub fn given() -> Vec<String> {
    let container = container(&Settings::default());
    let all = container.pointer("/args").and_then(Value::as_array);
    let flags = all.into_iter().flatten().filter_map(|argument| argument.as_str()?.strip_prefix("--")?.split_once('='));
    flags.map(|(flag, _)| flag.to_owned()).collect()
}

/// Returns the container `securityContext` that the restricted Pod Security Standard requires.
pub fn container_security() -> Value {
    json!({
        "allowPrivilegeEscalation": false,
        "readOnlyRootFilesystem": true,
        "capabilities": { "drop": ["ALL"] },
    })
}

/// Returns the chart's value, with ours as its default.
fn or_ours(value: &Value, ours: Value) -> Value {
    match value.as_str() {
        Some(with) => json!({ with: ours }),
        None => ours,
    }
}

fn container(settings: &Settings) -> Value {
    let field = |path: &str| json!({ "fieldRef": { "apiVersion": "v1", "fieldPath": path } });
    let probe = |path: &str, period: u32, failures: u32| {
        json!({
            "httpGet": { "path": path, "port": "admin", "scheme": "HTTP" },
            "successThreshold": 1,
            "periodSeconds": period,
            "failureThreshold": failures,
            "timeoutSeconds": 2,
        })
    };
    let namespaces =
        (!settings.namespaces.is_empty()).then(|| format!("--namespaces={}", settings.namespaces.join(",")));
    let rules = (!settings.rules.is_empty()).then(|| format!("--rule={}", settings.rules));
    let of_cert_manager = |argument: String| json!({ "=": argument, "?": "cert-manager" });
    json!({
        "name": "rolegate",
        "image": settings.image,
        "imagePullPolicy": settings.pull_policy,
        "args": [
            "serve",
            format!("--listen={}:{}", settings.listen_address, settings.webhook_port),
            format!("--admin-listen={}:{}", settings.listen_address, settings.admin_port),
            format!("--name={}", settings.name),
            format!("--reach=service/{}", settings.name),
            "--drain-grace=10s",
            format!("--log-format={}", settings.log_format),
            { "=": format!("--log={}", settings.log_level), "?": "log-level" },
            { "=": namespaces, "?": "namespaces" },
            of_cert_manager(format!("--cert-file={MOUNT}/tls.crt")),
            of_cert_manager(format!("--key-file={MOUNT}/tls.key")),
            { "=": "--recreate-mis-stamped", "?": "recreate-mis-stamped" },
            { "=": settings.mode_argument, "?": "mode" },
            { "=": rules, "?": "rules" },
            { "=": settings.selector_argument, "?": "selector" },
            { "=": format!("--allow={}", settings.allow), "?": "allow" },
            { "=": format!("--ready-kinds={}", settings.ready_kinds), "?": "ready-kinds" },
            { "=": format!("--ignore-resources={}", settings.ignored_resources), "?": "ignore-resources" },
            { "=": "--kai-pods=off", "?": "not kai-pods" },
            settings.arguments,
        ],
        "#env": "What is freed goes back to the node at once, and huge pages do not round it up: the allocator is mimalloc.",
        "env": [
            { "name": "POD_NAME", "valueFrom": field("metadata.name") },
            { "name": "POD_NAMESPACE", "valueFrom": field("metadata.namespace") },
            { "name": "MIMALLOC_PURGE_DELAY", "value": "0" },
            { "name": "MIMALLOC_ALLOW_THP", "value": "0" },
            settings.more.env,
        ],
        "ports": [opened("webhook", &settings.webhook_port), opened("admin", &settings.admin_port)],
        "startupProbe": probe("/livez", 1, 30),
        "#livenessProbe": "Only that the process answers. What else is wrong is not cured by a restart.",
        "livenessProbe": probe("/livez", 10, 3),
        "#readinessProbe": "Every watch has listed, and a call of its own with TLS was answered.",
        "readinessProbe": probe("/readyz", 2, 2),
        "#resources": "Memory is limited, processor time is not: a webhook that is throttled makes pods wait, up to the \
                       timeout of three seconds.",
        "resources": settings.resources,
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "securityContext": container_security(),
        "?volumeMounts": "volume-mounts",
        "volumeMounts": [
            { "=": { "name": "certificates", "mountPath": MOUNT, "readOnly": true }, "?": "cert-manager" },
            settings.more.mounts,
        ],
    })
}

/// Returns a port of the container; on the host network, it is a host port too.
fn opened(name: &str, number: &str) -> Value {
    let number = port(number);
    json!({ "name": name, "containerPort": number, "protocol": "TCP", "?hostPort": "host-network", "hostPort": number })
}
