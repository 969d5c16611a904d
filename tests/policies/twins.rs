//! Every golden case, asked of the API server: twin and rule must agree, but for what the README lists.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use rolegate::api::ObjectKind;
use rolegate::api::crd::CUSTOM_RESOURCE_DEFINITION;
use rolegate::model::Dialect;
use rolegate::rules::judge::JUDGED;
use rolegate::rules::{Judged, KaiDialect, Operation, Violation};
use serde_json::{Value, json};

use crate::cluster::{
    Answer, client_as, in_force, install, may_create, plane, pod_group_definition, refuse_on_error,
};
use crate::common::ControlPlane;
use crate::common::stage::typed;
use crate::golden::{self, Case};
use crate::mutants;
use crate::readme::{Coverage, coverage, disagreements};

/// Whoever writes objects in the cases; the second may create PodGroups as well.
const AUTHORS: [&str; 2] = ["author", "author-with-gangs"];

/// Requests at a time.
const AT_ONCE: usize = 8;

/// A case on the control plane, in a namespace of its own.
pub struct Trial {
    /// `<folder>/<file>: <name>`.
    pub name: String,
    pub case: Case,
    /// What is stored before the policies are there; or why it could not be.
    stored: Option<Result<DynamicObject, Answer>>,
    api: Api<DynamicObject>,
}

#[tokio::test(flavor = "multi_thread")]
async fn twins_agree_with_the_rules() {
    let plane = plane();
    let client = plane.client().await;
    let users = authors(&plane).await;
    let trials = arrange(&client, &users).await;
    install(&plane);
    refuse_on_error(&client).await;
    for (group, version, kind, plural, object) in probes() {
        let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
        let namespace = (kind != "ClusterTopology").then_some("default");
        in_force(&client, &resource, namespace, &object, true).await;
    }

    let coverage = coverage();
    let mut found = BTreeMap::new();
    for dialect in [KaiDialect::Auto, KaiDialect::Seed, KaiDialect::Upstream] {
        serve_dialect(&plane, &client, dialect).await;
        let of_dialect = trials.iter().filter(|trial| trial.case.dialect() == dialect);
        let verdicts = futures::stream::iter(of_dialect.map(|trial| async move { (trial, trial.ask().await) }));
        let verdicts: Vec<_> = verdicts.buffer_unordered(AT_ONCE).collect().await;
        for (trial, answer) in verdicts {
            let judged = trial.case.judge().unwrap_or_else(|error| panic!("{}: {error}", trial.name));
            if let Some(disagreement) = disagreement(&judged, &answer, &coverage) {
                found.insert(trial.name.clone(), disagreement);
            }
        }
    }

    let listed = disagreements();
    let short = |(name, (what, _)): (&String, &(&str, String))| (name.clone(), (*what).to_owned());
    if found.iter().map(short).collect::<BTreeMap<_, _>>() != listed {
        let unlisted = found.iter().filter(|(name, (what, _))| listed.get(*name).map(String::as_str) != Some(what));
        let unlisted: Vec<_> = unlisted.map(|(name, (what, details))| format!("{name}\n  {what}\n{details}")).collect();
        let stale: Vec<_> = listed.keys().filter(|name| !found.contains_key(*name)).collect();
        panic!("not in the README: {}\n{}\n\nno longer so: {stale:#?}", unlisted.len(), unlisted.join("\n"));
    }
    println!("{} cases, {} listed disagreements", trials.len(), found.len());

    serve_dialect(&plane, &client, KaiDialect::Auto).await;
    let number = |name: &str, default| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let found = mutants::disagreements(&client, &trials, &coverage, usize::try_from(number("MUTANTS", 500)).unwrap(), number("SEED", 75)).await;
    assert!(found.is_empty(), "{} mutants\n{}", found.len(), found.join("\n\n"));
}

