//! Whoever has the token of our own account can change what rolegate changes, and nothing else: it runs no code, and sends no
//! admission elsewhere.

use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::core::v1::{Pod, PodTemplate};
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;
use rolegate::api::ObjectKind;
use rolegate::api::rbg::ROLE_BASED_GROUP;
use rolegate::api::role_coordination::ROLE_COORDINATION;
use rolegate::model::Mode;

use crate::common::account::{account, manifests, policy_on_authors, token, webhook_policies};
use crate::common::build::with;
use crate::common::control_plane::{EMULATED, client_of, kubernetes};
use crate::common::policies::policies_fit_the_types;
use crate::common::prelude::*;
use crate::install::made::{Author, refused as refused_rights, update};
use crate::policies::cluster::{
    Answer, allow, api_of, client_as, define, loose_definition, may_create, refused, released, try_patch,
};
use crate::rules::desk::stateful_set;

const LEASE: ObjectKind =
    ObjectKind { group: "coordination.k8s.io", version: "v1", kind: "Lease", plural: "leases", namespaced: true };
const EVENT: ObjectKind =
    ObjectKind { group: "events.k8s.io", version: "v1", kind: "Event", plural: "events", namespaced: true };

fn held_pod() -> Value {
    let gates = json!([{ "name": "rolegate.dev/hold" }, { "name": "example.com/other" }]);
    object("v1", "Pod", "a").with(&json!({
        "metadata": { "labels": { "app": "llm" }, "annotations": { "rolegate.dev/held-by": "llm/segments" } },
        "spec": { "containers": [{ "name": "main", "image": "none" }], "schedulingGates": gates },
    }))
}

/// What a thief would like to do to a pod, and where he is stopped.
fn thefts_of_a_pod() -> Vec<(Value, &'static str)> {
    let without = |gate: &str| json!({ "spec": { "schedulingGates": [{ "name": gate, "$patch": "delete" }] } });
    let labelled = |key: &str, value: &str| json!({ "metadata": { "labels": { key: value } } });
    let named = "rolebasedgroup.workloads.x-k8s.io/name";
    let mut freed = labelled(named, "llm");
    freed["spec"] = released()["spec"].clone();
    let awaited = json!({ "metadata": { "annotations": { "kueue.x-k8s.io/admission-gated-by": "other" } } });
    vec![
        (json!({ "spec": { "containers": [{ "name": "main", "image": "theirs" }] } }), "spec[containers]"),
        (json!({ "spec": { "nodeSelector": { "node": "theirs" } } }), "spec[nodeSelector]"),
        (json!({ "spec": { "activeDeadlineSeconds": 1 } }), "spec[activeDeadlineSeconds]"),
        (without("example.com/other"), "spec.schedulingGates"),
        (labelled("app", "other"), "metadata.labels[app]"),
        (json!({ "metadata": { "labels": { "app": null } } }), "metadata.labels[app]"),
        (labelled("rolegate.dev.example.com/x", "y"), "rolegate.dev.example.com/x"),
        // By these it is judged which pods the account may delete.
        (labelled("rolegate.dev/group", "llm"), "metadata.labels[rolegate.dev/group]"),
        (labelled("rolegate.dev/role", "r"), "metadata.labels[rolegate.dev/role]"),
        (labelled(named, "llm"), "metadata.labels[rolebasedgroup.workloads.x-k8s.io/name]"),
        (labelled("rbg.workloads.x-k8s.io/group-name", "llm"), "rbg.workloads.x-k8s.io/group-name"),
        (json!({ "metadata": { "annotations": { "cni": "theirs" } } }), "metadata.annotations[cni]"),
        // What Kueue waits for of others.
        (awaited, "metadata.annotations[kueue.x-k8s.io/admission-gated-by]"),
        // Of a pod that named no group: it would be one that may be deleted.
        (freed, "metadata.labels[rolebasedgroup.workloads.x-k8s.io/name]"),
        (json!({ "metadata": { "finalizers": ["example.com/for-ever"] } }), "metadata.finalizers"),
    ]
}

/// The same of a workload, whose strategy stands in this field, and in its place the bounds.
fn thefts_of_a_workload(strategy: &str, template: &Value) -> Vec<(Value, String)> {
    let of = |patch: Value, words: &str| (patch, words.to_owned());
    let on_delete = json!({ "spec": { strategy: { "type": "OnDelete", "rollingUpdate": null } } });
    let other = json!({ "metadata": { "labels": { "rolegate.dev/group": "other" } } });
    vec![
        of(json!({ "spec": template }), "spec["),
        of(json!({ "spec": { "replicas": 7 } }), "spec[replicas]"),
        of(on_delete, &format!("spec.{strategy}[type]")),
        of(other, "metadata.labels[rolegate.dev/group]"),
        of(json!({ "metadata": { "annotations": { "a": "b" } } }), "metadata.annotations[a]"),
        of(json!({ "metadata": { "finalizers": ["example.com/for-ever"] } }), "metadata.finalizers"),
    ]
}

