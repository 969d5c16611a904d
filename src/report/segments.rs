//! The segments that are wanted of a group whose workloads are scaled together, as JSON.

use serde::Serialize;

use crate::api::status::Draining;
use crate::model::Group;
use crate::plan::Evaluation;
use crate::plan::elastic::{ElasticPlan, ineffective, segments_line};

/// The segments that are wanted, and how far they are.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Segments {
    wanted: u32,
    /// Whole segments that are released; absent where the wanted ones have no effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    released: Option<u32>,
    /// Segments of which there are any pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    present: Option<u32>,
    /// What is taken away, counted from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    draining: Option<Draining>,
    /// Why less is wanted and nothing is taken away.
    #[serde(skip_serializing_if = "Option::is_none")]
    deferred: Option<&'static str>,
    /// Why the next one is not made, where placement is in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    waits: Option<String>,
    /// Why they have no effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    ineffective: Option<String>,
    /// The same for people.
    sentence: String,
}

impl Segments {
    /// What is seen of a group; `None` of one of which no segments are wanted.
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
