//! Every way to place a batch: first as kube-scheduler allocates devices, in whatever order it takes up the pods of a node, then
//! with any devices. Nothing here is ours but the cases.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};

use super::cases::{Alternative, Case, Claim, Constraint, Device, Request, Sort};

/// Steps after which a case is too large to be searched.
const STEPS: u64 = 3_000_000;

type Free = u64;

/// The devices of a node, and what its device plugin and processors have left.
struct Seat<'a> {
    case: &'a Case,
    devices: Vec<(&'static str, &'a Device)>,
    is_broken: bool,
    free: Free,
    cpu: usize,
    /// `None` where devices serve the resource.
    plugin: Option<usize>,
    /// The released pods that go here, by sort.
    released: Vec<usize>,
    steps: &'a Cell<u64>,
    ended: Cell<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ways {
    /// With the devices that kube-scheduler takes, whatever the order of the pods.
    InAnyOrder,
    /// Only with devices that it may not take.
    WithLuck,
    None,
    TooMany,
}

/// Returns how the batch could be placed, beside released pods on their nodes.
pub fn ways(case: &Case, released: &[(usize, usize)]) -> Ways {
    for (found, how) in [(Ways::InAnyOrder, true), (Ways::WithLuck, false)] {
        let steps = Cell::new(0);
        let seats: Vec<_> = (0..case.nodes.len()).map(|node| Seat::of(case, node, released, &steps)).collect();
        let wanted: Vec<_> = (0..case.sorts.len()).map(|sort| case.in_batch(sort)).collect();
        let has = (0..case.racks).any(|rack| {
            let of_rack = seats.iter().zip(&case.nodes).filter(|(_, node)| node.rack == rack);
            let of_rack: Vec<_> = of_rack.map(|(seat, _)| (seat, Known::default())).collect();
            fits(&of_rack, &wanted, how, &mut BTreeSet::new())
        });
        if steps.get() > STEPS {
            return Ways::TooMany;
        }
        if has {
            return found;
        }
    }
    Ways::None
}

/// Whether these pods on one node are allocated, in whatever order.
pub fn holds(case: &Case, node: usize, released: &[(usize, usize)], counts: &[usize]) -> bool {
    let steps = Cell::new(0);
    Seat::of(case, node, released, &steps).takes(counts, true)
}

type Known = RefCell<HashMap<Vec<usize>, bool>>;

