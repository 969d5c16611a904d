//! Addresses by which the pods of a group find each other.

use crate::api::Object;
use crate::api::service::Service;
use crate::model::workload_kind::PodController;
use crate::model::{Group, GroupKey, Role, names};
use crate::rules::engine::meets_other_replicas;
use crate::rules::{Known, Need, Report, World};

/// Returns the Services in the addresses of first pods that the user creates. Those of LeaderWorkerSets and RoleBasedGroups
/// are created by their operators.
fn services(group: &Group) -> impl Iterator<Item = (&Role, GroupKey)> {
    given(group).filter_map(|role| {
        let host = role.workload.hosts.as_ref()?.first()?;
        let (_, service) = host.split_once('.')?;
        Some((role, GroupKey::new(&group.key.namespace, service)))
    })
}

/// Returns the roles of StatefulSets whose addresses pods are given: by discovery, or since their engine meets other replicas.
fn given(group: &Group) -> impl Iterator<Item = &Role> {
    group.roles.iter().filter(|role| is_set(role) && (group.discovery || meets_other_replicas(role)))
}

fn is_set(role: &Role) -> bool {
    let key = role.workload.key.as_ref().filter(|_| role.workload.reference.is_some());
    key.is_some_and(|key| key.kind.row().controller == PodController::Itself)
}

pub(super) fn needs(group: &Group) -> impl Iterator<Item = Need> {
    services(group).map(|(_, service)| Need::Service(service))
}

/// Warns where the given addresses do not resolve, or only once the pods are ready.
pub(super) fn addresses(group: &Group, world: &World, report: &mut Report) {
    for role in given(group) {
        let Some((reference, at)) = role.workload.reference.as_ref() else { continue };
        if role.workload.hosts.is_none() && !role.workload.desired_is_unknown {
            let detail = format!(
                "{} {:?} has no `serviceName`: no pod is given the address of role {:?}",
                reference.kind, reference.name, role.name
            );
            report.notice(&role.name, at.clone(), detail);
        }
    }
    for (role, key) in services(group) {
        let Some((_, at)) = role.workload.reference.as_ref() else { continue };
        let what = match world.service(&key) {
            Known::Present(service) => {
                if let Some(detail) = selects_others(role, service) {
                    report.notice(&role.name, at.clone(), detail);
                }
                wrong(service)
            }
            Known::Absent => Some(ABSENT),
            Known::Unknown => {
                report.not_judged(&role.name, at.clone(), &Need::Service(key.clone()));
                None
            }
        };
        if let Some(what) = what {
            let detail =
                format!("Service {:?} {what}: the address of role {:?} does not resolve", &*key.name, role.name);
            let detail = match what {
                NOT_PUBLISHED => format!("{detail} before its pods are ready"),
                ABSENT => format!("{detail}{}", to_apply(role, &key.name)),
                _ => detail,
            };
            report.notice(&role.name, at.clone(), detail);
        }
    }
}

/// Warns of an annotation that has an effect on sets of Grove only.
pub(super) fn scope(group: &Group, _: &World, report: &mut Report) {
    if let Some(path) = &group.misplaced_scope {
        let detail = "has an effect on a PodCliqueSet only; with annotation `rolegate.dev/discovery: enabled` the pods of a group \
                      find all its roles";
        report.notice(names::DISCOVERY_SCOPE, path.clone(), detail);
    }
}

/// Returns why the Service selects none of the role's pods. A label that the template lacks may be given by a controller or a
/// webhook, and those of a StatefulSet's controller are its own whatever the template says.
fn selects_others(role: &Role, service: &Service) -> Option<String> {
    let of_pods = |key: &String| role.workload.labels.get(key).filter(|_| !OF_CONTROLLER.contains(&&**key));
    let mut selected = service.spec.selector.iter().filter_map(|(key, value)| Some((key, value, of_pods(key)?)));
    let (key, value, own) = selected.find(|(_, value, own)| value != own)?;
    Some(format!(
        "Service {:?} selects pods with `{key}: {value}`, and those of role {:?} have `{key}: {own}`: the address of the role does \
         not resolve",
        service.meta().display_name(),
        role.name
    ))
}

/// Returns the Service that a role lacks, as far as the labels of its pods tell.
fn to_apply(role: &Role, name: &str) -> String {
    let labels = &role.workload.labels;
    let ours: Vec<_> = [names::GROUP, names::ROLE].iter().filter_map(|key| labels.get_key_value(*key)).collect();
    let all = if ours.len() == 2 { ours } else { labels.iter().collect() };
    if all.is_empty() {
        return String::new();
    }
    let selector: Vec<_> = all.into_iter().map(|(key, value)| format!("{key}: {value:?}")).collect();
    format!(
        "; apply {{apiVersion: v1, kind: Service, metadata: {{name: {name}}}, spec: {{clusterIP: None, \
         publishNotReadyAddresses: true, selector: {{{}}}}}}}",
        selector.join(", ")
    )
}

/// Labels that the controller of a StatefulSet writes.
const OF_CONTROLLER: &[&str] = &[names::STATEFUL_SET_POD, names::POD_INDEX, names::CONTROLLER_REVISION];

const ABSENT: &str = "is not there";
const NOT_PUBLISHED: &str = "lacks `publishNotReadyAddresses: true`";

fn wrong(service: &Service) -> Option<&'static str> {
    if service.meta().is_deleting() {
        return Some("is being deleted");
    }
    if service.spec.cluster_ip != "None" {
        return Some("has a `clusterIP`, and is to have `clusterIP: None`");
    }
    (!service.spec.publish_not_ready_addresses).then_some(NOT_PUBLISHED)
}
