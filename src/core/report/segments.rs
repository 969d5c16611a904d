//! The wanted segments of a group whose workloads are scaled together, as JSON.

use serde::Serialize;

use crate::api::status::Draining;
use crate::model::Group;
use crate::plan::Evaluation;
use crate::plan::elastic::{ElasticPlan, ineffective, segments_line};

/// The wanted segments and their progress.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Segments {
    wanted: u32,
    /// Number of whole released segments; absent where the wanted ones have no effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    released: Option<u32>,
    /// Number of segments with any pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    present: Option<u32>,
    /// The segment that is drained, counted from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    draining: Option<Draining>,
    /// Why nothing is drained though less is wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    deferred: Option<&'static str>,
    /// Why the next segment is not made, where placement is in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    waits: Option<String>,
    /// Why the wanted segments have no effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    ineffective: Option<String>,
    /// Summary for people.
    pub(super) sentence: String,
}

impl Segments {
    /// Returns the segments of a group; `None` where none are wanted.
    pub fn of(group: &Group, seen: &Evaluation) -> Option<Self> {
        let elastic = group.elastic.as_ref()?;
        let ineffective = ineffective(&elastic.standing).map(|(_, told)| told);
        let plan: Option<&ElasticPlan> = seen.decision.elastic.as_ref().filter(|_| ineffective.is_none());
        Some(Self {
            wanted: elastic.wanted(),
            released: plan.map(|plan| plan.released),
            present: plan.map(|plan| plan.present),
            draining: plan.and_then(|plan| plan.draining),
            deferred: plan.and_then(|plan| plan.deferred).map(crate::plan::elastic::Deferral::as_str),
            waits: plan.and_then(|plan| plan.room_wait.as_ref()).map(|wait| wait.message.clone()),
            sentence: segments_line(elastic, plan).unwrap_or_default(),
            ineffective,
        })
    }
}
