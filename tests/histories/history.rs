//! A history: a sequence of events in the cluster and at rolegate. Each step is independent of the others, so that any
//! step can be left out.

use std::fmt;

use crate::machines::MachineStep;
use crate::prelude::*;
use crate::readiness::{ObjectStep, Readiness};
use crate::replica::Fault;

/// A change of a pod; a number selects among the pods to which it applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Scheduled,
    Ready,
    Unready,
    Failed,
    Evicted,
    Removed,
    GatedByOthers,
    FreedByOthers,
    /// Another actor lifts our gate.
    LiftedByOthers,
}

/// A step; `n` selects a target, modulo the number of targets.
#[derive(Clone, Debug)]
pub enum Step {
    /// The cluster progresses for this number of rounds.
    Flow(u32),
    Wait(Duration),
    /// A controller creates or deletes at most this number of pods.
    Control {
        role: usize,
        most: usize,
        stale: bool,
    },
    Pod(Fate, usize),
    Machine(usize, MachineStep),
    /// The autoscaler does what is asked of it, or takes an empty node away.
    Autoscale(usize),
    /// A dependency of all pods goes away, and no pod is ready until it is back.
    Outage(bool),
    /// A claimed StatefulSet changes.
    Set(usize, SetStep),
    /// The bounds of the rollout are edited, or its coordination ends.
    Roll(Option<Rolling>),
    /// A person ends the pause of a rollout.
    Resume,
    /// A person sends a rollout back.
    RollBack,
    /// An object that groups wait for changes.
    Object(usize, ObjectStep),
    /// Pods stop being ready one after another, more slowly than each is lost, and none gets ready meanwhile.
    Fade,
    /// What segments and steps wait for is edited.
    Readiness(Readiness),
    /// The replicas of a role of the group are edited, and with an operator or a referring carrier those of its workload.
    Scale(usize, u32),
    ScaleWorkload(usize, u32),
    /// The number of wanted segments is edited, if the group has one.
    Want(u32),
    Edit(Wish),
    DeleteGroup,
    CreateGroup(Wish),
    /// The group is deleted and recreated unchanged.
    ReplaceGroup,
    /// The garbage collector checks the objects that the group owned.
    CollectGarbage,
    Ignore(bool),
    /// Something happens to a replica of rolegate.
    At(usize, Act),
}

/// What happens to a replica: it receives events of nodes or of pods on them (`See`), of objects that are waited for, of a watch;
/// it lists, its requests are served and answered, it leads or not, and restarts, its pending requests still carried out if `done`.
/// With `MakeAnew` the group is edited or recreated, and all its pods are: it receives only the events of the pods.
#[derive(Clone, Debug)]
pub enum Act {
    See { watch: usize, most: usize },
    SeeObjects(usize),
    Deliver { watch: usize, most: usize, duplicate: bool },
    List { watch: usize },
    Serve { n: usize, fault: Fault },
    Answer { n: usize },
    Lead(bool),
    Restart { done: bool },
    MakeAnew(Option<Wish>),
}

#[derive(Clone)]
pub struct History {
    pub setup: Setup,
    pub steps: Vec<Step>,
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  {:?}", self.setup)?;
        self.steps.iter().enumerate().try_for_each(|(index, step)| writeln!(f, "  {index:3} {step:?}"))
    }
}

/// The emphasis of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Theme {
    Everything,
    /// Writes fail.
    Faults,
    /// Groups are created and deleted.
    Groups,
    /// Pods are created and deleted while everything else progresses.
    Pods,
    /// Several replicas lead, and lag.
    Leaders,
    /// The watch of the group lags behind that of the pods.
    Late,
}

