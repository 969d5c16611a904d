//! The third act: six pods must share a rack, and one rack has room for five.

use std::collections::BTreeMap;

use futures::stream::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt};

use crate::screen;
use crate::stage::{Stage, StageError};

/// A rack: name, CPUs per node, and its nodes with their numbers of pods.
type Rack = (&'static str, &'static str, &'static [(&'static str, usize)]);

/// The node of the small rack has the most CPUs.
const RACKS: [Rack; 2] = [("small", "64", &[("small-1", 5)]), ("large", "8", &[("large-1", 3), ("large-2", 3)])];

/// Shows the deadlock, then the same pods placed.
pub async fn play(stage: &mut Stage) -> Result<(), StageError> {
    screen::title("Two racks: a small one with room for five pods, and a large one; six pods must share one");
    for (rack, cpu, nodes) in RACKS {
        for (node, pods) in nodes {
            stage.node(node, &[("example.com/rack", rack), ("kubernetes.io/hostname", node)], cpu, *pods).await?;
        }
    }
    // New nodes are tainted for a moment: the scheduler must be able to choose among all.
    for node in RACKS.iter().flat_map(|(_, _, nodes)| nodes.iter()) {
        stage.until_takes_pods(node.0).await?;
    }
    println!("{}", stage.kubectl(&["apply", "-f", "examples/racks-plain.yaml"])?);
    let bound = until(stage, "plain-", |pods| pods.bound() == 5 && pods.unschedulable == 1).await?;
    bound.draw();
    println!("   The scheduler has looked at one pod after the other: the sixth waits for ever, and five wait for it.");
    let delete = ["delete", "-f", "examples/racks-plain.yaml", "--cascade=foreground", "--timeout=60s"];
    println!();
    println!("{}", stage.kubectl(&delete)?);

    screen::title("The same with rolegate (examples/racks.yaml): it looks at all six before the first one goes");
    println!("{}", stage.kubectl(&["apply", "-f", "examples/racks.yaml"])?);
    let bound = until(stage, "racks-", |pods| pods.bound() == 6).await?;
    bound.draw();
    println!("{}", stage.kubectl(&["get", "rolebasedgroup", "llm-racks"])?);
    Ok(())
}

/// Pods with a common name prefix.
#[derive(Default)]
struct Pods {
    /// Number of pods by node.
    nodes: BTreeMap<String, usize>,
    unschedulable: usize,
}

impl Pods {
    fn bound(&self) -> usize {
        self.nodes.values().sum()
    }

    fn draw(&self) {
        let rack = |(rack, _, nodes): &Rack| {
            let boxes: Vec<_> = nodes.iter().map(|(node, room)| self.node(node, *room)).collect();
            let row = |at: usize| boxes.iter().filter_map(|rows| rows.get(at)).cloned().collect::<Vec<_>>().join(" ");
            let width = row(0).chars().count();
            [format!("{rack:width$}"), row(0), row(1), row(2)]
        };
        let racks = RACKS.each_ref().map(rack);
        for line in 0..4 {
            let parts: Vec<_> = racks.iter().filter_map(|rows| rows.get(line)).cloned().collect();
            println!("   {}", parts.join("      "));
        }
    }

    fn node(&self, node: &str, room: usize) -> [String; 3] {
        let used = self.nodes.get(node).copied().unwrap_or_default();
        let line = "─".repeat(room);
        [format!("┌{line}┐"), format!("│{}│", screen::bar(used, used, room)), format!("└{line}┘")]
    }
}

/// Watches until a condition holds for the pods with this name prefix.
async fn until(stage: &Stage, names: &str, holds: impl Fn(&Pods) -> bool) -> Result<Pods, StageError> {
    let api: Api<Pod> = Api::default_namespaced(stage.client.clone());
    let mut events = watcher(api, watcher::Config::default()).default_backoff().boxed();
    let mut known = BTreeMap::new();
    while let Some(event) = events.next().await {
        match event.map_err(|error| StageError::Watch(error.to_string()))? {
            watcher::Event::Apply(pod) | watcher::Event::InitApply(pod) => drop(known.insert(pod.name_any(), pod)),
            watcher::Event::Delete(pod) => drop(known.remove(&pod.name_any())),
            watcher::Event::Init | watcher::Event::InitDone => {}
        }
        let mut pods = Pods::default();
        for (_, pod) in known.iter().filter(|(name, _)| name.starts_with(names)) {
            let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
            let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
            pods.unschedulable += conditions.filter(|found| found.reason.as_deref() == Some("Unschedulable")).count();
            if let Some(node) = node {
                *pods.nodes.entry(node).or_default() += 1;
            }
        }
        if holds(&pods) {
            return Ok(pods);
        }
    }
    Err(StageError::NotObserved(format!("the pods {names}…")))
}
