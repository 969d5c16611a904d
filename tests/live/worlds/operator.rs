//! A stand-in for the operators of other projects: what they were seen to do, habit by habit, over and over against the real
//! API server, under an account of its own.

use std::sync::Mutex;

use k8s_openapi::NamespaceResourceScope;
use kube::Resource;
use kube::core::{ApiResource, GroupVersionKind};
use tokio_util::task::AbortOnDropHandle;

use super::habits::Habit;
use crate::common::prelude::*;
use crate::policies::cluster::{client_as, grant};

/// Between two turns. Operators come when something changes, and not more seldom than this where they fight over it.
const RESYNC: Duration = Duration::from_millis(100);
/// The ClusterRole of all stand-ins: everything that an operator does, and not the right to open holds.
pub const ROLE: &str = "stand-in";

/// What an operator knows.
pub struct World {
    pub client: Client,
    pub namespace: String,
    /// The group that it keeps.
    pub group: String,
    wanted: Mutex<Wanted>,
}

/// What it wants to be there.
#[derive(Clone, Default)]
pub struct Wanted {
    /// StatefulSets as it would make them.
    pub sets: Vec<Value>,
    /// Pods as it would make them.
    pub pods: Vec<Value>,
}

impl World {
    pub fn wanted(&self) -> Wanted {
        self.wanted.lock().unwrap().clone()
    }

    /// The API of a namespaced kind.
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// The API of groups.
    pub fn groups(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("workloads.x-k8s.io", "v1alpha1", "RoleBasedGroup");
        Api::namespaced_with(self.client.clone(), &self.namespace, &ApiResource::from_gvk(&kind))
    }
}

/// What it has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Writes that were taken, by habit.
    pub writes: BTreeMap<&'static str, u32>,
    /// The last write that was refused, by habit, and how often one was.
    pub refused: BTreeMap<&'static str, (u32, String)>,
}

impl Done {
    /// Writes of a habit.
    pub fn of(&self, habit: &Habit) -> u32 {
        self.writes.get(habit.name).copied().unwrap_or(0)
    }
}

/// A running one; it ends with this handle.
pub struct Operator {
    world: Arc<World>,
    done: Arc<Mutex<Done>>,
    _task: AbortOnDropHandle<()>,
}

impl Operator {
    /// Starts one that keeps a group of a stage, and has these habits.
    pub async fn start(stage: &Stage, group: &str, wanted: Wanted, habits: &[&'static Habit]) -> Self {
        let user = format!("operator-of-{}", stage.namespace);
        grant(&stage.plane, &stage.namespace, ROLE, &user);
        let world = Arc::new(World {
            client: client_as(&stage.plane, &user).await,
            namespace: stage.namespace.clone(),
            group: group.to_owned(),
            wanted: Mutex::new(wanted),
        });
        let done = Arc::new(Mutex::new(Done::default()));
        let task = tokio::spawn(keep(world.clone(), habits.to_vec(), done.clone()));
        Self { world, done, _task: AbortOnDropHandle::new(task) }
    }

    /// Has it want something else.
    pub fn want(&self, change: impl FnOnce(&mut Wanted)) {
        change(&mut self.world.wanted.lock().unwrap());
    }

    /// What it has done so far.
    pub fn done(&self) -> Done {
        self.done.lock().unwrap().clone()
    }
}

async fn keep(world: Arc<World>, habits: Vec<&'static Habit>, done: Arc<Mutex<Done>>) {
    let mut resync = tokio::time::interval(RESYNC);
    resync.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        resync.tick().await;
        for habit in &habits {
            let turn = (habit.turn)(&world).await;
            let mut done = done.lock().unwrap();
            match turn {
                Ok(0) => {}
                Ok(writes) => *done.writes.entry(habit.name).or_default() += writes,
                // Somebody was faster, or there is nothing yet: it comes again.
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
                Err(error) => {
                    let refused = done.refused.entry(habit.name).or_default();
                    *refused = (refused.0 + 1, error.to_string());
                }
            }
        }
    }
}
