//! rolegate: hold pods at admission, release them by a loop.
//!
//! The rooms, in the order in which they may import each other:
//!
//! `api` → `model` → {`rules`, `mutate`, `plan`} → {`cluster`, `server`} → `cli`

pub mod cluster;
pub mod server;
