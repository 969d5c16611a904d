//! The cluster with its rolegates, and the effect of steps.

use crate::history::{Act, Fate, Step};
use crate::invariants;
use crate::nature;
use crate::prelude::*;
use crate::replica::Fault;
use crate::rollbacks;
use crate::server::WATCHES;

/// Longer than unready pods count as existing.
const UNREADY_FOR: Duration = Duration::from_secs(31);

pub struct World {
    pub server: Server,
    pub replicas: Vec<Replica>,
    pub now: Duration,
    /// Whether pods cannot become ready.
    outage: bool,
    pub sabotage: Option<Sabotage>,
}

impl World {
    pub fn new(setup: &Setup, sabotage: Option<Sabotage>) -> Self {
        let mut server = Server::new(setup);
        server.create_group(setup.wish.clone(), setup.replicas);
        let count = if setup.two { 2 } else { 1 };
        let replicas = (0..count).map(|index| Replica::new(Duration::ZERO, index == 0, sabotage)).collect();
        Self { server, replicas, now: Duration::ZERO, outage: false, sabotage }
    }

    /// Lets each loop do what is due.
    pub fn turn(&mut self) -> Result<bool, Broken> {
        self.server.now = self.now;
        let (server, now) = (&self.server, self.now);
        let mut acted = false;
        for replica in &mut self.replicas {
            acted |= replica
                .turn(now, |replica, snapshot, requests| invariants::pass(replica, snapshot, requests, server, now))?;
        }
        Ok(acted)
    }

    pub fn step(&mut self, step: &Step) -> Result<(), Broken> {
        self.now += Duration::from_millis(1);
        self.server.now = self.now;
        let server = &mut self.server;
        match step.clone() {
            Step::Flow(rounds) => {
                for _ in 0..rounds {
                    self.flow()?;
                }
            }
            Step::Wait(time) => self.now += time,
            Step::Control { role, most, stale } => _ = server.control(role, most, stale),
            Step::Set(role, step) => _ = server.set_step(role, step),
            Step::Roll(rolling) => server.edit_group(|group| group.rolling = rolling),
            Step::Resume => _ = server.resume(),
            Step::RollBack => server.roll_back(),
            Step::Object(n, step) => server.object_step(n, step),
            Step::Readiness(readiness) => {
                let of_steps = server.setup.rolling.is_some();
                server.edit_group(|group| group.wait_for(readiness, of_steps));
            }
            Step::Pod(fate, n) => fall(server, fate, n),
            Step::Machine(n, step) => server.machine_step(n, step),
            Step::Autoscale(n) => server.autoscale(n),
            Step::Outage(begins) => {
                self.outage(begins);
                if begins {
                    self.flow()?;
                    self.now += UNREADY_FOR;
                    self.flow()?;
                }
            }
            Step::Fade => self.fade()?,
            Step::Scale(role, replicas) => {
                server.edit_group(|group| group.replicas[role] = replicas);
                if server.setup.operator || server.setup.refers {
                    server.scale_workload(role, replicas);
                }
            }
            Step::ScaleWorkload(role, replicas) => server.scale_workload(role, replicas),
            Step::Want(segments) => server.edit_group(|group| {
                group.segments = group.segments.map(|_| segments);
            }),
            Step::Edit(wish) => {
                let wish = server.setup.admitted(wish);
                server.edit_group(|group| group.wish = wish);
            }
            Step::DeleteGroup => server.delete_group(),
            Step::CreateGroup(wish) => {
                if server.group.is_none() {
                    server.create_group(server.setup.admitted(wish), server.workloads);
                }
            }
            Step::ReplaceGroup => server.replace_group(),
            Step::CollectGarbage => server.collect_garbage(),
            Step::Ignore(ignored) => server.ignore(ignored),
            Step::At(replica, act) => self.act(replica.min(self.replicas.len() - 1), act)?,
        }
        rollbacks::never_again(&mut self.server)?;
        self.turn()?;
        Ok(())
    }

    fn act(&mut self, index: usize, act: Act) -> Result<(), Broken> {
        let (server, replica) = (&mut self.server, &mut self.replicas[index]);
        match act {
            Act::See { watch, most } => (0..most).for_each(|_| _ = replica.room.see(watch, server)),
            Act::SeeObjects(most) => (0..most).for_each(|_| _ = replica.see_object(server)),
            Act::Deliver { watch, most, duplicate } => {
                (0..most).for_each(|n| _ = replica.deliver(watch, server, duplicate && n == 0));
            }
            Act::List { watch } => replica.list(watch, server),
            Act::Serve { n, fault } => _ = replica.serve(n, fault, server)?,
            Act::Answer { n } => _ = replica.answer(n, self.now),
            Act::Lead(leads) => replica.lead(leads, self.now),
            Act::Restart { done } => {
                while done && replica.serve(0, Fault::None, server)? {}
                *replica = Replica::new(self.now, replica.leads, self.sabotage);
            }
            Act::MakeAnew(wish) => self.make_anew(index, wish)?,
        }
        Ok(())
    }

