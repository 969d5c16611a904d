//! A golden case as a request to the API server.

use futures::StreamExt;
use k8s_openapi::api::core::v1::Namespace;
use rolegate::api::ObjectKind;
use rolegate::api::crd::CUSTOM_RESOURCE_DEFINITION;
use rolegate::model::Dialect;
use rolegate::rules::{Judged, KaiDialect, judged_kinds};
use rolegate_golden::case::{Action, Asked};
use rolegate_golden::{self as golden, expected, file_of};

use crate::common::prelude::*;
use crate::policies::cluster::{AT_ONCE, Answer, api_of, client_as, may_create};

/// Whoever writes objects in the cases; the second may create PodGroups as well.
const AUTHORS: [&str; 2] = ["author", "author-with-gangs"];

/// A case on the control plane, in a namespace of its own.
pub struct Trial {
    /// `<folder>/<file>: <name>`.
    pub name: String,
    pub case: Case,
    pub kind: ObjectKind,
    /// What is stored before the policies are there.
    stored: Option<DynamicObject>,
    api: Api<DynamicObject>,
}

/// Clients of the authors, by name.
pub async fn authors(plane: &ControlPlane) -> BTreeMap<&'static str, Client> {
    let kinds = json!(["workloads.x-k8s.io", "workloads.instai.io", "rolegate.dev", "grove.io"]);
    let gangs = json!(["scheduling.x-k8s.io", "scheduling.volcano.sh", "scheduling.run.ai"]);
    for (name, groups, resources, users) in [
        ("writes-objects", kinds, json!(["*"]), &AUTHORS[..]),
        ("makes-gangs", gangs, json!(["podgroups"]), &AUTHORS[1..]),
    ] {
        let rules = json!([{"apiGroups": groups, "resources": resources, "verbs": ["*"]}]);
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": name}, "rules": rules});
        plane.must(&["apply", "-f", "-"], &role.to_string());
        for user in users {
            let binding = format!("{name}-{user}");
            plane.must(&["create", "clusterrolebinding", &binding, "--clusterrole", name, "--user", user], "");
        }
    }
    let mut clients = BTreeMap::new();
    for author in AUTHORS {
        clients.insert(author, client_as(plane, author).await);
    }
    clients
}

/// All cases of kinds that policies judge, with what was there before in place. No policy is there yet: old objects may be
/// broken.
pub async fn arrange(client: &Client, users: &BTreeMap<&str, Client>) -> Vec<Trial> {
    let all = golden::cases();
    let cases: Vec<_> = all.into_iter().filter_map(Case::of).collect();
    let names: BTreeSet<_> = cases.iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), cases.len(), "cases are told apart by name");
    let trials = cases.into_iter().enumerate().filter_map(|(number, (name, mut case))| {
        let kind = judged_kinds()
            .find(|kind| case.object["kind"] == kind.kind && case.object["apiVersion"] == kind.api_version());
        let kind = kind.filter(|kind| kind.kind != "Pod")?;
        case.move_to(&format!("case-{number}"), kind.namespaced);
        Some((name, kind, case))
    });
    let arranged = trials.map(|trial| arrange_one(client, users, trial));
    futures::stream::iter(arranged).buffered(AT_ONCE).collect().await
}

async fn arrange_one(
    client: &Client,
    users: &BTreeMap<&str, Client>,
    (name, kind, case): (String, ObjectKind, Case),
) -> Trial {
    let place = case.object["metadata"]["namespace"].as_str().unwrap_or_default();
    if kind.namespaced {
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let namespace = json!({"metadata": {"name": place}});
        namespaces.create(&PostParams::default(), &typed(namespace)).await.unwrap();
    }
    let mut stored = None;
    if let Some(before) = case.before() {
        stored = Some(store(&api_of(client, kind, place), before, case.is_being_deleted()).await);
    }
    let user = case.golden.input.author.may_create_pod_groups.map_or(client, |may| &users[AUTHORS[usize::from(may)]]);
    Trial { api: api_of(user, kind, place), name, case, kind, stored }
}

