//! The settings of an installation, from the command line or as values of the Helm chart.

use std::net::{IpAddr, Ipv6Addr};

use clap::ValueEnum;
use serde_json::{Value, json};

use crate::api::selector::LabelSelector;
use crate::model::Mode;

/// Source of the serving certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Certificates {
    /// rolegate creates and renews it, and maintains the caBundle.
    #[default]
    SelfManaged,
    /// cert-manager does both.
    CertManager,
}

/// Distribution of replicas over nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Spread {
    /// Prefer different nodes.
    #[default]
    Preferred,
    /// Require different nodes while there are enough.
    Required,
}

/// The values of objects: those for a cluster, or template expressions of Helm.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Name of every object.
    pub name: String,
    /// Namespace of rolegate.
    pub namespace: String,
    pub image: String,
    /// `imagePullPolicy` of the image.
    pub pull_policy: String,
    /// Replicas of the Deployment.
    pub replicas: Value,
    /// `whenUnsatisfiable` of the spread over nodes.
    pub when_unsatisfiable: String,
    /// Namespaces to serve; all when empty.
    pub namespaces: Vec<String>,
    /// Labels of the namespaces to serve.
    pub selector: LabelSelector,
    /// The selector as an argument of `serve`.
    pub selector_argument: Option<String>,
    /// The mode, which decides the failurePolicy.
    pub mode: Mode,
    /// The mode as an argument of `serve`.
    pub mode_argument: String,
    /// Weights of single rules, as `serve --rule` takes them.
    pub rules: String,
    /// Opt-ins, as `serve --allow` takes them.
    pub allow: String,
    /// Kinds whose objects groups may wait for, as `serve --ready-kinds` takes them.
    pub ready_kinds: String,
    /// Resources that need not be on a node, as `serve --ignore-resources` takes them.
    pub ignored_resources: String,
    /// The rules of the role that watches them.
    pub ready_rules: Value,
    /// Further arguments of `rolegate serve`.
    pub arguments: Value,
    /// Requests and limits.
    pub resources: Value,
    /// PriorityClass of the pods.
    pub priority_class: Value,
    /// Further labels of every object.
    pub common_labels: Value,
    /// Address that the pods listen at, in brackets if IPv6.
    pub listen_address: String,
    /// `activeDeadlineSeconds` of the uninstall Job.
    pub uninstall_deadline: Value,
    /// Port of the webhook in a pod.
    pub webhook_port: String,
    /// Port of `/livez`, `/readyz` and `/metrics` in a pod.
    pub admin_port: String,
    /// `dnsPolicy` of the pods.
    pub dns_policy: String,
    /// `maxSurge` and `maxUnavailable` of the Deployment.
    pub surge: [Value; 2],
    pub log_format: String,
    /// Log filter, as `serve --log` takes it.
    pub log_level: String,
    /// `maxUnavailable` of the PodDisruptionBudget.
    pub disruption: Value,
    /// Pod Security Standard that the namespace enforces.
    pub pod_security: &'static str,
    /// Namespace of the dry-run pod of `doctor`.
    pub try_in: String,
    /// Values that only the chart offers; otherwise `null`.
    pub more: PodValues,
}

/// Values that only the chart offers.
#[derive(Clone, Debug, Default)]
pub struct PodValues {
    /// True when Helm installs the objects.
    pub by_helm: bool,
    /// Further labels of the pods.
    pub labels: Value,
    /// Further annotations of the pods.
    pub annotations: Value,
    pub account_annotations: Value,
    /// `affinity` of the pods, instead of ours.
    pub affinity: Value,
    /// `topologySpreadConstraints` of the pods, instead of ours.
    pub spread: Value,
    /// Further environment variables.
    pub env: Value,
    /// Further volumes.
    pub volumes: Value,
    /// Further volume mounts.
    pub mounts: Value,
    /// `imagePullSecrets`.
    pub pull_secrets: Value,
    pub node_selector: Value,
    /// `securityContext` of the pods, instead of ours.
    pub pod_security: Value,
    pub tolerations: Value,
    /// `failurePolicy` of the webhooks.
    pub failure_policy: Value,
    /// `matchLabels` of the namespaces to serve.
    pub namespace_labels: Value,
    /// `matchExpressions` of the namespaces to serve.
    pub namespace_expressions: Value,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            name: "rolegate".to_owned(),
            namespace: "rolegate-system".to_owned(),
            image: concat!("rolegate:", env!("CARGO_PKG_VERSION")).to_owned(),
            pull_policy: "IfNotPresent".to_owned(),
            replicas: json!(2),
            when_unsatisfiable: when_unsatisfiable(Spread::Preferred).to_owned(),
            namespaces: Vec::new(),
            selector: LabelSelector::default(),
            selector_argument: None,
            mode: Mode::Enforce,
            mode_argument: String::new(),
            rules: String::new(),
            allow: String::new(),
            ready_kinds: String::new(),
            ignored_resources: String::new(),
            ready_rules: Value::Null,
            arguments: Value::Null,
            resources: resources(),
            priority_class: json!("system-cluster-critical"),
            common_labels: Value::Null,
            listen_address: socket_host(EVERYWHERE),
            uninstall_deadline: json!(300),
            webhook_port: "9443".to_owned(),
            admin_port: "9080".to_owned(),
            dns_policy: "ClusterFirst".to_owned(),
            surge: surge(false),
            log_format: "json".to_owned(),
            log_level: String::new(),
            disruption: json!(1),
            pod_security: "restricted",
            try_in: "default".to_owned(),
            more: PodValues { node_selector: json!({ "kubernetes.io/os": "linux" }), ..PodValues::default() },
        }
    }
}

