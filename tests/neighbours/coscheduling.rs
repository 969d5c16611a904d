//! Coscheduling of scheduler-plugins: its kube-scheduler beside the cluster's own, and its controller of PodGroups.

use std::sync::{LazyLock, Mutex};

use crate::common::prelude::*;
use crate::gangs::{self, Gangs, gang_stories};
use crate::program::{Neighbour, Running};

static COSCHEDULING: Neighbour = Neighbour { name: "coscheduling", module: "sigs.k8s.io/scheduler-plugins" };
const SCHEDULER: &str = "coscheduling";

struct World {
    plane: Arc<ControlPlane>,
    programs: Mutex<[Running; 2]>,
}

static WORLD: LazyLock<Arc<World>> = LazyLock::new(|| gangs::start(begin));

fn begin() -> World {
    let plane = gangs::plane(&COSCHEDULING, &["crds"]);
    let kubeconfig = plane.kubeconfig.to_str().unwrap();
    // As its own manifest has it, but for the name of the profile.
    let profile = json!({
        "schedulerName": SCHEDULER,
        "plugins": {
            "multiPoint": { "enabled": [{ "name": "Coscheduling" }] },
            "queueSort": { "enabled": [{ "name": "Coscheduling" }], "disabled": [{ "name": "*" }] },
        },
        "pluginConfig": [{ "name": "Coscheduling", "args": { "permitWaitingTimeSeconds": 10 } }],
    });
    let config = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": { "leaderElect": false },
        "clientConnection": { "kubeconfig": kubeconfig },
        "profiles": [profile],
    });
    let file = plane.dir.join("conf/coscheduling.json");
    std::fs::write(&file, config.to_string()).unwrap();
    // A gang whose wake-up was lost between two tries is tried again after this; by default after five minutes.
    let again = "--pod-max-in-unschedulable-pods-duration=5s";
    let arguments = ["--config", file.to_str().unwrap(), "--secure-port=0", "--bind-address=127.0.0.1", again];
    let scheduler = COSCHEDULING.start("scheduler", &arguments, &[]);
    let nowhere = ["--metricsAddr=0", "--probeAddr=0"];
    let controller = COSCHEDULING.start("controller", &nowhere, &[("KUBECONFIG", kubeconfig)]);
    World { plane, programs: Mutex::new([scheduler, controller]) }
}

fn gangs() -> Gangs {
    Gangs {
        neighbour: &COSCHEDULING,
        scheduler: SCHEDULER,
        api: ("scheduling.x-k8s.io", "v1alpha1"),
        policy: json!({ "kubeScheduling": { "scheduleTimeoutSeconds": 5 } }),
    }
}

async fn stage(name: &str) -> Stage {
    gangs::all_run(&mut *WORLD.programs.lock().unwrap());
    Stage::on(WORLD.plane.clone(), name).await
}

gang_stories!("cosched", gangs(), stage, "make neighbours builds coscheduling");