/// Objects of a kind, as they are read.
trait Read: Clone + std::fmt::Debug + serde::de::DeserializeOwned {}

impl<K: Clone + std::fmt::Debug + serde::de::DeserializeOwned> Read for K {}

/// A change is made.
async fn admitted<K: Read>(api: &Api<K>, name: &str, patch: Patch<&Value>) {
    assert_eq!(Answer::of(api.patch(name, &PatchParams::default(), &patch).await), Answer::Admitted, "{patch:?}");
}

/// Every change is refused, for its own reason, once the policies have reached the API server.
async fn all_refused<K: Read>(
    api: &Api<K>,
    name: &str,
    form: fn(Value) -> Patch<Value>,
    thefts: &[(Value, impl AsRef<str>)],
) {
    for (change, words) in thefts {
        let (patch, words) = (form(change.clone()), words.as_ref());
        let is_so = |answer: &Answer| matches!(answer, Answer::Refused(text) if text.starts_with("rolegate itself may not change ") && text.contains(words));
        until_found(words, async || try_patch(api, name, &patch).await, is_so).await;
    }
}

/// The version that is built, and older ones whose expressions know fewer functions.
#[tokio::test]
async fn a_stolen_token_does_no_more_than_rolegate_does() {
    let older = if kubernetes().is_none() { &EMULATED[..] } else { &[] };
    for version in std::iter::once(None).chain(older.iter().copied().map(Some)) {
        println!("as Kubernetes {}", version.unwrap_or("is"));
        let start = move || version.map_or_else(ControlPlane::start, ControlPlane::emulating);
        let plane = ControlPlane::own(start).await;
        runs_no_code(plane.clone()).await;
        becomes_no_other_token(plane.clone()).await;
        does_no_more_with_others(plane.clone()).await;
        asks_authors(plane.clone()).await;
        allows_no_more(plane.clone()).await;
        uninstalls_no_more(plane.clone()).await;
        // Last: its webhooks lead nowhere.
        sends_nothing_elsewhere(plane).await;
    }
}

/// A stolen token runs no code.
async fn runs_no_code(plane: Arc<ControlPlane>) {
    let kind = ("leaderworkerset.x-k8s.io", &["v1"][..], "LeaderWorkerSet", "leaderworkersets", "Namespaced");
    define(&plane, &loose_definition(kind, &json!({})).to_string());
    let stage = Stage::on(plane.clone(), "contained").await;
    let thief = client_of(&account(&plane, &stage.client, "rolegate", &[]).await).await;
    policies_fit_the_types(&stage.client, 17).await;

    let pods: Api<Pod> = Api::namespaced(thief.clone(), &stage.namespace);
    stage.create(held_pod()).await;
    all_refused(&pods, "a", Patch::Strategic, &thefts_of_a_pod()).await;
    let release = json!({
        "metadata": {
            "labels": {
                "rolegate.dev/x": "y",
                "rolebasedgroup.workloads.x-k8s.io/role-instance-index": "3",
            },
            "annotations": { "rolegate.dev/held-by": null },
        },
        "spec": {
            "schedulingGates": [{ "name": "rolegate.dev/hold", "$patch": "delete" }],
            "nodeSelector": { "rack": "chosen" },
        },
    });
    admitted(&pods, "a", Patch::Strategic(&release)).await;
    let image = json!({ "spec": { "containers": [{ "name": "main", "image": "theirs" }] } });
    // Others are free.
    admitted(&stage.api::<Pod>(), "a", Patch::Strategic(&image)).await;

    let sets: Api<StatefulSet> = Api::namespaced(thief.clone(), &stage.namespace);
    stage.create(stateful_set("s", "Parallel", &json!({}))).await;
    let container = json!([{ "name": "main", "image": "theirs" }]);
    let template = json!({ "template": { "spec": { "containers": container } } });
    all_refused(&sets, "s", Patch::Merge, &thefts_of_a_workload("updateStrategy", &template)).await;
    let rolled = json!({
        "metadata": { "annotations": { "rolegate.dev/user-partition": "0" } },
        "spec": { "updateStrategy": { "rollingUpdate": { "partition": 3 } } },
    });
    admitted(&sets, "s", Patch::Merge(&rolled)).await;

    let kind = rolegate::api::workload::LEADER_WORKER_SET;
    let template = json!({ "size": 2, "workerTemplate": { "spec": { "containers": container } } });
    let set = object(&kind.api_version(), kind.kind, "l").spec(
        json!({ "replicas": 0, "rolloutStrategy": { "type": "RollingUpdate" }, "leaderWorkerTemplate": { "size": 1 } }),
    );
    stage.create(set).await;
    let sets = api_of(&thief, kind, &stage.namespace);
    let thefts = thefts_of_a_workload("rolloutStrategy", &json!({ "leaderWorkerTemplate": template }));
    all_refused(&sets, "l", Patch::Merge, &thefts).await;
    let rolled = json!({ "spec": { "rolloutStrategy": { "rollingUpdateConfiguration": { "partition": 3 } } } });
    admitted(&sets, "l", Patch::Merge(&rolled)).await;
}