/// All addresses, of both families if the host has both.
pub const EVERYWHERE: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);

/// Returns an address as written before a port.
pub fn socket_host(address: IpAddr) -> String {
    if address.is_ipv6() { format!("[{address}]") } else { address.to_string() }
}

/// Returns `maxSurge` and `maxUnavailable` of the Deployment. On the host network, two pods cannot share the ports of
/// a node: a surge could not be scheduled.
pub fn surge(host_network: bool) -> [Value; 2] {
    if host_network { [json!(0), json!(1)] } else { [json!(1), json!(0)] }
}

impl Settings {
    /// Moves the pods to the host network, under the only Pod Security Standard that allows it.
    #[must_use]
    pub fn on_host_network(self) -> Self {
        let dns_policy = "ClusterFirstWithHostNet".to_owned();
        Self { dns_policy, surge: surge(true), pod_security: "privileged", ..self }
    }

    /// Returns the settings for the chart's templates. Names derive from the release, so that two releases share
    /// nothing.
    pub fn for_chart() -> Self {
        let with = |path: &str| json!(format!("{{{{with .Values.{path}}}}}"));
        let by_network =
            |on_host: &str, else_: &str| format!("{{{{ ternary {on_host} {else_} .Values.hostNetwork }}}}");
        let dns = by_network(r#""ClusterFirstWithHostNet""#, r#""ClusterFirst""#);
        Self {
            name: r#"{{ include "rolegate.fullname" . }}"#.to_owned(),
            namespace: "{{ .Release.Namespace }}".to_owned(),
            image: r#""{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}""#.to_owned(),
            pull_policy: "{{ .Values.image.pullPolicy }}".to_owned(),
            replicas: json!("{{ .Values.replicas }}"),
            when_unsatisfiable: "{{ .Values.whenUnsatisfiable }}".to_owned(),
            selector_argument: Some(
                r#"{{ printf "--namespace-selector=%s" (toJson .Values.namespaceSelector) | quote }}"#.to_owned(),
            ),
            mode_argument: "--mode={{ .Values.mode }}".to_owned(),
            rules: r#"{{ join "," .Values.rules }}"#.to_owned(),
            allow: r#"{{ join "," .Values.allow }}"#.to_owned(),
            ready_kinds: r#"{{ join "," .Values.readyKinds }}"#.to_owned(),
            ignored_resources: r#"{{ join "," .Values.ignoreResources }}"#.to_owned(),
            ready_rules: json!(r#"{{with (include "rolegate.readyRules" . | fromYamlArray)}}"#),
            arguments: with("extraArguments"),
            resources: with("resources"),
            priority_class: json!("{{ .Values.priorityClassName | quote }}"),
            common_labels: with("commonLabels"),
            listen_address: r#"{{ contains ":" .Values.listenAddress | ternary (printf "[%s]" .Values.listenAddress) .Values.listenAddress }}"#
                .to_owned(),
            uninstall_deadline: json!("{{ .Values.uninstall.deadlineSeconds }}"),
            webhook_port: "{{ .Values.webhookPort }}".to_owned(),
            admin_port: "{{ .Values.adminPort }}".to_owned(),
            dns_policy: dns.replace("{{ ", "{{ .Values.dnsPolicy | default (").replace(" }}", ") }}"),
            surge: [json!(by_network("0", "1")), json!(by_network("1", "0"))],
            log_format: "{{ .Values.logFormat }}".to_owned(),
            log_level: "{{ .Values.logLevel }}".to_owned(),
            disruption: json!("{{ .Values.podDisruptionBudget.maxUnavailable }}"),
            namespaces: vec![r#"{{ join "," .Values.namespaces }}"#.to_owned()],
            try_in: "{{ .Values.test.tryIn }}".to_owned(),
            more: PodValues {
                by_helm: true,
                labels: json!("{{with (merge (dict) .Values.podLabels .Values.commonLabels)}}"),
                annotations: with("podAnnotations"),
                account_annotations: with("serviceAccount.annotations"),
                affinity: with("affinity"),
                spread: with("topologySpreadConstraints"),
                env: with("extraEnv"),
                volumes: with("extraVolumes"),
                mounts: with("extraVolumeMounts"),
                pull_secrets: with("imagePullSecrets"),
                node_selector: with("nodeSelector"),
                pod_security: with("podSecurityContext"),
                tolerations: with("tolerations"),
                failure_policy: json!(r#"{{ eq .Values.mode "observe" | ternary "Ignore" "Fail" }}"#),
                namespace_labels: with("namespaceSelector.matchLabels"),
                namespace_expressions: with("namespaceSelector.matchExpressions"),
            },
            ..Self::default()
        }
    }
}

/// Returns the port as a number, or a template expression as text.
pub fn port(text: &str) -> Value {
    text.parse::<u16>().map_or_else(|_| json!(text), |port| json!(port))
}

/// Returns `whenUnsatisfiable` of a topologySpreadConstraint.
pub const fn when_unsatisfiable(spread: Spread) -> &'static str {
    match spread {
        Spread::Preferred => "ScheduleAnyway",
        Spread::Required => "DoNotSchedule",
    }
}

/// Returns requests and limits, with comments on the reasons.
fn resources() -> Value {
    json!({
        "#requests": "A review costs some 30 µs of processor time and the caches hold a few KiB a held pod.",
        "requests": { "cpu": "100m", "memory": "64Mi" },
        "limits": { "memory": "512Mi" },
    })
}
