//! What a rule looks up outside the object it judges, read live: a rule denies only what a live read shows to be wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};
use serde::Deserialize;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::api::ObjectKind;
use crate::api::crd::CUSTOM_RESOURCE_DEFINITION;
use crate::api::pod::POD;
use crate::api::pod_group::POD_GROUP;
use crate::api::review::UserInfo;
use crate::cluster::index::SharedIndex;
use crate::cluster::objects;
use crate::cluster::read::answers::{Answer, Found, Named, Unread, items, next_page};
use crate::cluster::read::reads::{Place, Read, Way, name_in, reads};
use crate::model::object_name::subdomain_fault;
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
    /// It is not read.
    #[error("reading {0}: there are too many")]
    TooMany(String),
}

/// Requests of reviews at a time: however many come, the loop has its own.
const AT_A_TIME: usize = 16;
/// Pods in one page of a list, and pages of which no more are read.
const PAGE: u32 = 500;
const PAGES: usize = 20;

/// Reads what rules look up. Clones share one budget of requests.
#[derive(Clone)]
pub struct LiveWorld {
    client: Client,
    /// Knows in which version a kind is read.
    index: SharedIndex,
    options: Options,
    /// The installed definition of PodGroups, and when it was read.
    definition: Arc<Mutex<Option<Definition>>>,
    budget: Arc<Semaphore>,
}

/// When the definition was read, and what it was; `None` where there is none.
type Definition = (Instant, Option<Arc<str>>);

/// What a version of an API group serves.
#[derive(Deserialize)]
struct ResourceList {
    #[serde(default)]
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
struct Resource {
    name: String,
}

impl LiveWorld {
    /// Reads with this client, each kind in the version that this index reads.
    pub fn new(client: Client, index: SharedIndex, options: Options) -> Self {
        Self { client, index, options, definition: Arc::default(), budget: Arc::new(Semaphore::new(AT_A_TIME)) }
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
        let (mut tried, mut unread) = (BTreeSet::new(), Unread::default());
        loop {
            let open = match needs(&kind.api_version(), kind.kind, operation, object, old, &world) {
                Ok(needs) => needs,
                Err(error) => return Ok(Err(error)),
            };
            let fresh: Vec<_> = open.into_iter().filter(|need| tried.insert(need.clone())).collect();
            if fresh.is_empty() {
                unread.tell(kind);
                return Ok(Ok(world));
            }
            let reads = reads(fresh);
            let answers = reads.iter().map(|read| async {
                let timeout = || Err(LiveWorldError::Timeout(read.to_string()));
                tokio::time::timeout_at(deadline, self.meet(read, author)).await.unwrap_or_else(|_| timeout())
            });
            for (read, answer) in reads.iter().zip(join_all(answers).await) {
                match answer {
                    Ok(found) => found.into_world(&mut world, &mut unread),
                    Err(error) if read.needs.iter().any(must_be_known) => return Err(error),
                    Err(error) => unread.note(&error),
                }
            }
        }
    }

    /// Reads what is needed.
    async fn meet(&self, read: &Read, author: &UserInfo<'_>) -> Result<Found, LiveWorldError> {
        match &read.way {
            Way::One(place) => self.one(place, &read.needs).await,
            Way::Many(place) => self.many(place, &read.needs).await,
            Way::All(place) => self.all(place, &read.needs).await,
            Way::Pods(group) => self.pods(group, &read.needs).await,
            Way::Served(kind) => self.served(*kind, &read.needs).await,
            Way::Rights => self.rights(&read.needs, author).await,
            Way::Not => Err(LiveWorldError::TooMany(read.to_string())),
        }
    }

    /// The first object of a name among the kinds; a kind that is not served has no objects.
    async fn one(&self, place: &Place, needs: &[Need]) -> Result<Found, LiveWorldError> {
        let mut found = Found::default();
        for (need, name) in needs.iter().filter_map(|need| Some((need, name_in(need)?))) {
            // What cannot be there is not asked for.
            let possible = place.kinds.iter().filter(|_| subdomain_fault(name).is_none());
            let get = |kind: &ObjectKind| self.text(objects::get(*kind, place.namespace.as_deref(), name), *kind);
            let mut first = None;
            for (kind, answer) in place.kinds.iter().zip(join_all(possible.map(get)).await) {
                match answer? {
                    Answer::Text(object) => first = first.or(Some((*kind, object))),
                    Answer::Absent => {}
                    Answer::Forbidden(why) => found.forbidden = Some(why),
                }
            }
            found.answer(need, first.is_some());
            found.objects.extend(first);
        }
        Ok(found)
    }

