//! rolegate holds pods at admission and releases them in a loop.
//!
//! The rooms, in the order in which they may import each other; all but the last four are `rolegate_core`:
//!
//! `api` → `model` → `rules` → `mutate` → `plan` → `fit` → `report` → `tls` → `cluster` → `server` → `cli`
//!
//! `src/README.md` describes the flows and the invariants, and has a glossary.

#[cfg(test)]
#[path = "../tests/common/build.rs"]
mod build;
pub mod cli;
pub mod cluster;
pub mod server;
pub mod tls;

pub use rolegate_core::{api, fit, model, mutate, plan, report, rules};
