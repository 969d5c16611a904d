//! Devices of DRA: the devices that nodes reach, the claims that ask for some, and their allocation as kube-scheduler does it.
//!
//! `selector` conditions in CEL; `asks` claims and classes as requests → `pools` devices by pool and node → `known` all of these
//! with the allocations, event by event → `allocate` the allocation of claims on one node, first fit → `offer` the pods of a
//! question that a node takes by its devices, in any order.
//!
//! Modelled are `exactly` and `firstAvailable`, `ExactCount` and `All`, selectors, `matchAttribute`, taints, devices of one
//! node and of several, and extended resources of classes. Partitionable devices, consumable capacity, binding conditions,
//! admin access and `distinctAttribute` are not.

pub mod allocate;
pub mod asks;
pub mod known;
pub mod offer;
pub mod pools;
pub mod selector;

pub use asks::{ClaimAsk, ClaimRef, claim_refs};
pub use known::{DeviceObject, DeviceSight, Devices, ObjectSort, is_extended};
pub use offer::{Ask, Demand, Found, NodeView, Offer};
