//! Ratios of replicas.

use std::collections::BTreeMap;

/// Returns the greatest common divisor of the replicas of some roles, and the smallest numbers in their ratio; `None` if no role
/// has replicas.
pub fn reduced(counts: &BTreeMap<String, u32>) -> Option<(u32, BTreeMap<String, u32>)> {
    let divisor = counts.values().copied().fold(0, divisor);
    let all = counts.iter().map(|(role, count)| Some((role.clone(), count.checked_div(divisor)?)));
    Some((divisor, all.collect::<Option<BTreeMap<_, _>>>()?)).filter(|(divisor, _)| *divisor > 0)
}

fn divisor(one: u32, other: u32) -> u32 {
    let (mut one, mut other) = (one, other);
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}
