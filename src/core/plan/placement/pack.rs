//! Packing: how many pods of each sort go to each node, so that all of them fit.
//!
//! Pods of one sort are interchangeable, and so are nodes with the same room: the search is over counts. With one sort each
//! node takes as many pods as it can, which is exact. With several sorts, the largest go first onto the nodes with the least
//! remainder; if that leaves pods out, or breaks a rule on pods in one domain, all ways are tried, up to a bound.

use std::cmp::Reverse;
use std::rc::Rc;

use super::needs::HostPort;
use super::together::Rules;
use crate::plan::devices::Offer;

/// The maximum number of search steps for one domain: some milliseconds.
pub const STEPS: u32 = 50_000;
/// The maximum depth of the search, with a level for each sort on each node: bounded by the stack of a thread.
const MOST_DEPTH: usize = 2_000;
/// The maximum number of combinations of fill levels to try for spreads.
const MOST_LEVELS: usize = 64;

/// The room of one node, in the resources that are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bin {
    /// The free amount of each resource; below 0 if more was taken than exists.
    pub free: Vec<i64>,
    /// The number of pods that the node may still take.
    pub pods: i64,
    /// The used host ports.
    pub ports: Vec<HostPort>,
    /// For each sort, whether its pods can go to the node at all.
    pub takes: Vec<bool>,
    /// Its devices, if any pod asks for some.
    pub devices: Option<PutDevices>,
}

/// The devices of a node, and the pods that were put there.
#[derive(Clone, Debug)]
pub struct PutDevices {
    pub offer: Rc<Offer>,
    /// The number of pods, and of pods that are to come, by position of their claims in the demand.
    pub pods: Vec<u32>,
    /// The devices that other nodes reach as well.
    pub shared: Rc<[usize]>,
}

impl PutDevices {
    fn change(&mut self, demand: usize, change: impl Fn(&mut u32)) {
        if self.pods.len() <= demand {
            self.pods.resize(demand + 1, 0);
        }
        self.pods.get_mut(demand).into_iter().for_each(change);
    }
}

impl PartialEq for PutDevices {
    /// Equal nodes share one offer.
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.offer, &other.offer) && self.pods == other.pods
    }
}

impl Eq for PutDevices {}

/// Interchangeable pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sort {
    /// The amount of each resource that one pod takes.
    pub amounts: Vec<i64>,
    /// The host ports that one pod takes.
    pub ports: Vec<HostPort>,
    pub count: u32,
    /// The position of its claims in the demand for devices.
    pub demand: usize,
}

/// The result of packing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packing {
    /// For each sort: positions of nodes, with the number of pods there.
    pub placed: Vec<Vec<(usize, u32)>>,
    /// Pods without a place, by sort.
    pub left: Vec<u32>,
    /// Whether the search ended at its bound: an untried way may exist.
    pub bounded: bool,
}

impl Packing {
    /// Reports whether every pod has a place.
    pub fn is_complete(&self) -> bool {
        self.left.iter().all(|left| *left == 0)
    }

    /// Counts the pods without a place.
    pub fn left_out(&self) -> u32 {
        self.left.iter().sum()
    }
}

/// Packs all pods by the rules, or as many as the greedy way finds room for. `bins` hold the remaining room afterwards.
pub fn pack(bins: &mut [Bin], sorts: &[Sort], rules: &Rules, steps: u32) -> Packing {
    let mut steps = steps;
    if rules.is_empty() {
        return pack_once(bins, sorts, Rules::default(), &mut steps);
    }
    let before = bins.to_vec();
    let counts: Vec<_> = sorts.iter().map(|sort| sort.count).collect();
    let mut levels = rules.levels(&counts);
    let mut best: Option<(Packing, Vec<Bin>)> = None;
    let mut bounded = false;
    for levels in levels.by_ref().take(MOST_LEVELS) {
        let mut packed = before.clone();
        let packing = pack_once(&mut packed, sorts, rules.at(&levels), &mut steps);
        let is_complete = packing.is_complete();
        bounded |= packing.bounded;
        if best.as_ref().is_none_or(|(best, _)| packing.left_out() < best.left_out()) {
            best = Some((packing, packed));
        }
        if is_complete {
            break;
        }
    }
    let Some((packing, packed)) = best else { return Packing::default() };
    bins.clone_from_slice(&packed);
    bounded |= levels.next().is_some();
    Packing { bounded: bounded && !packing.is_complete(), ..packing }
}

