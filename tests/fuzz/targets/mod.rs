//! What is fuzzed: for each thing that reads what others have written, a function over bytes. `make fuzz` feeds them by
//! libFuzzer; `tests/properties` replays what is kept. They fail by panic.

mod api_server;
mod documents;
mod mutate;
mod names;
mod placement;
mod plan;
mod review;
mod scenario;
mod secrets;
mod status;

/// Something that is fuzzed.
pub struct Target {
    /// Its name: that of its folders under `corpus` and `regressions`.
    pub name: &'static str,
    /// Tries one input.
    pub run: fn(&[u8]),
    /// Inputs to begin with, made of what other tests use.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target { name: "review", run: review::run, seeds: review::seeds },
    Target { name: "mutate", run: mutate::run, seeds: scenario::seeds },
    Target { name: "names", run: names::run, seeds: names::seeds },
    Target { name: "documents", run: documents::run, seeds: documents::seeds },
    Target { name: "plan", run: plan::run, seeds: scenario::seeds },
    Target { name: "status", run: status::run, seeds: status::seeds },
    Target { name: "secrets", run: secrets::run, seeds: secrets::seeds },
    Target { name: "placement", run: placement::run, seeds: placement::seeds },
];
