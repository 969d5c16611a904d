//! rolegate: hold pods at admission, release them by a loop.
//!
//! The rooms, in the order in which they may import each other:
//!
//! `api` → `model` → `rules` → `mutate` → `plan` → `fit` → `report` → `cluster` → `server` → `cli`
//!
//! `docs/architecture.md` has the flows, what always holds, and a glossary.

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
