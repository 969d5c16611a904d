//! Findings when one thing is broken.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::SignedDuration;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use serde_json::{Value, json};

use super::healthy::{established, healthy, stored, typed};
use super::{checks, judge};
use crate::api::crd;
use crate::api::pod_group::{KUBE_POD_GROUP, POD_GROUP};
use crate::api::selector::LabelSelector;
use crate::cli::allow::Allow;
use crate::cli::doctor::facts::{
    AskedRight, Facts, OptIn, Other, Probe, Rights, Served, ServedNamespaces, Strangers, Uncoordinated, Warned,
};
use crate::cli::doctor::finding::Level;
use crate::model::{HoldReason, IgnoredResources, Mode, Out, Serving, Stance};
use crate::plan::{Held, HeldPod};
use crate::tls::authority::new_ca;

fn mutating(facts: &mut Facts) -> &mut MutatingWebhookConfiguration {
    &mut facts.mutating.as_mut().unwrap()[0]
}

fn validating(facts: &mut Facts) -> &mut MutatingWebhookConfiguration {
    &mut facts.validating.as_mut().unwrap()[0]
}

fn policy<'a>(facts: &'a mut Facts, name: &str) -> &'a mut serde_json::Value {
    facts.policies.as_mut().unwrap().policies.get_mut(name).unwrap()
}

fn warned(why: &str) -> Warned {
    Warned { group: "ml/llm".to_owned(), why: why.to_owned() }
}

/// Creates a webhook of another project for these resources of the core group.
fn other<T: serde::de::DeserializeOwned>(configuration: &str, resources: &[&str], path: &str) -> T {
    typed(json!({
        "metadata": { "name": configuration },
        "webhooks": [{
            "name": "hook.example.com",
            "clientConfig": { "service": { "namespace": "example", "name": "hook", "path": path } },
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "rules": [{ "operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": resources }],
        }],
    }))
}

fn missing(group: &'static str, resource: &'static str) -> AskedRight {
    AskedRight { group, resource, verb: "patch", namespace: None, why: "It must.", object: None }
}

fn opt_in(what: Allow, groups: &[&str], is_on: Option<bool>) -> OptIn {
    let rights = Rights { user: Some("rolegate".to_owned()), missing: Vec::new(), asked: 1 };
    OptIn { what, groups: groups.iter().map(ToString::to_string).collect(), is_on, rights }
}

fn own_definition(facts: &mut Facts) -> &mut Value {
    facts.definitions.as_mut().unwrap().get_mut("rolecoordinations.rolegate.dev").unwrap()
}

fn definition(facts: &mut Facts, name: &str) -> Option<Value> {
    facts.definitions.as_mut().unwrap().remove(name)
}

/// Adds the definition of RoleBasedGroups, changed.
fn with_groups(facts: &mut Facts, change: fn(&mut Value)) {
    let mut files = crd::files(true).into_iter();
    let groups = files.find(|(name, _)| name.starts_with("rolebasedgroups.workloads.x-k8s.io")).unwrap();
    let (name, mut groups) = established(&groups.1);
    change(&mut groups);
    facts.definitions.as_mut().unwrap().insert(name, groups);
}

/// Returns the findings at this level or worse, one line each.
fn found(facts: &Facts, level: Level) -> Vec<String> {
    let found = judge(facts).into_iter().filter(|finding| finding.level >= level);
    found.map(|finding| format!("{:?} {}: {}", finding.level, finding.check, finding.what)).collect()
}

#[test]
fn nothing_is_wrong_with_a_healthy_installation() {
    assert_eq!(found(&healthy(), Level::Info), [""; 0]);
    let ids: BTreeSet<_> = checks().iter().map(|(id, _)| *id).collect();
    assert_eq!(ids.len(), checks().len(), "an id twice");
}

