//! A hostile network: what those can do who reach the webhook's port, and what others notice of it.

mod attackers;
mod deadlines;
mod floods;
mod places;
mod shapes;
mod target;
mod tls_versions;
