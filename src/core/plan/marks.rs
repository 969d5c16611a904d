//! Labels that running pods gain or lose, so that the labels that routers pair by stay true.

use std::borrow::Cow;

use crate::model::{Group, GroupKey, names, place_labels};
use crate::plan::view::{GroupView, PodFacts, PodRef, RoleView};

/// A label and its new value; `None` removes it.
pub type Label = (Cow<'static, str>, Option<String>);

/// Changes to the labels and the deletion cost of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    pub pod: PodRef,
    /// The labels to set or remove.
    pub labels: Vec<Label>,
    /// Whether the pod becomes the cheapest to delete of its workload; `None` leaves its deletion cost unchanged.
    pub cheapest: Option<bool>,
}

impl Mark {
    /// Marks a pod as draining or not. A draining pod is about to be deleted with its segment and loses the label that makes it
    /// count for autoscalers. `by_cost` says that its workload deletes the cheapest pods first.
    pub fn draining(pod: &PodRef, draining: bool, by_cost: bool) -> Self {
        let stands = draining.then(|| (names::SCALE_POD.into(), None));
        let label = (names::DRAINING.into(), draining.then(|| "true".to_owned()));
        let labels = std::iter::once(label).chain(stands).collect();
        Self { pod: pod.clone(), labels, cheapest: by_cost.then_some(draining) }
    }

    /// Marks the pod as the one of its segment that autoscalers of the group count; `None` removes the mark.
    pub fn stands(pod: &PodRef, group: Option<&GroupKey>) -> Self {
        let label = (names::SCALE_POD.into(), group.map(|group| names::label_value(&group.name)));
        Self { pod: pod.clone(), labels: vec![label], cheapest: None }
    }

    /// Reports whether the mark sets the label (`true`) or removes it (`false`); `None` when it does neither.
    pub fn says(&self, key: &str) -> Option<bool> {
        self.labels.iter().find(|(label, _)| label == key).map(|(_, value)| value.is_some())
    }

    /// Labels a pod with its group and role. Its workload made it without these labels.
    pub fn adopted(pod: &PodRef, group: &GroupKey, role: &str) -> Self {
        let (of_group, of_role) = names::ADOPTED;
        let labels = [(of_group, &*group.name), (of_role, role)];
        let labels = labels.map(|(key, value)| (key.into(), Some(value.to_owned()))).to_vec();
        Self { pod: pod.clone(), labels, cheapest: None }
    }

    /// Labels a pod with its place.
    fn at(pod: &PodFacts, size: u32, ordinal: u32) -> Self {
        let index = pod.identity.unnumbered.is_some().then(|| (names::KEP75_INSTANCE_INDEX, ordinal.to_string()));
        let labels = place_labels(size, ordinal).into_iter().chain(index);
        let labels = labels.map(|(key, value)| (key.into(), Some(value))).collect();
        Self { pod: pod.pod.clone(), labels, cheapest: None }
    }

    /// Removes these labels from a pod.
    fn without(pod: &PodFacts, keys: &[&'static str]) -> Self {
        let labels = keys.iter().map(|key| ((*key).into(), None)).collect();
        Self { pod: pod.pod.clone(), labels, cheapest: None }
    }
}

/// Returns marks for released pods whose place labels are missing or wrong: the batch size was changed, the replica was
/// renumbered, or the pod ran before its group existed. A pod that is no replica of its role loses its place labels, held or
/// not, and no longer counts for autoscalers. A pod of a role without batches loses its segment labels. A held replica is
/// labelled at its release.
pub(in crate::plan) fn misplaced(group: &Group, view: &GroupView) -> Vec<Mark> {
    const SEGMENT: &[&str] = &[names::KEP75_SUBGROUP_SIZE, names::SEGMENT];
    const PLACE: &[&str] = &[names::KEP75_SUBGROUP_SIZE, names::SEGMENT, names::KEP75_INSTANCE_INDEX, names::SCALE_POD];
    let of_role = |(name, role): (&String, &RoleView)| -> Vec<Mark> {
        match group.batch_size(name) {
            _ if role.unknown => Vec::new(),
            Some(size) => role.replicas.misplaced(size).map(|(ordinal, pod)| Mark::at(pod, size, ordinal)).collect(),
            None => role.replicas.labelled().map(|pod| Mark::without(pod, SEGMENT)).collect(),
        }
    };
    let apart = view.apart.iter().filter(|pod| pod.labelled.is_some() || pod.scale_pod);
    view.roles.iter().flat_map(of_role).chain(apart.map(|pod| Mark::without(pod, PLACE))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::status::Succeeded;
    use crate::plan::test_support::{mk_group, mk_pod, mk_role, mk_segments};

    fn group() -> Group {
        mk_group(&[("prefill", 2), ("router", 1)], &json!([mk_segments("pd", "OrderedReady", &[("prefill", 1)])]))
    }

    fn view(prefill: RoleView, router: RoleView) -> GroupView {
        let roles = [("prefill".to_owned(), prefill), ("router".to_owned(), router)].into();
        GroupView { roles, ..GroupView::default() }
    }

    /// Returns the pods that lose labels, with the keys of these labels.
    fn lost(view: &GroupView) -> Vec<(String, Vec<String>)> {
        let of_mark = |mark: Mark| {
            let gone = mark.labels.iter().filter(|(_, value)| value.is_none()).map(|(key, _)| key.to_string());
            (mark.pod.name.to_string(), gone.collect::<Vec<_>>())
        };
        misplaced(&group(), view).into_iter().map(of_mark).collect()
    }

    #[test]
    fn a_copy_says_no_segment_and_stands_for_none_while_it_is_held() {
        let copy = PodFacts { scale_pod: true, ..mk_pod("copy", "prefill", 0) };
        let seen = GroupView { apart: vec![copy.into()], ..view(mk_role(2, 2, 2), RoleView::default()) };
        let lost = lost(&seen);
        assert_eq!((lost.len(), lost[0].0.as_str()), (1, "copy"));
        for key in [names::SEGMENT, names::SCALE_POD] {
            assert!(lost[0].1.iter().any(|lost| lost == key), "{lost:?}");
        }
    }

    #[test]
    fn pods_of_a_role_that_is_in_no_segments_any_more_say_none() {
        let seen = view(mk_role(2, 2, 2), mk_role(1, 1, 1));
        let keys = [names::KEP75_SUBGROUP_SIZE, names::SEGMENT].map(str::to_owned).to_vec();
        assert_eq!(lost(&seen), [("0".to_owned(), keys)]);
    }

    #[test]
    fn what_has_succeeded_and_is_gone_gets_no_labels() {
        let mut seen = view(RoleView { desired: 2, ..RoleView::default() }, RoleView::default());
        let done = Succeeded { job: "1".to_owned(), replicas: "0-1".to_owned(), size: 1 };
        seen.remember(&group(), &[("prefill".to_owned(), vec![done])].into());
        assert_eq!(seen.roles["prefill"].replicas.pods().count(), 2);
        assert_eq!(misplaced(&group(), &seen), []);
    }
}
