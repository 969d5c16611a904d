//! The discovery variables that a Grove pod was created with, beside those of a pod that is created now. Variables are never
//! changed later, while scopes are joined, roles are added and cliques are scaled.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::discovery::variables_in;
use crate::api::Pod;
use crate::model::{CliquePod, CliqueSet};

/// A variable that a pod created now would have with another value, or not at all, or alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outdated {
    pub name: String,
    /// The value of the pod; `None` if the pod lacks the variable.
    pub value: Option<String>,
    /// The value in a pod that is created now; `None` if it would lack the variable.
    pub now: Option<String>,
}

/// The discovery variables of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Born {
    /// Names of the addresses that the pod has.
    pub addresses: Vec<String>,
    /// Empty where the pod has what a pod created now would have.
    pub outdated: Vec<Outdated>,
    /// True for a pod without any of the variables.
    pub without: bool,
}

/// Compares the variables of a pod with those that its set describes now; `None` where the set gives the pod no variables, and
/// it has none.
pub fn born(pod: &Pod, namespace: &str, place: &CliquePod, set: &CliqueSet) -> Option<Born> {
    let env: BTreeMap<&str, Option<&str>> = pod
        .spec
        .containers
        .first()
        .and_then(|container| container.env.as_ref())
        .into_iter()
        .flatten()
        .map(|variable| (&*variable.name, variable.value.as_deref()))
        .collect();
    let domain = domain(&env, namespace).unwrap_or("cluster.local");
    let now: BTreeMap<_, _> = variables_in(set, pod, namespace, place, domain).into_iter().collect();
    let names: BTreeSet<_> =
        now.keys().map(String::as_str).chain(env.keys().copied().filter(|name| is_ours(name))).collect();
    if names.is_empty() {
        return None;
    }
    let value = |name: &str| env.get(name).map(|value| value.unwrap_or_default());
    let outdated = names.iter().filter(|name| value(name) != now.get(**name).map(String::as_str));
    Some(Born {
        addresses: names
            .iter()
            .filter(|name| is_address(name) && env.contains_key(*name))
            .map(ToString::to_string)
            .collect(),
        outdated: outdated
            .map(|name| Outdated {
                name: (*name).to_owned(),
                value: value(name).map(str::to_owned),
                now: now.get(*name).cloned(),
            })
            .collect(),
        without: !names.iter().any(|name| env.contains_key(name)),
    })
}

fn is_address(name: &str) -> bool {
    name.ends_with("_ADDR")
}

/// Reports whether only discovery sets a variable of this name.
fn is_ours(name: &str) -> bool {
    name.strip_prefix("GROVE_ROLE_").is_some_and(|rest| rest.ends_with("_COUNT"))
}

/// Returns the suffix of DNS names in the addresses of a pod: the server's setting is not known here.
fn domain<'a>(env: &BTreeMap<&str, Option<&'a str>>, namespace: &str) -> Option<&'a str> {
    let infix = format!(".{namespace}.svc.");
    env.iter().filter(|(name, _)| is_address(name)).find_map(|(_, value)| Some(value.as_ref()?.split_once(&infix)?.1))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::api;
    use crate::api::grove::POD_CLIQUE_SET;
    use crate::model::identify_clique_pod;

    fn set(scope: &str, copies: u32) -> CliqueSet {
        let set: api::PodCliqueSet = serde_json::from_value(json!({
            "metadata": {"name": "pd", "namespace": "ns", "annotations": {"rolegate.dev/discovery-scope": scope}},
            "spec": {"template": {
                "cliques": [
                    {"name": "gateway", "spec": {"roleName": "GATEWAY"}},
                    {"name": "decode", "spec": {"roleName": "DECODE", "replicas": 2}},
                ],
                "podCliqueScalingGroups": [{"name": "d", "replicas": copies, "cliqueNames": ["decode"]}],
            }},
        }))
        .unwrap();
        CliqueSet::from_set(POD_CLIQUE_SET, &set)
    }

    fn pod(env: &[(String, String)]) -> Pod {
        let env: Vec<Value> = env.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        serde_json::from_value(json!({
            "metadata": {"labels": {
                "app.kubernetes.io/part-of": "pd", "grove.io/podclique": "pd-0-gateway", "grove.io/podclique-pod-index": "0",
            }},
            "spec": {"containers": [{"name": "main", "env": env}]},
        }))
        .unwrap()
    }

    fn born_of(created: Option<&CliqueSet>, domain: &str, now: &CliqueSet) -> Option<Born> {
        let bare = pod(&[]);
        let place = identify_clique_pod(&bare).unwrap();
        let env = created.map(|set| variables_in(set, &bare, "ns", &place, domain)).unwrap_or_default();
        born(&pod(&env), "ns", &place, now)
    }

    #[test]
    fn a_pod_of_today_has_nothing_outdated_whatever_the_suffix_of_names() {
        let set = set("set", 2);
        for domain in ["cluster.local", "k8s.example"] {
            let born = born_of(Some(&set), domain, &set).unwrap();
            assert_eq!(born.addresses, ["DECODE_ADDR", "GATEWAY_ADDR"]);
            assert!(born.outdated.is_empty() && !born.without, "{born:?}");
        }
    }

    #[test]
    fn scaling_and_another_scope_show_as_outdated() {
        let named =
            |born: Born| born.outdated.into_iter().map(|one| (one.name, one.value, one.now)).collect::<Vec<_>>();
        let scaled = named(born_of(Some(&set("set", 2)), "cluster.local", &set("set", 3)).unwrap());
        assert_eq!(scaled, [("GROVE_ROLE_DECODE_COUNT".to_owned(), Some("4".to_owned()), Some("6".to_owned()))]);
        let joined = named(born_of(Some(&set("isolated", 2)), "cluster.local", &set("set", 2)).unwrap());
        let lacks: Vec<_> = joined.iter().map(|(name, value, _)| (&**name, value.is_none())).collect();
        let all = ["DECODE_ADDR", "DECODE_HEADLESS", "GATEWAY_HEADLESS", "GROVE_ROLE_DECODE_COUNT"];
        assert_eq!(lacks, all.map(|name| (name, true)));
        let parted = named(born_of(Some(&set("set", 2)), "cluster.local", &set("isolated", 2)).unwrap());
        assert_eq!(parted, [("GROVE_ROLE_DECODE_COUNT".to_owned(), Some("4".to_owned()), None)]);
    }

    #[test]
    fn a_pod_may_have_no_variables_for_want_of_discovery_or_of_roles() {
        assert!(born_of(None, "cluster.local", &set("set", 2)).unwrap().without);
        let mut off = set("set", 2);
        off.discovery = false;
        assert_eq!(born_of(None, "cluster.local", &off), None);
    }
}
