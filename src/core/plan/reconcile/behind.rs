//! A status that commits less than what runs, as after a restore of an older copy, or after another client has lifted the gate.
//! Running replicas stay and count as released, and an Event reports it.

use crate::model::Group;
use crate::model::wording::counted;
use crate::plan::reconcile::ahead::AHEAD;
use crate::plan::reconcile::events::EventNote;
use crate::plan::view::{GroupView, PodFacts, RoleView};

/// The reason of the Event.
pub const BEHIND: &str = "StatusBehindPods";

/// Returns the Event to publish after the released counts are written that include running replicas; `None` if rolegate
/// released these, as far as known. `wrote` says that rolegate wrote to the group before: an empty status is then a lost one.
pub(in crate::plan) fn behind(group: &Group, view: &GroupView, wrote: bool) -> Option<EventNote> {
    let is_new = !wrote && group.status.summary.is_none() && group.status.coordination_state.is_empty();
    status_behind(group, view).or_else(|| lifted(group, view).filter(|_| is_new))
}

/// Returns the Event on the first pods of a group that were created with the gate and have lost it, although nothing was ever
/// committed: another webhook, for example, may remove the gate.
fn lifted(group: &Group, view: &GroupView) -> Option<EventNote> {
    let made = group.carrier.created.as_str();
    let is_younger = |pod: &PodFacts| pod.created.as_deref().is_some_and(|at| at >= made);
    let is_lifted = |pod: &PodFacts| !pod.held && pod.stamp.carrier.is_some() && is_younger(pod);
    let of_role = |(name, role): (&String, &RoleView)| {
        group.batch_size(name).filter(|_| role.committed.is_none() && !role.unknown)?;
        let pods = role.replicas.pods().filter(|(_, pod)| is_lifted(pod)).count();
        (pods > 0).then(|| (name.clone(), format!("{} of {name}", counted(pods as u64, "pod"))))
    };
    let (roles, pods): (Vec<_>, Vec<_>) = view.roles.iter().filter_map(of_role).unzip();
    let run = if pods.len() == 1 && pods.iter().all(|text| text.starts_with("1 ")) { "runs" } else { "run" };
    let note = format!(
        "{} {run} before anything was released. Something else has lifted gate rolegate.dev/hold, another webhook perhaps: \
         `rolegate doctor` tries it",
        pods.join(", "),
    );
    (!pods.is_empty()).then(|| EventNote::new(AHEAD, "", note, true).of_roles(roles))
}

fn status_behind(group: &Group, view: &GroupView) -> Option<EventNote> {
    // Segments that are wanted again may run during their scale-in.
    if group.status.draining.is_some() {
        return None;
    }
    let of_role = |(name, role): (&String, &RoleView)| {
        let (running, committed) = (role.running_beyond_commit()?, role.committed?);
        group.batch_size(name)?;
        // Replicas created without a gate may run at any time.
        let was_held = |ordinal| role.replicas.pods_of(ordinal).iter().any(|pod| pod.stamp.held);
        (committed..running).any(was_held).then_some(())?;
        Some((name.clone(), format!("{name} {committed} of the {running} that run")))
    };
    let (roles, counts): (Vec<_>, Vec<_>) = view.roles.iter().filter_map(of_role).unzip();
    let counts = counts.join(", ");
    let note = format!("the status had committed only {counts}: what runs stays, and counts as released");
    (!counts.is_empty()).then(|| EventNote::new(BEHIND, counts, note, true).of_roles(roles))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::role_coordination::ROLE_COORDINATION;
    use crate::plan::test_support::{mk_group, mk_pod, mk_role, mk_segments};
    use crate::plan::view::Stamp;

    #[test]
    fn it_names_the_roles_of_which_more_runs_than_was_committed() {
        let sizes = [("prefill", 10), ("decode", 5)];
        let segments = json!([mk_segments("pd", "OrderedReady", &sizes)]);
        let group = mk_group(&[("prefill", 40), ("decode", 20), ("router", 2)], &segments);
        let said = |committed: Option<u32>| {
            let prefill = RoleView { committed, ..mk_role(40, 20, 20) };
            let roles = [("prefill", prefill), ("decode", mk_role(20, 10, 10)), ("router", mk_role(2, 2, 2))];
            let roles = roles.into_iter().map(|(name, role)| (name.to_owned(), role)).collect();
            behind(&group, &GroupView { roles, ..GroupView::default() }, true).map(|event| event.note)
        };
        let note =
            "the status had committed only prefill 10 of the 20 that run: what runs stays, and counts as released";
        assert_eq!(said(Some(10)).as_deref(), Some(note));
        assert_eq!([said(Some(20)), said(Some(30)), said(None)], [None, None, None]);
    }

    #[test]
    fn what_was_never_held_runs_when_it_likes() {
        let segments = json!([mk_segments("pd", "Parallel", &[("prefill", 1)])]);
        let group = mk_group(&[("prefill", 2)], &segments);
        let said = |held: bool| {
            let mut prefill = RoleView { desired: 2, committed: Some(1), ..RoleView::default() };
            for ordinal in 0..2 {
                let stamp = Stamp { held, ..Stamp::default() };
                let pod = PodFacts { held: false, stamp, ..mk_pod(&ordinal.to_string(), "prefill", ordinal) };
                prefill.replicas.add(&pod.into(), ordinal);
            }
            let roles = [("prefill".to_owned(), prefill)].into();
            behind(&group, &GroupView { roles, ..GroupView::default() }, true).is_some()
        };
        assert_eq!([said(true), said(false)], [true, false]);
    }

    #[test]
    fn pods_of_a_new_group_that_come_without_their_gate_were_let_go_by_something_else() {
        let segments = json!([mk_segments("pd", "OrderedReady", &[("prefill", 1)])]);
        let mut group = mk_group(&[("prefill", 4)], &segments);
        group.carrier.created = "2026-01-01T00:00:05Z".to_owned();
        let view = |created: &str, carrier| {
            let mut prefill = RoleView { desired: 4, ..RoleView::default() };
            let stamp = Stamp { carrier, held: true, ..Stamp::default() };
            let pod = PodFacts { held: false, stamp, created: Some(created.into()), ..mk_pod("a", "prefill", 0) };
            prefill.replicas.add(&pod.into(), 0);
            GroupView { roles: [("prefill".to_owned(), prefill)].into(), ..GroupView::default() }
        };
        let said =
            |created: &str, carrier, wrote| behind(&group, &view(created, carrier), wrote).map(|event| event.note);
        let ours = Some(ROLE_COORDINATION);
        let note = said("2026-01-01T00:00:05Z", ours, false).unwrap();
        assert!(note.starts_with("1 pod of prefill runs before anything was released."), "{note}");
        // The status was lost; the pod was released for an earlier group; the pod is older than its group.
        let others = [("2026-01-01T00:00:05Z", ours, true), ("2026-01-01T00:00:04Z", ours, false)];
        assert_eq!(others.map(|(created, carrier, wrote)| said(created, carrier, wrote)), [None, None]);
        assert_eq!(said("2026-01-01T00:00:05Z", None, false), None);
    }
}