/// A right to create a Secret is one to any token of its namespace: only the own Secret and Lease can be made, with nothing by which
/// the API server acts.
async fn becomes_no_other_token(plane: Arc<ControlPlane>) {
    let stage = Stage::on(plane.clone(), "own").await;
    let thief = client_of(&account(&plane, &stage.client, "rolegate", &[]).await).await;
    let (secrets, name) = (Api::<Secret>::namespaced(thief.clone(), SYSTEM), "rolegate-certificates");
    let secret = |change: Value| {
        let ours = json!({ "labels": { "app.kubernetes.io/managed-by": "rolegate" } });
        let pair = json!({ "type": "kubernetes.io/tls", "data": { "tls.crt": "", "tls.key": "" }, "metadata": ours });
        with(object("v1", "Secret", name).with(&pair), &change)
    };
    let apply = async |manager: &str, change: Value| {
        let object = secret(change);
        let of = object["metadata"]["name"].as_str().unwrap().to_owned();
        secrets.patch(&of, &PatchParams::apply(manager), &Patch::Apply(&object)).await
    };
    // By POST, and by other names: not even a policy is asked.
    let names = [json!({}), json!({ "metadata": { "name": null, "generateName": "rolegate-certificates" } })];
    for change in names {
        let made = secrets.create(&PostParams::default(), &typed(secret(change))).await;
        assert!(matches!(Answer::of(made), Answer::Invalid(text) if text.contains("cannot create resource")));
    }
    let other = apply("a", json!({ "metadata": { "name": "sh.helm.release.v1.x" } })).await;
    assert!(matches!(Answer::of(other), Answer::Invalid(text) if text.contains("is forbidden")));
    let owner = json!([{ "apiVersion": "v1", "kind": "Pod", "name": "none", "uid": "u" }]);
    let of_account = json!({
        "type": "kubernetes.io/service-account-token",
        "metadata": { "annotations": { "kubernetes.io/service-account.name": "default" } },
        "data": null,
    });
    for change in [
        of_account,
        json!({ "type": "Opaque" }),
        json!({ "immutable": true }),
        json!({ "metadata": { "ownerReferences": owner } }),
        json!({ "metadata": { "finalizers": ["example.com/for-ever"] } }),
        json!({ "metadata": { "labels": { "owner": "helm" } } }),
        json!({ "metadata": { "annotations": { "a": "b" } } }),
    ] {
        let object = secret(change);
        let dry_run = PatchParams { dry_run: true, ..PatchParams::apply("a") };
        let answer = async || Answer::of(secrets.patch(name, &dry_run, &Patch::Apply(&object)).await);
        until_is("the policy is in force", answer, refused("create this Secret")).await;
    }
    // Of two that make it at once, the second is refused.
    apply("a", json!({})).await.unwrap();
    let second = apply("b", json!({ "data": { "tls.crt": "eA==" } })).await;
    assert!(matches!(&second, Err(kube::Error::Api(status)) if status.code == 409), "{second:?}");
    let changes = [
        (json!({ "metadata": { "ownerReferences": owner } }), "metadata.ownerReferences"),
        (json!({ "metadata": { "finalizers": ["example.com/for-ever"] } }), "metadata.finalizers"),
        (json!({ "metadata": { "labels": { "owner": "helm" } } }), "metadata.labels[owner]"),
        (json!({ "metadata": { "annotations": { "a": "b" } } }), "metadata.annotations[a]"),
        (json!({ "immutable": true }), "immutable"),
    ];
    all_refused(&secrets, name, Patch::Merge, &changes).await;
    admitted(&secrets, name, Patch::Merge(&json!({ "data": { "tls.crt": "eA==" } }))).await;

    let (leases, name) = (api_of(&thief, LEASE, SYSTEM), "rolegate");
    let lease = |name: &str, metadata: Value| {
        let mut lease = object("coordination.k8s.io/v1", "Lease", name).spec(json!({ "holderIdentity": "a" }));
        json_patch::merge(&mut lease, &json!({ "metadata": metadata }));
        typed::<DynamicObject>(lease)
    };
    let put = async |lease: DynamicObject| {
        let name = lease.metadata.name.clone().unwrap();
        Answer::of(leases.replace(&name, &PostParams::default(), &lease).await)
    };
    let made = Answer::of(leases.create(&PostParams::default(), &lease(name, json!({}))).await);
    assert!(matches!(made, Answer::Invalid(text) if text.contains("cannot create resource")));
    assert!(matches!(put(lease("other", json!({}))).await, Answer::Invalid(text) if text.contains("is forbidden")));
    for metadata in [
        json!({ "labels": { "a": "b" } }),
        json!({ "annotations": { "a": "b" } }),
        json!({ "finalizers": ["example.com/for-ever"] }),
        json!({ "ownerReferences": owner }),
    ] {
        assert_eq!(put(lease(name, metadata)).await, refused("create this Lease"));
    }
    assert_eq!(put(lease(name, json!({ "annotations": { "rolegate.dev/mode": "enforce" } }))).await, Answer::Admitted);
    let mut now = leases.get(name).await.unwrap();
    now.data["spec"]["holderIdentity"] = json!("b");
    assert_eq!(put(now).await, Answer::Admitted);
    let mut owned = leases.get(name).await.unwrap();
    owned.metadata.finalizers = Some(vec!["example.com/for-ever".to_owned()]);
    assert_eq!(put(owned).await, refused("change metadata.finalizers"));
}

