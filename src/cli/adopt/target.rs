//! A workload as named on the command line.

use std::fmt;
use std::str::FromStr;

use crate::model::WorkloadKind;
use crate::model::object_name::{label_fault, subdomain_fault};

/// `statefulset/prefill`, or with its role before it, `prefill=sts/llm-prefill`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Role of the workload; by default derived from its name.
    pub role: Option<String>,
    pub kind: WorkloadKind,
    pub name: String,
}

/// Returns the kind for a resource name that kubectl takes: `sts`, `statefulset`, `statefulsets.apps`.
pub fn kind(word: &str) -> Option<WorkloadKind> {
    let word = word.to_lowercase();
    let is_meant = |kind: &&WorkloadKind| {
        let object = kind.object_kind();
        let (name, group) = word.split_once('.').map_or((word.as_str(), None), |(name, group)| (name, Some(group)));
        let named = name == kind.row().short || name == object.plural || name == object.kind.to_lowercase();
        named && group.is_none_or(|group| group == object.group)
    };
    WorkloadKind::ALL.iter().find(is_meant).copied()
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (role, workload) = text.split_once('=').map_or((None, text), |(role, rest)| (Some(role), rest));
        let shape =
            || format!("{workload:?} must be KIND/NAME, as statefulset/prefill, lws/decode or deployment/router");
        let (word, name) = workload.split_once('/').ok_or_else(shape)?;
        let kind = kind(word).ok_or_else(shape)?;
        if subdomain_fault(name).is_some() {
            return Err(format!("{name:?} can be the name of no {}", kind.as_str()));
        }
        if let Some((role, fault)) = role.and_then(|role| Some((role, label_fault(role)?))) {
            return Err(format!("{role:?} can be the name of no role: {fault}"));
        }
        Ok(Self { role: role.map(str::to_owned), kind, name: name.to_owned() })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.as_str(), self.name)
    }
}

/// Replicas of a role in a segment, as `prefill=2`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Size {
    pub role: String,
    pub replicas: u32,
}

impl FromStr for Size {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const SHAPE: &str = "must be ROLE=N, as prefill=2, with N at least 1";
        let (role, replicas) = text.split_once('=').ok_or(SHAPE)?;
        let replicas = replicas.parse().ok().filter(|replicas| *replicas >= 1).ok_or(SHAPE)?;
        Ok(Self { role: role.to_owned(), replicas })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_are_named_as_kubectl_names_them() {
        let read = |text: &str| text.parse::<Target>().map(|target| (target.role, target.kind.as_str(), target.name));
        let named = |kind, name: &str| Ok((None, kind, name.to_owned()));
        assert_eq!(read("sts/prefill"), named("StatefulSet", "prefill"));
        assert_eq!(read("StatefulSet/prefill"), named("StatefulSet", "prefill"));
        assert_eq!(read("lws/decode"), named("LeaderWorkerSet", "decode"));
        assert_eq!(read("deployments.apps/router"), named("Deployment", "router"));
        let with_role = Ok((Some("prefill".to_owned()), "StatefulSet", "llm-prefill".to_owned()));
        assert_eq!(read("prefill=statefulset/llm-prefill"), with_role);
        for wrong in ["prefill", "pod/prefill", "sts/", "sts/a b", "sts/a/b", "A b=sts/prefill", "=sts/prefill"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert_eq!("prefill=2".parse(), Ok(Size { role: "prefill".to_owned(), replicas: 2 }));
        assert!(["prefill", "prefill=0", "prefill=x"].iter().all(|text| text.parse::<Size>().is_err()));
    }
}