    /// The same for many names, from a list of each kind.
    async fn many(&self, place: &Place, needs: &[Need]) -> Result<Found, LiveWorldError> {
        let mut found = Found::default();
        let mut wanted: BTreeMap<_, _> = needs.iter().filter_map(|need| Some((name_in(need)?, need))).collect();
        for (kind, answer) in place.kinds.iter().zip(self.lists(place).await) {
            match answer? {
                Answer::Text(list) => {
                    for item in items(&list) {
                        let named = serde_json::from_str::<Named>(item.get()).ok();
                        let name = named.as_ref().map_or("", |named| named.metadata.display_name());
                        if let Some(need) = wanted.remove(name) {
                            found.objects.push((*kind, item.get().to_owned()));
                            found.answer(need, true);
                        }
                    }
                }
                Answer::Absent => {}
                Answer::Forbidden(why) => found.forbidden = Some(why),
            }
        }
        wanted.into_values().for_each(|need| found.answer(need, false));
        Ok(found)
    }

    /// Every object of the kinds. A list answers "which", whatever it holds.
    async fn all(&self, place: &Place, needs: &[Need]) -> Result<Found, LiveWorldError> {
        let mut found = Found::default();
        for (kind, answer) in place.kinds.iter().zip(self.lists(place).await) {
            match answer? {
                Answer::Text(list) => {
                    found.objects.extend(items(&list).into_iter().map(|item| (*kind, item.get().to_owned())));
                }
                Answer::Absent => {}
                Answer::Forbidden(why) => found.forbidden = Some(why),
            }
        }
        if found.forbidden.is_some() {
            found.objects.clear();
        }
        needs.iter().for_each(|need| found.answer(need, true));
        Ok(found)
    }

    async fn lists(&self, place: &Place) -> Vec<Result<Answer, LiveWorldError>> {
        let list = |kind: &ObjectKind| {
            self.text(objects::list(*kind, place.namespace.as_deref(), &ListParams::default()), *kind)
        };
        join_all(place.kinds.iter().map(list)).await
    }

    /// Which roles of a group have pods, under any label scheme.
    async fn pods(&self, group: &GroupKey, needs: &[Need]) -> Result<Found, LiveWorldError> {
        let mut found = Found::default();
        let mut wanted = BTreeMap::new();
        for need in needs {
            if let Need::Pods { role, .. } = need {
                wanted.insert(role.as_str(), need);
            }
        }
        let mut pages = 0;
        for (group_label, role_label) in names::LABEL_SCHEMES.iter().filter(|_| names::is_label_value(&group.name)) {
            let mut params = ListParams::default().labels(&format!("{group_label}={}", group.name)).limit(PAGE);
            while wanted.keys().any(|role| names::is_label_value(role)) {
                pages += 1;
                if pages > PAGES {
                    return Err(LiveWorldError::TooMany(format!("the pods of group {group}")));
                }
                let request = objects::list_metadata(POD, Some(&group.namespace), &params);
                let list = match self.text(request, POD).await? {
                    Answer::Text(list) => list,
                    Answer::Absent => break,
                    Answer::Forbidden(why) => {
                        found.forbidden = Some(why);
                        return Ok(found);
                    }
                };
                for item in items(&list) {
                    let named = serde_json::from_str::<Named>(item.get()).ok();
                    let role = named.as_ref().and_then(|named| named.metadata.label(role_label));
                    if let Some(need) = role.and_then(|role| wanted.remove(role)) {
                        found.answer(need, true);
                    }
                }
                match next_page(&list) {
                    Some(next) => params.continue_token = Some(next),
                    None => break,
                }
            }
        }
        wanted.into_values().for_each(|need| found.answer(need, false));
        Ok(found)
    }

    /// Whether a kind is served, as discovery says it: a definition may be there and serve other versions.
    async fn served(&self, kind: ObjectKind, needs: &[Need]) -> Result<Found, LiveWorldError> {
        let mut found = Found::default();
        let there = match self.text(objects::versions(kind), kind).await? {
            Answer::Text(list) => serde_json::from_str::<ResourceList>(&list)
                .ok()
                .map(|list| list.resources.iter().any(|resource| resource.name == kind.plural)),
            Answer::Absent => Some(false),
            Answer::Forbidden(why) => {
                found.forbidden = Some(why);
                None
            }
        };
        there.into_iter().for_each(|there| needs.iter().for_each(|need| found.answer(need, there)));
        Ok(found)
    }

