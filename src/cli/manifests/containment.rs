//! Policies that limit what our own account may change of pods, workloads and webhook configurations: RBAC knows
//! verbs, not fields. With a stolen token, an attacker can run no code, and redirect no admission.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::settings::Settings;
use crate::api::ObjectKind;
use crate::api::pod::POD;
use crate::api::provisioning::{CAPACITY_BUFFER, REQUESTS};
use crate::model::{CARRIERS, WorkloadKind, names};

/// Prefix of our labels and annotations.
const PREFIX: &str = "rolegate.dev/";
/// Labels and annotations of pods outside our prefix that rolegate writes. Group and role are written at admission or
/// at the release only: the group label decides which pods may be deleted.
const OF_PODS: &[&str] = &[
    names::KEP75_SUBGROUP_SIZE,
    names::KEP75_INSTANCE_INDEX,
    names::KEP75_COORDINATION,
    names::KEP75_BATCH,
    names::KUBE_POD_GROUP,
    names::VOLCANO_POD_GROUP,
    names::KAI_POD_GROUP,
    names::KAI_SUBGROUP,
    names::KUEUE_GATED_BY,
];

/// Annotations of pods that rolegate writes where scaling is allowed.
const OF_SCALED_PODS: &[&str] = &[names::DELETION_COST];

/// Annotations of pods that rolegate writes at the release where it requests nodes.
const OF_PROVIDED_PODS: &[&str] = &[names::CONSUME_REQUEST, names::REQUEST_CLASS];

