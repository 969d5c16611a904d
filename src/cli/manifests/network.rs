//! Services, NetworkPolicy and ServiceMonitor.

use serde_json::{Value, json};

use super::settings::{Settings, port};
use crate::cluster::registration::SERVICE_PORT;

pub fn objects(settings: &Settings) -> Vec<Value> {
    let name = &settings.name;
    let metrics = format!("{name}-metrics");
    let metadata = |name: &str| super::metadata(settings, name, &Value::Null);
    let selector = super::selector(settings);
    let service = |name: &str, port: Value| {
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata(name),
            "spec": {
                "type": "ClusterIP",
                "internalTrafficPolicy": "Cluster",
                "sessionAffinity": "None",
                "selector": selector,
                "ports": [port],
            },
        })
    };
    let mut to_metrics =
        service(&metrics, json!({ "name": "admin", "port": 9080, "protocol": "TCP", "targetPort": "admin" }));
    if let Some(labels) = to_metrics.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
        labels.insert("app.kubernetes.io/component".to_owned(), json!("metrics"));
    }
    let open = |number: &str| json!({ "port": port(number), "protocol": "TCP" });
    let policy = json!({
        "?": "network-policy",
        "#": "The API server comes from where no selector reaches, and so do the kubelet's probes: the ports are what is \
              limited. What goes out is the API server and DNS, whose addresses nobody knows here.",
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(name),
        "spec": {
            "podSelector": { "matchLabels": selector },
            "policyTypes": ["Ingress"],
            "ingress": [{ "ports": [open(&settings.webhook_port), open(&settings.admin_port)] }],
        },
    });
    let monitor = json!({
        "?": "service-monitor",
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": metadata(name),
        "spec": {
            "selector": {
                "matchLabels": { "app.kubernetes.io/name": name, "app.kubernetes.io/component": "metrics" },
            },
            "endpoints": [{ "port": "admin", "path": "/metrics", "honorLabels": true }],
        },
    });
    vec![
        service(name, json!({ "name": "webhook", "port": SERVICE_PORT, "protocol": "TCP", "targetPort": "webhook" })),
        to_metrics,
        policy,
        monitor,
    ]
}
