//! The place of a pod: from its name, or, for the interchangeable pods of a Deployment, from its index label and the
//! free places.

use rolegate::mutate::Entry;

use crate::machines::RACK;
use crate::prelude::*;
use crate::server::is_held;

/// Role, ordinal and member of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub role: usize,
    pub ordinal: u32,
    pub member: u32,
}

/// Places by name of the pod.
pub type Places = BTreeMap<String, Place>;

/// The facts that determine the place of a pod.
pub struct Standing {
    name: String,
    created: Option<String>,
    /// Ordinal written at the release or when the pod moved, or in a pending one of these.
    written: Option<u32>,
    held: bool,
    /// Whether its release is pending or was tried: it may run already.
    asked: bool,
    /// The rack to which its release has sent it.
    sent: Option<String>,
}

impl Standing {
    /// Returns the facts as a replica sees them.
    pub fn seen(pod: &PodFacts, asked: Option<&[Entry]>, moved: Option<u32>) -> Self {
        let index = |labels: &[Entry]| {
            labels.iter().find(|(key, _)| key == names::KEP75_INSTANCE_INDEX).map(|(_, index)| index.parse().unwrap())
        };
        Self {
            name: pod.pod.name.to_string(),
            created: pod.created.as_deref().map(str::to_owned),
            written: moved.or(pod.identity.ordinal).or_else(|| asked.and_then(index)),
            held: pod.held,
            asked: asked.is_some(),
            sent: pod.sent_to(RACK).map(str::to_owned),
        }
    }

    /// Returns the facts in the cluster.
    fn of(pod: &Pod) -> Self {
        let written = pod.metadata.label(names::KEP75_INSTANCE_INDEX).filter(|_| !is_held(pod));
        Self {
            name: pod.metadata.name.clone().unwrap(),
            created: pod.metadata.creation_timestamp.clone(),
            written: written.map(|ordinal| ordinal.parse().unwrap()),
            held: is_held(pod),
            asked: false,
            sent: pod.spec.node_selector.get(RACK).cloned(),
        }
    }
}

impl Server {
    /// Returns the places of all pods that count.
    pub fn places(&self) -> Places {
        let pods = self.pods.values().filter(|pod| !pod.is_gone()).map(|pod| Standing::of(pod));
        let home = |place: Place| self.group.as_ref().and_then(|stored| stored.home_of(place));
        self.setup.places(pods.collect(), |role| self.placed(role), home)
    }
}

/// Returns the role from the name of a pod.
pub fn role_of(pod: &str) -> usize {
    let role = pod.split('-').next().unwrap();
    ROLES.iter().position(|known| *known == role).unwrap()
}

impl Setup {
    /// Returns the place of a pod whose name contains the ordinal.
    pub fn named(&self, pod: &str) -> Option<Place> {
        let role = role_of(pod);
        let mut numbers = pod.split('-').skip(1).map(|word| word.parse::<u32>().unwrap());
        let first = numbers.next().unwrap();
        match self.makers[role] {
            Maker::Set { start } => Some(Place { role, ordinal: first - start, member: 0 }),
            Maker::Leaders { .. } => Some(Place { role, ordinal: first, member: numbers.next().unwrap_or(0) }),
            Maker::Alike => None,
        }
    }

    /// Returns the places of pods for the desired replicas of each role. Running pods of a Deployment keep their
    /// places; the others follow, those with a pending release first. A running pod that is given another place takes one of a
    /// batch in its rack, and one that never had a place leaves those in other racks to others.
    pub fn places(
        &self,
        mut pods: Vec<Standing>,
        desired: impl Fn(usize) -> u32,
        home: impl Fn(Place) -> Option<String>,
    ) -> Places {
        let mut places = Places::new();
        let mut taken: BTreeSet<(usize, u32)> = BTreeSet::new();
        pods.sort_by_key(|pod| (pod.held, !pod.asked, pod.created.clone(), pod.name.clone()));
        let mut take = |role: usize, ordinal: u32| taken.insert((role, ordinal));
        let mut free = Vec::new();
        for pod in pods {
            let role = role_of(&pod.name);
            let stays = |ordinal: &u32| (pod.held && !pod.asked) || *ordinal < desired(role);
            let place = self.named(&pod.name).or_else(|| {
                let ordinal = pod.written.filter(stays).filter(|ordinal| take(role, *ordinal))?;
                Some(Place { role, ordinal, member: 0 })
            });
            match place {
                Some(place) => _ = places.insert(pod.name, place),
                None => free.push((role, pod.name, pod.sent, pod.written)),
            }
        }
        let mut elsewhere = Vec::new();
        for (role, name, sent, written) in free {
            let is_home = |ordinal: &u32| sent.is_some() && home(Place { role, ordinal: *ordinal, member: 0 }) == sent;
            let found = (0..desired(role).min(1000)).filter(is_home).find(|ordinal| take(role, *ordinal));
            match found {
                Some(ordinal) => _ = places.insert(name, Place { role, ordinal, member: 0 }),
                None => elsewhere.push((sent.is_some() && written.is_none(), role, name)),
            }
        }
        elsewhere.sort_by_key(|(waits, ..)| *waits);
        for (_, role, name) in elsewhere {
            let mut ordinal = 0;
            while !take(role, ordinal) {
                ordinal += 1;
            }
            places.insert(name, Place { role, ordinal, member: 0 });
        }
        places
    }
}
