//! Fields that may not change while pods depend on them.

use std::collections::BTreeSet;

use crate::model::{Coordination, Domain, FieldPath, Group};
use crate::rules::{Change, Known, Need, Report, World};

/// Refuses changes of size, topology key and layer of a coordination with topology while its pods exist: the affinity of the
/// pods names the old batches and is immutable. Plain segments may change.
pub(super) fn batches(change: &Change<'_, Group>, world: &World, report: &mut Report) {
    for new in &change.new.coordinations {
        let name = new.display_name();
        let Some(old) = change.old.coordinations.iter().find(|old| old.display_name() == name) else { continue };
        let faults = differences(old, new);
        if faults.is_empty() {
            continue;
        }
        match have_pods(change.new, old, new, world) {
            Known::Present(()) => {
                for (path, value) in faults {
                    let detail = format!("may not change from {value} while pods of coordination {name:?} exist");
                    report.forbid(&name, path, detail);
                }
            }
            Known::Absent => {}
            Known::Unknown => {
                let role = new.role_names().into_iter().next().unwrap_or_default().to_owned();
                let need = Need::Pods { group: change.new.key.clone(), role };
                report.not_judged(&name, new.at.clone(), &need);
            }
        }
    }
}

/// Returns the changed fields with their old values.
fn differences(old: &Coordination, new: &Coordination) -> Vec<(FieldPath, String)> {
    let (Some(before), Some(after)) = (old.batching(), new.batching()) else { return Vec::new() };
    let (topology, now) = (before.topology.as_ref(), after.topology.as_ref());
    if topology.is_none() && now.is_none() {
        return Vec::new();
    }
    let mut found = Vec::new();
    let (was, is) = (topology.map(|t| &t.domain), now.map(|t| &t.domain));
    if was != is {
        found.push((now.map_or_else(|| after.at.clone(), |t| t.domain_at.clone()), domain(was)));
    }
    let roles: BTreeSet<_> = before.sizes.keys().chain(after.sizes.keys()).collect();
    for role in roles {
        let (was, is) = (before.sizes.get(role), after.sizes.get(role));
        if was != is {
            let was = was.map_or_else(|| "none".to_owned(), ToString::to_string);
            found.push((after.sizes_at.key(role.as_str()), was));
        }
    }
    found
}

fn domain(domain: Option<&Domain>) -> String {
    match domain {
        None => "no topology".to_owned(),
        Some(Domain::Key(key)) => format!("{key:?}"),
        Some(Domain::Layer { topology, layer }) => format!("layer {layer:?} of {topology:?}"),
    }
}

fn have_pods(group: &Group, old: &Coordination, new: &Coordination, world: &World) -> Known<()> {
    let roles: BTreeSet<_> = old.role_names().into_iter().chain(new.role_names()).collect();
    let known: Vec<_> = roles.into_iter().map(|role| world.has_pods(&group.key, role)).collect();
    if known.contains(&Known::Present(())) {
        Known::Present(())
    } else if known.contains(&Known::Unknown) {
        Known::Unknown
    } else {
        Known::Absent
    }
}
