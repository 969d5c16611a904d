//! The values of the Helm chart, with their defaults.

use serde_json::{Map, Value, json};

use super::settings::{EVERYWHERE, Settings, port};
use super::workload::pod_security;

/// Returns the values and defaults of `values.yaml`.
pub fn chart_values() -> Map<String, Value> {
    let defaults = Settings::default();
    let (repository, _) = defaults.image.rsplit_once(':').unwrap_or_default();
    let values = json!({
        "#image": "The tag is the chart's appVersion by default.",
        "image": { "repository": repository, "tag": "", "pullPolicy": defaults.pull_policy },
        "imagePullSecrets": [],
        "#replicas": "The webhook runs on all replicas, the loop on one.",
        "replicas": defaults.replicas,
        "#whenUnsatisfiable": "DoNotSchedule requires different nodes while there are enough; ScheduleAnyway prefers \
                               them.",
        "whenUnsatisfiable": defaults.when_unsatisfiable,
        "#certificates": "self-managed, or cert-manager, whose controller and CA injector must be installed.",
        "certificates": "self-managed",
        "#serviceMonitor": "Requires the definition of the Prometheus operator.",
        "serviceMonitor": false,
        "#recreateMisStamped": "Delete held pods that were created for another batch, so that they are recreated; adds \
                                the right to delete pods.",
        "recreateMisStamped": false,
        "#mode": "enforce, warn (admits objects that break a rule, with a warning) or observe (refuses a \
                  missing right of the author alone, holds and writes nothing; failurePolicy is Ignore). The label \
                  rolegate.dev/mode of a namespace overrides it.",
        "mode": "enforce",
        "#rules": "Effect of single rules, as segment-ratio=off or segment-remainder=deny.",
        "rules": [],
        "#namespaceSelector": "LabelSelector of the namespaces to serve: matchLabels and matchExpressions.",
        "namespaceSelector": {},
        "#allow": "Actions beyond gates, statuses and partitions, and their rights: scale (workloads of groups with \
                   segments), recovery (deletes the pods of a broken batch, old pods that their controller would not replace \
                   in time, and updated pods of a rollout that goes back), provision (requests nodes for batches that fit nowhere).",
        "allow": [],
        "#readyKinds": "Kinds whose objects readyWhen may name, as Job=jobs.v1.batch, and the right to watch them.",
        "readyKinds": [],
        "#ignoreResources": "Extended resources that keep no pod back where no node has them, as example.com/device or \
                             example.com/*.",
        "ignoreResources": [],
        "#extraArguments": "Arguments of `rolegate serve`, as --strict.",
        "extraArguments": [],
        "#resources": "Requests and limits; processor time has no limit.",
        "resources": defaults.resources,
        "#priorityClassName": "Pods of groups cannot start without rolegate.",
        "priorityClassName": defaults.priority_class,
        "#resourceQuota": "A ResourceQuota for a priority class of the system, which some platforms require.",
        "resourceQuota": { "enabled": true },
        "#podSecurityContext": "Set runAsUser, runAsGroup and fsGroup to null if the platform chooses them, as \
                                OpenShift does.",
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
        "#nameOverride": "Replaces rolegate in the names of objects, which begin with the name of the release.",
        "nameOverride": "",
        "#fullnameOverride": "Name of every object.",
        "fullnameOverride": "",
        "#commonLabels": "Labels of every object and of the pods; not in selectors.",
        "commonLabels": {},
    })
}

/// Returns the values for the pods.
fn pods(defaults: &Settings) -> Value {
    json!({
        "#affinity": "Replaces the default, which prefers nodes without a replica.",
        "affinity": {},
        "#topologySpreadConstraints": "Replaces the default over zones and nodes, and whenUnsatisfiable.",
        "topologySpreadConstraints": [],
        "podLabels": {},
        "podAnnotations": {},
        "#extraEnv": "Additional variables, volumes and mounts.",
        "extraEnv": [],
        "extraVolumes": [],
        "extraVolumeMounts": [],
        "#hostNetwork": "For clusters whose API server cannot reach pods. No two pods share a node, a rollout deletes \
                         a pod first, and no NetworkPolicy applies. The namespace must not enforce more than the \
                         privileged Pod Security Standard.",
        "hostNetwork": false,
        "#dnsPolicy": "ClusterFirst by default, with hostNetwork ClusterFirstWithHostNet.",
        "dnsPolicy": "",
        "#listenAddress": "Address on which the pods listen; `::` is every address of IPv4 and IPv6.",
        "listenAddress": EVERYWHERE.to_string(),
        "#webhookPort": "Ports of the pods; with hostNetwork, of the nodes.",
        "webhookPort": port(&defaults.webhook_port),
        "adminPort": port(&defaults.admin_port),
        "#logFormat": "json or text.",
        "logFormat": defaults.log_format,
        "#logLevel": "Log levels, as debug or rolegate=debug,warn.",
        "logLevel": "",
    })
}

/// Returns the values for the objects besides the pods.
fn around(defaults: &Settings) -> Value {
    json!({
        "#namespaces": "Namespaces to serve; all by default.",
        "namespaces": [],
        "serviceAccount": { "annotations": {} },
        "#podDisruptionBudget": "Maximum number or percentage of replicas that a drain evicts at a time.",
        "podDisruptionBudget": { "enabled": true, "maxUnavailable": defaults.disruption },
        "#networkPolicy": "Limits access to the two ports.",
        "networkPolicy": { "enabled": true },
        "#policies": "Twins of rules, the guard and the hold of policies/, as far as the version of the cluster accepts \
                      them.",
        "policies": { "enabled": false },
        "#aggregatedRoles": "Additions to the cluster roles view, edit and admin.",
        "aggregatedRoles": { "enabled": true },
        "#kaiPods": "Webhooks for pods that name a PodGroup of KAI, unnecessary without KAI.",
        "kaiPods": { "enabled": true },
        "#uninstall": "A Job that runs `rolegate uninstall`, with temporary rights, before `helm uninstall` deletes \
                       objects.",
        "uninstall": { "enabled": true, "deadlineSeconds": defaults.uninstall_deadline },
        "#test": "A pod for `helm test` that runs `rolegate doctor`, with temporary rights; tryIn is the namespace of \
                  its dry-run pod.",
        "test": { "enabled": true, "tryIn": "default" },
        "#crds": "Definitions of RoleCoordination and ClusterTopology. Disable them in a second release of the \
                  cluster.",
        "crds": {
            "enabled": true,
            "#keep": "An uninstall keeps the definitions. Without, it deletes them with every RoleCoordination and \
                      ClusterTopology.",
            "keep": true,
        },
    })
}
