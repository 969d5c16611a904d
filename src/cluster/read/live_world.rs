//! Live reads of what a rule looks up outside the judged object. A rule denies only what a live read proves wrong.

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

/// Lifetime of the cached definition of PodGroups.
const DIALECT_FOR: Duration = Duration::from_secs(30);

/// A failed read. The request must not be answered from ignorance.
#[derive(Debug, thiserror::Error)]
pub enum LiveWorldError {
    /// The API server failed.
    #[error("reading {what}: {source}")]
    Read {
        /// Kind or subject of the read.
        what: String,
        source: Box<kube::Error>,
    },
    #[error("reading {0}: no answer in time")]
    Timeout(String),
    /// Not read.
    #[error("reading {0}: there are too many")]
    TooMany(String),
}

/// Concurrent requests of reviews. The loop has its own budget.
const AT_A_TIME: usize = 16;
/// Pods in one page of a list, and the largest number of pages read.
const PAGE: u32 = 500;
const PAGES: usize = 20;

/// Reader of what rules look up. Clones share one budget of requests.
#[derive(Clone)]
pub struct LiveWorld {
    client: Client,
    /// Tells in which version a kind is read.
    index: SharedIndex,
    options: Options,
    definition: Arc<Mutex<Option<Definition>>>,
    budget: Arc<Semaphore>,
}

/// The time of the read, and the definition as JSON; `None` where it does not exist.
type Definition = (Instant, Option<Arc<str>>);

/// Discovery document of a version of an API group.
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
    /// Returns a reader that reads each kind in the version that this index reads.
    pub fn new(client: Client, index: SharedIndex, options: Options) -> Self {
        Self { client, index, options, definition: Arc::default(), budget: Arc::new(Semaphore::new(AT_A_TIME)) }
    }

    /// Returns the world that the rules of an object need, including the rights of its author. All reads end by `deadline`.
    ///
    /// # Errors
    ///
    /// When the API server fails to answer what must not be guessed: the author's rights, and who refers to a topology. Any
    /// other failed or late read leaves its need unknown, and the rules that look at it do not judge.
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

    /// Reads the first object of a name among the kinds. A kind that is not served has no objects.
    async fn one(&self, place: &Place, needs: &[Need]) -> Result<Found, LiveWorldError> {
        let mut found = Found::default();
        for (need, name) in needs.iter().filter_map(|need| Some((need, name_in(need)?))) {
            // Skip names that no object can have.
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

    /// Reads the objects of many names from a list of each kind.
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

    /// Reads every object of the kinds. Even an empty list answers the needs.
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

    /// Reads which roles of a group have pods, under any label scheme.
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

    /// Reads from discovery whether a kind is served: its definition may exist but serve other versions.
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

    /// Reads the definition of PodGroups, which tells the installed KAI release.
    async fn read_definition(&self, world: &mut World, deadline: Instant) {
        let known = self.definition.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let definition = match known {
            Some((at, definition)) if at.elapsed() < DIALECT_FOR => definition,
            _ => {
                let request = objects::get(CUSTOM_RESOURCE_DEFINITION, None, &POD_GROUP.crd_name());
                // The other half of the time is for reads that are mandatory.
                let time = deadline.saturating_duration_since(Instant::now()) / 2;
                let read = tokio::time::timeout(time, self.text(request, CUSTOM_RESOURCE_DEFINITION));
                let read = match read.await {
                    Ok(Ok(Answer::Text(definition))) => Some(Arc::from(definition)),
                    Ok(Ok(Answer::Absent | Answer::Forbidden(_))) => None,
                    // This review judges the object by its own fields; the next one reads again.
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

    /// Asks for the rights of the author.
    async fn rights(&self, needs: &[Need], author: &UserInfo<'_>) -> Result<Found, LiveWorldError> {
        let mut found = Found::default();
        for need in needs {
            let (namespace, asked) = match need {
                Need::MayCreatePodGroups { namespace, api_group } => {
                    (namespace, ("create", *api_group, "podgroups", None))
                }
                // `kubectl scale` sends a merge patch of the scale.
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

    /// Reports whether the author may use a verb on a resource of an API group, or on a subresource of one object.
    async fn may(
        &self,
        namespace: &str,
        (verb, api_group, resource, of): (&str, &str, &str, Option<(&str, &str)>),
        author: &UserInfo<'_>,
    ) -> Result<bool, LiveWorldError> {
        // An empty user has no rights, and the API server refuses a review without a user.
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

/// Reports whether a need must not be guessed: rights and references that protect others.
const fn must_be_known(need: &Need) -> bool {
    matches!(
        need,
        Need::MayCreatePodGroups { .. } | Need::MayDeletePods { .. } | Need::MayScale(_) | Need::TopologyReferrers(_)
    )
}