/// ClusterTopologies, PodGroups and Events are those of others as well.
async fn does_no_more_with_others(plane: Arc<ControlPlane>) {
    plane.define_groups();
    let kind = ("scheduling.run.ai", &["v2alpha2"][..], "PodGroup", "podgroups", "Namespaced");
    define(&plane, &loose_definition(kind, &json!({})).to_string());
    let stage = Stage::on(plane.clone(), "others").await;
    let thief = client_of(&account(&plane, &stage.client, "rolegate", &[]).await).await;
    let owner = json!([{ "apiVersion": "v1", "kind": "Pod", "name": "none", "uid": "u" }]);

    let kind = rolegate::api::cluster_topology::CLUSTER_TOPOLOGY;
    let layers = json!([{ "name": "host", "key": "kubernetes.io/hostname" }]);
    let topology = object(&kind.api_version(), kind.kind, "t").spec(json!({ "layers": layers }));
    api_of(&stage.client, kind, "").create(&PostParams::default(), &typed(topology)).await.unwrap();
    let changes = [
        (json!({ "metadata": { "ownerReferences": owner } }), "metadata.ownerReferences"),
        (json!({ "metadata": { "labels": { "a": "b" } } }), "metadata.labels[a]"),
        (json!({ "metadata": { "finalizers": ["example.com/for-ever"] } }), "metadata.finalizers"),
    ];
    let topologies = api_of(&thief, kind, "");
    all_refused(&topologies, "t", Patch::Merge, &changes).await;
    let ours = json!({ "metadata": { "finalizers": ["rolegate.dev/topology-protection"] } });
    admitted(&topologies, "t", Patch::Merge(&ours)).await;
    admitted(&topologies, "t", Patch::Merge(&json!({ "metadata": { "finalizers": null } }))).await;

    let kind = rolegate::api::pod_group::POD_GROUP;
    let pod_group = |name: &str, metadata: Value| {
        let mut group = object(&kind.api_version(), kind.kind, name).spec(json!({ "minMember": 2, "queue": "q" }));
        json_patch::merge(&mut group, &json!({ "metadata": metadata }));
        typed::<DynamicObject>(group)
    };
    let (theirs, groups) = (api_of(&stage.client, kind, &stage.namespace), api_of(&thief, kind, &stage.namespace));
    theirs.create(&PostParams::default(), &pod_group("theirs", json!({}))).await.unwrap();
    let mine = pod_group("mine", json!({}));
    let answer = async || Answer::of(groups.create(&PostParams::default(), &mine).await);
    until_is("the policy is in force", answer, refused("create this PodGroup")).await;
    let carrier = json!([crate::common::group::owner("rolegate.dev/v1alpha1", "RoleCoordination", "pd", "u")]);
    let of_group = pod_group("of-group", json!({ "ownerReferences": carrier }));
    groups.create(&PostParams::default(), &of_group).await.unwrap();
    let fewer = json!({ "spec": { "minMember": 1 } });
    let placed = json!({ "metadata": { "annotations": { "rolegate.dev/placement": "x" } } });
    admitted(&groups, "of-group", Patch::Merge(&fewer)).await;
    admitted(&groups, "theirs", Patch::Merge(&placed)).await;
    let of_either = [
        (json!({ "spec": { "queue": "other" } }), "spec[queue]"),
        (json!({ "metadata": { "labels": { "a": "b" } } }), "metadata.labels[a]"),
    ];
    all_refused(&groups, "of-group", Patch::Merge, &of_either).await;
    all_refused(&groups, "theirs", Patch::Merge, &of_either).await;
    all_refused(&groups, "theirs", Patch::Merge, &[(fewer, "spec[minMember]")]).await;
    let deleted = groups.delete("theirs", &DeleteParams::default()).await;
    assert_eq!(Answer::of(deleted), refused("delete this PodGroup"));
    groups.delete("of-group", &DeleteParams::default()).await.unwrap();

    let event = |name: &str, controller: &str| -> DynamicObject {
        typed(object("events.k8s.io/v1", "Event", name).with(&json!({
            "eventTime": "2026-01-01T00:00:00.000000Z", "reason": "Said", "action": "Say", "type": "Normal",
            "regarding": { "kind": "Pod", "name": "a", "namespace": stage.namespace },
            "reportingController": controller, "reportingInstance": "a",
        })))
    };
    let (theirs, events) = (api_of(&stage.client, EVENT, &stage.namespace), api_of(&thief, EVENT, &stage.namespace));
    theirs.create(&PostParams::default(), &event("theirs", "kubelet")).await.unwrap();
    events.create(&PostParams::default(), &event("ours", "rolegate")).await.unwrap();
    let may_not = refused("write this Event");
    assert_eq!(Answer::of(events.create(&PostParams::default(), &event("forged", "kubelet")).await), may_not);
    let again = json!({ "series": { "count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z" } });
    assert_eq!(try_patch(&events, "theirs", &Patch::Merge(&again)).await, may_not);
    admitted(&events, "ours", Patch::Merge(&again)).await;
}

