//! Events on recoveries: one when a recovery is committed, one when it is over, one when the batch is not recreated again.

use std::collections::BTreeMap;

use crate::api::status::RecoveryState;
use crate::model::Group;
use crate::plan::reconcile::events::EventNote;
use crate::plan::reconcile::lasting::Ledger;
use crate::plan::reconcile::uptime::Uptime;
use crate::plan::recovery::entry::{Phase, loss_text};
use crate::plan::recovery::text::{is_left, pause, recovery_is_off, roles_of};
use crate::plan::recovery::{PAUSED, RecoveryPlan};

/// The reason of the Event on a batch that has lost a replica and is recreated.
pub const BROKEN: &str = "BatchBroken";
/// The reason of the Event on a recreated batch that is complete.
pub const RECOVERED: &str = "BatchRecovered";
/// The reason of the Event on a batch that was recreated too often and is left as it is.
pub const EXHAUSTED: &str = "RecoveryExhausted";
/// The reason of the Event on a recovery policy without effect, since recovery is not allowed.
pub const OFF: &str = "RecoveryOff";

/// Coordination and number of a batch.
type Key = (String, u32);

/// The reported state of recoveries.
#[derive(Debug, Default)]
pub(in crate::plan) struct ReportedRecoveries {
    /// When each reported recovery began, and whether it is over; `None` before the first pass.
    told: Option<BTreeMap<Key, (Option<String>, bool)>>,
    /// Coordinations that are not allowed to recover.
    off: Ledger<String>,
    /// The pause of recoveries.
    paused: Ledger<(), String>,
}

impl ReportedRecoveries {
    /// Returns new Events on the stored recoveries, and when to look again.
    pub(in crate::plan) fn events(
        &mut self,
        group: &Group,
        plan: &RecoveryPlan,
        now: Uptime,
    ) -> (Vec<EventNote>, Option<Uptime>) {
        let mut events = Vec::new();
        for (name, ()) in self.off.note(plan.without_effect.iter().map(|name| (name.clone(), ())), now).begun {
            events.push(note(OFF, name.clone(), recovery_is_off(&name), true, group, &name));
        }
        let paused = pause(group, plan).map(|(_, text)| ((), text));
        for ((), text) in self.paused.note(paused, now).begun {
            let coordinations = group.batched().filter(|(_, batching)| batching.recovers().is_some());
            let name = coordinations.map(|(coordination, _)| coordination.display_name()).next().unwrap_or_default();
            events.push(note(PAUSED, String::new(), text, true, group, &name));
        }
        let entries = group.status.recoveries.iter();
        let now: BTreeMap<Key, (Phase, &RecoveryState)> = entries
            .filter_map(|entry| Some(((entry.coordination.clone(), entry.batch), (Phase::of(entry)?, entry))))
            .collect();
        if let Some(told) = &self.told {
            for ((name, batch), (phase, entry)) in &now {
                let known = told.get(&(name.clone(), *batch));
                let is_new = known.is_none_or(|(since, _)| *since != entry.since);
                let was_over = known.is_some_and(|(_, over)| *over);
                let is_over = *phase == Phase::Complete;
                events.extend((is_new && !is_over).then(|| begun(group, entry, *phase)));
                events.extend((is_over && !is_new && !was_over).then(|| recovered(group, entry)));
            }
        }
        let told = now.into_iter().map(|(key, (phase, entry))| (key, (entry.since.clone(), phase == Phase::Complete)));
        self.told = Some(told.collect());
        (events, self.off.again().into_iter().chain(self.paused.again()).min())
    }
}

fn begun(group: &Group, entry: &RecoveryState, phase: Phase) -> EventNote {
    let (batch, loss) = (group.batch_name(&entry.coordination, entry.batch), loss_text(entry));
    let message = entry.lost.as_ref().map(|lost| lost.message.trim()).filter(|message| !message.is_empty());
    let message = message.map(|message| format!("; it said last: {message}")).unwrap_or_default();
    let (reason, what) = match phase {
        Phase::Exhausted => (EXHAUSTED, format!("it {}", is_left(entry))),
        _ => match &entry.not_before {
            Some(at) => (BROKEN, format!("it is made anew at {at} (recovery {})", entry.attempt)),
            None => (BROKEN, format!("it is made anew (recovery {})", entry.attempt)),
        },
    };
    note(reason, subject(entry), format!("{batch} broke: {loss}; {what}{message}"), true, group, &entry.coordination)
}

fn recovered(group: &Group, entry: &RecoveryState) -> EventNote {
    let text = format!("{} is complete again", group.batch_name(&entry.coordination, entry.batch));
    note(RECOVERED, subject(entry), text, false, group, &entry.coordination)
}

/// Returns the subject, which differs for each recovery of a batch.
fn subject(entry: &RecoveryState) -> String {
    format!("{} {} {}", entry.coordination, entry.batch, entry.since.as_deref().unwrap_or_default())
}

fn note(reason: &str, subject: String, note: String, warning: bool, group: &Group, coordination: &str) -> EventNote {
    EventNote::new(reason, subject, note, warning).of_roles(roles_of(group, coordination))
}
