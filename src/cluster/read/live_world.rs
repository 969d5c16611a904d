//! What a rule looks up outside the object it judges, read live: a rule denies only what a live read shows to be wrong.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::api::{ListParams, PostParams};
use kube::core::Request;
use kube::{Api, Client};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::api::ObjectKind;
use crate::api::cluster_topology::{CLUSTER_TOPOLOGY, CLUSTER_TOPOLOGY_KEP75};
use crate::api::coordinated_policy::COORDINATED_POLICY;
use crate::api::crd::CUSTOM_RESOURCE_DEFINITION;
use crate::api::disruption_budget::POD_DISRUPTION_BUDGET;
use crate::api::pod::POD;
use crate::api::pod_group::{POD_GROUP, TOPOLOGY};
use crate::api::review::UserInfo;
use crate::cluster::watch::sources::{CARRIERS, ROLE_BASED_GROUPS};
use crate::model::{GroupKey, names};
use crate::rules::question::Question;
use crate::rules::{DecodeError, Need, Options, World, needs};

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
    #[error("reading {0}: no answer in time")]
    Timeout(String),
}

/// Reads what rules look up.
#[derive(Clone)]
pub struct LiveWorld {
    client: Client,
    options: Options,
    /// The installed definition of PodGroups, and when it was read.
    definition: Arc<Mutex<Option<Definition>>>,
}

