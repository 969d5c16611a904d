//! The webhook configurations, generated from the table that the server dispatches on.

pub mod table;
pub mod webhooks;

use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations, ServiceReference,
    ValidatingWebhook, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use kube::api::ObjectMeta;

use crate::api::pod::POD;
use crate::api::selector::LabelSelector as LabelSelectorOfNamespaces;
use crate::cluster::registration::table::{Endpoint, Handling, Row, TABLE};
use crate::model::installation::OF_PODS;
use crate::model::{Mode, WorkloadKind, names};

/// Name of the webhooks for pods that name a KAI PodGroup, in both configurations.
pub const KAI_PODS: &str = "kai.pods.rolegate.dev";
/// Webhooks for pods of groups, each with the label that selects them. An objectSelector has no "or"; a match condition has,
/// but makes the API server convert every pod of the cluster to evaluate it.
const OF_GROUPS: [(&str, &str); 4] = [
    (OF_PODS, names::GROUP),
    ("rbg.pods.rolegate.dev", names::RBG_GROUP),
    ("kep75.pods.rolegate.dev", names::KEP75_GROUP),
    ("grove.pods.rolegate.dev", names::GROVE_CLIQUE),
];
/// Time in which the API server wants an answer.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Port of a Service in front of the webhook.
pub const SERVICE_PORT: u16 = 443;

/// The address of the webhook for the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Through a Service.
    Service {
        namespace: String,
        name: String,
        /// Port of the Service.
        port: u16,
    },
    /// At this address, `https://host:port`.
    Url(String),
}

/// The input of the configurations.
#[derive(Clone, Debug)]
pub struct Registration {
    /// Name of both configurations.
    pub name: String,
    pub reach: Reach,
    /// Namespace of rolegate, which is excluded so that rolegate can always start.
    pub own_namespace: String,
    /// Names of the namespaces to serve; all when empty.
    pub namespaces: Vec<String>,
    pub selector: LabelSelectorOfNamespaces,
    /// The default mode, which sets the failure policy: in mode `observe` the webhooks refuse nothing while rolegate is
    /// down.
    pub mode: Mode,
    /// False where no webhook is called for pods that name a KAI PodGroup.
    pub kai_pods: bool,
}

impl Registration {
    /// Returns the mutating configuration. Without a bundle somebody else fills it in.
    pub fn mutating(&self, ca_bundle: Option<&str>) -> MutatingWebhookConfiguration {
        let webhooks = self.webhooks(Endpoint::Mutate, ca_bundle);
        MutatingWebhookConfiguration { metadata: self.metadata(), webhooks: Some(webhooks) }
    }

    /// Returns the validating configuration. Without a bundle somebody else fills it in.
    pub fn validating(&self, ca_bundle: Option<&str>) -> ValidatingWebhookConfiguration {
        let webhooks = serde_json::to_value(self.webhooks(Endpoint::Validate, ca_bundle));
        let webhooks: Vec<ValidatingWebhook> = webhooks.and_then(serde_json::from_value).unwrap_or_default();
        ValidatingWebhookConfiguration { metadata: self.metadata(), webhooks: Some(webhooks) }
    }

    /// Returns the webhooks of an endpoint. Those that validate have the same fields, but are not called again.
    fn webhooks(&self, endpoint: Endpoint, ca_bundle: Option<&str>) -> Vec<MutatingWebhook> {
        let webhook = |Part { name, labels, conditions, rows }| MutatingWebhook {
            name,
            admission_review_versions: vec!["v1".to_owned()],
            client_config: self.client_config(endpoint, ca_bundle),
            failure_policy: Some(failure_policy(self.mode).to_owned()),
            match_conditions: (!conditions.is_empty()).then_some(conditions),
            match_policy: Some("Equivalent".to_owned()),
            namespace_selector: Some(self.namespace_selector()),
            object_selector: selector(labels),
            reinvocation_policy: (endpoint == Endpoint::Mutate).then(|| "IfNeeded".to_owned()),
            rules: Some(rows.into_iter().map(rule).collect()),
            side_effects: "None".to_owned(),
            timeout_seconds: Some(seconds()),
        };
        self.parts(endpoint).map(webhook).collect()
    }

    fn parts(&self, endpoint: Endpoint) -> impl Iterator<Item = Part> {
        parts(endpoint).into_iter().filter(|part| !part.rows.is_empty() && (self.kai_pods || part.name != KAI_PODS))
    }