/// Objects and changes of them that are tried.
const TRIED: usize = 60;

/// The API server asks for the rights of authors as the rules do, without the webhook.
async fn asks_authors(plane: Arc<ControlPlane>) {
    let stage = Stage::on(plane.clone(), "authors").await;
    let policy = policy_on_authors("asking", &["--ready-kinds", "Job=jobs.v1.batch"]);
    plane.must(&["create", "-f", "-"], &policy);
    let authors: Vec<Author> =
        (0..7).map(|one| std::array::from_fn(|right| one == 6 || one > 0 && right + 1 == one)).collect();
    let rights = [
        ("", "pods", "delete"),
        ("apps", "statefulsets/scale", "patch"),
        ("scheduling.run.ai", "podgroups", "create"),
        ("autoscaling.x-k8s.io", "capacitybuffers", "create"),
        ("batch", "jobs", "get"),
    ];
    let carriers = json!({
        "apiGroups": ["rolegate.dev", "workloads.x-k8s.io"],
        "resources": ["rolecoordinations", "rolebasedgroups"],
        "verbs": ["*"],
    });
    let mut clients = Vec::new();
    for (number, author) in authors.iter().enumerate() {
        let user = format!("author-{number}");
        let has = rights.iter().zip(author).filter(|(_, has)| **has);
        let has = has.map(|((group, of, verb), _)| json!({ "apiGroups": [group], "resources": [of], "verbs": [verb] }));
        let rules: Vec<_> = [carriers.clone()].into_iter().chain(has).collect();
        allow(&plane, &stage.namespace, &user, &rules);
        clients.push(api_of(&client_as(&plane, &user).await, ROLE_COORDINATION, &stage.namespace));
    }
    let admin: Api<DynamicObject> = api_of(&stage.client, ROLE_COORDINATION, &stage.namespace);
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let mut runner = TestRunner::deterministic();
    let (mut refused_ones, mut let_in) = (0, 0);
    for tried in 0..TRIED {
        let (was, is) = update().new_tree(&mut runner).unwrap().current();
        let (author, words) =
            (tried % authors.len(), [tried, tried * 7].map(|words| u8::try_from(words % 256).unwrap()));
        let name = format!("o{tried}");
        let (old, new) = (was.object(&name, &stage.namespace, words[0]), is.object(&name, &stage.namespace, words[1]));
        let asked = |old: Option<&Value>| refused_rights((old, &new), authors[author], Mode::Enforce);
        let agree = |answer: Answer, missing: BTreeSet<(&'static str, String)>| {
            let is_refused = answer.is_refused("");
            let agree = !matches!(answer, Answer::Invalid(_)) && is_refused != missing.is_empty();
            let what = || format!("{was:?} to {is:?} by {:?}: {answer:?}, {missing:?}", authors[author]);
            if agree { Ok(is_refused) } else { Err(what()) }
        };
        let create = async || {
            let created = clients[author].create(&dry_run, &typed(new.clone())).await;
            agree(Answer::of(created), asked(None))
        };
        if eventually(PATIENT, "the API server agrees with the rules", create).await {
            refused_ones += 1;
        } else {
            let_in += 1;
        }
        let mut next: DynamicObject = typed(new.clone());
        let stored = admin.create(&PostParams::default(), &typed(old.clone())).await.unwrap();
        next.metadata.resource_version = stored.metadata.resource_version;
        let answer = Answer::of(clients[author].replace(&name, &dry_run, &next).await);
        if agree(answer, asked(Some(&old))).unwrap() { refused_ones += 1 } else { let_in += 1 }
    }
    assert!(refused_ones > TRIED / 2 && let_in > TRIED / 2, "{refused_ones} refused, {let_in} let in");
    of_any_size_and_shape(&plane, &stage, &clients).await;
}

