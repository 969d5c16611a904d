use std::time::Duration;

/// Time since the loop was started.
pub type Uptime = Duration;
