//! `--ready-kinds`: kinds whose objects `readyWhen` may name.

use crate::api::ObjectKind;
use crate::cli::rights::{Right, Scope};
pub use crate::model::ready_kind::{parse, text};

/// Name of the flag.
pub const FLAG: &str = "--ready-kinds";

/// Returns the right to watch a kind.
pub fn right(kind: ObjectKind) -> Right {
    Right {
        groups: vec![kind.group].leak(),
        resources: vec![kind.plural].leak(),
        verbs: &["list", "watch"],
        scope: Scope::Cluster,
        why: "Conditions of objects that segments and steps of rollouts wait for.",
    }
}

/// Returns the kinds in arguments of `serve`.
pub fn given(arguments: &[String]) -> Vec<ObjectKind> {
    words(FLAG, arguments).into_iter().filter_map(|word| parse(word).ok()).collect()
}

/// Returns the words of a flag: in one argument, or in the one after the flag.
pub fn words<'a>(flag: &str, arguments: &'a [String]) -> Vec<&'a str> {
    let (mut all, mut is_next) = (Vec::new(), false);
    for argument in arguments {
        let after = argument.strip_prefix(flag).and_then(|rest| rest.strip_prefix('='));
        let words = if is_next { Some(argument.as_str()) } else { after };
        is_next = argument == flag;
        all.extend(words.into_iter().flat_map(|words| words.split(',')));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_found_in_arguments() {
        let found = |arguments: &[&str]| {
            let arguments: Vec<_> = arguments.iter().map(ToString::to_string).collect();
            given(&arguments).into_iter().map(text).collect::<Vec<_>>()
        };
        assert_eq!(
            found(&["serve", "--ready-kinds=Job=jobs.v1.batch,Pod=pods.v1"]),
            ["Job=jobs.v1.batch", "Pod=pods.v1"]
        );
        assert_eq!(found(&["--ready-kinds", "Job=jobs.v1.batch", "--strict"]), ["Job=jobs.v1.batch"]);
        assert_eq!(found(&["serve", "--strict"]), [""; 0]);
    }
}