impl History {
    pub fn random(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut setup = Setup::random(&mut random);
        if seed % 5 == 1 {
            setup = setup.rolled(&mut random);
        }
        if seed % 5 == 2 {
            setup = setup.elastic(&mut random);
        }
        if seed % 10 == 3 {
            setup = setup.in_racks(&mut random);
        }
        if seed % 5 == 4 || seed % 10 == 6 {
            setup = setup.waiting(&mut random);
        }
        let themes = [Theme::Everything, Theme::Faults, Theme::Groups, Theme::Pods, Theme::Leaders, Theme::Late];
        let theme = random.pick(&themes);
        setup.two |= theme == Theme::Leaders;
        let length = 10 + random.below(50);
        let mut steps = Vec::new();
        if setup.rolling.is_some() && random.percent(85) {
            // Updates are coordinated only after a pod was ready.
            steps.push(Step::Flow(15));
        }
        for _ in 0..length {
            if setup.segments.is_some() && random.percent(15) {
                steps.push(Step::Want(random.below(6)));
                continue;
            }
            if setup.racks && random.percent(40) {
                steps.push(Step::of_racks(&mut random));
                continue;
            }
            if setup.readiness.is_some() && random.percent(40) {
                steps.push(Step::of_objects(&mut random));
                continue;
            }
            let rolls = setup.rolling.is_some() && random.percent(40);
            if rolls && random.percent(12) {
                steps.extend(Step::two_applies(&mut random));
                continue;
            }
            steps.push(if rolls { Step::of_rollout(&mut random) } else { Step::random(&mut random, theme, setup.two) });
        }
        Self { setup, steps }
    }
}

impl Step {
    fn random(random: &mut Random, theme: Theme, two: bool) -> Self {
        let replica = if two { random.below(2) as usize } else { 0 };
        let n = random.below(40) as usize;
        if !random.percent(30) {
            return Self::anything(random, replica, n);
        }
        match (theme, random.below(4)) {
            (Theme::Everything, _) => Self::anything(random, replica, n),
            (Theme::Faults | Theme::Pods, 0) => Self::Flow(1),
            (Theme::Faults, _) => Self::At(replica, Act::Serve { n, fault: Fault::random(random) }),
            (Theme::Groups, 0) => Self::DeleteGroup,
            (Theme::Groups, 1) if n.is_multiple_of(2) => Self::ReplaceGroup,
            (Theme::Groups, 1) => Self::CreateGroup(Wish::random(random)),
            (Theme::Groups, 2) => Self::Wait(Duration::from_secs(random.pick(&[1, 31, 70]))),
            (Theme::Groups, _) if n.is_multiple_of(4) => Self::CollectGarbage,
            (Theme::Groups, _) => Self::At(replica, Act::Deliver { watch: n % 2, most: 10, duplicate: false }),
            (Theme::Pods, 1) if n.is_multiple_of(4) => Self::Outage(random.percent(70)),
            (Theme::Pods, 1) if n % 8 == 1 => Self::Fade,
            (Theme::Pods, _) => {
                Self::Pod(random.pick(&[Fate::Ready, Fate::Unready, Fate::Failed, Fate::Evicted, Fate::Removed]), n)
            }
            (Theme::Late, 0) => Self::At(replica, Act::MakeAnew(n.is_multiple_of(2).then(|| Wish::random(random)))),
            (Theme::Late, _) => Self::Flow(1),
            (Theme::Leaders, 0) => Self::At(replica, Act::Lead(true)),
            (Theme::Leaders, 1) => Self::At(replica, Act::Serve { n, fault: Fault::None }),
            (Theme::Leaders, 2) => Self::At(replica, Act::Answer { n }),
            (Theme::Leaders, _) => Self::At(replica, Act::Deliver { watch: n % 2, most: 20, duplicate: false }),
        }
    }

    fn of_racks(random: &mut Random) -> Self {
        match random.below(22) {
            0..=5 => Self::Flow(1 + random.below(4)),
            6..=7 => Self::Wait(Duration::from_secs(random.pick(&[3, 61, 130]))),
            8..=13 => Self::Machine(random.below(6) as usize, MachineStep::random(random)),
            14..=16 => {
                let (replica, watch) = (random.below(2) as usize, random.below(2) as usize);
                Self::At(replica, Act::See { watch, most: 1 + random.below(20) as usize })
            }
            17 => Self::Pod(random.pick(&[Fate::Evicted, Fate::FreedByOthers]), random.below(40) as usize),
            20..=21 => Self::Autoscale(random.below(6) as usize),
            _ => Self::Scale(random.below(2) as usize, random.below(6)),
        }
    }