/// Clients of the authors, by name.
async fn authors(plane: &ControlPlane) -> BTreeMap<&'static str, Client> {
    let rule = |groups: Value, resources: Value| json!({"apiGroups": groups, "resources": resources, "verbs": ["*"]});
    let kinds = json!(["workloads.x-k8s.io", "workloads.instai.io", "rolegate.dev", "grove.io"]);
    let gangs = json!(["scheduling.x-k8s.io", "scheduling.volcano.sh", "scheduling.run.ai"]);
    let roles = [("author", rule(kinds.clone(), json!(["*"]))), ("author-with-gangs", rule(gangs, json!(["podgroups"])))];
    for (name, rule) in roles {
        let subjects: Vec<_> = AUTHORS
            .iter()
            .filter(|author| author.starts_with(name))
            .map(|author| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": author}))
            .collect();
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": name}, "rules": [rule]});
        let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": name}, "subjects": subjects,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}});
        plane.must(&["apply", "-f", "-"], &role.to_string());
        plane.must(&["apply", "-f", "-"], &binding.to_string());
    }
    let mut clients = BTreeMap::new();
    for author in AUTHORS {
        clients.insert(author, client_as(plane, author).await);
    }
    clients
}

/// All cases of kinds that policies judge, with what was there before in place. No policy is there yet: old objects may be
/// broken.
async fn arrange(client: &Client, users: &BTreeMap<&str, Client>) -> Vec<Trial> {
    let cases = golden::files().into_iter().flat_map(|file| {
        let path = file.path.with_extension("");
        let rule = path.strip_prefix(golden::ROOT).unwrap().display().to_string();
        file.cases.into_iter().map(move |case| (format!("{rule}: {}", case.name), case))
    });
    let cases: Vec<_> = cases.collect();
    let names: BTreeSet<_> = cases.iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), cases.len(), "cases are told apart by name");
    let trials = cases.into_iter().enumerate().filter_map(|(number, (name, mut case))| {
        let kind = JUDGED.iter().map(|(kind, _)| *kind).find(|kind| {
            case.object["kind"] == kind.kind && case.object["apiVersion"] == kind.api_version()
        });
        let kind = kind.filter(|kind| kind.kind != "Pod")?;
        case.move_to(&format!("case-{number}"), kind.namespaced);
        Some((name, kind, case))
    });
    futures::stream::iter(trials.map(|(name, kind, case)| arrange_one(client, users, name, kind, case)))
        .buffer_unordered(AT_ONCE)
        .collect()
        .await
}

async fn arrange_one(
    client: &Client,
    users: &BTreeMap<&str, Client>,
    name: String,
    kind: ObjectKind,
    case: Case,
) -> Trial {
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(kind.group, kind.version, kind.kind), kind.plural);
    let api = |client: &Client| -> Api<DynamicObject> {
        if kind.namespaced {
            let namespace = case.object["metadata"]["namespace"].as_str().unwrap();
            Api::namespaced_with(client.clone(), namespace, &resource)
        } else {
            Api::all_with(client.clone(), &resource)
        }
    };
    if kind.namespaced {
        let namespace = json!({"metadata": {"name": case.object["metadata"]["namespace"]}});
        let namespaces: Api<Namespace> = Api::all(client.clone());
        namespaces.create(&PostParams::default(), &typed(namespace)).await.unwrap();
    }
    let user = case.may_create_pod_groups.map(|may| &users[AUTHORS[usize::from(may)]]);
    let admin = api(client);
    let mut stored = None;
    if let Some(before) = case.before() {
        stored = Some(store(&admin, before, case.is_being_deleted()).await);
    }
    Trial { api: api(user.unwrap_or(client)), name, case, stored }
}

/// Stores an object, and begins to delete it if it is to be found so.
async fn store(api: &Api<DynamicObject>, object: Value, deleting: bool) -> Result<DynamicObject, Answer> {
    let mut object: DynamicObject = typed(object);
    if deleting {
        object.metadata.finalizers = Some(vec!["rolegate.dev/test".to_owned()]);
    }
    let stored = api.create(&PostParams::default(), &object).await;
    let stored = match stored {
        Ok(stored) => stored,
        error => return Err(Answer::of(error)),
    };
    if !deleting {
        return Ok(stored);
    }
    let name = stored.metadata.name.clone().unwrap();
    api.delete(&name, &kube::api::DeleteParams::default()).await.unwrap();
    Ok(api.get(&name).await.unwrap())
}