/// The largest objects are judged within the limits of an expression, and what a foreign definition keeps refuses nothing by its shape.
async fn of_any_size_and_shape(plane: &ControlPlane, stage: &Stage, clients: &[Api<DynamicObject>]) {
    let (without, deletes) = (&clients[0], &clients[1]);
    let roles: Vec<_> = (0..1024).map(|role| json!({ "name": format!("r{role}"), "replicas": 1 })).collect();
    let coordination = |at: usize, limit: u32| {
        let sizes: Value =
            (0..4).map(|role| (format!("r{}", at * 4 + role), json!(1))).collect::<serde_json::Map<_, _>>().into();
        let recovery = json!({ "policy": "Recreate", "limit": limit });
        json!({ "name": format!("c{at}"), "strategy": { "segmentPlacement": { "segmentSize": sizes, "recovery": recovery } } })
    };
    let large = |last: u32, team: &str| {
        let all: Vec<_> = (0..256).map(|at| coordination(at, if at == 255 { last } else { 2 })).collect();
        let mut large = object("rolegate.dev/v1alpha1", "RoleCoordination", "large")
            .spec(json!({ "roles": roles, "coordination": all }));
        large["metadata"]["labels"] = json!({ "team": team });
        large
    };
    stage.create(large(2, "a")).await;
    let now = without.get("large").await.unwrap().metadata.resource_version;
    let put = async |by: &Api<DynamicObject>, large: Value| {
        let mut large: DynamicObject = typed(large);
        large.metadata.resource_version.clone_from(&now);
        Answer::of(by.replace("large", &PostParams { dry_run: true, ..PostParams::default() }, &large).await)
    };
    assert_eq!(put(without, large(2, "b")).await, Answer::Admitted);
    assert_eq!(put(deletes, large(5, "b")).await, Answer::Admitted);
    let refused = async |by: &Api<DynamicObject>, large: Value, words: &str| {
        let answer = put(by, large).await;
        assert!(answer.is_refused(words), "{answer:?}");
    };
    refused(without, large(5, "b"), "must be allowed to delete pods").await;
    // What no right guards is free. Where roles change, so many are not compared with each other.
    let with_first = |role: Value| {
        let mut large = large(2, "a");
        large["spec"]["roles"][0] = role;
        large
    };
    assert_eq!(put(without, with_first(json!({ "name": "r0", "replicas": 2 }))).await, Answer::Admitted);
    let set = json!({ "kind": "StatefulSet", "name": "other" });
    let mut moved = with_first(json!({ "name": "r0", "workloadRef": set }));
    assert_eq!(put(deletes, moved.clone()).await, Answer::Admitted);
    refused(without, moved.clone(), "must be allowed to delete pods").await;
    moved["spec"]["segments"] = json!(1);
    refused(deletes, moved.clone(), "must be allowed to scale the workloads").await;
    let admin = api_of(&stage.client, ROLE_COORDINATION, &stage.namespace);
    assert_eq!(put(&admin, moved).await, Answer::Admitted);
    let wide = |replicas: u32| {
        let names: Vec<_> = (0..1000).map(|role| format!("r{role}")).collect();
        let roles: Vec<_> = names.iter().map(|name| json!({ "name": name, "replicas": replicas })).collect();
        let update = json!({ "rollingUpdate": { "onFailure": "Rollback" } });
        object("rolegate.dev/v1alpha1", "RoleCoordination", "wide")
            .spec(json!({ "roles": roles, "coordination": [{ "name": "c", "roles": names, "strategy": update }] }))
    };
    stage.create(wide(1)).await;
    admitted(without, "wide", Patch::Merge(&wide(2))).await;

    let kind = ("workloads.x-k8s.io", &["v1alpha1", "v1alpha2"][..], "RoleBasedGroup", "rolebasedgroups", "Namespaced");
    define(plane, &loose_definition(kind, &json!({})).to_string());
    let groups = api_of(&client_as(plane, "author-0").await, ROLE_BASED_GROUP, &stage.namespace);
    let group = |spec: Value| object("workloads.x-k8s.io/v1alpha1", "RoleBasedGroup", "odd").spec(spec);
    let entry = |strategy: Value| json!({ "coordination": [{ "name": "c", "strategy": strategy }] });
    let odd = json!({ "segmentSize": 3, "recovery": "Recreate", "readyWhen": [], "podGroupPolicy": "kai" });
    for odd in [
        json!({ "coordination": "one" }),
        json!({ "coordination": [1, null, "two", {}], "roles": 3 }),
        json!({ "coordination": null, "roles": [1, { "name": 7, "workloadRef": 3 }] }),
        entry(json!(5)),
        entry(json!({ "segmentPlacement": odd })),
        entry(json!({ "rollingUpdate": [], "rollingDeploy": 1, "affinityScheduling": "x", "by": 3 })),
        entry(json!({ "rollingDeploy": { "recovery": 2, "whole": 1, "a": 1.5 }, "deployTopologyConstraint": [] })),
    ] {
        assert_eq!(may_create(&groups, &group(odd.clone())).await, Answer::Admitted, "{odd}");
    }
    for asks in [
        entry(json!({ "segmentPlacement": { "segmentSize": { "a": 1 }, "recovery": { "policy": "Recreate" } } })),
        json!({ "coordination": null, "coordinationRequirements": [{ "strategy": { "by": "Segment" } }] }),
    ] {
        let answer = may_create(&groups, &group(asks.clone())).await;
        assert!(matches!(answer, Answer::Refused(_)), "{asks}: {answer:?}");
    }
}

