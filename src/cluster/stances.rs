//! Metrics of how namespaces are served.

use std::collections::BTreeMap;
use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::cluster::index::SharedIndex;
use crate::model::{Mode, Out, Stance};

#[derive(Clone, Debug)]
pub struct Stances {
    pub index: SharedIndex,
    /// Mode of namespaces without a mode label.
    pub mode: Mode,
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

impl Collector for Stances {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let help = "1 for the mode of --mode, in which namespaces are served that name none";
        let mut family = encoder.encode_descriptor("mode", help, None, MetricType::Gauge)?;
        for mode in Mode::ALL {
            let is_it = i64::from(*mode == self.mode);
            ConstGauge::new(is_it).encode(family.encode_family(&[("mode", mode.as_str())])?)?;
        }
        // Initialized, so that an alert sees the first one.
        let words = Mode::ALL.iter().map(|mode| mode.as_str()).chain([OPTED_OUT, NOT_SELECTED, OF_OTHER, UNKNOWN]);
        let mut counts: BTreeMap<_, i64> = words.map(|word| (word, 0)).collect();
        for (_, stance) in self.index.read().stances() {
            *counts.entry(word(stance)).or_default() += 1;
            if stance.has_unknown_mode {
                *counts.entry(UNKNOWN).or_default() += 1;
            }
        }
        let help = "Namespaces by how they are served; unknown-mode counts those again whose label names no mode";
        let mut family = encoder.encode_descriptor("namespaces", help, None, MetricType::Gauge)?;
        for (word, namespaces) in counts {
            ConstGauge::new(namespaces).encode(family.encode_family(&[("served", word)])?)?;
        }
        Ok(())
    }
}
