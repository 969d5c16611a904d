//! What rolegate decides, apart from the cluster that it decides about: no client, no clock, no threads, which the dependencies
//! of this crate guarantee.
//!
//! The rooms, in the order in which they may import each other:
//!
//! `api` → `model` → `rules` → `mutate` → `plan` → `fit` → `report`

pub mod api;
#[cfg(test)]
#[path = "../../tests/common/build.rs"]
mod build;
pub mod fit;
pub mod model;
pub mod mutate;
pub mod plan;
pub mod report;
pub mod rules;
