//! The services of `examples/services`, applied as they are and brought up on fake nodes.

mod budgets;
mod services;
mod support;
