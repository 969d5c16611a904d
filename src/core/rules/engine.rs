//! Rules on the engine of a pod, wherever it is asked for: on the pod, on its template, or in its role.

use super::violation::quoted;
use super::{Cause, Report, Severity, World};
use crate::api::Pod;
use crate::model::clique_set::Clique;
use crate::model::engine::{EngineFault, EngineKind, FaultKind, Scope, half_groups, read_annotation, sizes};
use crate::model::{CliqueSet, Engine, FieldPath, Group, Role, names};

/// Refuses a pod whose engine has faults: it would lack what it was meant to get, and nothing can be added later.
pub(super) fn of_pod(pod: &Pod, _: &World, report: &mut Report) {
    let Some(text) = pod.metadata.annotation(names::ENGINE) else { return };
    if let Err(faults) = read_annotation(text) {
        show(&faults, names::ENGINE, None, Severity::Error, report);
    }
}

/// Refuses a Grove set whose pods would be refused, and warns of a scope that they do not have.
pub(super) fn of_cliques(set: &CliqueSet, _: &World, report: &mut Report) {
    for clique in &set.cliques {
        let Some(text) = &clique.template.asked else { continue };
        let at = clique.at.child("annotations").key(names::ENGINE);
        match read_annotation(text) {
            Err(faults) => show(&faults, &clique.name, Some(&at), Severity::Error, report),
            Ok(engine) if engine.meets() && engine.scope == Scope::Segment => {
                let detail = "pods of Grove are in no segments: `scope=replica` are the cliques of a copy of the scaling \
                              group, and `scope=role` the pods of the clique";
                report.warn(&clique.name, at, Cause::Notice, quoted("segment"), detail);
            }
            Ok(engine) => {
                let told =
                    clique.template.contradicts(None).into_iter().chain(sizes_beside(set, clique, text, &engine));
                told.for_each(|detail| report.warn(&clique.name, at.clone(), Cause::Notice, None, detail));
            }
        }
    }
}

/// Tells which cliques, in one process group with this clique, count another number of processes; each group once, for its first
/// clique.
fn sizes_beside(set: &CliqueSet, clique: &Clique, text: &str, engine: &Engine) -> Vec<String> {
    let copy = set.group_of(clique).filter(|_| engine.meets() && engine.scope == Scope::Replica);
    let together = copy.map(|group| set.together(&group.name, &clique.name, Some(text))).unwrap_or_default();
    if together.first().is_none_or(|first| first.name != clique.name) {
        return Vec::new();
    }
    let names: Vec<_> =
        together.into_iter().map(|clique| (format!("clique {:?}", clique.name), &clique.template)).collect();
    sizes(names.iter().map(|(name, template)| (name.as_str(), *template)), None)
}

/// Requires engines without faults, and warns where what they ask for cannot be computed, or is outdated by a scale.
pub(super) fn of_roles(group: &Group, _: &World, report: &mut Report) {
    for role in &group.roles {
        let at = role.at.child("engine");
        if let Some(Err(faults)) = &role.engine {
            show(faults, &role.name, None, Severity::Error, report);
        }
        let template_at = role.workload.reference.as_ref().map_or_else(|| role.at.clone(), |(_, at)| at.clone());
        for text in &role.workload.engines {
            match read_annotation(text) {
                Err(faults) => show(&faults, &role.name, Some(&template_at), Severity::Warning, report),
                Ok(engine) => suits(group, role, &engine, &template_at, report),
            }
        }
        if let Some(Ok(engine)) = role.engine.as_ref().filter(|_| role.workload.engines.is_empty()) {
            suits(group, role, engine, &at, report);
        }
        for detail in
            half_groups(&role.workload.templates, role.engine.as_ref().and_then(|engine| engine.as_ref().ok()))
        {
            report.notice(&role.name, template_at.clone(), detail);
        }
        if role.engine.is_some() && !role.workload.engines.is_empty() {
            let detail = "has no effect: the annotation `rolegate.dev/engine` of the pod template takes precedence";
            report.notice(&role.name, at, detail);
        }
    }
}

/// Warns where the pods of a role lack what the scope, or the router, asks for.
fn suits(group: &Group, role: &Role, engine: &Engine, at: &FieldPath, report: &mut Report) {
    let mut warn = |detail: String| report.warn(&role.name, at.clone(), Cause::Notice, None, detail);
    let (name, scope) = (&role.name, engine.scope.as_str());
    if engine.meets() && engine.scope != Scope::Replica {
        if let Some(kind) = role.workload.without_ordinals() {
            warn(format!("pods of a {kind} have no numbers: `scope` {scope:?} gives those of role {name:?} no ranks"));
        } else if engine.scope == Scope::Segment && group.batch_size(name).is_none() {
            warn(format!("role {name:?} is in no segments: `scope` \"segment\" gives its pods no ranks"));
        } else if engine.scope == Scope::Role && group.elastic.is_some() && group.batch_size(name).is_some() {
            warn(format!(
                "role {name:?} is scaled with its group, and pods keep the number of replicas that they were created with: \
                 with `scope` \"segment\" no number is outdated"
            ));
        }
    }
    if role.workload.templates.iter().any(|template| template.devices.is_none())
        && engine.procs_per_pod.is_none()
        && engine.counts_processes()
    {
        warn(format!(
            "the devices of role {name:?} are those of resource claims, whose number no pod tells: its pods get no numbers of \
             processes without `procsPerPod`"
        ));
    }
    let pairs = engine.kinds.contains(&EngineKind::LlmD);
    if pairs && engine.serves_in(Some(name)).is_none() {
        let phase = "`serves` says what they serve, or a word of the role's name: encode, prefill, decode";
        warn(format!("llm-d's router takes pods of role {name:?} for pods that serve everything: {phase}"));
    }
}

/// Reports faults, each at its own path or, where they are another object's, at the path of the reference.
fn show(faults: &[EngineFault], subject: &str, at: Option<&FieldPath>, severity: Severity, report: &mut Report) {
    for fault in faults {
        let cause = match fault.kind {
            FaultKind::NoKind => Cause::Required,
            FaultKind::UnknownKind | FaultKind::UnknownSetting => Cause::NotSupported,
            FaultKind::Twice => Cause::Duplicate,
            FaultKind::NoValue | FaultKind::Value(_) => Cause::Invalid,
        };
        let known = fault.known();
        let detail = report.with_hint(&fault.detail(), &fault.written, known.iter().copied());
        let value = quoted(&fault.written);
        let own = at.unwrap_or(&fault.at).clone();
        if severity == Severity::Error {
            report.error(subject, own, cause, value, detail);
        } else {
            let detail = format!("annotation `rolegate.dev/engine` of its pod template: {detail}");
            report.warn(subject, own, cause, value, detail);
        }
    }
}

/// Reports whether pods of a role meet pods of other replicas, whose addresses they need before they are ready.
pub(super) fn meets_other_replicas(role: &Role) -> bool {
    let annotated = role.workload.engines.iter().filter_map(|text| read_annotation(text).ok());
    let in_role = role.engine.as_ref().and_then(|engine| engine.as_ref().ok());
    let own = in_role.filter(|_| role.workload.engines.is_empty()).cloned();
    annotated.chain(own).any(|engine| engine.meets() && engine.scope != Scope::Replica)
}
