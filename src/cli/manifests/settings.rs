//! What can be chosen of an installation, on the command line or as values of the Helm chart.

use clap::ValueEnum;
use serde_json::{Map, Value, json};

use crate::api::versions::Version;
use crate::model::Allowed;

/// Where the serving certificate comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Certificates {
    /// rolegate makes and renews it, and keeps the webhooks' caBundle.
    #[default]
    SelfManaged,
    /// cert-manager does both.
    CertManager,
}

/// A version that is served beside the stored one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Serve {
    /// RoleCoordination as v1beta1; objects are converted by the webhook.
    V1beta1,
}

impl Serve {
    /// As it is written.
    pub const fn word(self) -> &'static str {
        match self {
            Self::V1beta1 => Version::V1beta1.name(),
        }
    }
}

/// How replicas are spread over nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Spread {
    /// As evenly as goes at once.
    #[default]
    Preferred,
    /// No node gets a second replica while another can have its first.
    Required,
}

/// Choices that decide which objects and fields are there at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Choices {
    /// Where the serving certificate comes from.
    pub certificates: Certificates,
    /// A ServiceMonitor: takes the definition of the Prometheus operator.
    pub service_monitor: bool,
    /// Held pods that were made for another batch are deleted, to be made again.
    pub recreate_mis_stamped: bool,
    /// What is done beyond gates, statuses and partitions.
    pub allowed: Allowed,
    /// RoleCoordination is served as v1beta1 as well.
    pub v1beta1: bool,
}

/// A condition on which a part of an object is there.
#[derive(Debug)]
pub struct Condition {
    name: &'static str,
    /// As Helm says it.
    pub helm: &'static str,
    /// Whether it holds for these choices.
    pub holds: fn(&Choices) -> bool,
}

/// All conditions.
const CONDITIONS: &[Condition] = &[
    Condition {
        name: "self-managed",
        helm: r#"eq .Values.certificates "self-managed""#,
        holds: |choices| choices.certificates == Certificates::SelfManaged,
    },
    Condition {
        name: "cert-manager",
        helm: r#"eq .Values.certificates "cert-manager""#,
        holds: |choices| choices.certificates == Certificates::CertManager,
    },
    Condition {
        name: "conversion",
        helm: r#"and (has "v1beta1" .Values.serve) (eq .Values.certificates "self-managed")"#,
        holds: |choices| choices.v1beta1 && choices.certificates == Certificates::SelfManaged,
    },
    Condition { name: "service-monitor", helm: ".Values.serviceMonitor", holds: |choices| choices.service_monitor },
    Condition {
        name: "recreate-mis-stamped",
        helm: ".Values.recreateMisStamped",
        holds: |choices| choices.recreate_mis_stamped,
    },
    Condition {
        name: "not recreate-mis-stamped",
        helm: "not .Values.recreateMisStamped",
        holds: |choices| !choices.recreate_mis_stamped,
    },
    Condition {
        name: "allow",
        helm: ".Values.allow",
        holds: |choices| choices.allowed.scale || choices.allowed.recovery,
    },
    Condition { name: "scale", helm: r#"has "scale" .Values.allow"#, holds: |choices| choices.allowed.scale },
    Condition {
        name: "not scale",
        helm: r#"not (has "scale" .Values.allow)"#,
        holds: |choices| !choices.allowed.scale,
    },
    Condition { name: "recovery", helm: r#"has "recovery" .Values.allow"#, holds: |choices| choices.allowed.recovery },
    Condition {
        name: "not recovery",
        helm: r#"not (has "recovery" .Values.allow)"#,
        holds: |choices| !choices.allowed.recovery,
    },
];

/// The condition of a name.
pub fn condition(name: &str) -> Option<&'static Condition> {
    CONDITIONS.iter().find(|condition| condition.name == name)
}

/// What objects are made of: texts and values for a cluster, or what Helm puts there.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Name of every object.
    pub name: String,
    /// Our own namespace.
    pub namespace: String,
    /// The image.
    pub image: String,
    /// When it is pulled.
    pub pull_policy: String,
    /// Replicas of the Deployment.
    pub replicas: Value,
    /// `whenUnsatisfiable` of the spread over nodes.
    pub when_unsatisfiable: String,
    /// Namespaces to serve; all when empty.
    pub namespaces: Vec<String>,
    /// What is allowed, as `serve --allow` takes it.
    pub allow: String,
    /// More arguments of `rolegate serve`.
    pub arguments: Value,
    /// Requests and limits.
    pub resources: Value,
    /// Priority of the pods.
    pub priority_class: Value,
    /// Fields of the pod that only the chart offers; else `null`.
    pub more: PodValues,
}

/// Fields of the pod that only the chart offers.
#[derive(Clone, Debug, Default)]
pub struct PodValues {
    /// `imagePullSecrets`.
    pub pull_secrets: Value,
    /// `nodeSelector`.
    pub node_selector: Value,
    /// `tolerations`.
    pub tolerations: Value,
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
            allow: String::new(),
            arguments: Value::Null,
            resources: resources(),
            priority_class: json!("system-cluster-critical"),
            more: PodValues::default(),
        }
    }
}

impl Settings {
    /// For the templates of the chart. Names are fixed: two in one cluster would hold each other's pods.
    pub fn for_chart() -> Self {
        let with = |path: &str| json!(format!("{{{{with .Values.{path}}}}}"));
        Self {
            namespace: "{{ .Release.Namespace }}".to_owned(),
            image: r#""{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}""#.to_owned(),
            pull_policy: "{{ .Values.image.pullPolicy }}".to_owned(),
            replicas: json!("{{ .Values.replicas }}"),
            when_unsatisfiable: "{{ .Values.whenUnsatisfiable }}".to_owned(),
            allow: r#"{{ join "," .Values.allow }}"#.to_owned(),
            arguments: with("extraArguments"),
            resources: with("resources"),
            priority_class: json!("{{ .Values.priorityClassName | quote }}"),
            more: PodValues {
                pull_secrets: with("imagePullSecrets"),
                node_selector: with("nodeSelector"),
                tolerations: with("tolerations"),
            },
            ..Self::default()
        }
    }
}

/// `whenUnsatisfiable` of a topologySpreadConstraint.
pub const fn when_unsatisfiable(spread: Spread) -> &'static str {
    match spread {
        Spread::Preferred => "ScheduleAnyway",
        Spread::Required => "DoNotSchedule",
    }
}

/// Requests and limits, with reasons.
fn resources() -> Value {
    json!({
        "#requests": "A review costs some 30 µs of processor time and the caches hold a few KiB a held pod.",
        "requests": { "cpu": "100m", "memory": "64Mi" },
        "limits": { "memory": "512Mi" },
    })
}

/// The chart's values with their defaults, as `values.yaml` shows them.
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
        "#allow": "What is done beyond gates, statuses and partitions, with the rights that it takes: scale (workloads of \
                   elastic groups), recovery (pods of a batch that broke are deleted).",
        "allow": [],
        "#serve": "v1beta1: the right to keep the bundle of its conversion. The definition itself is printed by `rolegate crds --serve v1beta1`.",
        "serve": [],
        "#extraArguments": "More arguments of `rolegate serve`, as --strict.",
        "extraArguments": [],
        "#resources": "Requests and limits. Processor time is not limited: see the Deployment.",
        "resources": defaults.resources,
        "#priorityClassName": "Pods of groups cannot start without us. Where a quota forbids the class, name another.",
        "priorityClassName": defaults.priority_class,
        "nodeSelector": {},
        "tolerations": [],
    });
    match values {
        Value::Object(values) => values,
        _ => Map::new(),
    }
}
