//! What a rule looks up outside the object it judges, read live: a rule denies only what a live read shows to be wrong.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::api::{ListParams, PostParams};
use kube::core::Request;
use kube::{Api, Client};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::sources::{CARRIERS, ROLE_BASED_GROUPS};
use crate::api::ObjectKind;
use crate::api::cluster_topology::{CLUSTER_TOPOLOGY, CLUSTER_TOPOLOGY_KEP75};
use crate::api::coordinated_policy::COORDINATED_POLICY;
use crate::api::crd::CUSTOM_RESOURCE_DEFINITION;
use crate::api::disruption_budget::POD_DISRUPTION_BUDGET;
use crate::api::pod::POD;
use crate::api::pod_group::{POD_GROUP, TOPOLOGY};
use crate::api::review::UserInfo;
use crate::model::{GroupKey, names};
use crate::rules::judge::Operation;
use crate::rules::{DecodeError, Need, Options, World, needs};

/// Longest time for all reads of one request: below the webhook's timeout of 3 s.
const DEADLINE: Duration = Duration::from_millis(2000);
/// How long the installed definition of PodGroups is believed.
const DIALECT_FOR: Duration = Duration::from_secs(30);

/// Something could not be read; the request must not be answered from ignorance.
#[derive(Debug, thiserror::Error)]
pub enum LiveWorldError {
    /// The API server failed.
    #[error("reading {what}: {source}")]
    Read {
        /// What was read.
        what: String,
        /// What went wrong.
        source: Box<kube::Error>,
    },
    /// No answer in time.
    #[error("reading {0}: no answer within {DEADLINE:?}")]
    Timeout(String),
}

/// An object that is judged.
#[derive(Clone, Copy, Debug)]
pub struct Judging<'a> {
    /// Kind of the object.
    pub kind: ObjectKind,
    /// What is done with it.
    pub operation: Operation,
    /// The object; for a DELETE, what it was.
    pub object: &'a str,
    /// The object before, for an UPDATE.
    pub old: Option<&'a str>,
    /// Who asks.
    pub author: &'a UserInfo<'a>,
}

/// Reads what rules look up.
#[derive(Clone)]
pub struct LiveWorld {
    client: Client,
    options: Options,
    /// The installed definition of PodGroups, and when it was read.
    definition: Arc<Mutex<Option<(Instant, Option<Arc<str>>)>>>,
}

#[derive(Deserialize)]
struct Listed<'a> {
    #[serde(borrow, default)]
    items: Vec<&'a RawValue>,
}

impl LiveWorld {
    /// Reads with this client.
    pub fn new(client: Client, options: Options) -> Self {
        Self { client, options, definition: Arc::default() }
    }

    /// The world as far as the rules of an object look at it.
    ///
    /// # Errors
    ///
    /// When the API server fails. What we may not read stays unknown, and is not judged.
    pub async fn of(&self, judging: Judging<'_>) -> Result<Result<World, DecodeError>, LiveWorldError> {
        let mut world = World::default();
        world.options = self.options;
        let read = self.read(judging, &mut world);
        let done = tokio::time::timeout(DEADLINE, read).await;
        match done.unwrap_or_else(|_| Err(LiveWorldError::Timeout(format!("what {} depends on", judging.kind.kind))))? {
            Ok(()) => Ok(Ok(world)),
            Err(error) => Ok(Err(error)),
        }
    }

    async fn read(&self, judging: Judging<'_>, world: &mut World) -> Result<Result<(), DecodeError>, LiveWorldError> {
        let Judging { kind, operation, object, old, author } = judging;
        if kind == POD_GROUP {
            self.read_definition(world).await?;
        }
        // A need that was tried and stays unknown is not tried again.
        let mut tried = std::collections::BTreeSet::new();
        loop {
            let open = match needs(&kind.api_version(), kind.kind, operation, object, old, world) {
                Ok(needs) => needs,
                Err(error) => return Ok(Err(error)),
            };
            let fresh: Vec<_> = open.into_iter().filter(|need| tried.insert(need.clone())).collect();
            if fresh.is_empty() {
                return Ok(Ok(()));
            }
            for need in fresh {
                if let Some(there) = self.meet(&need, author, world).await? {
                    world.answer(need, there);
                }
            }
        }
    }

