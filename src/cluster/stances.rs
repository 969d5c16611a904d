//! Metrics of how namespaces are served.

use std::collections::BTreeMap;

use prometheus_client::registry::Registry;

use crate::cluster::index::SharedIndex;
use crate::cluster::metrics::Gauges;
use crate::model::{Mode, Out, Stance};

/// Word for a namespace whose label names an unknown mode.
const UNKNOWN: &str = "unknown-mode";
const OPTED_OUT: &str = "opted-out";
const NOT_SELECTED: &str = "not-selected";
const OF_OTHER: &str = "of-other-rolegate";

fn word(stance: Stance) -> &'static str {
    match stance.out {
        Some(Out::OptedOut) => OPTED_OUT,
        Some(Out::NotSelected) => NOT_SELECTED,
        Some(Out::OfOther) => OF_OTHER,
        None => stance.mode.as_str(),
    }
}

/// Registers the mode of namespaces without a mode label, and how many namespaces are served how.
pub fn show(registry: &mut Registry, index: SharedIndex, mode: Mode) {
    let read = move || Mode::ALL.iter().map(|one| (one.as_str(), i64::from(*one == mode))).collect();
    let help = "1 for the mode of --mode, in which namespaces are served that name none";
    registry.register_collector(Box::new(Gauges { name: "mode", help, label: "mode", read }));
    let read = move || {
        // Initialized, so that an alert sees the first one.
        let words = Mode::ALL.iter().map(|mode| mode.as_str()).chain([OPTED_OUT, NOT_SELECTED, OF_OTHER, UNKNOWN]);
        let mut counts: BTreeMap<_, i64> = words.map(|word| (word, 0)).collect();
        for (_, stance) in index.read().stances() {
            for word in [word(stance)].into_iter().chain(stance.has_unknown_mode.then_some(UNKNOWN)) {
                *counts.entry(word).or_default() += 1;
            }
        }
        counts.into_iter().collect()
    };
    let help = "Namespaces by how they are served; unknown-mode counts those again whose label names no mode";
    registry.register_collector(Box::new(Gauges { name: "namespaces", help, label: "served", read }));
}