fn pack_once(bins: &mut [Bin], sorts: &[Sort], rules: Rules, steps: &mut u32) -> Packing {
    let order = by_size(bins, sorts);
    let before = bins.to_vec();
    let mut filled = rules.clone();
    let mut greedy = greedily(bins, sorts, &order, &mut filled);
    if !filled.holds() {
        // A domain below its minimum breaks the rule for all pods.
        greedy.left = sorts.iter().map(|sort| sort.count).collect();
    }
    if greedy.is_complete() || (sorts.len() < 2 && rules.is_empty()) || !may_fit(&before, sorts) {
        return greedy;
    }
    if before.len() * sorts.len() > MOST_DEPTH {
        return Packing { bounded: true, ..greedy };
    }
    let placed = vec![Vec::new(); sorts.len()];
    let mut search = Search { bins: before, sorts, rules, order: &order, steps: *steps, placed };
    let is_found = search.sort(0);
    *steps = search.steps;
    if is_found {
        bins.clone_from_slice(&search.bins);
        return Packing { placed: search.placed, left: vec![0; sorts.len()], bounded: false };
    }
    Packing { bounded: search.steps == 0, ..greedy }
}

impl Bin {
    /// Returns how many pods of a sort still fit.
    pub fn capacity(&self, position: usize, sort: &Sort) -> u32 {
        if !self.takes.get(position).copied().unwrap_or_default() {
            return 0;
        }
        let of_ports = match sort.ports.as_slice() {
            [] => i64::MAX,
            ports if ports.iter().any(|port| self.ports.iter().any(|taken| taken.conflicts(port))) => 0,
            _ => 1,
        };
        let of_amounts = self.free.iter().zip(&sort.amounts).filter(|(_, amount)| **amount > 0);
        let least = of_amounts.map(|(free, amount)| free / amount).min().unwrap_or(i64::MAX);
        let most = u32::try_from(least.min(of_ports).min(self.pods).max(0)).unwrap_or(u32::MAX).min(sort.count);
        self.devices.as_ref().map_or(most, |devices| devices.offer.more(&devices.pods, sort.demand, most))
    }

    fn take(&mut self, sort: &Sort, count: u32) {
        if count == 0 {
            return;
        }
        let pods = i64::from(count);
        self.free.iter_mut().zip(&sort.amounts).for_each(|(free, amount)| *free -= amount * pods);
        self.pods -= pods;
        self.devices.iter_mut().for_each(|devices| devices.change(sort.demand, |pods| *pods += count));
        self.ports.extend_from_slice(&sort.ports);
    }

    fn give(&mut self, sort: &Sort, count: u32) {
        if count == 0 {
            return;
        }
        let pods = i64::from(count);
        self.free.iter_mut().zip(&sort.amounts).for_each(|(free, amount)| *free += amount * pods);
        self.pods += pods;
        self.devices.iter_mut().for_each(|devices| devices.change(sort.demand, |pods| *pods -= count));
        self.ports.truncate(self.ports.len() - sort.ports.len());
    }
}

/// Orders the sorts by difficulty: first the sort that takes the largest part of the free room.
fn by_size(bins: &[Bin], sorts: &[Sort]) -> Vec<usize> {
    let dimensions = sorts.first().map_or(0, |sort| sort.amounts.len());
    let total = |at: usize| bins.iter().filter_map(|bin| bin.free.get(at)).map(|free| i128::from(*free).max(0)).sum();
    let totals: Vec<i128> = (0..dimensions).map(total).collect();
    let part = |sort: &Sort| {
        let parts = sort.amounts.iter().zip(&totals).map(|(amount, total)| (i128::from(*amount) << 32) / (total + 1));
        parts.max().unwrap_or_default()
    };
    let nodes = |at: usize| bins.iter().filter(|bin| bin.takes.get(at) == Some(&true)).count();
    let mut order: Vec<_> = (0..sorts.len()).collect();
    order.sort_by_cached_key(|at| (Reverse(sorts.get(*at).map(part)), nodes(*at), *at));
    order
}

fn greedily(bins: &mut [Bin], sorts: &[Sort], order: &[usize], rules: &mut Rules) -> Packing {
    let mut packing = Packing {
        placed: vec![Vec::new(); sorts.len()],
        left: sorts.iter().map(|sort| sort.count).collect(),
        bounded: false,
    };
    for at in order {
        let (Some(sort), Some(placed), Some(left)) =
            (sorts.get(*at), packing.placed.get_mut(*at), packing.left.get_mut(*at))
        else {
            continue;
        };
        let capacity = |(position, bin): (usize, &Bin)| Some((bin.capacity(*at, sort), position));
        let mut room: Vec<_> = bins.iter().enumerate().filter_map(capacity).filter(|(count, _)| *count > 0).collect();
        room.sort_unstable();
        // First fill the minimum of each domain, then the rest.
        let rounds: &[bool] = if rules.is_empty() { &[false] } else { &[true, false] };
        for (only_lacking, (_, position)) in rounds.iter().flat_map(|only| room.iter().map(move |room| (only, room))) {
            let Some(bin) = bins.get_mut(*position) else { continue };
            let most = if *only_lacking { rules.lacks(*at, *position) } else { u32::MAX };
            let count = bin.capacity(*at, sort).min(*left).min(most).min(rules.room(*at, *position));
            if count > 0 {
                bin.take(sort, count);
                rules.put(*at, *position, count);
                placed.push((*position, count));
                *left -= count;
            }
        }
    }
    packing
}