    /// Starts or ends the outage of a dependency of all pods.
    pub fn outage(&mut self, begins: bool) {
        self.outage = begins;
        if begins {
            for pod in self.server.pods_that(nature::is_ready) {
                self.server.set_ready(&pod, false);
            }
        }
    }

    /// Lets a slow cause break one batch after another, and ends it.
    fn fade(&mut self) -> Result<(), Broken> {
        self.outage = true;
        for _ in 0..5 {
            let Some(pod) = self.server.pods_that(nature::is_ready).into_iter().last() else { break };
            self.server.set_ready(&pod, false);
            self.flow()?;
            self.now += UNREADY_FOR;
            (0..3).try_for_each(|_| self.flow().map(|_| ()))?;
        }
        self.outage = false;
        (0..4).try_for_each(|_| self.flow().map(|_| ()))
    }

    /// Recreates the group and its pods, and delivers only the pods to a replica.
    fn make_anew(&mut self, replica: usize, wish: Option<Wish>) -> Result<(), Broken> {
        match wish {
            Some(wish) => {
                let wish = self.server.setup.admitted(wish);
                self.server.edit_group(|group| group.wish = wish);
            }
            None => self.server.replace_group(),
        }
        for pod in self.server.pods_that(|_| true) {
            self.server.delete_pod(&pod);
        }
        (0..ROLES.len()).for_each(|role| _ = self.server.control(role, 100, false));
        while self.replicas[replica].deliver(0, &self.server, false) {}
        for _ in 0..3 {
            self.now += Duration::from_millis(11);
            self.turn()?;
            while self.replicas[replica].serve(0, Fault::None, &mut self.server)? {}
            while self.replicas[replica].answer(0, self.now) {}
        }
        Ok(())
    }

    /// Runs a round in which everything progresses; returns whether anything did.
    pub fn flow(&mut self) -> Result<bool, Broken> {
        let before = self.server.version;
        let mut moved = false;
        self.server.now = self.now;
        (0..ROLES.len()).for_each(|role| _ = self.server.control(role, 100, false));
        for pod in self.server.pods_that(|pod| pod.metadata.is_deleting()) {
            self.server.delete_pod(&pod);
        }
        for (role, step) in (0..ROLLED).flat_map(|role| [(role, SetStep::Observe), (role, SetStep::Replace)]) {
            self.server.set_step(role, step);
        }
        for pod in self.server.pods_that(nature::is_unscheduled) {
            self.server.schedule(&pod);
        }
        if !self.outage {
            let server = &self.server;
            for pod in server.pods_that(|pod| nature::is_unready(pod) && !server.is_broken(pod)) {
                self.server.set_ready(&pod, true);
            }
        }
        for replica in &mut self.replicas {
            (0..WATCHES).for_each(|watch| {
                while replica.deliver(watch, &self.server, false) {
                    moved = true;
                }
            });
        }
        for replica in &mut self.replicas {
            (0..2).for_each(|watch| while replica.room.see(watch, &self.server) {});
            while replica.see_object(&self.server) {
                moved = true;
            }
        }
        self.now += Duration::from_millis(11);
        moved |= self.turn()?;
        for index in 0..self.replicas.len() {
            while self.replicas[index].serve(0, Fault::None, &mut self.server)? {
                moved = true;
            }
            while self.replicas[index].answer(0, self.now) {
                moved = true;
            }
        }
        moved |= self.turn()?;
        rollbacks::never_again(&mut self.server)?;
        if !moved && self.server.version == before {
            // Garbage collection is slow.
            self.server.collect_garbage();
        }
        Ok(moved || self.server.version != before)
    }
}

fn fall(server: &mut Server, fate: Fate, n: usize) {
    let pods = server.pods_that(|pod| match fate {
        Fate::Scheduled => nature::is_unscheduled(pod),
        Fate::Ready => nature::is_unready(pod) && !server.is_broken(pod),
        Fate::Unready => nature::is_ready(pod),
        Fate::Failed => !pod.is_gone() && pod.spec.node_name.is_some(),
        Fate::Evicted => !pod.is_gone(),
        Fate::Removed => pod.metadata.is_deleting(),
        Fate::GatedByOthers => nature::is_gated(pod) && !pod.has_gate(FOREIGN),
        Fate::FreedByOthers => pod.has_gate(FOREIGN),
        Fate::LiftedByOthers => pod.has_gate(names::GATE),
    });
    let Some(name) = (!pods.is_empty()).then(|| pods[n % pods.len()].clone()) else { return };
    match fate {
        Fate::Scheduled => server.schedule(&name),
        Fate::Ready => server.set_ready(&name, true),
        Fate::Unready => server.set_ready(&name, false),
        Fate::Failed => server.fail(&name),
        Fate::Evicted => server.evict(&name),
        Fate::Removed => server.delete_pod(&name),
        Fate::GatedByOthers => server.gate(&name),
        Fate::FreedByOthers => server.lift(&name, FOREIGN),
        Fate::LiftedByOthers => {
            server.uncounted = true;
            server.lift(&name, names::GATE);
        }
    }
}