/// A change that breaks the facts, and the resulting findings above ok, one a line.
type Case = (fn(&mut Facts), &'static str);

const CASES: &[Case] = &[
    (
        |facts| served(facts, Mode::Warn, &[]),
        "Warning mode: objects that break a rule pass with a warning (--mode warn)",
    ),
    (
        |facts| {
            let out = Stance { out: Some(Out::NotSelected), ..Stance::default() };
            served(facts, Mode::Enforce, &[("web", out)]);
            facts.groups.as_mut().unwrap().served.groups.insert("web".to_owned(), 1);
        },
        "Warning selection: 1 group in namespace web, which is not selected: neither judged nor held",
    ),
    (
        |facts| facts.version = (1, 27),
        "Error api-server: Kubernetes 1.27 has no matchConditions of webhooks: every pod would wait for rolegate",
    ),
    (
        |facts| facts.version = (1, 29),
        "Warning api-server: Kubernetes 1.29 has matchConditions and scheduling gates as beta only",
    ),
    (|facts| facts.version = (1, 38), "Info api-server: Kubernetes 1.38 is newer than the tested version, 1.37"),
    (
        |facts| _ = definition(facts, "rolecoordinations.rolegate.dev"),
        "Error definitions: no kind that carries coordinations is installed",
    ),
    (
        |facts| {
            with_groups(facts, |_| ());
            definition(facts, "rolecoordinations.rolegate.dev");
        },
        "Info definitions: rolecoordinations.rolegate.dev is not there",
    ),
    (
        |facts| {
            with_groups(facts, |groups| {
                let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
                let spec = groups.pointer_mut(spec).unwrap().as_object_mut().unwrap();
                spec["properties"].as_object_mut().unwrap().remove("coordination");
                spec.remove("x-kubernetes-preserve-unknown-fields");
            });
        },
        "Warning definitions: rolebasedgroups.workloads.x-k8s.io (v1alpha1) drops spec.coordination, without a warning to its author",
    ),
    (
        |facts| own_definition(facts)["status"] = Value::Null,
        "Error definitions: rolecoordinations.rolegate.dev is not established",
    ),
    (
        |facts| {
            let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
            own_definition(facts).pointer_mut(spec).unwrap().as_object_mut().unwrap().remove("groupRef");
        },
        "Warning definitions-current: rolecoordinations.rolegate.dev is older than this version: it drops spec.groupRef, and 0 more",
    ),
    (
        |facts| {
            let groups = json!({ "spec": { "versions": [{ "name": "v2alpha2", "served": true, "schema": { "openAPIV3Schema": {
                "properties": { "spec": { "properties": { "minSubGroup": {} } } },
            } } }] } });
            facts.definitions.as_mut().unwrap().insert("podgroups.scheduling.run.ai".to_owned(), groups);
        },
        "Info neighbours: KAI is there (v2alpha2): counts as in KAI v0.15 and later",
    ),
    (
        |facts| facts.opt_ins = Ok(vec![opt_in(Allow::Scale, &["prod/pd", "prod/chat"], Some(false))]),
        "Warning opt-ins: group prod/pd and 1 other ask for scale, and rolegate runs without `--allow scale`: it has no effect",
    ),
    (
        |facts| {
            let mut asked = opt_in(Allow::Recovery, &["prod/pd"], None);
            asked.rights.missing = vec![missing("", "pods")];
            let mut on = opt_in(Allow::Scale, &[], Some(true));
            on.rights.missing = vec![missing("apps", "statefulsets/scale"), missing("grove.io", "podcliquesets/scale")];
            facts.opt_ins = Ok(vec![asked, on]);
        },
        "Error opt-ins: group prod/pd asks for recovery, and rolegate may not patch pods: It must.\n\
         Error opt-ins: `--allow scale` is on, and rolegate may not patch statefulsets/scale.apps: It must.",
    ),
    (|facts| facts.opt_ins = Ok(vec![opt_in(Allow::Scale, &["prod/pd"], Some(true))]), ""),
    (
        |facts| {
            facts.rights.as_mut().unwrap().missing = vec![missing("", "pods"), missing("grove.io", "podcliquesets")];
        },
        "Error rights: system:serviceaccount:rolegate-system:rolegate may not patch pods: It must.\n\
         Info rights: system:serviceaccount:rolegate-system:rolegate may not patch podcliquesets.grove.io; it is not installed",
    ),
    (
        |facts| facts.mutating = Ok(Vec::new()),
        "Error webhooks: there is no mutating webhook configuration rolegate: no pod is held",
    ),
    (
        |facts| facts.validating = Err("you may not".to_owned()),
        "Info webhooks: not checked: validating webhook configurations cannot be read: you may not",
    ),
    (
        |facts| mutating(facts).webhooks.as_mut().unwrap()[0].object_selector = None,
        "Warning webhooks-current: mutating webhook pods.rolegate.dev has other conditions than this version: the objects that it lacks are neither judged nor held",
    ),
    (
        |facts| validating(facts).webhooks.as_mut().unwrap()[1].rules.as_mut().unwrap().truncate(1),
        "Warning webhooks-current: validating webhook objects.rolegate.dev has other rules than this version: the objects that it lacks are neither judged nor held",
    ),
    (
        |facts| _ = validating(facts).webhooks.as_mut().unwrap().remove(0),
        "Info webhooks-current: webhooks for pods which name a PodGroup of KAI are left out, and there is no KAI",
    ),
    (
        |facts| {
            _ = validating(facts).webhooks.as_mut().unwrap().remove(0);
            facts.definitions.as_mut().unwrap().insert(POD_GROUP.crd_name(), json!({}));
        },
        "Info neighbours: KAI is there (): its counts are not known: set --kai-dialect\n\
         Warning webhooks-current: KAI is there, and webhooks for pods which name its PodGroups are left out",
    ),
    (
        |facts| facts.device_classes = Ok(Some([("gpu".to_owned(), vec!["partitionable devices".to_owned()])].into())),
        "Info devices: devices of class gpu are not counted: partitionable devices",
    ),
    (
        |facts| {
            let told = facts.groups.as_mut().unwrap().served.told.as_mut().unwrap();
            told.ignored_resources = IgnoredResources::parse_list("example.com/device,gpu.io/*");
            facts.device_classes = Err("forbidden".to_owned());
        },
        "Info devices: these resources keep no pod back where no node has them (--ignore-resources): example.com/device,gpu.io/*\n\
         Info devices: not checked: DeviceClasses cannot be read: forbidden\n\
         Info devices: an extended resource that no node has keeps no pod back: whether a DeviceClass names it is not known",
    ),
    (
        |facts| facts.not_made = Ok(Some("FailedCreate: pods \"r\" is forbidden: insufficient quota".to_owned())),
        "Error replicas: the pods of Deployment rolegate are not made: FailedCreate: pods \"r\" is forbidden: insufficient quota",
    ),
    (
        |facts| mutating(facts).webhooks.as_mut().unwrap()[0].name = "later.rolegate.dev".to_owned(),
        "Warning webhooks-current: mutating webhook later.rolegate.dev is not of this version\n\
         Warning webhooks-current: mutating webhook pods.rolegate.dev is missing: the objects that it lacks are neither judged nor held",
    ),
    (
        |facts| {
            let client = &mut mutating(facts).webhooks.as_mut().unwrap()[0].client_config;
            client.service.as_mut().unwrap().name = "other".to_owned();
        },
        "Warning endpoint: mutating webhook pods.rolegate.dev leads to Service rolegate-system/other, and the other webhooks to Service \
         rolegate-system/rolegate\n\
         Error endpoint: mutating webhook pods.rolegate.dev leads to Service rolegate-system/other, which is not there",
    ),
    (
        |facts| mutating(facts).webhooks.as_mut().unwrap()[0].failure_policy = Some("Ignore".to_owned()),
        "Warning failure-policy: mutating webhook pods.rolegate.dev is ignored while rolegate is away: pods pass without a hold",
    ),
    (
        |facts| mutating(facts).webhooks.as_mut().unwrap()[0].namespace_selector = None,
        "Error exclusions: mutating webhook pods.rolegate.dev is for namespace kube-system too: the cluster may not start without rolegate\n\
         Error exclusions: mutating webhook pods.rolegate.dev is for namespace rolegate-system too: the cluster may not start without rolegate",
    ),
    (
        |facts| facts.services = Ok([(("rolegate-system".to_owned(), "rolegate".to_owned()), None)].into()),
        "Error endpoint: mutating webhook pods.rolegate.dev leads to Service rolegate-system/rolegate, which is not there",
    ),
    (
        |facts| facts.services.as_mut().unwrap().values_mut().flatten().for_each(|(_, ready)| *ready = 0),
        "Error endpoint: Service rolegate-system/rolegate has no endpoint that is ready",
    ),
    (
        |facts| facts.services.as_mut().unwrap().values_mut().flatten().for_each(|(service, _)| service.spec = None),
        "Error endpoint: Service rolegate-system/rolegate has no port 443",
    ),
    (
        |facts| facts.now += SignedDuration::from_mins(27 * 24 * 60 + 30),
        "Warning certificate: the serving certificate expires in 2d23h and was not renewed\n\
         Error leader: rolegate-0 led and has been silent for 27d: held pods are not released",
    ),
    (
        |facts| {
            let past = facts.now - SignedDuration::from_hours(24 * 31);
            let expired = stored(past);
            let ca = Some(ByteString(expired.bundle.0.clone().into_bytes()));
            for hook in mutating(facts).webhooks.as_mut().unwrap() {
                hook.client_config.ca_bundle.clone_from(&ca);
            }
            for hook in validating(facts).webhooks.as_mut().unwrap() {
                hook.client_config.ca_bundle.clone_from(&ca);
            }
            facts.certificates = Ok(Some(Served { stored: expired, self_managed: false, foreign: None }));
        },
        "Error certificate: the serving certificate expired 1d ago",
    ),
    (
        |facts| facts.certificates.as_mut().unwrap().as_mut().unwrap().stored.leaf.cert_pem.clear(),
        "Error certificate: the serving certificate cannot be read: no certificate in the PEM text\n\
         Error ca-bundle: caBundle of mutating webhooks pods.rolegate.dev, rbg.pods.rolegate.dev, kep75.pods.rolegate.dev, grove.pods.rolegate.dev, kai.pods.rolegate.dev, workloads.rolegate.dev, objects.rolegate.dev does not hold the CA of the serving certificate\n\
         Error ca-bundle: caBundle of validating webhooks kai.pods.rolegate.dev, objects.rolegate.dev does not hold the CA of the serving certificate",
    ),
    (
        |facts| facts.certificates = Ok(None),
        "Info certificate: the Secret of certificates does not exist: another program provides them, or none has yet",
    ),
    (
        |facts| mutating(facts).webhooks.as_mut().unwrap()[0].client_config.ca_bundle = None,
        "Error ca-bundle: caBundle of mutating webhook pods.rolegate.dev is empty",
    ),
    (
        |facts| {
            let bundle = Some(ByteString(b"nonsense".to_vec()));
            mutating(facts).webhooks.as_mut().unwrap()[0].client_config.ca_bundle = bundle;
        },
        "Error ca-bundle: caBundle of mutating webhook pods.rolegate.dev holds no certificate",
    ),
    (
        |facts| {
            let next = new_ca(facts.now).unwrap();
            facts.certificates.as_mut().unwrap().as_mut().unwrap().stored.ca = next;
        },
        "Warning ca-bundle: caBundle of mutating webhooks pods.rolegate.dev, rbg.pods.rolegate.dev, kep75.pods.rolegate.dev, grove.pods.rolegate.dev, kai.pods.rolegate.dev, workloads.rolegate.dev, objects.rolegate.dev does not hold the next CA yet\n\
         Warning ca-bundle: caBundle of validating webhooks kai.pods.rolegate.dev, objects.rolegate.dev does not hold the next CA yet",
    ),
    (|facts| facts.probe = Ok(Probe::NotHeld), "Error admission: a pod of a group, created as a dry run, is not held"),
    (
        |facts| facts.probe = Ok(Probe::Refused("x509: expired".to_owned())),
        "Error admission: a pod of a group, created as a dry run, is refused: x509: expired",
    ),
    (
        |facts| facts.mutating.as_mut().unwrap().push(other("zz-injector", &["pods"], "/")),
        "Info other-webhooks: mutating webhook zz-injector sees pods after ours\n\
         Warning our-namespace: webhook hook.example.com of zz-injector judges pods in our namespace and refuses them while it is away",
    ),
    (
        |facts| facts.validating.as_mut().unwrap().push(other("aa-guard", &["secrets"], "/")),
        "Warning our-namespace: webhook hook.example.com of aa-guard judges secrets in our namespace and refuses them while it is away",
    ),
    (
        |facts| _ = facts.namespaces.as_mut().unwrap().remove("rolegate-system"),
        "Error our-namespace: namespace rolegate-system is not there",
    ),
    (
        |facts| facts.validating.as_mut().unwrap().push(other("grove", &["x"], "/webhooks/authorizer-webhook")),
        "Warning grove-authorizer: Grove's authorizer is on: it refuses to let others lift gates of its pods",
    ),
    (
        |facts| {
            facts.others =
                Ok(vec![Other { name: "b".to_owned(), shared: ["a", "b", "c", "d"].map(str::to_owned).into() }]);
        },
        "Error other-rolegates: the rolegate b serves 4 namespaces that ours serves too: a, b, c and 1 more",
    ),
    (|facts| facts.lease = Ok(None), "Error leader: no replica has ever led: held pods are not released"),
    (
        |facts| {
            facts.lease.as_mut().unwrap().as_mut().unwrap().spec.as_mut().unwrap().holder_identity =
                Some(String::new());
        },
        "Error leader: no replica leads, the last one gave up its Lease: held pods are not released",
    ),
    (
        |facts| {
            let orphan = |number| (format!("ml/gone-{number}"), 3);
            facts.groups.as_mut().unwrap().orphans = (0..7).map(orphan).collect();
        },
        "Warning orphans: 3 pods held for group ml/gone-0, which is not there\n\
         Warning orphans: 3 pods held for group ml/gone-1, which is not there\n\
         Warning orphans: 3 pods held for group ml/gone-2, which is not there\n\
         Warning orphans: 3 pods held for group ml/gone-3, which is not there\n\
         Warning orphans: 3 pods held for group ml/gone-4, which is not there\n\
         Warning orphans: 2 groups more with held pods are missing",
    ),
    (
        |facts| facts.nobodys = Ok(vec!["ml/debug".to_owned()]),
        "Warning nobodys: pod ml/debug has the gate of rolegate and names no group: it is never released",
    ),
    (
        |facts| {
            let held = |reason, pods: usize| {
                let pods = vec![HeldPod { facts: Arc::default(), ordinal: 0 }; pods];
                ("ml/llm".to_owned(), Held::new(reason, "segment 2 is held: why".to_owned(), pods))
            };
            facts.groups.as_mut().unwrap().held =
                vec![held(HoldReason::PreviousSegmentNotReady, 3), held(HoldReason::PlacedNotBound, 0)];
        },
        "Warning held: group ml/llm: PlacedNotBound: segment 2 is held: why\n\
         Info held: group ml/llm: PreviousSegmentNotReady: segment 2 is held: why (3 pods held)",
    ),
    (
        |facts| {
            let one = |group: &str, was_there| Uncoordinated { group: group.to_owned(), pods: 4, was_there };
            facts.groups.as_mut().unwrap().uncoordinated = vec![one("ml/lmm", false), one("ml/old", true)];
        },
        "Warning uncoordinated: 4 pods of group ml/lmm run, and it is not there: nothing coordinates them\n\
         Info uncoordinated: 4 pods of group ml/old run, and it is not there: nothing coordinates them",
    ),
    (
        |facts| {
            facts.groups.as_mut().unwrap().strangers =
                vec![Strangers { group: "ml/llm".to_owned(), role: "decoder".to_owned(), pods: 16 }];
        },
        r#"Warning unknown-roles: 16 pods of role "decoder", which group ml/llm does not have"#,
    ),
    (|facts| facts.rivals = Ok(vec![warned("two scale it")]), "Warning autoscalers: group ml/llm: two scale it"),
    (
        |facts| _ = facts.policies.as_mut().unwrap().policies.remove("rolegate-pods"),
        r#"Warning containment: ValidatingAdmissionPolicy "rolegate-pods" is missing"#,
    ),
    (
        |facts| {
            policy(facts, "rolegate-pods")["status"] = json!({ "typeChecking": { "expressionWarnings": [{
                "fieldRef": "spec.variables[1].expression", "warning": "undeclared reference to 'distinct'",
            }] } });
            policy(facts, "rolegate-statefulsets")["spec"]["variables"][0]["expression"] = json!("[]");
            facts.policies.as_mut().unwrap().bindings.remove("rolegate-pod-deletions");
        },
        "Warning containment: ValidatingAdmissionPolicy \"rolegate-pods\" fails its type check, so that it may refuse everything or \
             nothing: spec.variables[1].expression: undeclared reference to 'distinct'\n\
         Warning containment: ValidatingAdmissionPolicy \"rolegate-statefulsets\" is not the one of this version: /spec/variables \
             differs\n\
         Warning containment: ValidatingAdmissionPolicy \"rolegate-pod-deletions\" has no binding that denies: it refuses nothing",
    ),
    (
        |facts| facts.addresses = Ok(vec![warned("Service \"decode\" is not there")]),
        r#"Warning addresses: group ml/llm: Service "decode" is not there"#,
    ),
    (
        |facts| {
            let gang = |group: &str| (group.to_owned(), KUBE_POD_GROUP);
            facts.groups.as_mut().unwrap().gangs = vec![gang("ml/llm"), gang("ml/llm"), gang("prod/llm")];
        },
        "Warning pod-groups: podgroups.scheduling.x-k8s.io are not served as v1alpha1, and batches of 2 groups wait for \
           them, first ml/llm",
    ),
    (
        |facts| {
            let fields = json!({ "minMember": {}, "subGroups": {}, "topologyConstraint": {} });
            let schema = json!({ "openAPIV3Schema": { "properties": { "spec": { "properties": fields } } } });
            let definition = json!({
                "spec": { "versions": [{ "name": "v2alpha2", "served": true, "storage": true, "schema": schema }] },
                "status": { "conditions": [{ "type": "Established", "status": "True" }] },
            });
            facts.definitions.as_mut().unwrap().insert(POD_GROUP.crd_name(), definition);
            facts.groups.as_mut().unwrap().gangs = vec![("ml/llm".to_owned(), POD_GROUP)];
        },
        "Info neighbours: KAI is there (v2alpha2): counts pods, as KAI v0.10 to v0.14 does\n\
         Info pod-groups: KAI before v0.15 is there: its podgrouper puts pods into PodGroups of their workloads, over \
             those of their batches",
    ),
];

#[test]
fn a_service_may_lead_out_of_the_cluster() {
    let mut facts = healthy();
    for (service, ready) in facts.services.as_mut().unwrap().values_mut().flatten() {
        let spec = json!({ "type": "ExternalName", "externalName": "webhook.example" });
        (service.spec, *ready) = (Some(serde_json::from_value(spec).unwrap()), 0);
    }
    let told = ["Info endpoint: Service rolegate-system/rolegate leads to webhook.example:443"];
    assert_eq!(found(&facts, Level::Info), told);
}

#[test]
fn each_fault_is_found_and_nothing_else() {
    let mut wrong = Vec::new();
    for (number, (break_it, expected)) in CASES.iter().enumerate() {
        let mut facts = healthy();
        break_it(&mut facts);
        let found = found(&facts, Level::Info);
        if found != expected.lines().collect::<Vec<_>>() {
            wrong.push(format!("case {number}:\n  found    {found:#?}\n  expected {expected:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_check_has_a_case() {
    let lines = CASES.iter().flat_map(|(_, expected)| expected.lines());
    let tried: BTreeSet<_> = lines.filter_map(|line| line.split_once(' ')?.1.split(':').next()).collect();
    let untried: Vec<_> = checks().iter().map(|(id, _)| *id).filter(|id| !tried.contains(id)).collect();
    assert_eq!(untried, [""; 0]);
}

fn hint_of(check: &str, change: fn(&mut Facts)) -> String {
    let mut facts = healthy();
    change(&mut facts);
    judge(&facts).into_iter().find(|finding| finding.check == check && finding.hint.is_some()).unwrap().hint.unwrap()
}

#[test]
fn what_runs_already_is_not_advised() {
    let other = |facts: &mut Facts| mutating(facts).webhooks.as_mut().unwrap()[0].object_selector = None;
    assert!(hint_of("webhooks-current", other).contains("run `rolegate serve` with --webhooks all"));
    let kept = |facts: &mut Facts| {
        mutating(facts).webhooks.as_mut().unwrap()[0].object_selector = None;
        let applied = json!([{ "manager": "rolegate", "operation": "Apply" }]);
        mutating(facts).metadata.managed_fields = serde_json::from_value(applied).unwrap();
    };
    let hint = hint_of("webhooks-current", kept);
    assert!(hint.contains("keeps them") && !hint.contains("run `rolegate"), "{hint}");
}

/// The message of an API server whose Go TLS supports 1.2 at most.
#[test]
fn an_api_server_that_speaks_tls_1_2_alone_is_told_of() {
    let old = |facts: &mut Facts| {
        let why = "failed calling webhook \"pods.rolegate.dev\": Post \"https://rolegate\": remote error: tls: protocol version not \
                   supported";
        facts.probe = Ok(Probe::Refused(why.to_owned()));
    };
    assert!(hint_of("admission", old).contains("--tls-min 1.2"));
}

#[test]
fn an_api_server_that_does_not_reach_the_webhook_is_told_of_with_ports_and_firewalls() {
    let hint = hint_of("admission", |facts| {
        let why = "failed calling webhook \"pods.rolegate.dev\": failed to call webhook: Post \"https://rolegate.rolegate-system.svc:443\
                   /mutate?timeout=3s\": context deadline exceeded";
        facts.probe = Ok(Probe::Refused(why.to_owned()));
    });
    for part in ["firewall", "9443", "`rolegate manifests --webhook-port 10250`", "or `--host-network`"] {
        assert!(hint.contains(part), "{hint}");
    }
}

#[test]
fn whatever_does_not_work_comes_with_a_hint() {
    for (break_it, _) in CASES {
        let mut facts = healthy();
        break_it(&mut facts);
        for finding in judge(&facts) {
            assert!(finding.level < Level::Warning || finding.hint.is_some(), "{finding:?}");
        }
    }
}

fn served(facts: &mut Facts, mode: Mode, namespaces: &[(&str, Stance)]) {
    let stances = namespaces.iter().map(|(name, stance)| ((*name).to_owned(), *stance)).collect();
    let told = Some(Serving { mode, ..Serving::default() });
    facts.groups.as_mut().unwrap().served = ServedNamespaces { told, stances, ..ServedNamespaces::default() };
}

#[test]
fn less_than_all_is_said_loudly_and_who_only_observes_must_not_stand_in_the_way() {
    let mut facts = healthy();
    let stance = |mode: Mode| Stance { mode, ..Stance::default() };
    served(&mut facts, Mode::Observe, &[("a", stance(Mode::Observe))]);
    assert_eq!(
        found(&facts, Level::Warning),
        [
            "Warning mode: only a missing right of the author is refused, nothing held or written (--mode observe)",
            "Warning mode: mutating webhook pods.rolegate.dev has failurePolicy Fail, and rolegate only observes: while it is away, pods are refused all the same",
        ]
    );
    // One namespace is enforced: the failure policy is right.
    served(&mut facts, Mode::Observe, &[("a", stance(Mode::Observe)), ("b", stance(Mode::Enforce))]);
    assert_eq!(
        found(&facts, Level::Info),
        [
            "Warning mode: only a missing right of the author is refused, nothing held or written (--mode observe)",
            "Info mode: by their labels in mode enforce: b",
        ]
    );
    let unknown = Stance { has_unknown_mode: true, ..Stance::default() };
    served(&mut facts, Mode::Enforce, &[("a", unknown)]);
    assert_eq!(
        found(&facts, Level::Warning),
        ["Warning mode: label rolegate.dev/mode names no mode, and that of --mode counts: a"]
    );
    // In a namespace that only observes, an unheld pod is right.
    served(&mut facts, Mode::Enforce, &[("default", stance(Mode::Observe))]);
    facts.probe = Ok(Probe::NotHeld);
    assert_eq!(found(&facts, Level::Warning), [""; 0]);
}

#[test]
fn groups_where_nothing_is_served_and_configurations_that_select_others_are_found() {
    let mut facts = healthy();
    let selector =
        LabelSelector { match_labels: [("team".to_owned(), "llm".to_owned())].into(), ..LabelSelector::default() };
    let out = Stance { out: Some(Out::NotSelected), ..Stance::default() };
    facts.groups.as_mut().unwrap().served = ServedNamespaces {
        told: Some(Serving { selector: selector.clone(), ..Serving::default() }),
        stances: [("web".to_owned(), out)].into(),
        groups: [("web".to_owned(), 2)].into(),
    };
    let differs = "Warning selection: mutating webhook pods.rolegate.dev selects other namespaces than the replica that leads serves (--namespace-selector)";
    let left = "Warning selection: 2 groups in namespace web, which is not selected: neither judged nor held";
    assert_eq!(found(&facts, Level::Warning), [differs, left]);
    let own = mutating(&mut facts).webhooks.iter_mut().flatten().map(|hook| hook.namespace_selector.as_mut());
    own.for_each(|own| own.unwrap().match_labels = Some(selector.match_labels.clone()));
    let own = validating(&mut facts).webhooks.iter_mut().flatten().map(|hook| hook.namespace_selector.as_mut());
    own.for_each(|own| own.unwrap().match_labels = Some(selector.match_labels.clone()));
    assert_eq!(found(&facts, Level::Warning), [left]);
}
