//! The engine in a pod: what the pod was given for it, and why.

use std::sync::Arc;

use serde::Serialize;

use super::finds::OfSet;
use crate::api::Pod;
use crate::model::Meeting;
use crate::model::{Group, PodIdentity};
use crate::mutate::engine::{Presets, born_with};
use crate::mutate::{GroupLookup, Lookups, Outdated, PodSettings, Subject, presets};

/// What a pod was given for its engine.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EngineStory {
    /// Engines and routers, as the user writes them.
    kinds: String,
    /// Where they are asked for.
    asked_by: &'static str,
    given: Vec<GivenName>,
    /// Values that are others in a pod that is created now.
    outdated: Vec<Outdated>,
    /// That it was created for another number of pods, as the status page says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    scaled: Option<String>,
    message: String,
    /// What is left out, and why.
    left_out: Vec<String>,
}

/// A name that a pod was given.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct GivenName {
    name: String,
    /// Absent for a value that kubelet fills in.
    value: Option<String>,
    /// What reads it.
    read_by: &'static str,
    /// The value in words.
    means: &'static str,
}

impl EngineStory {
    /// Compares a pod with what its group or its Grove set describes; `None` for a pod without an engine.
    pub(super) fn of(
        pod: &Pod,
        namespace: &str,
        known: Option<&(PodIdentity, Option<Arc<Group>>)>,
        of_set: Option<&OfSet>,
    ) -> Option<Self> {
        let (place, set) = match of_set {
            Some(OfSet::Known(place, set)) => (Some(place.clone()), Some(set)),
            Some(OfSet::Unknown(place, _)) => (Some(place.clone()), None),
            None => (None, None),
        };
        let group = known.and_then(|(_, group)| group.as_deref());
        let subject = Subject::known(known.map(|(identity, _)| identity.clone()), place, namespace);
        let lookups = Lookups {
            group: group.map_or(GroupLookup::Absent, GroupLookup::Found),
            clique_set: set,
            ..Lookups::default()
        };
        let settings = match domain(pod, namespace) {
            Some(domain) => PodSettings { cluster_domain: domain.to_owned(), ..PodSettings::default() },
            None => PodSettings::default(),
        };
        match presets(pod, &subject, &lookups, &settings)? {
            Ok(presets) => {
                let scaled = known.and_then(|(identity, group)| met(pod, identity, group.as_deref()?));
                Some(Self::seen(pod, &presets, scaled))
            }
            Err(faults) => {
                let faults: Vec<_> = faults.iter().map(|fault| format!("{}: {}", fault.at, fault.detail())).collect();
                let message = format!("nothing, as its settings have faults: {}", faults.join("; "));
                Some(Self { message, ..Self::default() })
            }
        }
    }

    fn seen(pod: &Pod, presets: &Presets, scaled: Option<String>) -> Self {
        let born = born_with(pod, presets);
        let kinds = presets.engine.words();
        let place = match &presets.rendezvous {
            Ok(found) if found.nodes == 1 => ": it meets no other pod".to_owned(),
            Ok(found) => {
                let first = found.leader.as_deref().unwrap_or("a pod without an address");
                format!(": pod {} of {} that meet at {first}", found.rank + 1, found.nodes)
            }
            Err(_) => String::new(),
        };
        let place = if presets.engine.meets() { place } else { String::new() };
        let message = format!("{kinds} ({}){place}", presets.asked_by.as_str());
        let given = born.has.into_iter().map(|(name, value, fact)| GivenName {
            name,
            value,
            read_by: fact.read_by,
            means: fact.computed.words(),
        });
        Self {
            kinds,
            asked_by: presets.asked_by.as_str(),
            given: given.collect(),
            outdated: born.outdated,
            scaled,
            message,
            left_out: presets.warnings.clone(),
        }
    }

    /// Returns the lines of the text.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.message.clone()];
        for GivenName { name, value, read_by, means } in &self.given {
            let value = value.as_deref().map(|value| format!("={value}")).unwrap_or_default();
            lines.push(format!("{name}{value}: {means} ({read_by})"));
        }
        for Outdated { name, value, now } in &self.outdated {
            lines.push(match (value, now) {
                (Some(value), Some(now)) => format!("{name}={value} is of its birth: a pod created now gets {now}"),
                (None, Some(now)) => format!("lacks {name}: a pod created now gets {now}"),
                _ => format!("lacks {name}: a pod created now gets it"),
            });
        }
        lines.extend(self.scaled.iter().chain(&self.left_out).cloned());
        lines
    }
}

