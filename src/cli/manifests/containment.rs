//! Policies that limit what our own account may change of pods, workloads and webhook configurations: RBAC knows
//! verbs, not fields. With a stolen token, an attacker can run no code, and redirect no admission.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::installation::{Choice, Installation};
use super::judged::{Judged, Policy};
use crate::api::ObjectKind;
use crate::api::cluster_topology::{CLUSTER_TOPOLOGIES, CLUSTER_TOPOLOGY};
use crate::api::pod::POD;
use crate::api::pod_group::{POD_GROUP, POD_GROUPS};
use crate::api::provisioning::{CAPACITY_BUFFER, REQUESTS};
use crate::cli::allow::Allow;
use crate::cluster::write::writer::MANAGER;
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
    names::KAI_SKIP_PODGROUPER,
    names::KAI_SUBGROUP,
];

/// Annotations of pods that rolegate writes where scaling is allowed.
const OF_SCALED_PODS: &[&str] = &[names::DELETION_COST];

/// Annotations of pods that rolegate writes at the release where it requests nodes.
const OF_PROVIDED_PODS: &[&str] = &[names::CONSUME_REQUEST, names::REQUEST_CLASS];

const WEBHOOKS: [ObjectKind; 2] = [
    webhook_kind("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
    webhook_kind("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
];

const SECRET: ObjectKind = ObjectKind { group: "", version: "v1", kind: "Secret", plural: "secrets", namespaced: true };
const LEASE: ObjectKind =
    ObjectKind { group: "coordination.k8s.io", version: "v1", kind: "Lease", plural: "leases", namespaced: true };
const EVENT: ObjectKind =
    ObjectKind { group: "events.k8s.io", version: "v1", kind: "Event", plural: "events", namespaced: true };

const fn webhook_kind(kind: &'static str, plural: &'static str) -> ObjectKind {
    ObjectKind { group: "admissionregistration.k8s.io", version: "v1", kind, plural, namespaced: false }
}

/// Returns the policies for pods, for each kind of workload with a partition, for webhook configurations if rolegate has a right to
/// them, and for all else that it writes.
pub fn policies(installation: &Installation) -> Vec<Policy> {
    const NO_CODE: &str = "a stolen token runs no code";
    const NO_NODES: &str = "a stolen token asks for no more nodes by them";
    const NOT_ELSEWHERE: &str = "a stolen token sends no admission elsewhere";
    const NO_TOKEN: &str = "a stolen token becomes no other token";
    const NO_MORE: &str = "a stolen token does no more with them than rolegate";
    let workloads = WorkloadKind::with_partition().map(|kind| (kind.object_kind(), of_workload(kind), NO_CODE, None));
    let webhooks = WEBHOOKS.map(|kind| (kind, of_webhooks(), NOT_ELSEWHERE, Some(Choice::SelfManaged)));
    let others = [
        (SECRET, of_secrets(), NO_TOKEN, Some(Choice::SelfManaged)),
        (LEASE, of_leases(), NO_MORE, None),
        (CLUSTER_TOPOLOGY, of_topologies(), NO_MORE, None),
        (POD_GROUP, of_pod_groups(), NO_MORE, None),
        (CAPACITY_BUFFER, of_buffers(), NO_NODES, None),
    ];
    let provision = Some(Choice::Allow(Allow::Provision));
    [(POD, of_pods(), NO_CODE, None)]
        .into_iter()
        .chain(workloads)
        .chain(webhooks)
        .chain(others)
        .map(|(kind, changed, so, when)| policy(installation, kind, &changed, so, when))
        .chain([deletions(installation)])
        .chain(own(installation))
        .chain([events(installation)])
        .chain(owned(installation, POD_GROUP, None))
        .chain(REQUESTS.iter().flat_map(|kind| owned(installation, *kind, provision)))
        .chain([super::authors::policy(installation)])
        .filter(|policy| installation.has(policy.when))
        .collect()
}

/// Returns the accounts that the policies are over: that of the replicas, and that of `uninstall`, which undoes what they did.
fn accounts(installation: &Installation) -> [String; 2] {
    [installation.name.clone(), format!("{}-uninstall", installation.name)]
}

/// Returns the API groups whose objects of this resource are treated alike.
fn groups_of(kind: ObjectKind) -> Vec<&'static str> {
    let all = match kind {
        CLUSTER_TOPOLOGY => CLUSTER_TOPOLOGIES,
        POD_GROUP => POD_GROUPS,
        kind => return vec![kind.group],
    };
    all.iter().map(|kind| kind.group).collect()
}

/// Returns expressions for forbidden changes of our Secret: all but its data. Its type decides what the API server does with it.
fn of_secrets() -> Vec<String> {
    vec![
        differing(&["metadata", "labels"], Compared::All, "false"),
        differing(&["metadata", "annotations"], Compared::All, "false"),
        "['immutable', 'type'].filter(key, dyn(oldObject)[?key] != dyn(object)[?key])".to_owned(),
    ]
}

/// Returns expressions for forbidden changes of our Lease: all but its spec, and our annotations.
fn of_leases() -> Vec<String> {
    vec![
        differing(&["metadata", "labels"], Compared::All, "false"),
        differing(&["metadata", "annotations"], Compared::All, &format!("key.startsWith('{PREFIX}')")),
    ]
}

/// Returns expressions for forbidden changes of a ClusterTopology: all but our finalizer.
fn of_topologies() -> Vec<String> {
    vec![
        differing(&["metadata", "labels"], Compared::All, "false"),
        differing(&["metadata", "annotations"], Compared::All, "false"),
        differing(&["spec"], Compared::All, "false"),
    ]
}

/// Returns expressions for forbidden changes of a PodGroup: all but the number of members of one that a group controls, and the
/// placement annotation of others.
fn of_pod_groups() -> Vec<String> {
    let controlled = controlled("oldObject");
    vec![
        differing(&["metadata", "labels"], Compared::All, "false"),
        differing(
            &["metadata", "annotations"],
            Compared::All,
            &format!("key == '{}' && !({controlled})", names::PLACEMENT),
        ),
        differing(&["spec"], Compared::All, &format!("key == 'minMember' && {controlled}")),
    ]
}

/// Returns an expression for whether a group controls an object.
fn controlled(object: &str) -> String {
    let carriers = CARRIERS.iter().map(|carrier| format!("'{}/{}'", carrier.group, carrier.kind));
    // Whatever the version.
    let carriers: Vec<_> = carriers.collect::<BTreeSet<_>>().into_iter().collect();
    format!(
        "dyn({object}).?metadata.?ownerReferences.orValue([]).exists(owner, owner.?controller.orValue(false) && \
         owner.apiVersion.split('/')[0] + '/' + owner.kind in [{}])",
        carriers.join(", ")
    )
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
    // The group label decides which pods may be deleted: a late one says what the pod says of itself.
    let label = |object: &str, key: &str| format!("dyn({object}).?metadata.?labels.orValue({{}})[?{key}]");
    let said = names::LABEL_SCHEMES.iter().filter(|(group, _)| *group != names::KEP75_GROUP);
    let said = said.map(|(group, _)| format!("'{group}'")).collect::<Vec<_>>().join(", ");
    let same = format!(
        "{}.hasValue() && {} == {}",
        label("oldObject", "known"),
        label("oldObject", "known"),
        label("object", "key")
    );
    let late = format!(
        "{released} && (key == '{}' || (key == '{}' && [{said}].exists(known, {same})))",
        names::KEP75_ROLE,
        names::KEP75_GROUP
    );
    let annotation = |object: &str| format!("dyn({object}).?metadata.?annotations.orValue({{}})[?key]");
    // Kueue's list of whom it waits for: only what says that it waits for us may go.
    let ours_of_kueue = format!(
        "key == '{}' && {}.orValue('') == '{}' && !{}.hasValue()",
        names::KUEUE_GATED_BY,
        annotation("oldObject"),
        names::GATE,
        annotation("object")
    );
    vec![
        differing(&["metadata", "labels"], Compared::All, &format!("{ours} || ({late})")),
        differing(
            &["metadata", "annotations"],
            Compared::All,
            &format!(
                "{ours} || ({ours_of_kueue}) || key in variables.more || (key in variables.atRelease && {released})"
            ),
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
fn deletions(installation: &Installation) -> Policy {
    let held = format!("oldObject.?spec.?schedulingGates.orValue([]).exists(gate, gate.name == '{}')", names::GATE);
    let groups: Vec<_> = names::LABEL_SCHEMES.iter().map(|(group, _)| format!("'{group}'")).collect();
    let grouped = format!("dyn(oldObject).?metadata.?labels.orValue({{}}).exists(key, key in [{}])", groups.join(", "));
    let variables = [("held", Choice::Recreation, held), ("grouped", Choice::Allow(Allow::Recovery), grouped)];
    let variables = variables.map(|(name, choice, expression)| {
        json!({ "name": name, "expression": installation.chosen(choice, &expression, "false") })
    });
    let named = ("pod-deletions".to_owned(), "Which pods our own account may delete.".to_owned());
    let validation = json!({
        "expression": "variables.held || variables.grouped",
        "message": "rolegate itself may not delete this pod",
        "reason": "Forbidden",
    });
    let of_pods = Judged { variables: variables.into(), ..judged(POD, named, &["DELETE"], validation) };
    of_pods.policy(installation, &accounts(installation), None)
}

/// Returns the policies for objects that groups own: our own account makes and deletes those of groups only. What was made is
/// deleted also where no more may be made.
fn owned(installation: &Installation, kind: ObjectKind, when: Option<Choice>) -> [Policy; 2] {
    let policy = |(operations, object, suffix, when): (&'static [&'static str], &str, &str, _)| {
        let so = format!("Which {} our own account may {suffix}: those of groups.", kind.plural);
        let validation = json!({
            "expression": controlled(object),
            "message": format!("rolegate itself may not {suffix} this {}", kind.kind),
            "reason": "Forbidden",
        });
        let named = (format!("{}-{suffix}", kind.plural), so);
        judged(kind, named, operations, validation).policy(installation, &accounts(installation), when)
    };
    [(&["CREATE"][..], "object", "create", when), (&["DELETE"], "oldObject", "delete", None)].map(policy)
}

/// Returns the policies for the creation of our own Secret and Lease: of our names, and with nothing that makes the API server act.
fn own(installation: &Installation) -> [Policy; 2] {
    let without = |fields: &[&str]| {
        let fields = fields.iter().map(|field| format!("'{field}'")).collect::<Vec<_>>().join(", ");
        format!("[{fields}].all(key, !dyn(object.metadata)[?key].hasValue())")
    };
    let named = |name: &str| format!("dyn(object.metadata).?name.orValue('') == '{name}'");
    let secret = format!(
        "{} && dyn(object).?type.orValue('') == 'kubernetes.io/tls' && dyn(object).?immutable.orValue(false) == false && \
         dyn(object.metadata).?labels.orValue({{}}) == {{'app.kubernetes.io/managed-by': 'rolegate'}} && {}",
        named(&format!("{}-certificates", installation.name)),
        without(&["annotations", "finalizers", "generateName", "ownerReferences"])
    );
    let lease = format!(
        "{} && dyn(object.metadata).?annotations.orValue({{}}).all(key, key.startsWith('{PREFIX}')) && {}",
        named(&installation.name),
        without(&["labels", "finalizers", "generateName", "ownerReferences"])
    );
    let policy = |(kind, expression, when): (ObjectKind, String, Option<Choice>)| {
        let so = format!("Which {} our own account may create: its own.", kind.plural);
        let validation = json!({
            "expression": expression,
            "message": format!("rolegate itself may not create this {}", kind.kind),
            "reason": "Forbidden",
        });
        let named = (format!("{}-create", kind.plural), so);
        judged(kind, named, &["CREATE"], validation).policy(installation, &accounts(installation), when)
    };
    [(SECRET, secret, Some(Choice::SelfManaged)), (LEASE, lease, None)].map(policy)
}

/// Returns the policy for Events: our own account writes its own.
fn events(installation: &Installation) -> Policy {
    let ours = |object: &str| format!("dyn({object}).?reportingController.orValue('') == '{MANAGER}'");
    let validation = json!({
        "expression": format!("{} && (request.operation == 'CREATE' || {})", ours("object"), ours("oldObject")),
        "message": "rolegate itself may not write this Event",
        "reason": "Forbidden",
    });
    let named = (EVENT.plural.to_owned(), "Which Events our own account may write: its own.".to_owned());
    judged(EVENT, named, &["CREATE", "UPDATE"], validation).policy(installation, &accounts(installation), None)
}

/// Returns the policy for the account of `doctor`: it may create pods as a dry run only.
pub fn tries(installation: &Installation) -> Policy {
    let validation = json!({
        "expression": "has(request.dryRun) && request.dryRun",
        "message": "rolegate doctor may create this pod as a dry run only",
        "reason": "Forbidden",
    });
    let named = ("doctor".to_owned(), "The account of `rolegate doctor` tries pods and makes none.".to_owned());
    let account = format!("{}-doctor", installation.name);
    judged(POD, named, &["CREATE"], validation).policy(installation, &[account], None)
}

fn policy(installation: &Installation, kind: ObjectKind, changed: &[String], so: &str, when: Option<Choice>) -> Policy {
    let of_metadata = if kind == CLUSTER_TOPOLOGY {
        let others = |object: &str| {
            let all = format!("dyn({object}.metadata).?finalizers.orValue([])");
            format!("{all}.filter(finalizer, finalizer != '{}')", names::TOPOLOGY_FINALIZER)
        };
        let (old, new) = (others("oldObject"), others("object"));
        format!(
            "({old} == {new} ? [] : ['metadata.finalizers']) + ['ownerReferences'].filter(key, dyn(oldObject.metadata)[?key] != \
             dyn(object.metadata)[?key]).map(key, 'metadata.' + key)"
        )
    } else {
        "['finalizers', 'ownerReferences'].filter(key, dyn(oldObject.metadata)[?key] != dyn(object.metadata)[?key]).map(key, \
         'metadata.' + key)"
            .to_owned()
    };
    let more = [("more", Allow::Scale, OF_SCALED_PODS), ("atRelease", Allow::Provision, OF_PROVIDED_PODS)].map(
        |(name, allow, keys)| {
            let keys = format!("{keys:?}").replace('"', "'");
            json!({ "name": name, "expression": installation.chosen(Choice::Allow(allow), &keys, "[]") })
        },
    );
    let parts = changed.iter().map(String::as_str).chain([of_metadata.as_str()]).enumerate();
    let mut variables: Vec<_> =
        parts.map(|(index, part)| json!({ "name": format!("part{index}"), "expression": part })).collect();
    let all: Vec<_> = (0..variables.len()).map(|index| format!("variables.part{index}")).collect();
    if kind == POD {
        variables.splice(0..0, more);
    }
    variables.push(json!({ "name": "changed", "expression": all.join(" + ") }));
    let validation = json!({
        "expression": "variables.changed.size() == 0",
        "messageExpression": "'rolegate itself may not change ' + variables.changed.join(', ')",
        "message": "rolegate itself may not change this",
        "reason": "Forbidden",
    });
    let named = (kind.plural.to_owned(), format!("What our own account may change of {}: {so}.", kind.plural));
    let judged = Judged { variables, ..judged(kind, named, &["UPDATE"], validation) };
    judged.policy(installation, &accounts(installation), when)
}

/// Returns what judges objects of a kind.
fn judged(
    kind: ObjectKind,
    (suffix, so): (String, String),
    operations: &'static [&'static str],
    validation: Value,
) -> Judged {
    // Nothing is asked for other Secrets, and for the Leases of nodes.
    let own = [SECRET, LEASE].contains(&kind);
    let (groups, resources) = (groups_of(kind), vec![kind.plural]);
    Judged { suffix, so, groups, resources, operations, own, variables: Vec::new(), validations: vec![validation] }
}
