//! Names that pods get from the name of their workload. No controller shortens them: the API server refuses the pods.

use crate::model::object_name::LABEL_MAX;
use crate::model::{FieldPath, Group, Role, names};
use crate::rules::{Cause, Known, Report, World};

/// Maximum length of the hash in the name of a StatefulSet's revision, which its pods have as a label.
const REVISION_HASH: usize = 10;

/// Warns where the pods of a role would have a label or a hostname that is too long.
pub(super) fn lengths(group: &Group, world: &World, report: &mut Report) {
    for role in &group.roles {
        let set = last_set(role, world).filter(|set| set.len() + 1 + REVISION_HASH > LABEL_MAX);
        let detail = if let Some(set) = set {
            let label = names::CONTROLLER_REVISION;
            format!(
                "makes label {label} of {set:?}, a hyphen and a hash of up to {REVISION_HASH}; pods on which it has more than \
                 {LABEL_MAX} bytes are not created"
            )
        } else if let Some(hostname) = last_hostname(role).filter(|hostname| hostname.len() > LABEL_MAX) {
            format!("makes hostname {hostname:?}; pods with one of more than {LABEL_MAX} bytes are not created")
        } else {
            continue;
        };
        report.warn(&role.name, name_of(role), Cause::TooLong, None, detail);
    }
}

/// Returns the name of the last StatefulSet that makes pods of the role: its workload, or that of the workers in the last group
/// of a LeaderWorkerSet. Ordinals are not longer than the hash, so that hostnames fit where the label does.
fn last_set(role: &Role, world: &World) -> Option<String> {
    let key = role.workload.key.as_ref().filter(|key| key.kind.row().numbered)?;
    let has_workers = matches!(world.workload(key), Known::Present(workload) if workload.replica_size > 1);
    Some(if has_workers { format!("{}-{}", key.name, last(role)) } else { key.name.clone() })
}

/// Returns the hostname of the first pod of the last replica.
fn last_hostname(role: &Role) -> Option<String> {
    let host = role.workload.hosts.as_ref()?.of(last(role))?;
    host.split_once('.').map(|(hostname, _)| hostname.to_owned())
}

fn last(role: &Role) -> u32 {
    role.desired.saturating_sub(1)
}

/// Returns the path of the name: that of the workload, or that of the role after which RBG names the workload.
fn name_of(role: &Role) -> FieldPath {
    role.workload.reference.as_ref().map_or(&role.at, |(_, at)| at).child("name")
}