/// Tells that a pod was created for another number of pods than now.
fn met(pod: &Pod, identity: &PodIdentity, group: &Group) -> Option<String> {
    let at_birth = Meeting::at_birth(&pod.metadata)?;
    let role = group.role(identity.role.as_deref()?)?;
    at_birth.outdated(1, Meeting::now(group, role, at_birth.scope, identity.replica_size.max(1))?)
}

/// Returns the suffix of DNS names in the addresses of a pod: the server's setting is not known here.
fn domain<'a>(pod: &'a Pod, namespace: &str) -> Option<&'a str> {
    let infix = format!(".{namespace}.svc.");
    let values = pod.spec.containers.iter().flat_map(|container| container.env.iter().flatten());
    let (_, rest) =
        values.filter_map(|variable| variable.value.as_deref()).find_map(|value| value.split_once(&infix))?;
    rest.split([':', ',', '/']).next()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::api::role_coordination::ROLE_COORDINATION;
    use crate::model::identify;
    use crate::mutate::mutate_pod;

    const DOMAIN: &str = "k8s.example";

    fn group(replicas: u32) -> Group {
        let object = json!({
            "metadata": { "name": "pd", "namespace": "ns" },
            "spec": { "roles": [{ "name": "decode", "replicas": replicas }] },
        });
        Group::from_role_coordination(ROLE_COORDINATION, &serde_json::from_value(object).unwrap(), &())
    }

    fn born_in(group: &Group, engine: &str) -> Pod {
        let mut pod = json!({
            "metadata": {
                "name": "d-1",
                "namespace": "ns",
                "uid": "1",
                "labels": { "rolegate.dev/group": "pd", "rolegate.dev/role": "decode" },
                "annotations": { "rolegate.dev/engine": engine },
                "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "d", "controller": true }],
            },
            "spec": { "subdomain": "d", "containers": [{ "name": "main", "env": [{ "name": "MASTER_PORT", "value": "1" }] }] },
        });
        let read: Pod = serde_json::from_value(pod.clone()).unwrap();
        let subject = Subject::of(&read, "ns", &());
        let lookups = Lookups { group: GroupLookup::Found(group), ..Lookups::default() };
        let settings = PodSettings { cluster_domain: DOMAIN.to_owned(), ..PodSettings::default() };
        let patch = mutate_pod(&read, &subject, &lookups, &settings).patch;
        let patch: json_patch::Patch = serde_json::from_str(&patch.to_json()).unwrap();
        json_patch::patch(&mut pod, &patch).unwrap();
        serde_json::from_value(pod).unwrap()
    }

    fn story(pod: &Pod, group: Group) -> Option<Value> {
        let known = (identify(pod, "ns", &()).unwrap(), Some(Arc::new(group)));
        EngineStory::of(pod, "ns", Some(&known), None).map(|story| json!({ "lines": story.lines(), "json": story }))
    }

    #[test]
    fn a_pod_tells_what_it_was_given_and_what_a_scale_has_outdated() {
        let pod = born_in(&group(4), "torch; procsPerPod=8; scope=role");
        let same = story(&pod, group(4)).unwrap();
        let first = format!("torch (annotation rolegate.dev/engine): pod 2 of 4 that meet at d-0.d.ns.svc.{DOMAIN}");
        assert_eq!(same["lines"][0], first.as_str());
        assert_eq!(same["json"]["outdated"], json!([]), "whatever the suffix of names, and the user's own port");
        assert_eq!(same["lines"][2], "WORLD_SIZE=32: pods × processes in a pod (`env://` of PyTorch)");
        let scaled = story(&pod, group(6)).unwrap();
        let outdated: Vec<_> = scaled["json"]["outdated"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
        assert_eq!(outdated, ["WORLD_SIZE", "NNODES", "PET_NNODES"]);
        let text = scaled["lines"].to_string();
        assert!(text.contains("NNODES=4 is of its birth: a pod created now gets 6"), "{text}");
        let told = "1 pod was created when 4 pods of the role met, and a pod created now meets as one of 6";
        assert!(text.contains(told), "{text}");
        assert!(!same["lines"].to_string().contains("1 pod was created"), "{same}");
    }

    #[test]
    fn an_engine_with_faults_and_no_engine_are_told_apart() {
        let pod = born_in(&group(4), "troch");
        let told = story(&pod, group(4)).unwrap();
        assert!(told["lines"][0].as_str().unwrap().starts_with("nothing, as its settings have faults"), "{told}");
        let mut without = pod;
        without.metadata.annotations.clear();
        assert_eq!(story(&without, group(4)), None);
    }
}
