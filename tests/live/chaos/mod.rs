//! rolegate under attack, beside faults and in churn, with what was seen written down in `README.md`.
//!
//! The short stories run in `make test`; those that take minutes are ignored there: `make chaos` and `make soak` run them, and
//! with `UPDATE_DOCS=1` write their figures into the page.

mod faults;
mod fuzz;
mod network;
mod rolling;
mod soak;