    /// A new version and more replicas of two roles, in two applies at most 20 seconds apart.
    fn two_applies(random: &mut Random) -> [Self; 4] {
        let (first, image) = (random.below(2) as usize, 1 + random.below(3));
        let apply = |random: &mut Random, role: usize| Self::Set(role, SetStep::Grow(image, random.below(5)));
        let pause = Duration::from_secs(random.pick(&[0, 3, 9, 12, 20]));
        [apply(random, first), Self::Flow(random.below(4)), Self::Wait(pause), apply(random, 1 - first)]
    }

    fn of_rollout(random: &mut Random) -> Self {
        match random.below(20) {
            0 => Self::Roll(random.percent(80).then(|| Rolling::random(random))),
            1..=4 => Self::Flow(1 + random.below(4)),
            5 => Self::Wait(Duration::from_secs(random.pick(&[11, 61]))),
            6 => Self::Resume,
            7 if random.percent(30) => Self::RollBack,
            _ => Self::Set(random.below(2) as usize % ROLLED, SetStep::random(random)),
        }
    }

    fn of_objects(random: &mut Random) -> Self {
        match random.below(20) {
            0..=5 => Self::Flow(1 + random.below(4)),
            6..=7 => Self::Wait(Duration::from_secs(random.pick(&[3, 21, 61]))),
            8..=16 => Self::Object(random.below(4) as usize, ObjectStep::random(random)),
            17 => Self::At(random.below(2) as usize, Act::SeeObjects(1 + random.below(5) as usize)),
            18 => Self::Resume,
            _ => Self::Readiness(Readiness::random(random)),
        }
    }

    fn anything(random: &mut Random, replica: usize, n: usize) -> Self {
        let role = random.pick(&[0, 0, 1, 1, 2]);
        let watch = random.pick(&[0, 0, 0, 1, 1, 2, 3, 4, 5]);
        match random.below(100) {
            0..=12 => Self::Flow(1 + random.below(4)),
            13..=17 => Self::Wait(Duration::from_millis(random.pick(&[5, 15, 250, 2_000, 31_000, 70_000]))),
            18..=27 => Self::Control { role, most: 1 + n % 6, stale: random.percent(10) },
            28..=45 => Self::Pod(random.pick(Fate::ALL), n),
            46..=49 => Self::Scale(role, random.below(6)),
            50 => Self::ScaleWorkload(role, random.below(6)),
            51..=53 => Self::Edit(Wish::random(random)),
            54 => Self::DeleteGroup,
            55 => Self::ReplaceGroup,
            56 => Self::CreateGroup(Wish::random(random)),
            57 => Self::Ignore(random.percent(30)),
            58..=71 => Self::At(replica, Act::Deliver { watch, most: 1 + n % 12, duplicate: random.percent(10) }),
            72..=73 => Self::At(replica, Act::List { watch }),
            74..=84 => {
                let fault = if random.percent(15) { Fault::random(random) } else { Fault::None };
                Self::At(replica, Act::Serve { n, fault })
            }
            85..=94 => Self::At(replica, Act::Answer { n }),
            95 if n.is_multiple_of(4) => Self::CollectGarbage,
            95 if n % 4 == 1 => Self::Fade,
            95 => Self::Outage(random.percent(70)),
            96..=97 => Self::At(replica, Act::Lead(random.percent(70))),
            _ => Self::At(replica, Act::Restart { done: random.percent(50) }),
        }
    }
}

impl Fate {
    const ALL: &[Self] = &[
        Self::Scheduled,
        Self::Ready,
        Self::Unready,
        Self::Failed,
        Self::Evicted,
        Self::Removed,
        Self::Removed,
        Self::GatedByOthers,
        Self::FreedByOthers,
        Self::LiftedByOthers,
    ];
}

impl Fault {
    fn random(random: &mut Random) -> Self {
        match random.below(3) {
            0 => Self::AnswerLost,
            _ => Self::Refused(random.pick(&[403, 409, 422, 429, 500, 404])),
        }
    }
}