impl Trial {
    /// What the API server says to the case's request.
    async fn ask(&self) -> Answer {
        let stored = match &self.stored {
            None => return may_create(&self.api, &self.case.object).await,
            Some(Err(answer)) => return answer.clone(),
            Some(Ok(stored)) => stored,
        };
        let name = stored.metadata.name.as_deref().unwrap();
        if self.case.operation() == Operation::Delete {
            let params = kube::api::DeleteParams::default().dry_run();
            return Answer::of(self.api.delete(name, &params).await);
        }
        let mut object: DynamicObject = typed(self.case.object.clone());
        object.metadata.resource_version.clone_from(&stored.metadata.resource_version);
        object.metadata.finalizers.clone_from(&stored.metadata.finalizers);
        object.metadata.deletion_timestamp.clone_from(&stored.metadata.deletion_timestamp);
        let params = PostParams { dry_run: true, ..PostParams::default() };
        Answer::of(self.api.replace(name, &params, &object).await)
    }
}

/// What twin and rule do not agree about, with details; `None` when they do.
pub fn disagreement(
    judged: &Judged,
    answer: &Answer,
    coverage: &BTreeMap<String, Coverage>,
) -> Option<(&'static str, String)> {
    let has_twin = |violation: &&Violation| coverage.get(violation.rule).is_some_and(|c| *c != Coverage::None);
    let mut faults: Vec<_> = judged.errors.iter().filter(has_twin).map(fault).collect();
    // A longer one may hold a shorter one.
    faults.sort_by_key(|fault| (std::cmp::Reverse(fault.len()), fault.clone()));
    faults.dedup();
    let expected = || faults.iter().map(|fault| format!("    rule: {fault}\n")).collect::<String>();
    match answer {
        Answer::Admitted if faults.is_empty() => None,
        Answer::Admitted => Some(("admits", expected())),
        // The schema of the definition says it already; then no policy is asked.
        Answer::Invalid(_) if !judged.errors.is_empty() => None,
        Answer::Invalid(text) => Some(("the schema refuses", format!("    schema: {text}\n"))),
        Answer::Refused(text) => {
            let details = || format!("{}    twin: {text}\n", expected());
            if text.contains("resulted in error") {
                return Some(("cannot say", details()));
            }
            if faults.is_empty() {
                return Some(("refuses", details()));
            }
            let mut rest = text.clone();
            if faults.len() > SHOWN {
                // Which ten are shown is up to the twin.
                return (!rest.contains(&format!("and {} more", faults.len() - SHOWN))).then(|| ("other words", details()));
            }
            for fault in &faults {
                let Some(at) = rest.find(fault.as_str()) else { return Some(("other words", details())) };
                rest.replace_range(at..at + fault.len(), "");
            }
            (!rest.trim_matches([';', ' ']).is_empty()).then(|| ("more", details()))
        }
    }
}

/// Faults that a twin's message shows.
const SHOWN: usize = 10;

/// A violation as a twin says it: without the name that was probably meant.
fn fault(violation: &Violation) -> String {
    let text = violation.to_string();
    text.split("; did you mean ").next().unwrap().to_owned()
}

/// Objects that each policy refuses: (group, version, kind, plural, object).
fn probes() -> Vec<(&'static str, &'static str, &'static str, &'static str, Value)> {
    let object = |api_version: &str, kind: &str, spec: Value| {
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "probe"}, "spec": spec})
    };
    let row = |group, version, kind, plural, spec| {
        (group, version, kind, plural, object(&format!("{group}/{version}"), kind, spec))
    };
    let clique = json!({"name": "a", "spec": {"roleName": "1"}});
    vec![
        row("rolegate.dev", "v1alpha1", "ClusterTopology", "clustertopologies", json!({"layers": []})),
        row("workloads.x-k8s.io", "v1alpha1", "RoleBasedGroup", "rolebasedgroups", json!({"roles": [{"name": ""}]})),
        row("workloads.x-k8s.io", "v1alpha2", "CoordinatedPolicy", "coordinatedpolicies", json!({"policies": [{}]})),
        row("scheduling.run.ai", "v2alpha2", "PodGroup", "podgroups", json!({"subGroups": [{"name": ""}]})),
        row("grove.io", "v1alpha1", "PodCliqueSet", "podcliquesets", json!({"template": {"cliques": [clique]}})),
    ]
}