    fn metadata(&self) -> ObjectMeta {
        ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() }
    }

    fn client_config(&self, endpoint: Endpoint, ca_bundle: Option<&str>) -> WebhookClientConfig {
        let path = endpoint.path();
        let (service, url) = match &self.reach {
            Reach::Url(base) => (None, Some(format!("{base}{path}"))),
            Reach::Service { namespace, name, port } => {
                let (namespace, name, port) = (namespace.clone(), name.clone(), Some(i32::from(*port)));
                (Some(ServiceReference { namespace, name, path: Some(path.to_owned()), port }), None)
            }
        };
        WebhookClientConfig { ca_bundle: ca_bundle.map(|pem| ByteString(pem.as_bytes().to_vec())), service, url }
    }

    /// Excludes kube-system and rolegate's own namespace: the cluster must be able to start without rolegate.
    fn namespace_selector(&self) -> LabelSelector {
        let name = "kubernetes.io/metadata.name";
        let excluded = vec!["kube-system".to_owned(), self.own_namespace.clone()];
        let mut all = vec![require(name, "NotIn", excluded), require(names::IGNORE, "DoesNotExist", Vec::new())];
        if !self.namespaces.is_empty() {
            all.push(require(name, "In", self.namespaces.clone()));
        }
        let chosen = &self.selector;
        all.extend(chosen.match_expressions.iter().map(|one| require(&one.key, &one.operator, one.values.clone())));
        let labels = (!chosen.match_labels.is_empty()).then(|| chosen.match_labels.clone());
        LabelSelector { match_expressions: Some(all), match_labels: labels }
    }
}

/// Returns the failure policy of a mode.
pub const fn failure_policy(mode: Mode) -> &'static str {
    match mode {
        Mode::Enforce | Mode::Warn => "Fail",
        Mode::Observe => "Ignore",
    }
}

fn require(key: &str, operator: &str, values: Vec<String>) -> LabelSelectorRequirement {
    let values = (!values.is_empty()).then_some(values);
    LabelSelectorRequirement { key: key.to_owned(), operator: operator.to_owned(), values }
}

/// One webhook: the label requirements, match conditions and rows of its objects.
struct Part {
    name: String,
    labels: Vec<LabelSelectorRequirement>,
    conditions: Vec<MatchCondition>,
    rows: Vec<&'static Row>,
}

impl Part {
    fn new(name: &str, conditions: Vec<MatchCondition>, rows: Vec<&'static Row>) -> Self {
        Self { name: name.to_owned(), labels: Vec::new(), conditions, rows }
    }
}

fn selector(labels: Vec<LabelSelectorRequirement>) -> Option<LabelSelector> {
    (!labels.is_empty()).then_some(LabelSelector { match_expressions: Some(labels), match_labels: None })
}

/// Returns the webhooks of an endpoint: pods, workloads and other objects are selected in different ways.
fn parts(endpoint: Endpoint) -> Vec<Part> {
    let rows = |test: fn(&Row) -> bool| TABLE.iter().filter(|row| row.endpoint == endpoint && test(row)).collect();
    let of_pods = || rows(|row| row.handling != Handling::HoldRollout && row.kind == POD);
    let with = |label: &str| require(label, "Exists", Vec::new());
    let without = |(_, label): &(&str, &str)| require(label, "DoesNotExist", Vec::new());
    let mut kai = Part::new(KAI_PODS, vec![names_a_pod_group()], of_pods());
    let mut parts = Vec::new();
    if endpoint == Endpoint::Mutate {
        // Exactly one of the webhooks is called for a pod, and makes all changes.
        parts.extend(OF_GROUPS.iter().enumerate().map(|(earlier, (name, label))| {
            let labels = [with(label)].into_iter().chain(OF_GROUPS.iter().take(earlier).map(without)).collect();
            Part { labels, ..Part::new(name, Vec::new(), of_pods()) }
        }));
        kai.labels = OF_GROUPS.iter().map(without).collect();
    }
    parts.push(kai);
    parts.push(Part::new(
        "workloads.rolegate.dev",
        vec![is_claimed(), stays(), changes_or_leaves_out()],
        rows(|row| row.handling == Handling::HoldRollout),
    ));
    let conditions = if endpoint == Endpoint::Validate {
        vec![stays(), changes(&["/spec".to_owned()], &[], names::NOTES_OF_OBJECTS)]
    } else {
        Vec::new()
    };
    let of_objects = rows(|row| row.handling != Handling::HoldRollout && row.kind != POD);
    parts.push(Part::new("objects.rolegate.dev", conditions, of_objects));
    parts
}

/// Matches objects that are not being deleted: updates remove their finalizers, and a deletion must not wait for rolegate.
/// Rules admit such objects anyway.
fn stays() -> MatchCondition {
    let expression = "request.operation == 'DELETE' || !has(object.metadata.deletionTimestamp)".to_owned();
    MatchCondition { name: "stays".to_owned(), expression }
}

