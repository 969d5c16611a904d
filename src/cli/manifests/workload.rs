//! The pods.

use serde_json::{Value, json};

use super::certificates::serving_secret;
use super::settings::Settings;
use super::{ADMIN_PORT, WEBHOOK_PORT};

/// Where the serving certificate is mounted.
const MOUNT: &str = "/certificates";

/// The Deployment, and what evictions must leave.
pub fn objects(settings: &Settings) -> Vec<Value> {
    let metadata = json!({ "name": settings.name, "namespace": settings.namespace, "labels": super::labels(settings) });
    let selector = json!({ "matchLabels": super::selector(settings) });
    let deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {
            "#replicas": "The webhook answers on all of them; the loop runs on the one that holds the Lease.",
            "replicas": settings.replicas,
            "revisionHistoryLimit": 3,
            "selector": selector,
            "#strategy": "Never fewer than are asked for: pods of groups are refused while none answers.",
            "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": 0, "maxSurge": 1 } },
            "template": {
                "metadata": {
                    "labels": super::labels(settings),
                    "annotations": { "kubectl.kubernetes.io/default-container": "rolegate" },
                },
                "spec": pod(settings),
            },
        },
    });
    let budget = json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata,
        "spec": {
            "maxUnavailable": 1,
            "selector": selector,
            "#unhealthyPodEvictionPolicy": "A replica that does not answer is no reason to keep a node from being drained.",
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    });
    vec![deployment, budget]
}

fn pod(settings: &Settings) -> Value {
    let selector = json!({ "matchLabels": super::selector(settings) });
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
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": 65532,
            "runAsGroup": 65532,
            "fsGroup": 65532,
            "seccompProfile": { "type": "RuntimeDefault" },
        },
        "affinity": {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{
                    "weight": 100,
                    "podAffinityTerm": { "topologyKey": "kubernetes.io/hostname", "labelSelector": selector },
                }],
            },
        },
        "topologySpreadConstraints": [
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
        ],
        "containers": [container(settings)],
        "?volumes": "cert-manager",
        "volumes": [{ "name": "certificates", "secret": { "secretName": serving_secret(&settings.name), "defaultMode": 0o440 } }],
    })
}

fn container(settings: &Settings) -> Value {
    let field = |path: &str| json!({ "fieldRef": { "fieldPath": path } });
    let probe = |path: &str, period: u32, failures: u32| {
        json!({
            "httpGet": { "path": path, "port": "admin" },
            "periodSeconds": period,
            "failureThreshold": failures,
            "timeoutSeconds": 2,
        })
    };
    let of_cert_manager = |argument: String| json!({ "=": argument, "?": "cert-manager" });
    let namespaces =
        (!settings.namespaces.is_empty()).then(|| format!("--namespaces={}", settings.namespaces.join(",")));
    json!({
        "name": "rolegate",
        "image": settings.image,
        "imagePullPolicy": settings.pull_policy,
        "args": [
            "serve",
            format!("--listen=0.0.0.0:{WEBHOOK_PORT}"),
            format!("--admin-listen=0.0.0.0:{ADMIN_PORT}"),
            format!("--name={}", settings.name),
            format!("--reach=service/{}", settings.name),
            "--drain-grace=10s",
            "--log-format=json",
            namespaces,
            of_cert_manager(format!("--cert-file={MOUNT}/tls.crt")),
            of_cert_manager(format!("--key-file={MOUNT}/tls.key")),
            { "=": "--recreate-mis-stamped", "?": "recreate-mis-stamped" },
            { "=": settings.mode_argument, "?": "mode" },
            { "=": format!("--rule={}", settings.rules), "?": "rules" },
            { "=": settings.selector_argument, "?": "selector" },
            { "=": format!("--allow={}", settings.allow), "?": "allow" },
            settings.arguments,
        ],
        "#env": "What is freed goes back to the node at once, and huge pages do not round it up: the allocator is mimalloc.",
        "env": [
            { "name": "POD_NAME", "valueFrom": field("metadata.name") },
            { "name": "POD_NAMESPACE", "valueFrom": field("metadata.namespace") },
            { "name": "MIMALLOC_PURGE_DELAY", "value": "0" },
            { "name": "MIMALLOC_ALLOW_THP", "value": "0" },
        ],
        "ports": [
            { "name": "webhook", "containerPort": WEBHOOK_PORT },
            { "name": "admin", "containerPort": ADMIN_PORT },
        ],
        "startupProbe": probe("/livez", 1, 30),
        "#livenessProbe": "Only that the process answers. What else is wrong is not cured by a restart.",
        "livenessProbe": probe("/livez", 10, 3),
        "#readinessProbe": "Every watch has listed, and a call of its own with TLS was answered.",
        "readinessProbe": probe("/readyz", 2, 2),
        "#resources": "Memory is limited, processor time is not: a webhook that is throttled makes pods wait, up to the \
                       timeout of three seconds.",
        "resources": settings.resources,
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": { "drop": ["ALL"] },
        },
        "?volumeMounts": "cert-manager",
        "volumeMounts": [{ "name": "certificates", "mountPath": MOUNT, "readOnly": true }],
    })
}
