//! What rules warn of in groups that are stored: what they look up may have been made, changed or deleted since.

use std::fmt::Debug;
use std::sync::Arc;

use kube::api::ListParams;
use serde::de::DeserializeOwned;

use super::facts::{Read, Warned};
use super::reads::Reader;
use crate::api::autoscaler::{AUTOSCALER, Autoscaler};
use crate::api::service::{SERVICE, Service};
use crate::api::{Object, ObjectKind};
use crate::cluster::watch::watched::api;
use crate::model::Group;
use crate::rules::{Need, Options, World, judge_group, needs_of_group};

impl Reader<'_> {
    /// Autoscalers in each other's way, of groups that are scaled by segments.
    pub(super) async fn rivals(&self, groups: &[Arc<Group>]) -> Read<Vec<Warned>> {
        let take = |world: &mut World, found: Autoscaler| world.add_autoscaler(found);
        self.warned("segments-autoscaler", AUTOSCALER, take, groups).await
    }

    /// Addresses that pods of these groups are given and that do not resolve.
    pub(super) async fn addresses(&self, groups: &[Arc<Group>]) -> Read<Vec<Warned>> {
        let take = |world: &mut World, found: Service| world.add_service(found);
        self.warned("discovery-service", SERVICE, take, groups).await
    }

    /// What a rule that looks up objects of a kind says of groups.
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
        // Asked in any case: a right that is missing is not to show when the first group needs it.
        let found = api::<K>(&self.connection.client, kind, None).list(&ListParams::default()).await;
        if groups.is_empty() {
            return Ok(Vec::new());
        }
        let mut world = World::of_manifests(Options::default());
        found.map_err(|error| self.why(&error))?.items.into_iter().for_each(|found| take(&mut world, found.object));
        // All there are of the kind are in the list.
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
