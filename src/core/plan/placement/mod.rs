//! Placement of a batch: from the free room of nodes to a domain, and to a node for each pod if the pods differ, or to a
//! description of what is missing.
//!
//! `needs` needs of a pod, `added` what admission adds to one that does not exist yet, `load` its load on a node, `features` those
//! of kubelets that it needs, `peers` its relations to other pods, `volumes` reach of its claims → `filter` nodes it can go to;
//! `room` free room, event by event; `asked` pods of a question by needs →
//! `apart` constraints between pods → `together` rules that follow from these → `pack` pods onto nodes → `supply` what nodes
//! have for the pods, devices included; `sharing` claims that pods share → `place` the domain that holds a batch → {`outlook`
//! how many batches fit one after the other; `loose` pods that are bound to a domain alone → `capacity` room beside placed pods,
//! `line` order of waiting batches → `placer` placement of a released batch; `shares` domains within domains}.
//!
//! Modelled are the filters of kube-scheduler on resources of any name, the number of pods, host ports, taints, node selectors,
//! required node affinity, declared features, required anti-affinity, spread and devices. [`NotModelled`] lists the rest.

mod added;
mod apart;
mod asked;
pub mod capacity;
mod features;
pub mod filter;
pub mod line;
mod load;
pub mod loose;
pub mod needs;
pub mod outlook;
pub mod pack;
pub mod peers;
pub mod place;
pub mod placer;
pub mod reach;
pub mod room;
pub mod shares;
mod sharing;
mod supply;
mod together;
pub mod volumes;

pub use added::{Added, RuntimeClasses};
pub use capacity::Capacity;
pub use filter::DomainLabel;
pub use line::Line;
pub use needs::{Amounts, Needs, NotModelled, total};
pub use outlook::{BatchPods, Outlook, Remedy, Stop, outlook};
pub use place::{Fit, Miss, NoFit, Placement, Question, not_modelled, nowhere, place, place_some};
pub use placer::{Answer, Placer, Request, Sight, Within, assume_sent, unmade};
pub use room::Room;
pub use shares::{NotShared, Share, Shared, place_shared};
pub use supply::Counted;
pub use volumes::{VolumeSight, Volumes, claims_of};

#[cfg(test)]
mod devices_tests;
#[cfg(test)]
mod placement_tests;