/// What is allowed by a word is not refused, and nothing more.
async fn allows_no_more(plane: Arc<ControlPlane>) {
    let stage = Stage::on(plane.clone(), "allowed").await;
    let thief = client_of(&account(&plane, &stage.client, "wider", &["--allow", "scale,recovery"]).await).await;
    policies_fit_the_types(&stage.client, 35).await;
    let ours = Api::<Pod>::namespaced(thief.clone(), &stage.namespace);
    let mut grouped = held_pod();
    grouped["metadata"]["labels"]["rolegate.dev/group"] = json!("llm");
    grouped["metadata"]["name"] = json!("grouped");
    for pod in [held_pod(), grouped] {
        stage.create(pod).await;
    }
    let noted = |key: &str| json!({ "metadata": { "annotations": { key: "-1" }, "labels": { "rolegate.dev/draining": "true" } } });
    let other = (noted("example.com/cost"), "metadata.annotations[example.com/cost]");
    all_refused(&ours, "a", Patch::Merge, &[other]).await;
    admitted(&ours, "a", Patch::Merge(&noted("controller.kubernetes.io/pod-deletion-cost"))).await;
    // Of pods those that name a group may be deleted, and no others; nor may one be made such a pod.
    let named = json!({ "metadata": { "labels": { "rolegate.dev/group": "llm" } } });
    all_refused(&ours, "a", Patch::Merge, &[(named, "metadata.labels[rolegate.dev/group]")]).await;
    let dry_run = DeleteParams { dry_run: true, ..DeleteParams::default() };
    let delete = async || Answer::of(ours.delete("a", &dry_run).await);
    let is_so = |answer: &Answer| answer.is_refused("rolegate itself may not delete this pod");
    until_found("the policy of deletions in force", delete, is_so).await;
    ours.delete("grouped", &DeleteParams::default()).await.unwrap();
    stage.create(stateful_set("s", "Parallel", &json!({}))).await;
    let sets: Api<StatefulSet> = Api::namespaced(thief, &stage.namespace);
    let scale = json!({ "spec": { "replicas": 2 } });
    // By its scale alone.
    all_refused(&sets, "s", Patch::Merge, &[(scale.clone(), "spec[replicas]")]).await;
    sets.patch_scale("s", &PatchParams::default(), &Patch::Merge(&scale)).await.unwrap();
}

/// The account of an uninstall takes back what the replicas did, under the same policies.
async fn uninstalls_no_more(plane: Arc<ControlPlane>) {
    let stage = Stage::on(plane.clone(), "uninstalls").await;
    account(&plane, &stage.client, "rolegate", &[]).await;
    let printed = manifests(&["--part", "uninstall", "--namespace", SYSTEM]);
    let rights = printed.split("---\n").filter(|document| !document.contains("kind: Job\n"));
    plane.must(&["create", "-f", "-"], &rights.collect::<Vec<_>>().join("---\n"));
    token(&plane, "rolegate-uninstall");
    let thief = client_of(&account(&plane, &stage.client, "rolegate-uninstall", &[]).await).await;

    let pods: Api<Pod> = Api::namespaced(thief.clone(), &stage.namespace);
    stage.create(held_pod()).await;
    all_refused(&pods, "a", Patch::Strategic, &thefts_of_a_pod()).await;
    admitted(&pods, "a", Patch::Strategic(&released())).await;
    let template = json!({ "template": { "spec": { "containers": [{ "name": "main", "image": "none" }] } } });
    stage.create(object("v1", "PodTemplate", "theirs").with(&template)).await;
    let templates: Api<PodTemplate> = Api::namespaced(thief.clone(), &stage.namespace);
    let deleted = templates.delete("theirs", &DeleteParams::default()).await;
    assert_eq!(Answer::of(deleted), refused("delete this PodTemplate"));
    // No policy is asked about policies: the right names what it is for.
    let kinds = [
        ("MutatingAdmissionPolicy", "mutatingadmissionpolicies"),
        ("MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings"),
    ];
    for (kind, plural) in kinds {
        let kind = ObjectKind { group: "admissionregistration.k8s.io", version: "v1", kind, plural, namespaced: false };
        let deleted = Answer::of(api_of(&thief, kind, "").delete("theirs", &DeleteParams::default()).await);
        assert!(matches!(&deleted, Answer::Invalid(text) if text.contains("is forbidden")), "{deleted:?}");
    }
}