    /// Reads what is needed; whether it is there, or `None` when we may not know.
    async fn meet(
        &self,
        need: &Need,
        author: &UserInfo<'_>,
        world: &mut World,
    ) -> Result<Option<bool>, LiveWorldError> {
        match need {
            Need::RoleBasedGroup(key) => {
                self.get_first(ROLE_BASED_GROUPS, Some(&key.namespace), &key.name, world).await
            }
            Need::Groups { namespace } => self.list_all(CARRIERS, Some(namespace), None, world).await,
            Need::TopologyReferrers(_) => self.list_all(CARRIERS, None, None, world).await,
            Need::Workload(key) => {
                self.get_first(&[key.kind.object_kind()], Some(&key.namespace), &key.name, world).await
            }
            Need::ClusterTopology(name) => {
                self.get_first(&[CLUSTER_TOPOLOGY, CLUSTER_TOPOLOGY_KEP75], None, name, world).await
            }
            Need::DisruptionBudgets { namespace } => {
                self.list_all(&[POD_DISRUPTION_BUDGET], Some(namespace), None, world).await
            }
            Need::CoordinatedPolicy(key) => {
                self.get_first(&[COORDINATED_POLICY], Some(&key.namespace), &key.name, world).await
            }
            Need::PodGroup(key) => {
                self.read_definition(world).await?;
                self.get_first(&[POD_GROUP], Some(&key.namespace), &key.name, world).await
            }
            Need::KaiTopology(name) => self.get_first(&[TOPOLOGY], None, name, world).await,
            Need::Pods { group, role } => self.has_pods(group, role, world).await,
            Need::MayCreatePodGroups { namespace, api_group } => {
                self.may_create(namespace, api_group, author).await.map(Some)
            }
        }
    }

    /// The first object of this name among the kinds; a kind that is not served has no objects.
    async fn get_first(
        &self,
        kinds: &[ObjectKind],
        namespace: Option<&str>,
        name: &str,
        world: &mut World,
    ) -> Result<Option<bool>, LiveWorldError> {
        for kind in kinds {
            let request = Request::new(path(*kind, namespace)).get(name, &kube::api::GetParams::default());
            match self.text(request, *kind).await? {
                Answer::Text(object) => {
                    take(*kind, &object, world);
                    return Ok(Some(true));
                }
                Answer::Absent => {}
                Answer::Forbidden => return Ok(None),
            }
        }
        Ok(Some(false))
    }

    /// Every object of the kinds.
    async fn list_all(
        &self,
        kinds: &[ObjectKind],
        namespace: Option<&str>,
        selector: Option<&str>,
        world: &mut World,
    ) -> Result<Option<bool>, LiveWorldError> {
        let mut params = ListParams::default();
        if let Some(selector) = selector {
            params = params.labels(selector).limit(1);
        }
        let mut any = false;
        for kind in kinds {
            let request = Request::new(path(*kind, namespace)).list(&params);
            match self.text(request, *kind).await? {
                Answer::Text(list) => {
                    let items = serde_json::from_str::<Listed<'_>>(&list).map(|list| list.items).unwrap_or_default();
                    any |= !items.is_empty();
                    items.iter().for_each(|item| take(*kind, item.get(), world));
                }
                Answer::Absent => {}
                Answer::Forbidden => return Ok(None),
            }
        }
        // A list answers "which", whatever it holds; a selection answers "whether".
        Ok(Some(selector.is_none() || any))
    }

