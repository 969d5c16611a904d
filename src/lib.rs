//! rolegate holds pods at admission and releases them in a loop.
//!
//! The rooms, in the order in which they may import each other:
//!
//! `api` → `model` → `rules` → `mutate` → `plan` → `fit` → `report` → `tls` → `cluster` → `server` → `cli`
//!
//! `docs/architecture.md` describes the flows and the invariants, and has a glossary.

pub mod api;
pub mod cli;
pub mod cluster;
pub mod fit;
pub mod model;
pub mod mutate;
pub mod plan;
pub mod report;
pub mod rules;
pub mod server;
pub mod tls;
