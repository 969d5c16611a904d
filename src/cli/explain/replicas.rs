//! The replicas that keep a batch from going, with their unready pods.

use std::sync::Arc;

use std::fmt::Write as _;

use serde::Serialize;

use crate::cli::terminal::Table;
use crate::model::Queued;
use crate::plan::{Held, PodFacts, waits_for};
use crate::report::Picture;

/// A replica that a coordination waits for.
#[derive(Debug, Serialize)]
pub struct Awaited {
    role: String,
    ordinal: u32,
    state: &'static str,
    /// Pods of the replica that are not ready.
    pods: Vec<String>,
}

/// Maximum number of replicas in text output.
const MOST: usize = 8;

/// Returns the replicas that the coordination of this hold waits for.
pub fn awaited(picture: &Picture, held: &Held) -> Vec<Awaited> {
    let Some((group, coordination)) = picture.group().zip(held.coordination.as_ref()) else { return Vec::new() };
    let missing = waits_for(group, &picture.seen.view, &picture.seen.decision.targets, coordination.index);
    let of = |missing: crate::plan::Missing| {
        let is_of = |pod: &&Arc<PodFacts>| {
            pod.identity.role.as_deref() == Some(&missing.role) && pod.identity.ordinal == Some(missing.ordinal)
        };
        let pods: Vec<_> = picture.snapshot.pods.iter().filter(is_of).filter(|pod| !pod.ready).collect();
        let state = match missing.replica {
            None => "does not exist",
            Some(replica) if replica.pods < replica.size => "lacks pods",
            Some(replica) if replica.held > 0 => "is held",
            Some(_) if pods.iter().any(|pod| pod.queued == Queued::Waits) => "waits for Kueue",
            Some(replica) if replica.scheduled < replica.size => "has no node",
            Some(_) => "is not ready",
        };
        let pods = pods.into_iter().map(|pod| pod.pod.name.to_string()).collect();
        Awaited { role: missing.role, ordinal: missing.ordinal, state, pods }
    };
    missing.into_iter().map(of).collect()
}

/// Returns the first replicas as lines.
pub fn lines(awaited: &[Awaited], indent: usize) -> String {
    let mut table = Table::default();
    for replica in awaited.iter().take(MOST) {
        let name = format!("{} {}", replica.role, replica.ordinal);
        table.row([name, replica.state.to_owned(), replica.pods.join(" ")]);
    }
    let mut text = table.text(indent);
    if awaited.len() > MOST {
        _ = writeln!(text, "{:indent$}and {} more", "", awaited.len() - MOST);
    }
    text
}