    /// The definition of PodGroups tells which KAI release is installed.
    async fn read_definition(&self, world: &mut World, deadline: Instant) {
        let known = self.definition.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let definition = match known {
            Some((at, definition)) if at.elapsed() < DIALECT_FOR => definition,
            _ => {
                let request = objects::get(CUSTOM_RESOURCE_DEFINITION, None, &POD_GROUP.crd_name());
                // The other half of the time is for what cannot be done without.
                let time = deadline.saturating_duration_since(Instant::now()) / 2;
                let read = tokio::time::timeout(time, self.text(request, CUSTOM_RESOURCE_DEFINITION));
                let read = match read.await {
                    Ok(Ok(Answer::Text(definition))) => Some(Arc::from(definition)),
                    Ok(Ok(Answer::Absent | Answer::Forbidden(_))) => None,
                    // Judged by its own fields for once; the next one asks again.
                    Ok(Err(_)) | Err(_) => return,
                };
                let mut cache = self.definition.lock().unwrap_or_else(PoisonError::into_inner);
                *cache = Some((Instant::now(), read.clone()));
                read
            }
        };
        if let Some(definition) = definition {
            _ = world.add_json(&CUSTOM_RESOURCE_DEFINITION.api_version(), CUSTOM_RESOURCE_DEFINITION.kind, &definition);
        }
    }

    /// What the author may do.
    async fn rights(&self, needs: &[Need], author: &UserInfo<'_>) -> Result<Found, LiveWorldError> {
        let mut found = Found::default();
        for need in needs {
            let (namespace, asked) = match need {
                Need::MayCreatePodGroups { namespace, api_group } => {
                    (namespace, ("create", *api_group, "podgroups", None))
                }
                // A merge patch of the scale, as `kubectl scale` sends it.
                Need::MayScale(key) => {
                    let kind = key.kind.object_kind();
                    (&key.namespace, ("patch", kind.group, kind.plural, Some(("scale", &*key.name))))
                }
                Need::MayDeletePods { namespace } => (namespace, ("delete", "", "pods", None)),
                _ => continue,
            };
            found.answer(need, self.may(namespace, asked, author).await?);
        }
        Ok(found)
    }

    /// Whether the author may do something: a verb, of an API group a resource, and of one object a subresource.
    async fn may(
        &self,
        namespace: &str,
        (verb, api_group, resource, of): (&str, &str, &str, Option<(&str, &str)>),
        author: &UserInfo<'_>,
    ) -> Result<bool, LiveWorldError> {
        // Nobody has no rights, and the API server refuses to be asked about nobody.
        if author.username.is_empty() && author.groups.is_empty() {
            return Ok(false);
        }
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
                    resource: Some(resource.to_owned()),
                    subresource: of.map(|(subresource, _)| subresource.to_owned()),
                    name: of.map(|(_, name)| name.to_owned()),
                    verb: Some(verb.to_owned()),
                    ..ResourceAttributes::default()
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        // The semaphore is never closed.
        let _turn = self.budget.acquire().await;
        let answer = reviews.create(&PostParams::default(), &review).await;
        let fault = |source| LiveWorldError::Read { what: "the author's rights".to_owned(), source: Box::new(source) };
        Ok(answer.map_err(fault)?.status.is_some_and(|status| status.allowed))
    }

    async fn text(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::Error>,
        kind: ObjectKind,
    ) -> Result<Answer, LiveWorldError> {
        // A version that is read as another one has no objects of its own.
        if self.index.read().reads(kind) == Some(false) {
            return Ok(Answer::Absent);
        }
        let _turn = self.budget.acquire().await;
        let read = async { self.client.request_text(request?).await };
        match read.await {
            Ok(text) => Ok(Answer::Text(text)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(Answer::Absent),
            Err(kube::Error::Api(status)) if status.code == 403 => Ok(Answer::Forbidden(status.message.clone())),
            Err(source) => Err(LiveWorldError::Read { what: kind.kind.to_owned(), source: Box::new(source) }),
        }
    }
}

/// Rights and references that protect others: they are not guessed.
const fn must_be_known(need: &Need) -> bool {
    matches!(
        need,
        Need::MayCreatePodGroups { .. } | Need::MayDeletePods { .. } | Need::MayScale(_) | Need::TopologyReferrers(_)
    )
}