/// Returns false if pods would not fit even when split freely: no search can help then.
pub(super) fn may_fit(bins: &[Bin], sorts: &[Sort]) -> bool {
    let dimensions = sorts.first().map_or(0, |sort| sort.amounts.len());
    let each_alone = sorts.iter().enumerate().all(|(at, sort)| {
        let capacity: u64 = bins.iter().map(|bin| u64::from(bin.capacity(at, sort))).sum();
        capacity >= u64::from(sort.count)
    });
    let asked = |at: usize| -> i128 {
        let of = |sort: &Sort| i128::from(sort.amounts.get(at).copied().unwrap_or_default()) * i128::from(sort.count);
        sorts.iter().map(of).sum()
    };
    let free = |at: usize| -> i128 {
        bins.iter().filter_map(|bin| bin.free.get(at)).map(|free| i128::from(*free).max(0)).sum()
    };
    each_alone && (0..dimensions).all(|at| asked(at) <= free(at))
}

/// An exhaustive search that places the sorts one after the other, node by node.
struct Search<'a> {
    bins: Vec<Bin>,
    sorts: &'a [Sort],
    rules: Rules,
    order: &'a [usize],
    steps: u32,
    placed: Vec<Vec<(usize, u32)>>,
}

/// One sort in the search.
struct Level<'a> {
    at: usize,
    sort: &'a Sort,
    next: usize,
    /// The number of its pods that the nodes from each position on take together.
    rest: Vec<u64>,
    /// Nodes that equal the previous one: they need no more pods than that one.
    like_before: Vec<bool>,
}

impl Search<'_> {
    /// Returns how many pods of a sort still go to a node.
    fn capacity(&self, at: usize, sort: &Sort, position: usize) -> u32 {
        let of_bin = self.bins.get(position).map_or(0, |bin| bin.capacity(at, sort));
        of_bin.min(self.rules.room(at, position))
    }

    /// Places the sort at this position of the order, and all later ones.
    fn sort(&mut self, position: usize) -> bool {
        let Some(at) = self.order.get(position).copied() else { return self.rules.holds() };
        let Some(sort) = self.sorts.get(at) else { return true };
        let each: Vec<_> = (0..self.bins.len()).map(|bin| self.capacity(at, sort, bin)).collect();
        if self.rules.most(at, &each) < u64::from(sort.count) {
            return false;
        }
        let mut rest: Vec<u64> = each
            .iter()
            .rev()
            .scan(0, |sum, capacity| {
                *sum += u64::from(*capacity);
                Some(*sum)
            })
            .collect();
        rest.reverse();
        rest.push(0);
        let pairs = self.bins.iter().zip(self.bins.iter().skip(1)).enumerate();
        let like_before = std::iter::once(false)
            .chain(pairs.map(|(bin, (one, next))| one == next && self.rules.are_alike(bin, bin + 1)))
            .collect();
        let level = Level { at, sort, next: position + 1, rest, like_before };
        self.node(&level, 0, sort.count, u32::MAX)
    }

    /// Places the `left` pods of a sort on the nodes from `bin` on; the previous node took `before`.
    fn node(&mut self, level: &Level<'_>, bin: usize, left: u32, before: u32) -> bool {
        if left == 0 {
            return self.sort(level.next);
        }
        if level.rest.get(bin).is_none_or(|rest| *rest < u64::from(left)) || self.steps == 0 {
            return false;
        }
        self.steps -= 1;
        let capacity = self.capacity(level.at, level.sort, bin);
        let is_like = level.like_before.get(bin).copied().unwrap_or_default();
        let most = capacity.min(left).min(if is_like { before } else { u32::MAX });
        for count in (0..=most).rev() {
            self.put(level, bin, count);
            if self.node(level, bin + 1, left - count, count) {
                return true;
            }
            self.take_back(level, bin, count);
            if self.steps == 0 {
                break;
            }
        }
        false
    }

    fn put(&mut self, level: &Level<'_>, bin: usize, count: u32) {
        if let (Some(node), Some(placed), 1..) = (self.bins.get_mut(bin), self.placed.get_mut(level.at), count) {
            node.take(level.sort, count);
            self.rules.put(level.at, bin, count);
            placed.push((bin, count));
        }
    }

    fn take_back(&mut self, level: &Level<'_>, bin: usize, count: u32) {
        if let (Some(node), Some(placed), 1..) = (self.bins.get_mut(bin), self.placed.get_mut(level.at), count) {
            node.give(level.sort, count);
            self.rules.take_back(level.at, bin, count);
            placed.pop();
        }
    }
}