fn fits(
    seats: &[(&Seat<'_>, Known)],
    wanted: &[usize],
    in_any_order: bool,
    failed: &mut BTreeSet<(usize, Vec<usize>)>,
) -> bool {
    let Some(((seat, known), rest)) = seats.split_first() else { return wanted.iter().all(|count| *count == 0) };
    if failed.contains(&(seats.len(), wanted.to_vec())) {
        return false;
    }
    let mut counts = vec![0; wanted.len()];
    loop {
        let is_known = known.borrow().get(&counts).copied();
        // Each device here is of one node: so are all pods that share a claim.
        let is_split = |(at, sort): (usize, &Sort)| sort.shares && ![0, seat.case.in_batch(at)].contains(&counts[at]);
        let takes = is_known.unwrap_or_else(|| {
            let splits = seat.case.sorts.iter().enumerate().any(is_split);
            let takes = !splits && seat.takes(&counts, in_any_order);
            known.borrow_mut().insert(counts.clone(), takes);
            takes
        });
        let left: Vec<_> = wanted.iter().zip(&counts).map(|(wanted, count)| wanted - count).collect();
        if takes && fits(rest, &left, in_any_order, failed) {
            return true;
        }
        // The next numbers of pods.
        let Some(at) = (0..counts.len()).find(|at| counts[*at] < wanted[*at]) else {
            failed.insert((seats.len(), wanted.to_vec()));
            return false;
        };
        counts[at] += 1;
        counts[..at].fill(0);
        if seat.steps.get() > STEPS {
            return false;
        }
    }
}

impl<'a> Seat<'a> {
    fn of(case: &'a Case, node: usize, released: &[(usize, usize)], steps: &'a Cell<u64>) -> Self {
        let (devices, is_broken) = case.devices(node);
        let free = devices.iter().enumerate().filter(|(_, (_, device))| !device.taken);
        let free = free.fold(0, |free, (at, _)| free | 1 << at);
        let others = case.others.iter().filter(|other| other.node == node);
        let (cpu, extended) =
            others.fold((0, 0), |(cpu, extended), other| (cpu + other.cpu, extended + other.extended));
        let shape = &case.nodes[node];
        let plugin = shape.plugin.filter(|amount| *amount > 0).map(|amount| amount - extended);
        let mut of_sorts = vec![0; case.sorts.len()];
        released.iter().filter(|(_, at)| *at == node).for_each(|(sort, _)| of_sorts[*sort] += 1);
        Self {
            case,
            devices,
            is_broken,
            free,
            cpu: shape.cpu.saturating_sub(cpu),
            plugin,
            released: of_sorts,
            steps,
            ended: Cell::new(false),
        }
    }

    fn takes(&self, counts: &[usize], in_any_order: bool) -> bool {
        let counts: Vec<_> = counts.iter().zip(&self.released).map(|(count, released)| count + released).collect();
        let sum = |of: &dyn Fn(&Sort) -> usize| -> usize {
            counts.iter().zip(&self.case.sorts).map(|(count, sort)| count * of(sort)).sum()
        };
        let extended = |sort: &Sort| if sort.by_class { 0 } else { sort.extended };
        if sum(&|sort| sort.cpu) > self.cpu || self.plugin.is_some_and(|amount| sum(&extended) > amount) {
            return false;
        }
        let claims: Vec<_> = self.case.sorts.iter().map(|sort| self.claims(sort)).collect();
        // What pods share is allocated to the first of them.
        let first = |(count, sort): (&usize, &Sort)| if sort.shares { 1.min(*count) } else { *count };
        let counts: Vec<_> = counts.iter().zip(&self.case.sorts).map(first).collect();
        if in_any_order {
            self.after(&counts, &claims, &mut HashMap::new()).is_some()
        } else {
            let pods = counts.iter().zip(&claims).flat_map(|(count, claims)| vec![claims.as_slice(); *count]);
            self.some_way(&pods.collect::<Vec<_>>(), self.free, &mut BTreeSet::new())
        }
    }

    /// The claims of a pod here: that of its resource is the last.
    fn claims(&self, sort: &Sort) -> Vec<Claim> {
        let mut claims = sort.claims.clone();
        if sort.extended > 0 && (sort.by_class || self.plugin.is_none()) {
            let count = Some(sort.extended);
            let one = Alternative { class: 0, conditions: Vec::new(), count, tolerates: false };
            claims.push(Claim { requests: vec![Request { alternatives: vec![one] }], constraints: Vec::new() });
        }
        claims
    }

    /// What may be free after so many pods of each sort; `None` if one of them may be left without devices.
    fn after(
        &self,
        counts: &[usize],
        claims: &[Vec<Claim>],
        known: &mut HashMap<Vec<usize>, Option<BTreeSet<Free>>>,
    ) -> Option<BTreeSet<Free>> {
        if let Some(known) = known.get(counts) {
            return known.clone();
        }
        let mut all = Some(BTreeSet::new());
        if counts.iter().all(|count| *count == 0) {
            all = Some([self.free].into());
        }
        for sort in (0..counts.len()).filter(|sort| counts[*sort] > 0) {
            let mut before = counts.to_vec();
            before[sort] -= 1;
            let after = self.after(&before, claims, known).and_then(|states| {
                states.into_iter().map(|free| self.first(&claims[sort], free)).collect::<Option<BTreeSet<_>>>()
            });
            all = all.zip(after).map(|(mut all, after)| {
                all.extend(after);
                all
            });
        }
        known.insert(counts.to_vec(), all.clone());
        all
    }

    fn first(&self, claims: &[Claim], free: Free) -> Option<Free> {
        let mut found = None;
        self.ended.set(false);
        self.claim(claims, free, &mut |free| {
            found = Some(free);
            true
        });
        found
    }

    fn some_way(&self, pods: &[&[Claim]], free: Free, failed: &mut BTreeSet<(usize, Free)>) -> bool {
        let Some((pod, rest)) = pods.split_first() else { return true };
        if failed.contains(&(pods.len(), free)) {
            return false;
        }
        self.ended.set(false);
        let found = self.claim(pod, free, &mut |free| self.some_way(rest, free, failed));
        if !found {
            failed.insert((pods.len(), free));
        }
        found
    }

    /// Visits what is left by each allocation of the claims, until one is accepted.
    fn claim(&self, claims: &[Claim], free: Free, accept: &mut dyn FnMut(Free) -> bool) -> bool {
        let Some((claim, rest)) = claims.split_first() else { return accept(free) };
        // A request for all fails where a pool changes, even as an alternative.
        let mut all = claims.iter().flat_map(|claim| &claim.requests).flat_map(|request| &request.alternatives);
        if self.is_broken && all.any(|one| one.count.is_none()) {
            return false;
        }
        self.request(claim, 0, free, &mut Vec::new(), &mut |free| self.claim(rest, free, accept))
    }

    fn request(
        &self,
        claim: &Claim,
        request: usize,
        free: Free,
        picked: &mut Vec<Pick>,
        accept: &mut dyn FnMut(Free) -> bool,
    ) -> bool {
        let Some(wanted) = claim.requests.get(request) else { return accept(free) };
        (0..wanted.alternatives.len()).any(|alternative| {
            let one = &wanted.alternatives[alternative];
            let selected = (0..self.devices.len()).filter(|at| self.selects(one, *at)).collect::<Vec<_>>();
            let at = At { claim, request, alternative };
            match one.count {
                Some(count) => self.some(at, &selected, count, free, picked, accept),
                None => !selected.is_empty() && self.some(at, &selected, selected.len(), free, picked, accept),
            }
        })
    }

    fn some(
        &self,
        at: At<'_>,
        from: &[usize],
        count: usize,
        free: Free,
        picked: &mut Vec<Pick>,
        accept: &mut dyn FnMut(Free) -> bool,
    ) -> bool {
        self.steps.set(self.steps.get() + 1);
        if self.steps.get() > STEPS || self.ended.get() {
            return false;
        }
        if count == 0 {
            return self.request(at.claim, at.request + 1, free, picked, accept);
        }
        let one = &at.claim.requests[at.request].alternatives[at.alternative];
        for (position, device) in from.iter().enumerate() {
            let (_, facts) = self.devices[*device];
            let taints = [facts.taint, facts.rule];
            let keeps_away = taints.iter().flatten().any(|effect| match *effect {
                "NoExecute" => true,
                "NoSchedule" => !one.tolerates,
                _ => false,
            });
            if free & (1 << device) == 0 || keeps_away {
                continue;
            }
            picked.push(Pick { request: at.request, alternative: at.alternative, device: *device });
            let is_kept = at.claim.constraints.iter().all(|constraint| self.is_kept(constraint, picked));
            // A constraint that a request for all breaks ends the search of kube-scheduler.
            self.ended.set(self.ended.get() || (!is_kept && one.count.is_none()));
            let found =
                is_kept && self.some(at, &from[position + 1..], count - 1, free & !(1 << device), picked, accept);
            picked.pop();
            if found {
                return true;
            }
        }
        false
    }

    fn selects(&self, one: &Alternative, device: usize) -> bool {
        let (driver, facts) = self.devices[device];
        let class = &self.case.classes[one.class];
        class.conditions.iter().chain(&one.conditions).all(|condition| condition.holds(driver, facts))
    }

    fn is_kept(&self, constraint: &Constraint, picked: &[Pick]) -> bool {
        let about = |pick: &&Pick| {
            let is = |(request, alternative): &(usize, Option<usize>)| {
                *request == pick.request && alternative.is_none_or(|alternative| alternative == pick.alternative)
            };
            constraint.requests.is_empty() || constraint.requests.iter().any(is)
        };
        let value = |pick: &Pick| {
            let (driver, facts) = self.devices[pick.device];
            facts.value(driver, constraint.attribute)
        };
        let values: BTreeSet<_> = picked.iter().filter(about).map(value).collect();
        values.len() <= 1 && !values.contains(&None)
    }
}

#[derive(Clone, Copy)]
struct At<'a> {
    claim: &'a Claim,
    request: usize,
    alternative: usize,
}

struct Pick {
    request: usize,
    alternative: usize,
    device: usize,
}