/// Matches updates of these fields, labels and annotations; other updates do not call rolegate. Each key is looked up, so the
/// cost does not grow with the object.
fn changes(fields: &[String], labels: &[&str], annotations: &[&str]) -> MatchCondition {
    let differs = |path: &str| format!("dyn(object){path} != dyn(oldObject){path}");
    let mut all = vec!["request.operation != 'UPDATE'".to_owned()];
    all.extend(fields.iter().map(|field| differs(&field.replace('/', ".?"))));
    for (field, keys) in
        [("labels", labels), ("annotations", annotations)].into_iter().filter(|(_, keys)| !keys.is_empty())
    {
        let keys = keys.iter().map(|key| format!("'{key}'")).collect::<Vec<_>>().join(", ");
        all.push(format!("[{keys}].exists(key, {})", differs(&format!(".metadata.?{field}[?key]"))));
    }
    MatchCondition { name: "changes".to_owned(), expression: all.join(" || ") }
}

/// Matches updates that may affect a rollout. The manager that asked for the partition may leave it out by an update that changes
/// nothing else: where rolegate has written the field last, it stays as it is.
fn changes_or_leaves_out() -> MatchCondition {
    let MatchCondition { name, expression } = changes(&rolled_fields(), &names::claims(), &names::notes_of_workloads());
    let by = format!("dyn(oldObject).metadata.?annotations[?'{}']", names::USER_PARTITION_BY);
    let expression = format!("{expression} || {by}.orValue('') == dyn(request).?options.?fieldManager.orValue('-')");
    MatchCondition { name, expression }
}

/// Returns the fields of workloads that affect a rollout: the revised fields and the update strategy.
fn rolled_fields() -> Vec<String> {
    let rolled = WorkloadKind::with_partition().filter_map(|kind| kind.row().rollout);
    let mut fields: Vec<_> = rolled
        .flat_map(|fields| {
            let how = fields.partition.iter().take(2).fold(String::new(), |at, step| format!("{at}/{step}"));
            fields.revised.iter().map(|field| (*field).to_owned()).chain([how])
        })
        .collect();
    fields.dedup();
    fields
}

/// Matches workloads that are or were claimed for rollouts in lockstep.
fn is_claimed() -> MatchCondition {
    let claimed = |object: &str| {
        let keys = [names::ROLLOUT].into_iter().chain(names::UNCLAIMEDS.iter().copied());
        let noted: Vec<_> = keys.map(|key| format!("'{key}' in {object}.metadata.annotations")).collect();
        format!(
            "(has({object}.metadata.labels) && '{}' in {object}.metadata.labels) || \
             (has({object}.metadata.annotations) && ({}))",
            names::GROUP,
            noted.join(" || "),
        )
    };
    MatchCondition {
        name: "is-claimed".to_owned(),
        expression: format!("{} || (oldObject != null && ({}))", claimed("object"), claimed("oldObject")),
    }
}

/// Matches pods that name a KAI PodGroup.
fn names_a_pod_group() -> MatchCondition {
    MatchCondition {
        name: "names-a-pod-group".to_owned(),
        expression: format!(
            "has(object.metadata.annotations) && '{}' in object.metadata.annotations",
            names::KAI_POD_GROUP
        ),
    }
}

fn rule(row: &Row) -> RuleWithOperations {
    let one = |text: &str| Some(vec![text.to_owned()]);
    RuleWithOperations {
        api_groups: one(row.kind.group),
        api_versions: one(row.kind.version),
        operations: Some(row.operations.iter().map(|operation| (*operation).to_owned()).collect()),
        resources: one(row.kind.plural),
        scope: Some(if row.kind.namespaced { "Namespaced" } else { "Cluster" }.to_owned()),
    }
}

fn seconds() -> i32 {
    i32::try_from(TIMEOUT.as_secs()).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn about_a_pod_one_webhook_is_asked_whatever_labels_of_groups_it_has() {
        let all: Vec<_> = names::LABEL_SCHEMES.iter().map(|(group, _)| *group).chain([names::GROVE_CLIQUE]).collect();
        for has in 0..1_usize << all.len() {
            let has = |label: &str| all.iter().position(|known| *known == label).is_some_and(|at| has & (1 << at) != 0);
            let picks = |part: &Part| {
                let holds = |one: &LabelSelectorRequirement| has(&one.key) == (one.operator == "Exists");
                part.rows.iter().any(|row| row.kind == POD) && part.labels.iter().all(holds)
            };
            let parts = parts(Endpoint::Mutate);
            let asked: Vec<_> = parts.iter().filter(|part| picks(part)).map(|part| part.name.as_str()).collect();
            let is_of_group = all.iter().any(|label| has(label));
            assert_eq!((asked.len(), asked[0] != KAI_PODS), (1, is_of_group), "{asked:?}");
        }
    }
}
