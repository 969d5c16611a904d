//! Karpenter, which makes the nodes that rolegate asks for by CapacityBuffers, from none to as many as whole segments need.

mod figures;
mod leaders;
mod story;
mod world;

use crate::program::Neighbour;

pub const KARPENTER: Neighbour = Neighbour { name: "karpenter", module: "sigs.k8s.io/karpenter" };
