//! What if: how many of a group's batches fit as things are, where, and what keeps the next one out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::needs::Needs;
use super::place::{Fit, NoFit, Placement, Question, place, preempted};
use super::room::Room;

/// A batch whose pods are not all bound.
#[derive(Clone, Debug)]
pub struct BatchPods {
    /// Its number, from 0.
    pub index: u32,
    /// What those pods ask for that are not bound.
    pub pods: Vec<Arc<Needs>>,
    /// The domain in which others of it run.
    pub domain: Option<String>,
}

/// How far the room goes.
#[derive(Clone, Debug, Default)]
pub struct Outlook {
    /// Batches that fit one after the other, with where each goes.
    pub fits: Vec<(u32, Placement)>,
    /// The first that does not.
    pub stop: Option<Stop>,
}

/// A batch that does not fit.
#[derive(Clone, Debug)]
pub struct Stop {
    /// Its number, from 0.
    pub index: u32,
    /// Why.
    pub no_fit: NoFit,
    /// What would make room for it, each by itself.
    pub remedies: Vec<Remedy>,
}

/// Something that would make room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// These nodes are not cordoned any more.
    Uncordon(Vec<Arc<str>>),
    /// Pods of a lower priority than this give way.
    Preempt(i32),
}

/// Places batches one after the other, each beside those before it, until one does not fit. `key` is the node label of which
/// the pods of a batch share one value, `used` how many batches of the group each value has already; where batches need not
/// keep apart, it is `None`.
pub fn outlook(
    room: &Room,
    batches: impl IntoIterator<Item = BatchPods>,
    key: Option<&str>,
    used: Option<BTreeMap<String, u32>>,
) -> Outlook {
    let mut room = room.clone();
    let keeps_apart = used.is_some();
    let mut used = used.unwrap_or_default();
    let mut outlook = Outlook::default();
    for batch in batches {
        let pods = &batch.pods;
        let question = Question { only: batch.domain.as_deref(), ..Question::new(pods, key, &used) };
        let placement = match place(&room, &question) {
            Fit::Fits(placement) => placement,
            Fit::Not(no_fit) => {
                let remedies = remedies(&room, &question);
                outlook.stop = Some(Stop { index: batch.index, no_fit, remedies });
                break;
            }
        };
        for (position, (needs, node)) in pods.iter().zip(&placement.nodes).enumerate() {
            room.apply_pod(&format!("{}/{position}", batch.index), node, needs.load.clone(), &needs.peer);
        }
        if let Some(domain) = placement.domain.as_ref().filter(|_| keeps_apart) {
            *used.entry(domain.clone()).or_default() += 1;
        }
        outlook.fits.push((batch.index, placement));
    }
    outlook
}

fn remedies(room: &Room, question: &Question<'_>) -> Vec<Remedy> {
    let mut remedies = Vec::new();
    if let Fit::Fits(placement) = place(&room.without_cordons(), question) {
        let cordoned = |name: &Arc<str>| room.facts(name).is_some_and(|facts| !facts.schedulable);
        let nodes: BTreeSet<_> = placement.nodes.into_iter().filter(cordoned).collect();
        remedies.push(Remedy::Uncordon(nodes.into_iter().collect()));
    }
    if let Some((priority, room)) = preempted(room, question.pods)
        && place(&room, question).placement().is_some()
    {
        remedies.push(Remedy::Preempt(priority));
    }
    remedies
}