/// Stores an object, and begins to delete it if it is to be found so.
async fn store(api: &Api<DynamicObject>, object: Value, deleting: bool) -> DynamicObject {
    let mut object: DynamicObject = typed(object);
    if deleting {
        object.metadata.finalizers = Some(vec!["rolegate.dev/test".to_owned()]);
    }
    let stored = api.create(&PostParams::default(), &object).await.unwrap();
    if !deleting {
        return stored;
    }
    let name = stored.metadata.name.unwrap();
    api.delete(&name, &DeleteParams::default()).await.unwrap();
    api.get(&name).await.unwrap()
}

impl Trial {
    /// What the API server says to the case's request.
    pub async fn ask(&self) -> Answer {
        let Some(stored) = &self.stored else { return may_create(&self.api, &self.case.object).await };
        let name = stored.metadata.name.as_deref().unwrap();
        if self.case.is_a_deletion() {
            let params = DeleteParams::default().dry_run();
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

/// A golden case of the rules. It has one object, and one that was before at most.
pub struct Case {
    golden: golden::Case,
    pub object: Value,
    pub old: Option<Value>,
    pub with: Vec<Value>,
}

impl Case {
    /// `None` for cases of something else; else with its name.
    fn of(mut golden: golden::Case) -> Option<(String, Self)> {
        expected(&golden, Asked::Check)?;
        let options = &golden.input.options;
        // Policies know no modes, and each rule as it is; and of a file with several objects, each by itself.
        if options.rules.is_some() || options.mode.is_some() || golden.input.objects.len() > 1 {
            return None;
        }
        let input = &mut golden.input;
        let (object, old) = (input.objects.remove(0), input.old.pop());
        assert!(input.old.is_empty(), "{}: one object", golden.name);
        let with = std::mem::take(&mut input.with);
        Some((format!("{}: {}", file_of(&golden), golden.name), Self { golden, object, old, with }))
    }

    /// What the rules say of the object, where it is now.
    pub fn judge(&self) -> Result<Judged, String> {
        let mut golden = self.golden.clone();
        golden.input.objects.push(self.object.clone());
        golden.input.old.extend(self.old.clone());
        golden.input.with.clone_from(&self.with);
        let mut judged = golden.judged().map_err(|why| why.join(", "))?;
        Ok(judged.remove(0).1)
    }

    fn is_a_deletion(&self) -> bool {
        self.golden.input.operation == Some(Action::Delete)
    }

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
    pub fn dialect(&self) -> KaiDialect {
        let definition = self.with.iter().find(|object| object["kind"] == CUSTOM_RESOURCE_DEFINITION.kind);
        match (self.golden.input.options.kai_dialect.unwrap_or(KaiDialect::Auto), definition.and_then(Dialect::of_crd))
        {
            (KaiDialect::Auto, Some(Dialect::Proposal)) => KaiDialect::Proposal,
            (KaiDialect::Auto, Some(Dialect::Upstream)) => KaiDialect::Upstream,
            (KaiDialect::Auto, Some(Dialect::Pods)) => KaiDialect::Pods,
            (chosen, _) => chosen,
        }
    }

    pub fn is_being_deleted(&self) -> bool {
        self.object["metadata"]["deletionTimestamp"].is_string()
    }

    /// True when nothing is stored before the request.
    pub fn is_a_creation(&self) -> bool {
        self.before().is_none()
    }

    /// What is stored before the request.
    fn before(&self) -> Option<Value> {
        let mut before = match &self.old {
            Some(old) => old.clone(),
            None if self.is_being_deleted() || self.is_a_deletion() => self.object.clone(),
            None => return None,
        };
        before["metadata"].as_object_mut().unwrap().remove("deletionTimestamp");
        Some(before)
    }
}
