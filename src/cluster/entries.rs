//! Metrics of the entries kept in memory. They reveal a map that grows and never shrinks.

use prometheus_client::registry::Registry;

use crate::cluster::capacity::SharedCapacity;
use crate::cluster::metrics::Gauges;
use crate::cluster::read::lookup::Lookup;

/// Registers the number of entries in the maps of the index, of live reads and, where something is placed, of nodes and pods.
pub fn show(registry: &mut Registry, lookup: Lookup, capacity: Option<SharedCapacity>) {
    let read = move || {
        let capacity = capacity.as_ref().map(SharedCapacity::sizes);
        let index = lookup.index().read();
        let all = index.sizes().chain(capacity.into_iter().flatten()).chain([("live_reads", lookup.remembered())]);
        all.map(|(of, entries)| (of, i64::try_from(entries).unwrap_or(i64::MAX))).collect()
    };
    let help = "Entries of what is kept in memory of the cluster, by what they are of";
    registry.register_collector(Box::new(Gauges { name: "index_entries", help, label: "of", read }));
}
