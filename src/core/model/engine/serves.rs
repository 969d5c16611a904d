//! The phase of inference that a pod serves.

/// The words of llm-d's router.
pub const PHASES: &[&str] =
    &["prefill", "decode", "encode", "prefill-decode", "encode-prefill", "encode-prefill-decode"];

/// Phases in the order of a request.
const IN_ORDER: &[&str] = &["encode", "prefill", "decode"];

/// Returns the phase that the name of a role tells: `prefill-leader` serves `prefill`. `None` for a name without such a word,
/// and for a pair of phases that no router knows.
pub fn serves_of_role(role: &str) -> Option<&'static str> {
    let role = role.to_ascii_lowercase();
    let words: Vec<_> = role.split(['-', '_']).collect();
    let phases: Vec<_> = IN_ORDER.iter().copied().filter(|phase| words.contains(phase)).collect();
    let joined = phases.join("-");
    PHASES.iter().copied().find(|phase| *phase == joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_tells_its_phase_by_a_word_of_its_name() {
        for (role, phase) in [
            ("prefill", Some("prefill")),
            ("PREFILL_LEADER", Some("prefill")),
            ("vllm-decode-worker", Some("decode")),
            ("decode-prefill", Some("prefill-decode")),
            ("encode", Some("encode")),
            ("encode-decode", None),
            ("prefiller", None),
            ("router", None),
            ("", None),
        ] {
            assert_eq!(serves_of_role(role), phase, "{role}");
        }
    }
}
