//! Policies that limit what our own account may change of pods, workloads and webhook configurations: RBAC knows
//! verbs, not fields. With a stolen token, an attacker can run no code, and redirect no admission.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::installation::{Choice, Installation};
use super::judged::{Judged, Policy, quoted};
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

/// The condition for keys that may change: none.
const NONE: &str = "false";
/// The condition for keys of the spec of a CapacityBuffer that may change: it may be emptied.
const EMPTIED: &str = "key == 'replicas' && object.spec.replicas == 0";
/// Changes of a Secret, beside those of its metadata.
const OF_SECRET: &str = "['immutable', 'type'].filter(key, dyn(oldObject)[?key] != dyn(object)[?key])";

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
    let (ours, controlled) = (format!("key.startsWith('{PREFIX}')"), controlled("oldObject"));
    let members = format!("key == 'minMember' && {controlled}");
    let place = format!("key == '{}' && !({controlled})", names::PLACEMENT);
    let others = [
        // Its data may change. Its type decides what the API server does with it.
        (SECRET, all_but(NONE, NONE, None, &[OF_SECRET]), NO_TOKEN, Some(Choice::SelfManaged)),
        (LEASE, all_but(NONE, &ours, None, &[]), NO_MORE, None),
        // Our finalizer may change.
        (CLUSTER_TOPOLOGY, all_but(NONE, NONE, Some(NONE), &[]), NO_MORE, None),
        // The number of members of one that a group controls may change, and the placement annotation of others.
        (POD_GROUP, all_but(NONE, &place, Some(&members), &[]), NO_MORE, None),
        (CAPACITY_BUFFER, all_but(NONE, NONE, Some(EMPTIED), &[]), NO_NODES, None),
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
    let names = format!("({} == {} ? [] : ['webhooks'])", names("object"), names("oldObject"));
    let of_one = format!(
        "{}.filter(was, {}.exists(now, now.name == was.name && ({differs}))).map(was, 'webhooks[' + was.name + ']')",
        all("oldObject"),
        all("object"),
    );
    all_but(NONE, NONE, None, &[&names, &of_one])
}

/// Returns expressions for forbidden changes of a pod. The API server lets everybody only remove gates and add node
/// labels; nodes may be chosen at the release only.
fn of_pods() -> Vec<String> {
    let keys = quoted(OF_PODS.iter().copied());
    let judged = quoted(names::LABEL_SCHEMES.iter().flat_map(|(group, role)| [*group, *role]));
    let prefixes = format!("key.startsWith('{PREFIX}') || key.startsWith('{}')", names::KEP30_MEMBER_PREFIX);
    let ours = format!("key in [{keys}] || (({prefixes}) && !(key in [{judged}]))");
    let gates = |object: &str| format!("{object}.?spec.?schedulingGates.orValue([])");
    let others =
        |object: &str| format!("{}.map(gate, gate.name).filter(name, name != '{}')", gates(object), names::GATE);
    let held = |object: &str| format!("{}.exists(gate, gate.name == '{}')", gates(object), names::GATE);
    let released = format!("{} && !{}", held("oldObject"), held("object"));
    // The group label decides which pods may be deleted: a late one says what the pod says of itself.
    let label = |object: &str, key: &str| format!("dyn({object}).?metadata.?labels.orValue({{}})[?{key}]");
    let said =
        quoted(names::LABEL_SCHEMES.iter().map(|(group, _)| *group).filter(|group| *group != names::KEP75_GROUP));
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
    let annotations =
        format!("{ours} || ({ours_of_kueue}) || key in variables.more || (key in variables.atRelease && {released})");
    let spec = format!("key == 'schedulingGates' || (key == 'nodeSelector' && {released})");
    let gates = format!("({} == {} ? [] : ['spec.schedulingGates'])", others("object"), others("oldObject"));
    all_but(&format!("{ours} || ({late})"), &annotations, Some(&spec), &[&gates])
}

