//! The nodes that batches lack, of the shapes that can be had.

use std::collections::{BTreeMap, BTreeSet};

use super::cluster::Cluster;
use super::fitted::Fitted;
use crate::api::Node;
use crate::api::pod::PodCondition;
use crate::model::Group;
use crate::model::names::HOSTNAME;
use crate::model::quantity::NoQuantity;
use crate::plan::placement::{Fit, Placement, Question, Room, place};

/// What a batch lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Number of the batch from 0.
    pub index: u32,
    /// The nodes with which it fits; `None` if it fits with no number of them.
    pub nodes: Option<MissingNodes>,
}

/// New nodes for one batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MissingNodes {
    /// The domain to which they belong; `None` for any.
    pub domain: Option<String>,
    /// Number of nodes by the name of their shape.
    pub shapes: BTreeMap<String, u32>,
}

/// Reads a node as a shape: a new node is ready, and takes pods.
///
/// # Errors
///
/// Fails on an amount that is no quantity.
pub fn shape(mut node: Node) -> Result<Node, NoQuantity> {
    node.spec.unschedulable = false;
    node.status.conditions =
        vec![PodCondition { r#type: "Ready".to_owned(), status: "True".to_owned(), ..PodCondition::default() }];
    Room::default().apply_node(&node).map(|_| node)
}

/// Returns what each batch of a coordination that does not fit lacks, if the nodes for the batches before it come. Each shape may
/// be added any number of times, in the domain of its label. Ends at the first batch that fits with no number of nodes.
pub fn missing(group: &Group, fitted: &Fitted, cluster: &Cluster, shapes: &[Node]) -> Vec<Missing> {
    let key = fitted.key.as_deref();
    let Ok((batches, bound)) = cluster.batches(group, &fitted.batching, key, usize::MAX) else { return Vec::new() };
    let mut room = cluster.room_for(group).into_owned();
    let mut used = if fitted.keeps_apart() { bound.domains } else { BTreeMap::new() };
    let mut missing = Vec::new();
    for batch in &batches {
        let question = Question { only: batch.domain.as_deref(), ..Question::new(&batch.pods, key, &used) };
        let placement = match place(&room, &question) {
            Fit::Fits(placement) => placement,
            Fit::Not(_) => {
                let added = with_nodes(&room, &question, shapes);
                let (nodes, found) = added.map(|added| (added.nodes, (added.room, added.placement))).unzip();
                missing.push(Missing { index: batch.index, nodes });
                let Some((larger, placement)) = found else { break };
                room = larger;
                placement
            }
        };
        batch.put(&placement, &mut room, fitted.keeps_apart().then_some(&mut used));
    }
    missing
}

/// A room with new nodes, and the place of the batch in it.
struct Added {
    room: Room,
    nodes: MissingNodes,
    placement: Placement,
}

/// Adds the fewest nodes of one domain with which the batch fits.
fn with_nodes(room: &Room, question: &Question<'_>, shapes: &[Node]) -> Option<Added> {
    let domain_of = |shape: &Node| shape.metadata.labels.get(question.key?).cloned();
    let domains: BTreeSet<_> = shapes.iter().map(domain_of).collect();
    // A node without the label is in no domain.
    let domains = domains.into_iter().filter(|domain| domain.is_some() || question.key.is_none());
    let domains = domains.filter(|domain| question.only.is_none_or(|only| domain.as_deref() == Some(only)));
    let added = domains.filter_map(|domain| {
        let here: Vec<_> = shapes.iter().filter(|shape| domain_of(shape) == domain).collect();
        with_nodes_of(room, &Question { only: domain.as_deref(), ..*question }, &here, domain.clone())
    });
    let rank = |added: &Added| {
        let used = added.nodes.domain.as_ref().and_then(|domain| question.used.get(domain)).copied();
        (added.nodes.shapes.values().sum::<u32>(), used.unwrap_or_default())
    };
    added.min_by_key(rank)
}

/// Adds nodes, each of the first shape that makes room for most pods, until the batch fits, or another one is of no use.
fn with_nodes_of(room: &Room, question: &Question<'_>, shapes: &[&Node], domain: Option<String>) -> Option<Added> {
    let mut nodes = MissingNodes { domain, shapes: BTreeMap::new() };
    let mut room = room.clone();
    let mut fits = count_of(place(&room, question)).err().unwrap_or_default();
    loop {
        let mut best: Option<(u32, &str, Room)> = None;
        for shape in shapes {
            let name = shape.metadata.display_name();
            let mut larger = room.clone();
            add(&mut larger, shape);
            match count_of(place(&larger, question)) {
                Ok(placement) => {
                    *nodes.shapes.entry(name.to_owned()).or_default() += 1;
                    return Some(Added { room: larger, nodes, placement });
                }
                Err(more) if best.as_ref().is_none_or(|(most, ..)| more > *most) => best = Some((more, name, larger)),
                Err(_) => {}
            }
        }
        let (more, name, larger) = best.filter(|(more, ..)| *more > fits)?;
        *nodes.shapes.entry(name.to_owned()).or_default() += 1;
        (fits, room) = (more, larger);
    }
}

/// Returns the placement, or the number of pods that fit.
fn count_of(fit: Fit) -> Result<Placement, u32> {
    match fit {
        Fit::Fits(placement) => Ok(placement),
        Fit::Not(no_fit) => Err(no_fit.best.map_or(0, |best| best.fits)),
    }
}

/// Adds one more node of a shape.
fn add(room: &mut Room, shape: &Node) {
    let mut node = shape.clone();
    let mut names = (1_u32..).map(|number| format!("{} (new {number})", shape.metadata.display_name()));
    let Some(name) = names.find(|name| room.node(name).is_none()) else { return };
    node.metadata.labels.insert(HOSTNAME.to_owned(), name.clone());
    node.metadata.name = Some(name);
    // The quantities of the shape were read before.
    let _ = room.apply_node(&node);
}
