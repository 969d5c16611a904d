//! The values of the Helm chart, with their defaults.

use serde_json::{Map, Value, json};

use super::settings::{EVERYWHERE, Settings, port};
use super::workload::pod_security;

/// Returns the values and defaults of `values.yaml`.
pub fn chart_values() -> Map<String, Value> {
    let defaults = Settings::default();
    let (repository, _) = defaults.image.rsplit_once(':').unwrap_or_default();
    let values = json!({
        "#image": "The tag is the chart's appVersion when empty.",
        "image": { "repository": repository, "tag": "", "pullPolicy": defaults.pull_policy },
        "imagePullSecrets": [],
        "#replicas": "The webhook runs on all of them, the loop on one.",
        "replicas": defaults.replicas,
        "#whenUnsatisfiable": "DoNotSchedule: no node gets a second replica while another can have its first. ScheduleAnyway: it may.",
        "whenUnsatisfiable": defaults.when_unsatisfiable,
        "#certificates": "self-managed, or cert-manager: then its controller and CA injector must be installed.",
        "certificates": "self-managed",
        "#serviceMonitor": "Takes the definition of the Prometheus operator.",
        "serviceMonitor": false,
        "#recreateMisStamped": "Held pods that were made for another batch are deleted, to be made again: takes the right to delete pods.",
        "recreateMisStamped": false,
        "#mode": "How much is done: enforce, warn (what breaks a rule is let in with a warning) or observe (nothing is refused, \
                  held or written; failurePolicy is Ignore). A namespace's label rolegate.dev/mode goes before it.",
        "mode": "enforce",
        "#rules": "How much single rules weigh, as segment-ratio=off or segment-remainder=deny.",
        "rules": [],
        "#namespaceSelector": "Serve only namespaces with these labels: matchLabels and matchExpressions of a LabelSelector.",
        "namespaceSelector": {},
        "#allow": "What is done beyond gates, statuses and partitions, with the rights that it takes: scale (workloads of \
                   elastic groups), recovery (pods of a batch that broke are deleted).",
        "allow": [],
        "#extraArguments": "More arguments of `rolegate serve`, as --strict.",
        "extraArguments": [],
        "#resources": "Requests and limits. Processor time is not limited: see the Deployment.",
        "resources": defaults.resources,
        "#priorityClassName": "Pods of groups cannot start without us.",
        "priorityClassName": defaults.priority_class,
        "#resourceQuota": "A ResourceQuota that lets the class in, where it is one of the system's: some platforms limit these to \
                           namespaces that have one.",
        "resourceQuota": { "enabled": true },
        "#podSecurityContext": "Where the platform chooses user and groups, as OpenShift: runAsUser, runAsGroup and fsGroup are null.",
        "podSecurityContext": pod_security(),
        "#nodeSelector": "Images are for Linux.",
        "nodeSelector": defaults.more.node_selector,
        "tolerations": [],
    });
    let all = [values, names(), pods(&defaults), around(&defaults)].into_iter().filter_map(|values| match values {
        Value::Object(values) => Some(values),
        _ => None,
    });
    all.flatten().collect()
}

/// Returns the values for names and labels.
fn names() -> Value {
    json!({
        "#nameOverride": "Objects are called as the release, and rolegate behind it where its name does not say so: this word \
                          instead of rolegate.",
        "nameOverride": "",
        "#fullnameOverride": "The whole name of every object.",
        "fullnameOverride": "",
        "#commonLabels": "On every object, those of the pods included; not in selectors.",
        "commonLabels": {},
    })
}

/// Returns the values for the pods.
fn pods(defaults: &Settings) -> Value {
    json!({
        "#affinity": "Instead of ours, which prefers nodes that have no replica yet.",
        "affinity": {},
        "#topologySpreadConstraints": "Instead of ours, over zones and nodes; whenUnsatisfiable is of ours.",
        "topologySpreadConstraints": [],
        "podLabels": {},
        "podAnnotations": {},
        "#extraEnv": "Variables, volumes and mounts beside ours, as Kubernetes writes them.",
        "extraEnv": [],
        "extraVolumes": [],
        "extraVolumeMounts": [],
        "#hostNetwork": "For clusters whose API server cannot reach pods. Pods then listen on their nodes: two never share one, \
                         a rollout takes one away first, and no NetworkPolicy is for them. The namespace must not enforce more \
                         than the privileged Pod Security Standard.",
        "hostNetwork": false,
        "#dnsPolicy": "ClusterFirst when empty, with hostNetwork ClusterFirstWithHostNet.",
        "dnsPolicy": "",
        "#listenAddress": "Address that the pods listen at; `::` is all of them, IPv4 and IPv6.",
        "listenAddress": EVERYWHERE.to_string(),
        "#webhookPort": "Ports of the pods; with hostNetwork of the nodes, where others may have them.",
        "webhookPort": port(&defaults.webhook_port),
        "adminPort": port(&defaults.admin_port),
        "#logFormat": "json or text.",
        "logFormat": defaults.log_format,
        "#logLevel": "As `serve --log` takes it, as debug or rolegate=debug,warn; its default when empty.",
        "logLevel": "",
    })
}

/// Returns the values for the objects besides the pods.
fn around(defaults: &Settings) -> Value {
    json!({
        "#namespaces": "Serve these only; all when empty.",
        "namespaces": [],
        "serviceAccount": { "annotations": {} },
        "#podDisruptionBudget": "How many replicas a drain may take at a time: a number, or a share as 50%.",
        "podDisruptionBudget": { "enabled": true, "maxUnavailable": defaults.disruption },
        "#networkPolicy": "Limits what comes in to the two ports.",
        "networkPolicy": { "enabled": true },
        "#aggregatedRoles": "What people may do with RoleCoordinations, in the cluster's roles view, edit and admin.",
        "aggregatedRoles": { "enabled": true },
        "#kaiPods": "The webhooks for pods which name a PodGroup of KAI. Without KAI they can go: then pods of no group cost \
                     the API server nothing.",
        "kaiPods": { "enabled": true },
        "#uninstall": "Before `helm uninstall` deletes anything, a Job runs `rolegate uninstall`, with rights that are there for so long: \
                       nothing stays held. Without, run it yourself first.",
        "uninstall": { "enabled": true, "deadlineSeconds": defaults.uninstall_deadline },
        "#test": "`helm test` runs `rolegate doctor` in a pod, with rights that are there for so long: to look, and to try a pod in \
                  this namespace, as a dry run.",
        "test": { "enabled": true, "tryIn": "default" },
        "#crds": "The definitions of RoleCoordination and ClusterTopology, upgraded with the chart. One release has them: a second \
                  one in the cluster says enabled: false.",
        "crds": {
            "enabled": true,
            "#keep": "An uninstall leaves them. Without, it takes them, and every RoleCoordination and ClusterTopology with them.",
            "keep": true,
        },
    })
}