/// What a thief would like to do to a configuration with this webhook, as strategic merge patches, and where he is stopped.
fn thefts_of_admission(webhook: &str) -> Vec<(Value, String)> {
    let of = |mut fields: Value| {
        fields["name"] = json!(webhook);
        (json!({ "webhooks": [fields] }), format!("webhooks[{webhook}]"))
    };
    let all = json!([{ "apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"] }]);
    let client = json!({ "service": { "name": "theirs", "namespace": "theirs" } });
    let other = json!({
        "name": "theirs.example.com",
        "clientConfig": client,
        "rules": all,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    });
    let owner = json!({ "apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u" });
    let of_metadata =
        |field: &str, value: Value, words: &str| (json!({ "metadata": { field: value } }), words.to_owned());
    vec![
        of(json!({ "clientConfig": client })),
        of(json!({ "clientConfig": { "service": { "path": "/theirs" } } })),
        of(json!({ "clientConfig": { "service": { "port": 8443 } } })),
        of(json!({ "clientConfig": { "service": null, "url": "https://theirs.example.com" } })),
        of(json!({ "rules": all })),
        of(json!({ "failurePolicy": "Ignore" })),
        of(json!({ "matchPolicy": "Exact" })),
        of(json!({ "namespaceSelector": { "matchExpressions": [] } })),
        of(json!({ "namespaceSelector": { "matchLabels": { "a": "b" } } })),
        of(json!({ "objectSelector": { "matchLabels": { "a": "b" } } })),
        of(json!({ "sideEffects": "NoneOnDryRun" })),
        of(json!({ "timeoutSeconds": 30 })),
        of(json!({ "admissionReviewVersions": ["v1beta1", "v1"] })),
        of(json!({ "matchConditions": [{ "name": "never", "expression": "false" }] })),
        (json!({ "webhooks": [other] }), "webhooks".to_owned()),
        (json!({ "webhooks": [{ "name": webhook, "$patch": "delete" }] }), "webhooks".to_owned()),
        of_metadata("labels", json!({ "a": "b" }), "metadata.labels[a]"),
        of_metadata("annotations", json!({ "a": "b" }), "metadata.annotations[a]"),
        of_metadata("finalizers", json!(["example.com/for-ever"]), "metadata.finalizers"),
        of_metadata("ownerReferences", json!([owner]), "metadata.ownerReferences"),
    ]
}

/// The thief may fill in the bundle of each webhook of a configuration, and change nothing else.
async fn only_bundles<K: Read + serde::Serialize>(thief: &Api<K>, admin: &Api<K>, bundle: &str) {
    let webhook = "objects.rolegate.dev";
    let mut thefts = thefts_of_admission(webhook);
    let now = serde_json::to_value(admin.get("rolegate").await.unwrap()).unwrap();
    if now["webhooks"][0].get("reinvocationPolicy").is_some() {
        let never = json!({ "webhooks": [{ "name": webhook, "reinvocationPolicy": "Never" }] });
        thefts.push((never, format!("webhooks[{webhook}]")));
    }
    all_refused(thief, "rolegate", Patch::Strategic, &thefts).await;
    for (change, _) in &thefts {
        let answer = try_patch(admin, "rolegate", &Patch::Strategic(change)).await;
        assert_eq!(answer, Answer::Admitted, "others are free: {change:?}");
    }
    let webhooks = now["webhooks"].as_array().unwrap().iter();
    let webhooks: Vec<_> =
        webhooks.map(|webhook| json!({ "name": webhook["name"], "clientConfig": { "caBundle": bundle } })).collect();
    let bundles = json!({ "webhooks": webhooks });
    admitted(thief, "rolegate", Patch::Strategic(&bundles)).await;
    let then = serde_json::to_value(admin.get("rolegate").await.unwrap()).unwrap();
    assert!(then["webhooks"].as_array().unwrap().iter().all(|webhook| webhook["clientConfig"]["caBundle"] == bundle));
}

/// A stolen token sends no admission elsewhere.
async fn sends_nothing_elsewhere(plane: Arc<ControlPlane>) {
    let client = plane.client().await;
    let kubeconfig = account(&plane, &client, "rolegate", &[]).await;
    plane.must(&["create", "-f", "-"], &webhook_policies("rolegate"));
    let printed = manifests(&["--part", "webhooks", "--namespace", SYSTEM]);
    plane.must(&["create", "-f", "-"], &printed);
    policies_fit_the_types(&client, 38).await;
    let text = std::fs::read_to_string(&kubeconfig).unwrap();
    let bundle = text.lines().find_map(|line| line.trim().strip_prefix("certificate-authority-data: ")).unwrap();
    let thief = client_of(&kubeconfig).await;
    only_bundles::<MutatingWebhookConfiguration>(&Api::all(thief.clone()), &Api::all(client.clone()), bundle).await;
    only_bundles::<ValidatingWebhookConfiguration>(&Api::all(thief), &Api::all(client), bundle).await;
}
