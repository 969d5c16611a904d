//! Metrics that are read when they are asked for: how namespaces are served, and the entries kept in memory, which reveal a map that
//! grows and never shrinks.

use std::collections::BTreeMap;

use prometheus_client::registry::Registry;

use crate::cluster::capacity::SharedCapacity;
use crate::cluster::index::SharedIndex;
use crate::cluster::metrics::Gauges;
use crate::cluster::read::lookup::Lookup;
use crate::model::{Mode, Out, Stance};

/// Registers the number of entries in the maps of the index, of live reads and, where something is placed, of nodes and pods.
pub fn show_entries(registry: &mut Registry, lookup: Lookup, capacity: Option<SharedCapacity>) {
    let read = move || {
        let capacity = capacity.as_ref().map(SharedCapacity::sizes);
        let index = lookup.index().read();
        let all = index.sizes().chain(capacity.into_iter().flatten()).chain([("live_reads", lookup.remembered())]);
        all.map(|(of, entries)| (of, i64::try_from(entries).unwrap_or(i64::MAX))).collect()
    };
    let help = "Entries of what is kept in memory of the cluster, by what they are of";
    registry.register_collector(Box::new(Gauges { name: "index_entries", help, label: "of", read }));
}

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
pub fn show_stances(registry: &mut Registry, index: SharedIndex, mode: Mode) {
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
