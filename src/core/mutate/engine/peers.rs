//! The addresses of the replicas that serve together with a pod: a variable for each role of its segment. In a Grove set, the scope of
//! discovery stands for the segment.

use std::collections::BTreeSet;

use crate::model::clique_set::{clique_name, env_name, is_role_name};
use crate::mutate::context::{Coordinated, MutationContext};

/// The most addresses of a variable: an environment has little room.
const MOST: usize = 256;

/// Returns name and value of the variables; none where the pod is in no segment.
///
/// # Errors
///
/// When a role has too many addresses.
pub(super) fn of(context: &MutationContext<'_>) -> Result<Vec<(String, String)>, String> {
    let suffix = format!("{}.svc.{}", context.subject.namespace(), context.settings.cluster_domain);
    let mut variables = Vec::new();
    let mut seen = BTreeSet::new();
    for (role, hosts) in roles(context) {
        let name = env_name(&role);
        if hosts.is_empty() || !is_role_name(&role) || !seen.insert(name.clone()) {
            continue;
        }
        if hosts.len() > MOST {
            let most = format!("the segment has more than {MOST} replicas of role {role:?}");
            return Err(format!("{name}_ADDRS is left out: {most}"));
        }
        let addresses: Vec<_> = hosts.iter().map(|host| format!("{host}.{suffix}")).collect();
        variables.push((format!("{name}_ADDRS"), addresses.join(",")));
    }
    Ok(variables)
}

/// Returns the roles of the pod's segment, each with the hosts of its replicas: one more than may be listed at most.
fn roles(context: &MutationContext<'_>) -> Vec<(String, Vec<String>)> {
    let most = u32::try_from(MOST).unwrap_or(u32::MAX).saturating_add(1);
    if let (Some(place), Some(set)) = (&context.subject.place, context.lookups.clique_set) {
        let group = place.scaling_group.as_ref().map(|(name, copy)| (name.as_str(), *copy));
        let service = place.service(context.pod);
        let cliques = set.scope(group.map(|(name, _)| name)).unwrap_or_default().into_iter();
        let with_roles = cliques.filter_map(|clique| Some((clique, clique.role.clone()?)));
        return with_roles
            .map(|(clique, role)| {
                let name = clique_name(&place.set, place.set_replica, group, &clique.name);
                let hosts = (0..clique.replicas.min(most)).map(|index| format!("{name}-{index}.{service}"));
                (role, hosts.collect())
            })
            .collect();
    }
    let Some(Coordinated { group, role, ordinal: Some(ordinal) }) = context.coordinated else { return Vec::new() };
    let Some((batching, segment)) = group.batching_of(role).and_then(|of| Some((of, of.batch_of(role, ordinal)?)))
    else {
        return Vec::new();
    };
    let with_hosts = group.roles.iter().filter_map(|role| Some((role, role.workload.hosts.as_ref()?)));
    with_hosts
        .map(|(role, hosts)| {
            let ordinals = batching.ordinals(&role.name, segment, role.desired);
            let end = ordinals.end.min(ordinals.start.saturating_add(most));
            (role.name.clone(), (ordinals.start..end).filter_map(|ordinal| hosts.of(ordinal)).collect())
        })
        .collect()
}