/// Returns expressions for forbidden changes of a workload. Defaults may be filled in besides the partition.
fn of_workload(kind: WorkloadKind) -> Vec<String> {
    let notes =
        [names::USER_PARTITION_IN_RBG, names::UNCLAIMED_IN_RBG].map(|key| format!("key == '{key}'")).join(" || ");
    let mut changed = all_but(NONE, &format!("key.startsWith('{PREFIX}') || {notes}"), None, &[]);
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

/// Returns expressions for forbidden changes of an object: all but these keys of its labels, annotations and, where it is looked
/// at, spec; and `more`.
fn all_but(labels: &str, annotations: &str, spec: Option<&str>, more: &[&str]) -> Vec<String> {
    let fields: [(&[_], _); 3] =
        [(&["metadata", "labels"], Some(labels)), (&["metadata", "annotations"], Some(annotations)), (&["spec"], spec)];
    let all = fields.into_iter().filter_map(|(path, allowed)| Some(differing(path, Compared::All, allowed?)));
    all.chain(more.iter().map(ToString::to_string)).collect()
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
    let groups = quoted(names::LABEL_SCHEMES.iter().map(|(group, _)| *group));
    let grouped = format!("dyn(oldObject).?metadata.?labels.orValue({{}}).exists(key, key in [{groups}])");
    let variables = [("held", Choice::Recreation, held), ("grouped", Choice::Allow(Allow::Recovery), grouped)];
    let variables = variables.map(|(name, choice, expression)| {
        json!({ "name": name, "expression": installation.chosen(choice, &expression, "false") })
    });
    let named = ("pod-deletions", "Which pods our own account may delete.");
    let validation = forbidden("variables.held || variables.grouped", "rolegate itself may not delete this pod");
    let of_pods = Judged { variables: variables.into(), ..judged(POD, named, &["DELETE"], validation) };
    of_pods.policy(installation, &accounts(installation), None)
}

/// Returns the policies for objects that groups own: our own account makes and deletes those of groups only. What was made is
/// deleted also where no more may be made.
fn owned(installation: &Installation, kind: ObjectKind, when: Option<Choice>) -> [Policy; 2] {
    let of_groups =
        |does, object: &str, when| only(installation, kind, does, ("those of groups", &controlled(object)), when);
    [of_groups(CREATE, "object", when), of_groups(("delete", &["DELETE"]), "oldObject", None)]
}

/// A verb, and the operations that it names.
type Does = (&'static str, &'static [&'static str]);
const CREATE: Does = ("create", &["CREATE"]);

/// Returns the policy that lets our own account do something to some objects of a kind only: which they are, as text and expression.
fn only(
    installation: &Installation,
    kind: ObjectKind,
    does: Does,
    which: (&str, &str),
    when: Option<Choice>,
) -> Policy {
    let (verb, plural) = (does.0, kind.plural);
    let named = (&*format!("{plural}-{verb}"), &*format!("Which {plural} our own account may {verb}: {}.", which.0));
    let validation = forbidden(which.1, &format!("rolegate itself may not {verb} this {}", kind.kind));
    judged(kind, named, does.1, validation).policy(installation, &accounts(installation), when)
}

/// Returns the policies for the creation of our own Secret and Lease: of our names, and with nothing that makes the API server act.
fn own(installation: &Installation) -> [Policy; 2] {
    let without = |fields: &[&str]| {
        format!("[{}].all(key, !dyn(object.metadata)[?key].hasValue())", quoted(fields.iter().copied()))
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
    [(SECRET, secret, Some(Choice::SelfManaged)), (LEASE, lease, None)]
        .map(|(kind, are_they, when)| only(installation, kind, CREATE, ("its own", &are_they), when))
}

/// Returns the policy for Events: our own account writes its own.
fn events(installation: &Installation) -> Policy {
    let ours = |object: &str| format!("dyn({object}).?reportingController.orValue('') == '{MANAGER}'");
    let all_ours = format!("{} && (request.operation == 'CREATE' || {})", ours("object"), ours("oldObject"));
    let validation = forbidden(&all_ours, "rolegate itself may not write this Event");
    let named = (EVENT.plural, "Which Events our own account may write: its own.");
    judged(EVENT, named, &["CREATE", "UPDATE"], validation).policy(installation, &accounts(installation), None)
}

/// Returns the policy for the account of `doctor`: it may create pods as a dry run only.
pub fn tries(installation: &Installation) -> Policy {
    let message = "rolegate doctor may create this pod as a dry run only";
    let validation = forbidden("has(request.dryRun) && request.dryRun", message);
    let named = ("doctor", "The account of `rolegate doctor` tries pods and makes none.");
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
    let so = format!("What our own account may change of {}: {so}.", kind.plural);
    let judged = Judged { variables, ..judged(kind, (kind.plural, &so), &["UPDATE"], validation) };
    judged.policy(installation, &accounts(installation), when)
}

fn forbidden(unless: &str, message: &str) -> Value {
    json!({ "expression": unless, "message": message, "reason": "Forbidden" })
}

/// Returns what judges objects of a kind.
fn judged(kind: ObjectKind, named: (&str, &str), operations: &'static [&'static str], validation: Value) -> Judged {
    let (suffix, so) = (named.0.to_owned(), named.1.to_owned());
    // Nothing is asked for other Secrets, and for the Leases of nodes.
    let (own, groups, resources) = ([SECRET, LEASE].contains(&kind), groups_of(kind), vec![kind.plural]);
    Judged { suffix, so, groups, resources, operations, own, variables: Vec::new(), validations: vec![validation] }
}
