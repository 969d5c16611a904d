//! Runs a case.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::answer;
use super::case::{Asked, Case, Expected, Match};
use super::compare::in_words_of;
use super::yaml;
use crate::cli::mutate::diff::diff_lines;
use crate::rules::Judged;

/// What became of a case.
#[derive(Debug)]
pub struct Outcome<'a> {
    /// The case.
    pub case: &'a Case,
    /// What it came to.
    pub verdict: Verdict,
    /// Ids of the rules that found something.
    pub rules: BTreeSet<String>,
}

/// What a case came to.
#[derive(Debug)]
pub enum Verdict {
    /// All is as expected.
    Passed,
    /// These are not.
    Failed(Vec<Difference>),
    /// A command could not answer.
    Broken(Vec<String>),
    /// It had failed, and its file has been written anew.
    Updated,
}

/// What one command answers otherwise than expected.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The command.
    pub asked: Asked,
    /// How it was compared.
    pub matching: Match,
    /// What is written; `None` where nothing is yet.
    pub expected: Option<Map<String, Value>>,
    /// What came out, in the words of what is written.
    pub found: Map<String, Value>,
}

impl Difference {
    /// The lines in which they differ, each with ` `, `-` (expected), `+` (found) or, where lines are left out, `@` in front.
    pub fn lines(&self) -> Vec<String> {
        let expected = self.expected.as_ref().map(yaml::split_lines).unwrap_or_default();
        diff_lines(&expected, &yaml::split_lines(&self.found))
    }
}

impl Case {
    /// Runs it.
    pub fn run(&self) -> Outcome<'_> {
        let (mut differences, mut faults, mut rules) = (Vec::new(), Vec::new(), BTreeSet::new());
        for expected in &self.expected {
            let name = expected.asked.name();
            match answer::answer(&self.input, expected) {
                Err(why) => faults.extend(why.into_iter().map(|why| format!("{name}: {why}"))),
                Ok(answer) => {
                    rules.extend(found_by(expected.asked, &answer));
                    differences.extend(difference(expected, &answer));
                }
            }
        }
        let verdict = match (faults.is_empty(), differences.is_empty()) {
            (false, _) => Verdict::Broken(faults),
            (true, false) => Verdict::Failed(differences),
            (true, true) => Verdict::Passed,
        };
        Outcome { case: self, verdict, rules }
    }

    /// What the rules say of each object, with its name.
    ///
    /// # Errors
    ///
    /// What cannot be read.
    pub fn judged(&self) -> Result<Vec<(String, Judged)>, Vec<String>> {
        answer::judged(&self.input)
    }

    /// What becomes of the objects: `{kind, namespace, name, patch, after, warnings}` of each.
    ///
    /// # Errors
    ///
    /// What cannot be read.
    pub fn mutated(&self) -> Result<Vec<Value>, Vec<String>> {
        let mutated = answer::mutations(&self.input)?.into_iter();
        let told = mutated.map(|object| {
            serde_json::json!({
                "kind": object.kind,
                "namespace": object.namespace,
                "name": object.name,
                "patch": object.patch,
                "after": object.after,
                "warnings": object.warnings,
            })
        });
        Ok(told.collect())
    }

    /// File and name, by which cases are chosen.
    pub fn title(&self) -> String {
        format!("{}: {}", self.file, self.name)
    }
}

fn difference(expected: &Expected, answer: &Map<String, Value>) -> Option<Difference> {
    let found = in_words_of(expected, answer);
    let is_same = expected.written.as_ref() == Some(&found);
    let written = || expected.written.clone();
    (!is_same).then(|| Difference { asked: expected.asked, matching: expected.matching, expected: written(), found })
}

/// The rules that refuse or warn.
fn found_by(asked: Asked, answer: &Map<String, Value>) -> impl Iterator<Item = String> + '_ {
    let lists = if asked == Asked::Check { ["violations", "warnings"].as_slice() } else { &[] };
    let findings = lists.iter().filter_map(|list| answer.get(*list)?.as_array()).flatten();
    findings.filter_map(|finding| finding.get("rule")?.as_str().map(str::to_owned))
}
