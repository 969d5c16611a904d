//! Live reads of what a rule looks up outside the judged object. A rule denies only what a live read proves wrong.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::Api;
use kube::api::{ListParams, PostParams};
use serde::Deserialize;
use tokio::time::{Instant, timeout_at};

use super::answers::{self, FailedReads, NeedAnswers};
use super::reads::{Place, PlannedRead, Way, name_in, reads};
use super::{Looked, Lookup, LookupError};
use crate::api::pod::POD;
use crate::api::pod_group::POD_GROUP;
use crate::api::review::UserInfo;
use crate::api::{Object, ObjectKind};
use crate::cluster::failure::unless;
use crate::cluster::objects::{self, RequestResult};
use crate::cluster::watch::sources::Named;
use crate::model::object_name::subdomain_fault;
use crate::model::{AwaitedKind, GroupKey, names};
use crate::rules::question::Question;
use crate::rules::{DecodeError, Need, World, needs};

/// Pods in one page of a list, and the largest number of pages read.
const PAGE: u32 = 500;
const PAGES: usize = 20;

/// Discovery document of a version of an API group.
#[derive(Deserialize)]
struct ResourceList {
    #[serde(default)]
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
struct Resource {
    name: String,
    #[serde(default)]
    namespaced: bool,
}

impl Lookup {
    /// Returns the world that the rules of an object need, including the rights of its author. All reads end by `deadline`.
    /// Fails when the API server does not answer what must not be guessed: the author's rights, and who refers to a topology.
    /// Any other failed or late read leaves its need unknown, and the rules that look at it do not judge.
    pub async fn world(
        &self,
        question: Question<'_>,
        author: &UserInfo<'_>,
        deadline: Instant,
    ) -> Looked<Result<World, DecodeError>> {
        let Question { kind, operation, object, old } = question;
        let mut world = World::default();
        world.options = self.options;
        if kind == POD_GROUP || kind == POD {
            world.kai_crd = self.index.read().defined_dialect();
        }
        // A need that was tried and stays unknown is not tried again.
        let (mut tried, mut unread) = (BTreeSet::new(), FailedReads::default());
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
                let late = |_| Err(LookupError::Timeout(read.to_string()));
                timeout_at(deadline, self.meet(read, author)).await.unwrap_or_else(late)
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

    async fn meet(&self, read: &PlannedRead, author: &UserInfo<'_>) -> Looked<NeedAnswers> {
        match &read.way {
            Way::One(place) => self.one(place, &read.needs).await,
            Way::Many(place) => self.many(place, &read.needs).await,
            Way::All(place) => self.all(place, &read.needs).await,
            Way::Pods(group) => self.pods(group, &read.needs).await,
            Way::Served(kind) => self.discovered(*kind, &read.needs, |_| true).await,
            Way::Scope(kind) => match self.ready_kind(kind) {
                Some(known) => self.discovered(known, &read.needs, |resource| !resource.namespaced).await,
                None => Ok(NeedAnswers::default()),
            },
            Way::Rights => self.rights(&read.needs, author).await,
            Way::Not => Err(LookupError::TooMany(read.to_string())),
        }
    }

    /// Reads the first object of a name among the kinds. A kind that is not served has no objects.
    async fn one(&self, place: &Place, needs: &[Need]) -> Looked<NeedAnswers> {
        let mut found = NeedAnswers::default();
        for (need, name) in needs.iter().filter_map(|need| Some((need, name_in(need)?))) {
            // Skip names that no object can have.
            let possible = place.kinds.iter().filter(|_| subdomain_fault(name).is_none());
            let get = |kind: &ObjectKind| self.text(objects::get(*kind, place.namespace.as_deref(), name), *kind);
            let mut first = None;
            for (kind, answer) in place.kinds.iter().zip(join_all(possible.map(get)).await) {
                let object = found.allowed(answer)?;
                first = first.or(object.map(|object| (*kind, object)));
            }
            found.answer(need, first.is_some());
            found.objects.extend(first);
        }
        Ok(found)
    }

    /// Reads the objects of many names from a list of each kind.
    async fn many(&self, place: &Place, needs: &[Need]) -> Looked<NeedAnswers> {
        let mut found = NeedAnswers::default();
        let mut wanted: BTreeMap<_, _> = needs.iter().filter_map(|need| Some((name_in(need)?, need))).collect();
        for (kind, item) in self.list(place, &mut found).await? {
            let named = serde_json::from_str::<Named>(&item).ok();
            if let Some(need) = named.and_then(|named| wanted.remove(named.meta().display_name())) {
                found.objects.push((kind, item));
                found.answer(need, true);
            }
        }
        wanted.into_values().for_each(|need| found.answer(need, false));
        Ok(found)
    }

    /// Reads every object of the kinds. Even an empty list answers the needs.
    async fn all(&self, place: &Place, needs: &[Need]) -> Looked<NeedAnswers> {
        let mut found = NeedAnswers::default();
        let objects = self.list(place, &mut found).await?;
        if found.forbidden.is_none() {
            found.objects = objects;
        }
        needs.iter().for_each(|need| found.answer(need, true));
        Ok(found)
    }

    async fn list(&self, place: &Place, found: &mut NeedAnswers) -> Looked<Vec<(ObjectKind, String)>> {
        let list = |kind: &ObjectKind| {
            self.text(objects::list(*kind, place.namespace.as_deref(), &ListParams::default()), *kind)
        };
        let mut objects = Vec::new();
        for (kind, answer) in place.kinds.iter().zip(join_all(place.kinds.iter().map(list)).await) {
            let list = found.allowed(answer)?.unwrap_or_default();
            objects.extend(answers::list(&list).items.into_iter().map(|item| (*kind, item.get().to_owned())));
        }
        Ok(objects)
    }

    /// Reads which roles of a group have pods, under any label scheme.
    async fn pods(&self, group: &GroupKey, needs: &[Need]) -> Looked<NeedAnswers> {
        let mut found = NeedAnswers::default();
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
                    return Err(LookupError::TooMany(format!("the pods of group {group}")));
                }
                let request = objects::list_metadata(POD, Some(&group.namespace), &params);
                let Some(list) = found.allowed(self.text(request, POD).await)? else { break };
                let list = answers::list(&list);
                for item in list.items {
                    let named = serde_json::from_str::<Named>(item.get()).ok();
                    if let Some(need) = named.and_then(|named| wanted.remove(named.meta().label(role_label)?)) {
                        found.answer(need, true);
                    }
                }
                if list.metadata.next.is_empty() {
                    break;
                }
                params.continue_token = Some(list.metadata.next);
            }
            if found.forbidden.is_some() {
                return Ok(found);
            }
        }
        wanted.into_values().for_each(|need| found.answer(need, false));
        Ok(found)
    }

    /// Reads from discovery whether such a kind is served: its definition may exist but serve other versions.
    async fn discovered(&self, kind: ObjectKind, needs: &[Need], is: fn(&Resource) -> bool) -> Looked<NeedAnswers> {
        let mut found = NeedAnswers::default();
        let list = found.allowed(self.text(objects::versions(kind), kind).await)?;
        let list = list.map(|list| serde_json::from_str::<ResourceList>(&list));
        // An unreadable document answers nothing.
        let is_served =
            |list: ResourceList| list.resources.iter().any(|resource| resource.name == kind.plural && is(resource));
        if let Ok(there) = list.map_or(Ok(false), |list| list.map(is_served)) {
            needs.iter().for_each(|need| found.answer(need, there));
        }
        Ok(found)
    }

    /// Asks for the rights of the author.
    async fn rights(&self, needs: &[Need], author: &UserInfo<'_>) -> Looked<NeedAnswers> {
        let mut found = NeedAnswers::default();
        for need in needs {
            let right = match need {
                Need::MayCreate { namespace, kind } => Some(right(namespace, "create", *kind)),
                // `kubectl scale` sends a merge patch of the scale.
                Need::MayScale(key) => Some(ResourceAttributes {
                    subresource: Some("scale".to_owned()),
                    name: Some(key.name.clone()),
                    ..right(&key.namespace, "patch", key.kind.object_kind())
                }),
                Need::MayDeletePods { namespace } => Some(right(namespace, "delete", POD)),
                Need::MayGet { namespace, kind } => self.ready_kind(kind).map(|known| right(namespace, "get", known)),
                _ => continue,
            };
            let may = match right {
                Some(right) => self.may(right, author).await?,
                None => false,
            };
            found.answer(need, may);
        }
        Ok(found)
    }

    /// Returns a kind whose objects groups may wait for, as it is watched.
    fn ready_kind(&self, kind: &AwaitedKind) -> Option<ObjectKind> {
        self.options.ready_kinds.iter().find(|known| kind.is(**known)).copied()
    }

    /// Reports whether the author has a right.
    async fn may(&self, right: ResourceAttributes, author: &UserInfo<'_>) -> Looked<bool> {
        // An empty user has no rights, and the API server refuses a review without a user.
        if author.username.is_empty() && author.groups.is_empty() {
            return Ok(false);
        }
        let texts = |all: &[Cow<'_, str>]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
        let extra = author.extra.iter().map(|(key, values)| (key.to_string(), texts(values)));
        let spec = SubjectAccessReviewSpec {
            user: Some(author.username.to_string()),
            uid: (!author.uid.is_empty()).then(|| author.uid.to_string()),
            groups: Some(texts(&author.groups)),
            extra: Some(extra.collect()),
            resource_attributes: Some(right),
            ..SubjectAccessReviewSpec::default()
        };
        let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        // The semaphore is never closed.
        let _turn = self.for_rules.acquire().await;
        let answer = reviews.create(&PostParams::default(), &review).await;
        let answer = answer.map_err(|source| LookupError::read("the author's rights", source))?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }

    /// Reads an answer as text; `None` where the object or its kind does not exist.
    async fn text(&self, request: RequestResult, kind: ObjectKind) -> Looked<Option<String>> {
        // A version that is read as another one has no objects of its own.
        if !self.reads(kind) {
            return Ok(None);
        }
        let _turn = self.for_rules.acquire().await;
        let read = async { self.client.request_text(request?).await };
        unless(&[404], read.await).map_err(|source| LookupError::read(kind.kind, source))
    }
}

/// Returns the right to use a verb on the objects of a kind in a namespace.
fn right(namespace: &str, verb: &str, kind: ObjectKind) -> ResourceAttributes {
    ResourceAttributes {
        namespace: Some(namespace.to_owned()),
        group: Some(kind.group.to_owned()),
        resource: Some(kind.plural.to_owned()),
        verb: Some(verb.to_owned()),
        ..ResourceAttributes::default()
    }
}

/// Reports whether a need must not be guessed: rights and references that protect others.
const fn must_be_known(need: &Need) -> bool {
    matches!(
        need,
        Need::MayCreate { .. }
            | Need::MayDeletePods { .. }
            | Need::MayGet { .. }
            | Need::MayScale(_)
            | Need::TopologyReferrers(_)
    )
}
