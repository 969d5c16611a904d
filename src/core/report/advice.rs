//! Why pods of a group are held, what happens next, and what the user can do.

use serde::Serialize;

use super::hold::Hold;
use super::{Awaited, Story};
use crate::model::hold::LOOK;
use crate::model::{Advice, Fact, HoldReason};
use crate::plan::{Decision, Held, Lack, LackWhat};

/// The reason why a coordination holds pods.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation<'a> {
    #[serde(flatten)]
    pub hold: Hold<'a>,
    pub waits_for: Vec<Awaited>,
    pub next: &'static str,
    pub you_can: Vec<String>,
}

impl<'a> Story<'a> {
    /// Returns why pods are held, and why steps of rollouts wait for their objects, with advice.
    pub fn explanations(self) -> Vec<Explanation<'a>> {
        let Self(picture) = self;
        let (decision, rollouts) = (&picture.seen.decision, &picture.seen.rollouts);
        let held = self.holds().map(|held| (Hold::of(held), Awaited::all_of(picture, held), of_held(decision, held)));
        let steps = rollouts
            .stages
            .iter()
            .filter_map(|stage| Some((Hold::of_step(stage, rollouts), Vec::new(), of_step(stage.lacks.as_ref()?))));
        let explained = |(hold, waits_for, advice): (Hold<'a>, Vec<Awaited>, Advice)| Explanation {
            hold,
            waits_for,
            next: advice.next,
            you_can: advice.you_can(&picture.key),
        };
        held.chain(steps).map(explained).collect()
    }
}

const CORRECT: &str = "correct `readyWhen.object` in the group";

/// What the user can do about an object that does not have its condition, by what is missing.
const OF_OBJECTS: &[(LackWhat, &[&str])] = &[
    (LackWhat::Look, &[LOOK]),
    (LackWhat::Watch, &["let rolegate watch its kind: `rolegate manifests --ready-kinds`", CORRECT]),
    (LackWhat::List, &["check that rolegate may list and watch its kind: `rolegate doctor`"]),
    (LackWhat::Object, &["apply it, with the definition of its kind if that is not served", CORRECT]),
    (LackWhat::Condition, &[LOOK, CORRECT]),
];

/// What rolegate does next when a step of a rollout waits for its object.
const OF_STEP: &str = "the next step begins when the object has the condition of `readyWhen`";

/// Returns the advice for held pods: for an object that they wait for, by what is missing.
pub fn of_held(decision: &Decision, held: &Held) -> Advice {
    let advice = held.reason.row().advice;
    // A workload that does not exist has no pods to look at.
    let lacks_workload = |held: &Held| held.reason == HoldReason::WorkloadMissing;
    if held.reason.is(Fact::AwaitsPods) && decision.held.iter().any(lacks_workload) {
        return Advice { you_can: HoldReason::WorkloadMissing.row().advice.you_can, ..advice };
    }
    decision.lack(held).map_or(advice, |lack| Advice { you_can: of_object(lack.what), ..advice })
}

/// Returns the advice for a step of a rollout that waits for its object.
fn of_step(lack: &Lack) -> Advice {
    Advice { next: OF_STEP, you_can: of_object(lack.what) }
}

fn of_object(what: LackWhat) -> &'static [&'static str] {
    OF_OBJECTS.iter().find(|(known, _)| *known == what).map_or(&[], |(_, you_can)| *you_can)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::GroupKey;

    #[test]
    fn who_waits_for_pods_of_a_workload_that_is_not_there_is_not_sent_to_look_at_pods() {
        let held = |reason| Held::new(reason, String::new(), Vec::new());
        let turn = held(HoldReason::PreviousSegmentNotReady);
        let advised = |reasons: &[HoldReason]| {
            let decision = Decision { held: reasons.iter().copied().map(held).collect(), ..Decision::default() };
            of_held(&decision, &turn).you_can(&GroupKey::new("ns", "pd")).concat()
        };
        assert!(advised(&[turn.reason]).contains("kubectl describe pod -n ns"));
        assert!(advised(&[turn.reason, HoldReason::WorkloadMissing]).starts_with("apply the workload"));
    }
}
