//! Scheduling gates of other controllers. Those of Kueue are told apart: it says whether it waits for rolegate.

use super::names;
use crate::api::workload::PodTemplate;

/// Returns the first gate that is neither ours nor one of Kueue.
pub fn foreign_gate<'a>(gates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    gates.into_iter().find(|gate| *gate != names::GATE && !names::KUEUE_GATES.contains(gate))
}

/// Returns the same of a pod template.
pub(super) fn gate_of_template(template: &PodTemplate) -> Option<String> {
    foreign_gate(template.spec.scheduling_gates.iter().map(|gate| gate.name.as_str())).map(str::to_owned)
}

/// Returns the warning of a pod template with a gate of another controller. `batch` is the word for a batch of its pods.
pub fn template_has_gate(gate: &str, role: &str, batch: &str) -> String {
    format!(
        "pods of role {role:?} are made with gate {gate:?} of another controller: a {batch} that goes as a whole waits until it is \
         lifted from all pods of the {batch}"
    )
}
