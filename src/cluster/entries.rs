//! How much is kept in memory, as metrics: what grows and does not shrink again is found by them.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::cluster::capacity::SharedCapacity;
use crate::cluster::read::lookup::Lookup;

/// Shows how many entries the maps of the index, of nodes and pods, and of live reads have when they are asked for.
#[derive(Clone)]
pub struct Entries {
    /// With the index.
    pub lookup: Lookup,
    /// Nodes and pods; `None` where nothing is placed.
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
