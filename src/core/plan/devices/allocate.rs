//! The allocation of the claims of one pod on one node, as kube-scheduler finds it: the first in the order of pools, slices and
//! devices with which all claims can be had.

use super::asks::MOST_DEVICES;

/// Devices of a node as a set of positions.
pub type Bits = u128;

/// The number of devices of a node that are looked at.
pub const MOST_OFFERED: usize = Bits::BITS as usize;
/// The maximum number of devices to try for one pod on one node.
const STEPS: u32 = 10_000;

/// A device of a node as the requests of a question see it. Requests with one class, the same selectors and tolerations have
/// one bit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Offered {
    /// The requests that select it.
    pub selected: u64,
    /// Those of them that tolerate its taints.
    pub usable: u64,
    /// Its values of the attributes of constraints, each as a number.
    pub values: Vec<Option<usize>>,
}

/// A claim with requests as bits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Wanted {
    /// By request: its alternatives.
    pub requests: Vec<Vec<Want>>,
    pub same: Vec<Same>,
}

/// A constraint that devices have one value of an attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Same {
    /// The position of the attribute.
    pub attribute: usize,
    /// By request and alternative: whether the constraint applies.
    pub applies: Vec<Vec<bool>>,
}

impl Same {
    fn is_about(&self, at: At, alternative: usize) -> bool {
        self.applies.get(at.request).and_then(|request| request.get(alternative)) == Some(&true)
    }

    fn value(&self, device: &Offered) -> Option<usize> {
        device.values.get(self.attribute).copied().flatten()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Want {
    pub bit: u64,
    /// The number of devices; `None` for all.
    pub count: Option<u64>,
}

/// Returns the devices that stay free after all claims are allocated; `None` if they cannot be.
pub fn allocate(devices: &[Offered], free: Bits, claims: &[Wanted]) -> Option<Bits> {
    let same = claims.iter().map(|claim| vec![Held::default(); claim.same.len()]).collect();
    let mut search = Search { devices, claims, free, same, steps: STEPS, is_ended: false };
    search.request(At::default()).then_some(search.free)
}

/// A position in the search.
#[derive(Clone, Copy, Default)]
struct At {
    claim: usize,
    request: usize,
    /// Devices that the claim has.
    has: usize,
}

struct Search<'a> {
    devices: &'a [Offered],
    claims: &'a [Wanted],
    free: Bits,
    /// By claim and constraint.
    same: Vec<Vec<Held>>,
    steps: u32,
    /// A request for all devices breaks a constraint: kube-scheduler then gives up, whatever alternatives there are.
    is_ended: bool,
}

/// The devices under a constraint, and the value that they have.
#[derive(Clone, Copy, Default)]
struct Held {
    devices: u32,
    value: Option<usize>,
}

impl Search<'_> {
    fn request(&mut self, at: At) -> bool {
        let Some(claim) = self.claims.get(at.claim) else { return true };
        let Some(alternatives) = claim.requests.get(at.request) else {
            return self.request(At { claim: at.claim + 1, ..At::default() });
        };
        (0..alternatives.len()).any(|alternative| !self.is_ended && self.alternative(at, alternative))
    }

    fn alternative(&mut self, at: At, alternative: usize) -> bool {
        let want =
            self.claims.get(at.claim).and_then(|claim| claim.requests.get(at.request)?.get(alternative).copied());
        let Some(want) = want else { return false };
        let Some(count) = want.count else {
            let all = (0..self.devices.len())
                .filter(|device| self.device(*device).is_some_and(|one| one.selected & want.bit != 0));
            let all: Vec<_> = all.collect();
            return !all.is_empty() && at.has + all.len() <= MOST_DEVICES && self.all(at, alternative, want, &all);
        };
        match usize::try_from(count) {
            Ok(count) if at.has + count <= MOST_DEVICES => self.some(at, alternative, want, count, 0),
            _ => false,
        }
    }

