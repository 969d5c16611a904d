//! Applies lookup rules to stored groups: the objects that they look up may have changed since admission.

use std::fmt::Debug;
use std::sync::Arc;

use kube::api::ListParams;
use serde::de::DeserializeOwned;

use super::facts::{Read, Warned};
use super::reads::Reader;
use crate::api::autoscaler::{AUTOSCALER, Autoscaler};
use crate::api::service::{SERVICE, Service};
use crate::api::{Object, ObjectKind};
use crate::cluster::objects::api;
use crate::model::Group;
use crate::rules::{Need, Options, World, judge_group, needs_of_group};

impl Reader<'_> {
    /// Returns autoscalers that conflict with others of a group that is scaled by segments.
    pub(super) async fn rivals(&self, groups: &[Arc<Group>]) -> Read<Vec<Warned>> {
        let take = |world: &mut World, found: Autoscaler| world.add_autoscaler(found);
        self.warned("segments-autoscaler", AUTOSCALER, take, groups).await
    }

    /// Returns addresses of pods of these groups that do not resolve.
    pub(super) async fn addresses(&self, groups: &[Arc<Group>]) -> Read<Vec<Warned>> {
        let take = |world: &mut World, found: Service| world.add_service(found);
        self.warned("discovery-service", SERVICE, take, groups).await
    }

    /// Returns the warnings of one rule for groups, after listing the objects that it looks up.
    async fn warned<K>(
        &self,
        rule: &str,
        kind: ObjectKind,
        take: impl Fn(&mut World, K),
        groups: &[Arc<Group>],
    ) -> Read<Vec<Warned>>
    where
        K: Object + Clone + Debug + Default + DeserializeOwned + Send + Sync + 'static,
    {
        // The list is requested even without groups: a missing right must show before the first group needs it.
        let found = api::<K>(&self.connection.client, kind, None).list(&ListParams::default()).await;
        if groups.is_empty() {
            return Ok(Vec::new());
        }
        let mut world = World::of_manifests(Options::default());
        found.map_err(|error| self.why(&error))?.items.into_iter().for_each(|found| take(&mut world, found));
        // The list is complete: an object that is not in it is missing.
        let needs: Vec<_> = groups.iter().flat_map(|group| needs_of_group(group)).collect();
        for need in needs.into_iter().filter(|need| matches!(need, Need::Service(_))) {
            if !world.is_answered(&need) {
                world.answer(need, false);
            }
        }
        let of_group = |group: &Arc<Group>| {
            let warnings = judge_group(group, None, &world).warnings.into_iter().filter(|warning| warning.rule == rule);
            let key = group.key.to_string();
            warnings.map(move |warning| Warned { group: key.clone(), why: warning.detail }).collect::<Vec<_>>()
        };
        Ok(groups.iter().flat_map(of_group).collect())
    }
}
