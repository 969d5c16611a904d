//! Metrics of the entries kept in memory. They reveal a map that grows and never shrinks.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::cluster::capacity::SharedCapacity;
use crate::cluster::read::lookup::Lookup;

/// Collector of the number of entries in the maps of the index, of nodes and pods, and of live reads.
#[derive(Clone)]
pub struct Entries {
    /// Holds the index.
    pub lookup: Lookup,
    /// `None` where nothing is placed.
    pub capacity: Option<SharedCapacity>,
}

impl fmt::Debug for Entries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.sizes()).finish()
    }
}

impl Entries {
    fn sizes(&self) -> Vec<(&'static str, usize)> {
        let capacity = self.capacity.as_ref().map(SharedCapacity::sizes);
        let index = self.lookup.index().read();
        let reads = [("live_reads", self.lookup.remembered())];
        index.sizes().chain(capacity.into_iter().flatten()).chain(reads).collect()
    }
}

impl Collector for Entries {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let help = "Entries of what is kept in memory of the cluster, by what they are of";
        let mut family = encoder.encode_descriptor("index_entries", help, None, MetricType::Gauge)?;
        for (of, entries) in self.sizes() {
            let entries = i64::try_from(entries).unwrap_or(i64::MAX);
            ConstGauge::new(entries).encode(family.encode_family(&[("of", of)])?)?;
        }
        Ok(())
    }
}