    fn device(&self, position: usize) -> Option<&Offered> {
        self.devices.get(position)
    }

    /// Takes so many devices from a position on.
    fn some(&mut self, at: At, alternative: usize, want: Want, left: usize, from: usize) -> bool {
        if left == 0 {
            return self.request(At { request: at.request + 1, ..at });
        }
        for device in from..self.devices.len() {
            if self.steps == 0 || self.is_ended {
                return false;
            }
            if !self.take(at, alternative, want, device) {
                continue;
            }
            self.steps -= 1;
            if self.some(At { has: at.has + 1, ..at }, alternative, want, left - 1, device + 1) {
                return true;
            }
            self.give(at, alternative, device);
        }
        false
    }

    /// Takes all these devices.
    fn all(&mut self, at: At, alternative: usize, want: Want, devices: &[usize]) -> bool {
        let Some((device, rest)) = devices.split_first() else {
            return self.request(At { request: at.request + 1, ..at });
        };
        if !self.take(at, alternative, want, *device) {
            let may_be_had = |offered: &Offered| self.free & (1 << *device) != 0 && offered.usable & want.bit != 0;
            self.is_ended |= self.devices.get(*device).is_some_and(may_be_had);
            return false;
        }
        if self.all(At { has: at.has + 1, ..at }, alternative, want, rest) {
            return true;
        }
        self.give(at, alternative, *device);
        false
    }

    fn take(&mut self, at: At, alternative: usize, want: Want, device: usize) -> bool {
        let bit = 1 << device;
        let Some(offered) = self.devices.get(device) else { return false };
        if self.free & bit == 0 || offered.usable & want.bit == 0 {
            return false;
        }
        let Some((claim, same)) = self.claims.get(at.claim).zip(self.same.get_mut(at.claim)) else { return false };
        let is_about = |same: &Same| same.is_about(at, alternative);
        let holds = |(same, held): (&Same, &Held)| {
            let own = same.value(offered);
            !is_about(same) || (own.is_some() && (held.devices == 0 || own == held.value))
        };
        if !claim.same.iter().zip(&*same).all(holds) {
            return false;
        }
        for (same, held) in claim.same.iter().zip(same).filter(|(same, _)| is_about(same)) {
            *held = Held { devices: held.devices + 1, value: same.value(offered) };
        }
        self.free &= !bit;
        true
    }

    fn give(&mut self, at: At, alternative: usize, device: usize) {
        self.free |= 1 << device;
        let Some((claim, same)) = self.claims.get(at.claim).zip(self.same.get_mut(at.claim)) else { return };
        for (_, held) in claim.same.iter().zip(same).filter(|(same, _)| same.is_about(at, alternative)) {
            held.devices -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A claim for all devices with one value of an attribute, else for any one device.
    fn all_else_one() -> Wanted {
        let (all, one) = (Want { bit: 1, count: None }, Want { bit: 1, count: Some(1) });
        Wanted { requests: vec![vec![all, one]], same: vec![Same { attribute: 0, applies: vec![vec![true, false]] }] }
    }

    fn device(value: usize, usable: u64) -> Offered {
        Offered { selected: 1, usable, values: vec![Some(value)] }
    }

    #[test]
    fn all_devices_with_one_value_are_taken() {
        assert_eq!(allocate(&[device(0, 1), device(0, 1)], 0b11, &[all_else_one()]), Some(0));
    }

    #[test]
    fn all_devices_of_which_one_is_taken_or_tainted_leave_the_alternative() {
        assert_eq!(allocate(&[device(0, 1), device(0, 1)], 0b10, &[all_else_one()]), Some(0));
        assert_eq!(allocate(&[device(0, 1), device(0, 0)], 0b11, &[all_else_one()]), Some(0b10));
    }

    #[test]
    fn all_devices_that_break_a_constraint_end_the_search_whatever_the_alternative() {
        assert_eq!(allocate(&[device(0, 1), device(1, 1)], 0b11, &[all_else_one()]), None);
    }
}
