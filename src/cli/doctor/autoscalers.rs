//! Autoscalers that are in each other's way.

use std::sync::Arc;

use kube::api::ListParams;

use super::facts::{Read, Rivals};
use super::reads::Reader;
use crate::api::autoscaler::{AUTOSCALER, Autoscaler};
use crate::cluster::watch::watched::api;
use crate::model::Group;
use crate::rules::{Options, World, judge_group};

/// The rule that finds them.
const RULE: &str = "segments-autoscaler";

impl Reader<'_> {
    /// What the rule says of these groups, which are scaled by segments.
    pub(super) async fn rivals(&self, groups: &[Arc<Group>]) -> Read<Vec<Rivals>> {
        let autoscalers = api::<Autoscaler>(&self.connection.client, AUTOSCALER, None);
        // Asked in any case: a right that is missing is not to show when the first group is scaled.
        let found = autoscalers.list(&ListParams::default()).await;
        if groups.is_empty() {
            return Ok(Vec::new());
        }
        let found = found.map_err(|error| self.why(&error))?;
        let mut world = World::of_manifests(Options::default());
        found.items.into_iter().for_each(|autoscaler| world.add_autoscaler(autoscaler.object));
        let of_group = |group: &Arc<Group>| {
            let warnings = judge_group(group, None, &world).warnings.into_iter();
            let key = group.key.to_string();
            let found = warnings.filter(|warning| warning.rule == RULE);
            found.map(move |warning| Rivals { group: key.clone(), why: warning.detail }).collect::<Vec<_>>()
        };
        Ok(groups.iter().flat_map(of_group).collect())
    }
}
