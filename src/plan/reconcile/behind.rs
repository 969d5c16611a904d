//! A status that commits less than what runs, as after a restore of an older copy: what runs stays, counts as released, and that
//! is said.

use crate::model::Group;
use crate::plan::reconcile::events::EventNote;
use crate::plan::view::{GroupView, RoleView};

/// Reason of the Event.
pub const BEHIND: &str = "StatusBehindPods";

/// What is to be said when the released counts have been written that take in what runs; `None` where the status is not behind.
pub(in crate::plan) fn behind(group: &Group, view: &GroupView) -> Option<EventNote> {
    let of_role = |(name, role): (&String, &RoleView)| {
        let (running, committed) = (role.running_beyond_commit()?, role.committed?);
        group.batch_size(name)?;
        Some((name.clone(), format!("{name} {committed} of the {running} that run")))
    };
    let (roles, counts): (_, Vec<_>) = view.roles.iter().filter_map(of_role).unzip();
    let counts = counts.join(", ");
    (!counts.is_empty()).then(|| EventNote {
        reason: BEHIND.to_owned(),
        note: format!("the status had committed only {counts}: what runs stays, and counts as released"),
        subject: counts,
        warning: true,
        roles,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::plan::test_support::{mk_group, mk_role, mk_segments};

    #[test]
    fn it_names_the_roles_of_which_more_runs_than_was_committed() {
        let sizes = [("prefill", 10), ("decode", 5)];
        let segments = json!([mk_segments("pd", "OrderedReady", &sizes)]);
        let group = mk_group(&[("prefill", 40), ("decode", 20), ("router", 2)], &segments);
        let said = |committed: Option<u32>| {
            let prefill = RoleView { committed, ..mk_role(40, 20, 20) };
            let roles = [("prefill", prefill), ("decode", mk_role(20, 10, 10)), ("router", mk_role(2, 2, 2))];
            let roles = roles.into_iter().map(|(name, role)| (name.to_owned(), role)).collect();
            behind(&group, &GroupView { roles, ..GroupView::default() }).map(|event| event.note)
        };
        let note =
            "the status had committed only prefill 10 of the 20 that run: what runs stays, and counts as released";
        assert_eq!(said(Some(10)).as_deref(), Some(note));
        assert_eq!([said(Some(20)), said(Some(30)), said(None)], [None, None, None]);
    }
}