const WEBHOOKS: [ObjectKind; 2] = [
    webhook_kind("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
    webhook_kind("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
];

const fn webhook_kind(kind: &'static str, plural: &'static str) -> ObjectKind {
    ObjectKind { group: "admissionregistration.k8s.io", version: "v1", kind, plural, namespaced: false }
}

/// Returns a policy and its binding for pods, for each kind of workload with a partition, and for webhook
/// configurations if rolegate has a right to them.
pub fn objects(settings: &Settings) -> Vec<Value> {
    const NO_CODE: &str = "a stolen token runs no code";
    const NO_NODES: &str = "a stolen token asks for no more nodes by them";
    const NOT_ELSEWHERE: &str = "a stolen token sends no admission elsewhere";
    let workloads = WorkloadKind::with_partition().map(|kind| (kind.object_kind(), of_workload(kind), NO_CODE, None));
    let webhooks = WEBHOOKS.map(|kind| (kind, of_webhooks(), NOT_ELSEWHERE, Some("self-managed")));
    let buffers = [(CAPACITY_BUFFER, of_buffers(), NO_NODES, Some("provision"))];
    [(POD, of_pods(), NO_CODE, None)]
        .into_iter()
        .chain(workloads)
        .chain(webhooks)
        .chain(buffers)
        .flat_map(|(kind, changed, so, when)| policy(settings, kind, &changed, so, when))
        .chain(deletions(settings))
        .chain(REQUESTS.iter().flat_map(|kind| requests(settings, *kind)))
        .collect()
}

/// Returns expressions for forbidden changes of a webhook configuration: all but the bundles. The API server keeps
/// names of webhooks unique.
fn of_webhooks() -> Vec<String> {
    let all = |object: &str| format!("dyn({object}).?webhooks.orValue([])");
    let names = |object: &str| format!("{}.map(webhook, webhook.name)", all(object));
    let unlike = |path: &str, but: &str| {
        let keys = |webhook: &str| format!("{webhook}{path}.map(key, string(key))");
        let (old, new) = (keys("was"), keys("now"));
        format!("({old} + {new}).exists(key, key != '{but}' && was{path}[?key] != now{path}[?key])")
    };
    let differs = format!("{} || {}", unlike("", "clientConfig"), unlike(".clientConfig", "caBundle"));
    vec![
        differing(&["metadata", "labels"], Compared::All, "false"),
        differing(&["metadata", "annotations"], Compared::All, "false"),
        format!("({} == {} ? [] : ['webhooks'])", names("object"), names("oldObject")),
        format!(
            "{}.filter(was, {}.exists(now, now.name == was.name && ({differs}))).map(was, 'webhooks[' + was.name + ']')",
            all("oldObject"),
            all("object"),
        ),
    ]
}

/// Returns expressions for forbidden changes of a pod. The API server lets everybody only remove gates and add node
/// labels; nodes may be chosen at the release only.
fn of_pods() -> Vec<String> {
    let keys = OF_PODS.iter().map(|key| format!("'{key}'")).collect::<Vec<_>>().join(", ");
    let judged = names::LABEL_SCHEMES.iter().flat_map(|(group, role)| [group, role]);
    let judged = judged.map(|key| format!("'{key}'")).collect::<Vec<_>>().join(", ");
    let prefixes = format!("key.startsWith('{PREFIX}') || key.startsWith('{}')", names::KEP30_MEMBER_PREFIX);
    let ours = format!("key in [{keys}] || (({prefixes}) && !(key in [{judged}]))");
    let gates = |object: &str| format!("{object}.?spec.?schedulingGates.orValue([])");
    let others =
        |object: &str| format!("{}.map(gate, gate.name).filter(name, name != '{}')", gates(object), names::GATE);
    let held = |object: &str| format!("{}.exists(gate, gate.name == '{}')", gates(object), names::GATE);
    let released = format!("{} && !{}", held("oldObject"), held("object"));
    let late = format!("key in ['{}', '{}'] && {released}", names::KEP75_GROUP, names::KEP75_ROLE);
    vec![
        differing(&["metadata", "labels"], Compared::All, &format!("{ours} || ({late})")),
        differing(
            &["metadata", "annotations"],
            Compared::All,
            &format!("{ours} || key in variables.more || (key in variables.atRelease && {released})"),
        ),
        differing(
            &["spec"],
            Compared::All,
            &format!("key == 'schedulingGates' || (key == 'nodeSelector' && {released})"),
        ),
        format!("({} == {} ? [] : ['spec.schedulingGates'])", others("object"), others("oldObject")),
    ]
}

/// Returns expressions for forbidden changes of a CapacityBuffer: all but that it is emptied.
fn of_buffers() -> Vec<String> {
    vec![
        differing(&["metadata", "labels"], Compared::All, "false"),
        differing(&["metadata", "annotations"], Compared::All, "false"),
        differing(&["spec"], Compared::All, "key == 'replicas' && object.spec.replicas == 0"),
    ]
}

/// Returns expressions for forbidden changes of a workload. Defaults may be filled in besides the partition.
fn of_workload(kind: WorkloadKind) -> Vec<String> {
    let notes =
        [names::USER_PARTITION_IN_RBG, names::UNCLAIMED_IN_RBG].map(|key| format!("key == '{key}'")).join(" || ");
    let mut changed = vec![
        differing(&["metadata", "labels"], Compared::All, "false"),
        differing(&["metadata", "annotations"], Compared::All, &format!("key.startsWith('{PREFIX}') || {notes}")),
    ];
    let partition = kind.row().rollout.map_or(&[][..], |fields| fields.partition);
    for depth in 1..partition.len() {
        let (at, next) = partition.split_at(depth);
        let compared = if depth == 1 { Compared::All } else { Compared::WhatWas };
        changed.extend(next.first().map(|next| differing(at, compared, &format!("key == '{next}'"))));
    }
    changed
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Compared {
    /// All fields of both objects.
    All,
    /// The fields of the old object.
    WhatWas,
}

/// Returns an expression for the paths of fields that differ and are not allowed to. It avoids list functions newer
/// than 1.30 (`distinct`, `flatten`, `sort`).
fn differing(path: &[&str], compared: Compared, allowed: &str) -> String {
    let at = |object: &str| format!("dyn({object}).?{}.orValue({{}})", path.join(".?"));
    let (old, new) = (at("oldObject"), at("object"));
    let keys = match compared {
        Compared::All => {
            format!("({old}.map(key, string(key)) + {new}.filter(key, !(key in {old})).map(key, string(key)))")
        }
        Compared::WhatWas => format!("{old}.map(key, string(key))"),
    };
    format!(
        "{keys}.filter(key, !({allowed}) && {old}[?key] != {new}[?key]).map(key, '{}[' + key + ']')",
        path.join(".")
    )
}

/// Returns the policy for pods that our own account may delete: held pods that are created again, and pods of groups
/// where recovery is allowed. By default the account has no right to delete pods.
fn deletions(settings: &Settings) -> [Value; 2] {
    let held = format!("oldObject.?spec.?schedulingGates.orValue([]).exists(gate, gate.name == '{}')", names::GATE);
    let groups: Vec<_> = names::LABEL_SCHEMES.iter().map(|(group, _)| format!("'{group}'")).collect();
    let grouped = format!("dyn(oldObject).?metadata.?labels.orValue({{}}).exists(key, key in [{}])", groups.join(", "));
    let variable = |name: &str, expression: &str, when: &str| {
        let variable = |expression: &str| json!({ "name": name, "expression": expression });
        [json!({ "=": variable(expression), "?": when }), json!({ "=": variable("false"), "?": format!("not {when}") })]
    };
    let of_pods = Judged {
        name: format!("{}-pod-deletions", settings.name),
        so: "Which pods our own account may delete.".to_owned(),
        kind: POD,
        operation: "DELETE",
        variables: [variable("held", &held, "recreate-mis-stamped"), variable("grouped", &grouped, "recovery")]
            .concat(),
        validation: json!({
            "expression": "variables.held || variables.grouped",
            "message": "rolegate itself may not delete this pod",
            "reason": "Forbidden",
        }),
    };
    of_pods.policy(settings, &settings.name, None)
}

/// Returns the policies for requests for nodes: our own account makes and deletes those of groups only.
fn requests(settings: &Settings, kind: ObjectKind) -> Vec<Value> {
    let carriers = CARRIERS.iter().map(|carrier| format!("'{}/{}'", carrier.group, carrier.kind));
    // Whatever the version.
    let carriers: Vec<_> = carriers.collect::<BTreeSet<_>>().into_iter().collect();
    let policy = |(operation, object, suffix): (&'static str, &str, &str)| {
        let owners = format!("dyn({object}).?metadata.?ownerReferences.orValue([])");
        let expression = format!(
            "{owners}.exists(owner, owner.?controller.orValue(false) && owner.apiVersion.split('/')[0] + '/' + owner.kind in [{}])",
            carriers.join(", ")
        );
        let judged = Judged {
            name: format!("{}-{}-{suffix}", settings.name, kind.plural),
            so: format!("Which {} our own account may {suffix}: those of groups.", kind.plural),
            kind,
            operation,
            variables: Vec::new(),
            validation: json!({
                "expression": expression,
                "message": format!("rolegate itself may not {suffix} this {}", kind.kind),
                "reason": "Forbidden",
            }),
        };
        judged.policy(settings, &settings.name, Some("provision"))
    };
    [("CREATE", "object", "create"), ("DELETE", "oldObject", "delete")].into_iter().flat_map(policy).collect()
}

/// Returns the policy for the account of `doctor`: it may create pods as a dry run only.
pub fn tries(settings: &Settings, account: &str, annotations: &Value) -> [Value; 2] {
    let of_pods = Judged {
        name: account.to_owned(),
        so: "The account of `rolegate doctor` tries pods and makes none.".to_owned(),
        kind: POD,
        operation: "CREATE",
        variables: Vec::new(),
        validation: json!({
            "expression": "has(request.dryRun) && request.dryRun",
            "message": "rolegate doctor may create this pod as a dry run only",
            "reason": "Forbidden",
        }),
    };
    let mut both = of_pods.policy(settings, account, Some("test"));
    for metadata in both.iter_mut().filter_map(|object| object.get_mut("metadata")?.as_object_mut()) {
        metadata.insert("annotations".to_owned(), annotations.clone());
    }
    both
}

fn policy(settings: &Settings, kind: ObjectKind, changed: &[String], so: &str, when: Option<&str>) -> [Value; 2] {
    let of_metadata = "['finalizers', 'ownerReferences'].filter(key, dyn(oldObject.metadata)[?key] != \
                       dyn(object.metadata)[?key]).map(key, 'metadata.' + key)";
    let more = [
        ("more", "scale", OF_SCALED_PODS),
        ("more", "not scale", &[]),
        ("atRelease", "provision", OF_PROVIDED_PODS),
        ("atRelease", "not provision", &[]),
    ]
    .map(|(name, when, keys)| {
        json!({ "=": { "name": name, "expression": format!("{keys:?}").replace('"', "'") }, "?": when })
    });
    let parts = changed.iter().map(String::as_str).chain([of_metadata]).enumerate();
    let mut variables: Vec<_> =
        parts.map(|(index, part)| json!({ "name": format!("part{index}"), "expression": part })).collect();
    let all: Vec<_> = (0..variables.len()).map(|index| format!("variables.part{index}")).collect();
    if kind == POD {
        variables.splice(0..0, more);
    }
    variables.push(json!({ "name": "changed", "expression": all.join(" + ") }));
    let judged = Judged {
        name: format!("{}-{}", settings.name, kind.plural),
        so: format!("What our own account may change of {}: {so}.", kind.plural),
        kind,
        operation: "UPDATE",
        variables,
        validation: json!({
            "expression": "variables.changed.size() == 0",
            "messageExpression": "'rolegate itself may not change ' + variables.changed.join(', ')",
            "message": "rolegate itself may not change this",
            "reason": "Forbidden",
        }),
    };
    judged.policy(settings, &settings.name, when)
}

/// The requests of our own account that a policy judges, and the expressions.
struct Judged {
    name: String,
    so: String,
    kind: ObjectKind,
    operation: &'static str,
    variables: Vec<Value>,
    validation: Value,
}

impl Judged {
    /// Returns the policy for an account of ours, and its binding.
    fn policy(self, settings: &Settings, account: &str, when: Option<&str>) -> [Value; 2] {
        let user = format!("system:serviceaccount:{}:{account}", settings.namespace);
        let metadata = json!({ "name": self.name, "labels": super::labels(settings) });
        let policy = json!({
            "?": when,
            "#": self.so,
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": metadata,
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {
                    // The API server's defaults: without them a second apply changes the object.
                    "matchPolicy": "Equivalent",
                    "namespaceSelector": {},
                    "objectSelector": {},
                    "resourceRules": [{
                    "apiGroups": [self.kind.group],
                    "apiVersions": ["*"],
                    "operations": [self.operation],
                    "resources": [self.kind.plural],
                    "scope": "*",
                }] },
                "matchConditions": [{
                    "name": "by-rolegate",
                    "expression": format!("request.userInfo.username == '{user}'"),
                }],
                "variables": (!self.variables.is_empty()).then_some(self.variables),
                "validations": [self.validation],
            },
        });
        let binding = json!({
            "?": when,
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": metadata,
            "spec": { "policyName": self.name, "validationActions": ["Deny"] },
        });
        [policy, binding]
    }
}
