//! Outlook: the batches of a group that fit now, their places, and the obstacle for the next one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::needs::Needs;
use super::place::{Fit, NoFit, Placement, Question, place, preempted};
use super::room::Room;

/// A batch whose pods are not all bound.
#[derive(Clone, Debug)]
pub struct BatchPods {
    /// The number of the batch, from 0.
    pub index: u32,
    /// The needs of its unbound pods.
    pub pods: Vec<Arc<Needs>>,
    /// The domain in which other pods of the batch run.
    pub domain: Option<String>,
}

impl BatchPods {
    /// Takes the room of a placement, and counts its domain if batches keep apart.
    pub fn put(&self, placement: &Placement, room: &mut Room, used: Option<&mut BTreeMap<String, u32>>) {
        for (position, (needs, node)) in self.pods.iter().zip(&placement.nodes).enumerate() {
            room.apply_pod(&format!("{}/{position}", self.index), node, needs.load.clone(), &needs.peer);
        }
        if let Some((used, domain)) = used.zip(placement.domain.as_ref()) {
            *used.entry(domain.clone()).or_default() += 1;
        }
    }
}

/// The result of an outlook.
#[derive(Clone, Debug, Default)]
pub struct Outlook {
    /// The batches that fit one after the other, each with its place.
    pub fits: Vec<(u32, Placement)>,
    /// The first batch that does not fit.
    pub stop: Option<Stop>,
}

#[derive(Clone, Debug)]
pub struct Stop {
    /// The number of the batch, from 0.
    pub index: u32,
    pub no_fit: NoFit,
    /// Remedies, each sufficient by itself.
    pub remedies: Vec<Remedy>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Uncordon these nodes.
    Uncordon(Vec<Arc<str>>),
    /// Preempt pods with a lower priority than this.
    Preempt(i32),
}

/// Places batches one after the other, each beside those before it, until one does not fit. The pods of a batch share one value
/// of the node label `key`. `used` holds the number of batches of the group by value; `None` if batches need not keep apart.
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
                outlook.stop = Some(Stop::of(&room, batch.index, &question, no_fit));
                break;
            }
        };
        batch.put(&placement, &mut room, keeps_apart.then_some(&mut used));
        outlook.fits.push((batch.index, placement));
    }
    outlook
}

impl Stop {
    /// Returns why a batch does not fit, with its remedies.
    pub fn of(room: &Room, index: u32, question: &Question<'_>, no_fit: NoFit) -> Self {
        Self { index, no_fit, remedies: remedies(room, question) }
    }
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