/// Has the API server serve PodGroups as releases of KAI with this dialect do, and waits until the twin knows.
async fn serve_dialect(plane: &Arc<ControlPlane>, client: &Client, dialect: KaiDialect) {
    let fields = match dialect {
        KaiDialect::Auto => json!({}),
        KaiDialect::Seed => json!({"topologyConstraints": {"x-kubernetes-preserve-unknown-fields": true}}),
        KaiDialect::Upstream => json!({"minSubGroup": {"type": "integer"}}),
    };
    plane.must(&["apply", "--server-side", "-f", "-"], &pod_group_definition(&fields).to_string());
    // Each is wrong in one dialect only, and looks like neither.
    let probes = [
        (KaiDialect::Seed, json!({"minMember": 2, "subGroups": [{"name": "a", "minMember": 1}]})),
        (KaiDialect::Upstream, json!({"subGroups": [{"name": "a"}]})),
    ];
    let resource =
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("scheduling.run.ai", "v2alpha2", "PodGroup"), "podgroups");
    for (wrong_in, spec) in probes {
        let object = json!({"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup",
            "metadata": {"name": "probe"}, "spec": spec});
        in_force(client, &resource, Some("default"), &object, wrong_in == dialect).await;
    }
}

impl Case {
    /// Gives the case a namespace of its own, or its object a name of its own where there are no namespaces.
    fn move_to(&mut self, place: &str, namespaced: bool) {
        if namespaced {
            let from = self.object["metadata"]["namespace"].clone();
            let others = self.old.iter_mut().chain(&mut self.with);
            for object in std::iter::once(&mut self.object).chain(others) {
                if object["metadata"]["namespace"] == from {
                    object["metadata"]["namespace"] = place.into();
                }
            }
        } else {
            let name = json!(format!("{}-{place}", self.object["metadata"]["name"].as_str().unwrap()));
            if let Some(old) = &mut self.old {
                old["metadata"]["name"] = name.clone();
            }
            self.object["metadata"]["name"] = name;
        }
        // Set by the API server.
        for object in std::iter::once(&mut self.object).chain(&mut self.old) {
            let metadata = object["metadata"].as_object_mut().unwrap();
            metadata.retain(|field, _| !matches!(field.as_str(), "uid" | "resourceVersion" | "creationTimestamp"));
        }
    }

    /// The dialect that is chosen, or that a definition among the other objects tells.
    fn dialect(&self) -> KaiDialect {
        let definition = self.with.iter().find(|object| object["kind"] == CUSTOM_RESOURCE_DEFINITION.kind);
        match (self.options.kai_dialect, definition.and_then(Dialect::of_crd)) {
            (KaiDialect::Auto, Some(Dialect::Seed)) => KaiDialect::Seed,
            (KaiDialect::Auto, Some(Dialect::Upstream)) => KaiDialect::Upstream,
            (chosen, _) => chosen,
        }
    }

    fn is_being_deleted(&self) -> bool {
        self.object["metadata"]["deletionTimestamp"].is_string()
    }

    /// What is stored before the request.
    pub fn before(&self) -> Option<Value> {
        let mut before = match &self.old {
            Some(old) => old.clone(),
            None if self.is_being_deleted() || self.operation() == Operation::Delete => self.object.clone(),
            None => return None,
        };
        before["metadata"].as_object_mut().unwrap().remove("deletionTimestamp");
        Some(before)
    }
}
