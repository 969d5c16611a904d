//! Selection of pods in a tree of gangs: first the minimum of the whole, then each gang that has its own minimum and fits.

use crate::model::Minimum;
use crate::plan::gangs::shape::Shape;

/// Numbers of pods by leaf.
pub(super) type Counts = Vec<u32>;

/// Room that is taken step by step.
pub(super) trait Places {
    /// Takes room until each leaf has room for `pods`; returns false without a change if they do not fit. `anew` allows pods
    /// that have room to move.
    fn take(&mut self, pods: &[u32], anew: bool) -> bool;

    /// Gives room back until each leaf has room for `pods`.
    fn give_back(&mut self, pods: &[u32]);
}

/// The maximum number of times that all pods are placed again to make room for the next gang: each is a search of its own.
const ANEW: u32 = 4;

/// The search for the number of pods of each leaf to release.
pub(super) struct Growth<'a, P> {
    shape: &'a Shape,
    /// Pods released before.
    fixed: &'a [u32],
    /// Existing held pods.
    held: &'a [u32],
    /// Pods to release.
    chosen: Counts,
    places: &'a mut P,
    /// How often all pods may still be placed again.
    anew: u32,
}

impl<'a, P: Places> Growth<'a, P> {
    pub(super) fn new(shape: &'a Shape, fixed: &'a [u32], held: &'a [u32], places: &'a mut P) -> Self {
        Self { shape, fixed, held, chosen: vec![0; held.len()], places, anew: ANEW }
    }

    /// Returns the pods to release now; none while the minimum of the whole is missing or does not fit.
    pub(super) fn run(mut self) -> Counts {
        let eligible = eligible(self.shape, self.fixed, self.held);
        if self.places.take(&eligible, true) {
            return eligible;
        }
        self.extend(0);
        self.chosen
    }

    fn pods(&self, gang: usize) -> u32 {
        let of = |leaf: &usize| at(self.fixed, *leaf) + at(&self.chosen, *leaf);
        self.shape.leaves_of(gang).iter().map(of).sum()
    }

    fn is_met(&self, gang: usize) -> bool {
        let sums: Counts = self.fixed.iter().zip(&self.chosen).map(|(fixed, chosen)| fixed + chosen).collect();
        is_met(self.shape, gang, &sums)
    }

    /// Adds the minimum of a gang if it has none yet, then the pods beyond it.
    fn extend(&mut self, gang: usize) {
        if !self.is_met(gang) && !self.grow(gang) {
            return;
        }
        // Pods beyond the minimum take only the remaining room.
        self.anew = 0;
        let Some(shape) = self.shape.gangs.get(gang) else { return };
        shape.children.iter().for_each(|child| self.extend(*child));
        if let Some(leaf) = shape.leaf {
            let most = at(self.held, leaf).saturating_sub(at(&self.chosen, leaf));
            self.add_up_to(leaf, most);
        }
    }

    /// Adds the pods that a gang needs for its minimum, or none.
    fn grow(&mut self, gang: usize) -> bool {
        let before = self.chosen.clone();
        let done = self.try_to_grow(gang);
        if !done && self.chosen != before {
            self.places.give_back(&before);
            self.chosen = before;
        }
        done
    }

    fn try_to_grow(&mut self, gang: usize) -> bool {
        let Some(shape) = self.shape.gangs.get(gang) else { return false };
        if let (Some(leaf), Minimum::Pods(minimum)) = (shape.leaf, shape.minimum) {
            let more = minimum.saturating_sub(at(self.fixed, leaf) + at(&self.chosen, leaf));
            return self.add(leaf, more);
        }
        let enough = |this: &Self| match shape.minimum {
            Minimum::Pods(_) => this.is_met(gang),
            Minimum::Gangs(wanted) => {
                let met = shape.children.iter().filter(|child| this.is_met(**child)).count();
                met >= usize::try_from(wanted).unwrap_or(usize::MAX)
            }
        };
        for child in &shape.children {
            if enough(self) {
                return true;
            }
            if !self.is_met(*child) {
                self.grow(*child);
            }
        }
        if let Minimum::Pods(wanted) = shape.minimum {
            for leaf in self.shape.leaves_of(gang) {
                let missing = wanted.saturating_sub(self.pods(gang));
                // A leaf below its own minimum runs nothing.
                if missing > 0 && at(self.fixed, leaf) + at(&self.chosen, leaf) > 0 {
                    self.add_up_to(leaf, missing.min(at(self.held, leaf).saturating_sub(at(&self.chosen, leaf))));
                }
            }
        }
        enough(self)
    }

    /// Adds `more` pods of a leaf, if they exist and fit.
    fn add(&mut self, leaf: usize, more: u32) -> bool {
        if at(self.held, leaf).saturating_sub(at(&self.chosen, leaf)) < more {
            return false;
        }
        let mut next = self.chosen.clone();
        next.get_mut(leaf).into_iter().for_each(|count| *count += more);
        let mut fits = more == 0 || self.places.take(&next, false);
        if !fits && self.anew > 0 {
            self.anew -= 1;
            fits = self.places.take(&next, true);
        }
        if fits {
            self.chosen = next;
        }
        fits
    }

    /// Adds as many pods of a leaf as fit, up to `most`.
    fn add_up_to(&mut self, leaf: usize, most: u32) {
        if most == 0 || self.add(leaf, most) {
            return;
        }
        let (mut fits, mut does_not) = (0, most);
        while fits + 1 < does_not {
            let middle = fits.midpoint(does_not);
            if self.add(leaf, middle - fits) {
                fits = middle;
            } else {
                does_not = middle;
            }
        }
    }
}

/// Returns the pods that may go by their counts: those of leaves that reach their minimum, in gangs that reach theirs.
pub(super) fn eligible(shape: &Shape, fixed: &[u32], held: &[u32]) -> Counts {
    let there: Counts = fixed.iter().zip(held).map(|(fixed, held)| fixed + held).collect();
    let mut eligible = vec![0; held.len()];
    let mut next = vec![0];
    while let Some(gang) = next.pop() {
        let Some(of) = shape.gangs.get(gang).filter(|_| is_met(shape, gang, &there)) else { continue };
        next.extend(&of.children);
        if let Some((leaf, count)) = of.leaf.and_then(|leaf| Some((leaf, eligible.get_mut(leaf)?))) {
            *count = at(held, leaf);
        }
    }
    eligible
}

/// Reports whether a gang reaches its minimum with these pods.
pub(super) fn is_met(shape: &Shape, gang: usize, pods: &[u32]) -> bool {
    let Some(of) = shape.gangs.get(gang) else { return false };
    let children = || of.children.iter().filter(|child| is_met(shape, **child, pods));
    match of.minimum {
        Minimum::Pods(wanted) if of.leaf.is_some() => {
            // An empty leaf has nothing to run, whatever its minimum.
            let there = of.leaf.map_or(0, |leaf| at(pods, leaf));
            there >= wanted.max(1)
        }
        Minimum::Pods(wanted) => {
            let below: u32 = children().flat_map(|child| shape.leaves_of(*child)).map(|leaf| at(pods, leaf)).sum();
            below >= wanted
        }
        Minimum::Gangs(wanted) => children().count() >= usize::try_from(wanted).unwrap_or(usize::MAX),
    }
}

pub(super) fn at(counts: &[u32], leaf: usize) -> u32 {
    counts.get(leaf).copied().unwrap_or_default()
}
