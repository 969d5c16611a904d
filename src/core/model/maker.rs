//! The pods that a workload has created, whatever their labels say.

use serde::Deserialize;
use serde_json::Value;

use crate::api::selector::LabelSelector;
use crate::model::WorkloadKind;
use crate::model::workload_kind::PodController;

/// A workload, limited to the fields that identify its pods.
#[derive(Clone, Debug)]
pub struct Maker {
    kind: WorkloadKind,
    name: String,
    uid: String,
    /// Selects the pods, and perhaps pods of other workloads, which have another controller.
    pub selector: LabelSelector,
}

/// The controller of a pod.
#[derive(Clone, Copy, Debug)]
pub struct Owner<'a> {
    pub kind: &'a str,
    pub name: &'a str,
    pub uid: &'a str,
}

impl Maker {
    /// Reads an object of this kind; `None` if it selects nothing, or everything.
    pub fn of(kind: WorkloadKind, name: &str, object: &Value) -> Option<Self> {
        let uid = object.pointer("/metadata/uid")?.as_str()?.to_owned();
        let selector = if let Some(label) = kind.row().named_by {
            let match_labels = [(label.to_owned(), name.to_owned())].into();
            LabelSelector { match_labels, ..LabelSelector::default() }
        } else {
            LabelSelector::deserialize(object.pointer("/spec/selector")?).ok()?
        };
        let selects_all = selector.keys().next().is_none();
        (!selects_all).then(|| Self { kind, name: name.to_owned(), uid, selector })
    }

    /// Reports whether the workload created a pod with this controller and these labels. Anyone can set labels; the controller
    /// is set only by the owner.
    pub fn has_made<'a>(&self, owner: Owner<'_>, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        let is_part = |rest: &str| rest.is_empty() || rest.starts_with('-');
        let made = match self.kind.row().controller {
            PodController::Itself => owner.kind == self.kind.as_str() && owner.uid == self.uid,
            PodController::Parts => owner.name.strip_prefix(self.name.as_str()).is_some_and(is_part),
            PodController::ReplicaSet(hash) => {
                let set = label(hash).map(|hash| format!("{}-{hash}", self.name));
                owner.kind == "ReplicaSet" && set.as_deref() == Some(owner.name)
            }
        };
        made && self.selector.holds(label)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_of_another_workload_with_the_same_labels_is_not_its_own() {
        let object = json!({
            "metadata": { "uid": "1" },
            "spec": { "selector": { "matchLabels": { "app": "llm" } } },
        });
        let label = |hash: &'static str| {
            move |key: &str| match key {
                "app" => Some("llm"),
                "pod-template-hash" => Some(hash),
                _ => None,
            }
        };
        let owner = |kind, name, uid| Owner { kind, name, uid };
        let set = Maker::of(WorkloadKind::StatefulSet, "llm", &object).unwrap();
        assert!(set.has_made(owner("StatefulSet", "llm", "1"), label("")));
        assert!(!set.has_made(owner("StatefulSet", "llm", "2"), label("")), "it was made anew");
        assert!(!set.has_made(owner("StatefulSet", "llm", "1"), |_| None), "it was taken out of the selection");
        let deployment = Maker::of(WorkloadKind::Deployment, "llm", &object).unwrap();
        assert!(deployment.has_made(owner("ReplicaSet", "llm-5d", "7"), label("5d")));
        assert!(!deployment.has_made(owner("ReplicaSet", "other-5d", "7"), label("5d")));
        let nothing = json!({ "metadata": { "uid": "1" }, "spec": { "selector": {} } });
        assert!(Maker::of(WorkloadKind::StatefulSet, "llm", &nothing).is_none(), "it would select everything");
    }
}
