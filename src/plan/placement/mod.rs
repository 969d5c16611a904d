//! Where a batch fits: from the room that nodes have left to a domain, and where pods differ a node for each, or what is
//! missing.
//!
//! `once` what many have in common; `needs` what a pod asks for, `load` what it takes of its node, `peers` from which others it keeps away, `volumes` where its claims can be reached from → `filter` which
//! nodes it can go to; `room` what nodes have left, event by event; `asked` the pods of a question by what they ask for →
//! `apart` what these, and pods that are there, have to do with one another → `together` the rules that come of it → `pack`
//! pods onto nodes → `place` the domain that holds a batch → {`outlook` how many batches fit one after the other; `capacity`
//! the room beside what pods are to be bound that were placed, `line` whose turn it is → `placer` a batch that may go;
//! `shares` domains within domains}.
//!
//! What is modelled is what kube-scheduler filters by: resources of any name, the number of pods, host ports, taints, node
//! selectors, required node affinity, required anti-affinity and spread. What is not is listed by [`NotModelled`].

mod apart;
mod asked;
pub mod capacity;
pub mod filter;
pub mod line;
mod load;
pub mod needs;
mod once;
pub mod outlook;
pub mod pack;
pub mod peers;
pub mod place;
pub mod placer;
pub mod reach;
pub mod room;
pub mod shares;
mod together;
pub mod volumes;

pub use capacity::Capacity;
pub use line::Line;
pub use needs::{Amounts, Needs, NotModelled, total};
pub use outlook::{BatchPods, Outlook, Remedy, Stop, outlook};
pub use place::{Fit, Miss, NoFit, Placement, Question, not_modelled, place};
pub use placer::{Answer, Placer, Request, Sight, unmade};
pub use room::Room;
pub use shares::{NotShared, Share, Shared, place_shared};
pub use volumes::{VolumeSight, Volumes, claims_of};

#[cfg(test)]
mod placement_tests;