    /// Whether a role has pods, under any label scheme.
    async fn has_pods(&self, group: &GroupKey, role: &str, world: &mut World) -> Result<Option<bool>, LiveWorldError> {
        for (group_label, role_label) in names::LABEL_SCHEMES {
            let selector = format!("{group_label}={},{role_label}={role}", group.name);
            match self.list_all(&[POD], Some(&group.namespace), Some(&selector), world).await? {
                Some(false) => {}
                answer => return Ok(answer),
            }
        }
        Ok(Some(false))
    }

    /// The definition of PodGroups tells which KAI release is installed.
    async fn read_definition(&self, world: &mut World) -> Result<(), LiveWorldError> {
        let known = self.definition.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let definition = match known {
            Some((at, definition)) if at.elapsed() < DIALECT_FOR => definition,
            _ => {
                let request = Request::new(path(CUSTOM_RESOURCE_DEFINITION, None));
                let request = request.get(&POD_GROUP.crd_name(), &kube::api::GetParams::default());
                let read = match self.text(request, CUSTOM_RESOURCE_DEFINITION).await? {
                    Answer::Text(definition) => Some(Arc::from(definition)),
                    Answer::Absent | Answer::Forbidden => None,
                };
                let mut cache = self.definition.lock().unwrap_or_else(PoisonError::into_inner);
                *cache = Some((Instant::now(), read.clone()));
                read
            }
        };
        if let Some(definition) = definition {
            take(CUSTOM_RESOURCE_DEFINITION, &definition, world);
        }
        Ok(())
    }

    async fn may_create(
        &self,
        namespace: &str,
        api_group: &str,
        author: &UserInfo<'_>,
    ) -> Result<bool, LiveWorldError> {
        let extra = author
            .extra
            .iter()
            .map(|(key, values)| (key.to_string(), values.iter().map(ToString::to_string).collect::<Vec<_>>()));
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: Some(author.username.to_string()),
                uid: (!author.uid.is_empty()).then(|| author.uid.to_string()),
                groups: Some(author.groups.iter().map(ToString::to_string).collect()),
                extra: Some(extra.collect()),
                resource_attributes: Some(ResourceAttributes {
                    namespace: Some(namespace.to_owned()),
                    group: Some(api_group.to_owned()),
                    resource: Some("podgroups".to_owned()),
                    verb: Some("create".to_owned()),
                    ..ResourceAttributes::default()
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let answer = reviews.create(&PostParams::default(), &review).await;
        let fault = |source| LiveWorldError::Read { what: "the author's rights".to_owned(), source: Box::new(source) };
        Ok(answer.map_err(fault)?.status.is_some_and(|status| status.allowed))
    }

    async fn text(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
        kind: ObjectKind,
    ) -> Result<Answer, LiveWorldError> {
        let what = || kind.kind.to_owned();
        let request = request.map_err(|error| LiveWorldError::Read {
            what: what(),
            source: Box::new(kube::Error::BuildRequest(error)),
        })?;
        match self.client.request_text(request).await {
            Ok(text) => Ok(Answer::Text(text)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(Answer::Absent),
            Err(kube::Error::Api(status)) if status.code == 403 => {
                tracing::warn!(kind = kind.kind, message = %status.message, "may not be read: rules that look at it do not judge");
                Ok(Answer::Forbidden)
            }
            Err(source) => Err(LiveWorldError::Read { what: what(), source: Box::new(source) }),
        }
    }
}

enum Answer {
    Text(String),
    Absent,
    Forbidden,
}

/// Takes an object in; one without the expected shape is as good as unknown.
fn take(kind: ObjectKind, object: &str, world: &mut World) {
    if let Err(error) = world.add_json(&kind.api_version(), kind.kind, object) {
        tracing::warn!(kind = kind.kind, %error, "object does not have the expected shape");
    }
}

/// The collection's path.
fn path(kind: ObjectKind, namespace: Option<&str>) -> String {
    let root = if kind.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", kind.group) };
    match namespace {
        Some(namespace) if kind.namespaced => format!("{root}/{}/namespaces/{namespace}/{}", kind.version, kind.plural),
        _ => format!("{root}/{}/{}", kind.version, kind.plural),
    }
}