/// When the definition was read, and what it was; `None` where there is none.
type Definition = (Instant, Option<Arc<str>>);

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

    /// The world as far as the rules of an object look at it, and what its author may do. All reads end by `deadline`.
    ///
    /// # Errors
    ///
    /// When the API server fails to answer what must not be guessed: the author's rights, and who refers to a topology.
    /// Whatever else cannot be read, or not in time, stays unknown, and the rules that look at it do not judge.
    pub async fn of(
        &self,
        question: Question<'_>,
        author: &UserInfo<'_>,
        deadline: Instant,
    ) -> Result<Result<World, DecodeError>, LiveWorldError> {
        let Question { kind, operation, object, old } = question;
        let mut world = World::default();
        world.options = self.options;
        if kind == POD_GROUP || kind == POD {
            self.read_definition(&mut world, deadline).await;
        }
        // A need that was tried and stays unknown is not tried again.
        let mut tried = BTreeSet::new();
        loop {
            let open = match needs(&kind.api_version(), kind.kind, operation, object, old, &world) {
                Ok(needs) => needs,
                Err(error) => return Ok(Err(error)),
            };
            let fresh: Vec<_> = open.into_iter().filter(|need| tried.insert(need.clone())).collect();
            if fresh.is_empty() {
                return Ok(Ok(world));
            }
            let reads = fresh.iter().map(|need| async {
                let timeout = || Err(LiveWorldError::Timeout(need.to_string()));
                tokio::time::timeout_at(deadline, self.meet(need, author)).await.unwrap_or_else(|_| timeout())
            });
            let answers = futures::future::join_all(reads).await;
            for (need, answer) in fresh.into_iter().zip(answers) {
                match answer {
                    Ok(Found { objects, there }) => {
                        objects.iter().for_each(|(kind, object)| take(*kind, object, &mut world));
                        if let Some(there) = there {
                            world.answer(need, there);
                        }
                    }
                    Err(error) if must_be_known(&need) => return Err(error),
                    Err(error) => tracing::warn!(%error, "cannot be read: rules that look at it do not judge"),
                }
            }
        }
    }

    /// Reads what is needed.
    async fn meet(&self, need: &Need, author: &UserInfo<'_>) -> Result<Found, LiveWorldError> {
        match need {
            Need::RoleBasedGroup(key) => self.get_first(ROLE_BASED_GROUPS, Some(&key.namespace), &key.name).await,
            Need::Groups { namespace } => self.list_all(CARRIERS, Some(namespace), None).await,
            Need::TopologyReferrers(_) => self.list_all(CARRIERS, None, None).await,
            Need::Workload(key) => self.get_first(&[key.kind.object_kind()], Some(&key.namespace), &key.name).await,
            Need::ClusterTopology(name) => {
                self.get_first(&[CLUSTER_TOPOLOGY, CLUSTER_TOPOLOGY_KEP75], None, name).await
            }
            Need::DisruptionBudgets { namespace } => {
                self.list_all(&[POD_DISRUPTION_BUDGET], Some(namespace), None).await
            }
            Need::CoordinatedPolicy(key) => {
                self.get_first(&[COORDINATED_POLICY], Some(&key.namespace), &key.name).await
            }
            Need::PodGroup(key) => self.get_first(&[POD_GROUP], Some(&key.namespace), &key.name).await,
            Need::KaiTopology(name) => self.get_first(&[TOPOLOGY], None, name).await,
            Need::Pods { group, role } => self.has_pods(group, role).await,
            Need::MayCreatePodGroups { namespace, api_group } => {
                let there = Some(self.may_create(namespace, api_group, author).await?);
                Ok(Found { there, ..Found::default() })
            }
        }
    }

    /// The first object of this name among the kinds; a kind that is not served has no objects.
    async fn get_first(
        &self,
        kinds: &[ObjectKind],
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Found, LiveWorldError> {
        let reads = kinds.iter().map(|kind| {
            let request = Request::new(path(*kind, namespace)).get(name, &kube::api::GetParams::default());
            self.text(request, *kind)
        });
        let mut found = Found { there: Some(false), ..Found::default() };
        for (kind, answer) in kinds.iter().zip(futures::future::join_all(reads).await) {
            match answer? {
                Answer::Text(object) if found.objects.is_empty() => {
                    found = Found { objects: vec![(*kind, object)], there: Some(true) };
                }
                Answer::Forbidden if found.objects.is_empty() => found.there = None,
                Answer::Text(_) | Answer::Absent | Answer::Forbidden => {}
            }
        }
        Ok(found)
    }

    /// Every object of the kinds, or with a selector the first.
    async fn list_all(
        &self,
        kinds: &[ObjectKind],
        namespace: Option<&str>,
        selector: Option<&str>,
    ) -> Result<Found, LiveWorldError> {
        let params =
            selector.map_or_else(ListParams::default, |selector| ListParams::default().labels(selector).limit(1));
        let reads = kinds.iter().map(|kind| self.text(Request::new(path(*kind, namespace)).list(&params), *kind));
        let mut found = Found::default();
        for (kind, answer) in kinds.iter().zip(futures::future::join_all(reads).await) {
            match answer? {
                Answer::Text(list) => {
                    let items = serde_json::from_str::<Listed<'_>>(&list).map(|list| list.items).unwrap_or_default();
                    found.objects.extend(items.into_iter().map(|item| (*kind, item.get().to_owned())));
                }
                Answer::Absent => {}
                Answer::Forbidden => return Ok(Found::default()),
            }
        }
        // A list answers "which", whatever it holds; a selection answers "whether".
        found.there = Some(selector.is_none() || !found.objects.is_empty());
        Ok(found)
    }

    /// Whether a role has pods, under any label scheme.
    async fn has_pods(&self, group: &GroupKey, role: &str) -> Result<Found, LiveWorldError> {
        let selectors: Vec<_> = names::LABEL_SCHEMES
            .iter()
            .map(|(group_label, role_label)| format!("{group_label}={},{role_label}={role}", group.name))
            .collect();
        let reads = selectors.iter().map(|selector| self.list_all(&[POD], Some(&group.namespace), Some(selector)));
        let mut found = Found { there: Some(false), ..Found::default() };
        for answer in futures::future::join_all(reads).await {
            let answer = answer?;
            found.objects.extend(answer.objects);
            found.there = found.there.and(answer.there);
        }
        if !found.objects.is_empty() {
            found.there = Some(true);
        }
        Ok(found)
    }

    /// The definition of PodGroups tells which KAI release is installed.
    async fn read_definition(&self, world: &mut World, deadline: Instant) {
        let known = self.definition.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let definition = match known {
            Some((at, definition)) if at.elapsed() < DIALECT_FOR => definition,
            _ => {
                let request = Request::new(path(CUSTOM_RESOURCE_DEFINITION, None));
                let request = request.get(&POD_GROUP.crd_name(), &kube::api::GetParams::default());
                // The other half of the time is for what cannot be done without.
                let time = deadline.saturating_duration_since(Instant::now()) / 2;
                let read = tokio::time::timeout(time, self.text(request, CUSTOM_RESOURCE_DEFINITION));
                let read = match read.await {
                    Ok(Ok(Answer::Text(definition))) => Some(Arc::from(definition)),
                    Ok(Ok(Answer::Absent | Answer::Forbidden)) => None,
                    // Judged by its own fields for once; the next one asks again.
                    Ok(Err(_)) | Err(_) => return,
                };
                let mut cache = self.definition.lock().unwrap_or_else(PoisonError::into_inner);
                *cache = Some((Instant::now(), read.clone()));
                read
            }
        };
        if let Some(definition) = definition {
            take(CUSTOM_RESOURCE_DEFINITION, &definition, world);
        }
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

/// What was read for a need.
#[derive(Default)]
struct Found {
    objects: Vec<(ObjectKind, String)>,
    /// Whether it is there, or so; `None` when we may not know.
    there: Option<bool>,
}

/// Rights and references that protect others: they are not guessed.
const fn must_be_known(need: &Need) -> bool {
    matches!(need, Need::MayCreatePodGroups { .. } | Need::TopologyReferrers(_))
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
