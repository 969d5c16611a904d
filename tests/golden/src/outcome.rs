//! Runs a case.

use std::fmt;

use serde_json::{Map, Value};

use super::answer;
use super::case::{Asked, Case, Expected, Match};
use super::compare::in_words_of;
use super::yaml;
use rolegate::cli::mutate::diff::diff_lines;
use rolegate::rules::Judged;

/// The result of a case.
#[derive(Debug)]
pub struct Outcome<'a> {
    pub case: &'a Case,
    pub verdict: Verdict,
}

/// Shows file, line and name, and below them the faults, or the differences.
impl fmt::Display for Outcome<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { file, line, name, .. } = self.case;
        writeln!(out, "{file}:{line}: {name}")?;
        match &self.verdict {
            Verdict::Passed => Ok(()),
            Verdict::Broken(faults) => faults.iter().try_for_each(|fault| writeln!(out, "  {fault}")),
            Verdict::Failed(differences) => differences.iter().try_for_each(|difference| {
                writeln!(out, "  {}: - expected, + found", difference.asked.name())?;
                difference.lines().iter().try_for_each(|line| writeln!(out, "    {line}"))
            }),
        }
    }
}

#[derive(Debug)]
pub enum Verdict {
    /// All answers are as expected.
    Passed,
    /// Some answers differ.
    Failed(Vec<Difference>),
    /// A command could not answer.
    Broken(Vec<String>),
}

/// A command's answer that differs from the expectation.
#[derive(Clone, Debug)]
pub struct Difference {
    pub asked: Asked,
    pub matching: Match,
    /// The expectation; `None` when it is still to be written.
    pub expected: Option<Map<String, Value>>,
    /// The answer, projected onto the expectation.
    pub found: Map<String, Value>,
}

impl Difference {
    /// Returns a diff, each line prefixed with ` `, `-` (expected) or `+` (found); `@` marks omitted lines.
    pub fn lines(&self) -> Vec<String> {
        let expected = self.expected.as_ref().map(yaml::split_lines).unwrap_or_default();
        diff_lines(&expected, &yaml::split_lines(&self.found))
    }
}

impl Case {
    pub fn run(&self) -> Outcome<'_> {
        let (mut differences, mut faults) = (Vec::new(), Vec::new());
        for expected in &self.expected {
            let name = expected.asked.name();
            match answer::answer(&self.input, expected) {
                Err(why) => faults.extend(why.into_iter().map(|why| format!("{name}: {why}"))),
                Ok(answer) => differences.extend(difference(expected, &answer)),
            }
        }
        let verdict = match (faults.is_empty(), differences.is_empty()) {
            (false, _) => Verdict::Broken(faults),
            (true, false) => Verdict::Failed(differences),
            (true, true) => Verdict::Passed,
        };
        Outcome { case: self, verdict }
    }

    /// Returns the verdict of each object, with the object's name.
    ///
    /// # Errors
    ///
    /// When an object cannot be read.
    pub fn judged(&self) -> Result<Vec<(String, Judged)>, Vec<String>> {
        answer::judged(&self.input)
    }

    /// Mutates the objects, each as `{kind, namespace, name, patch, after, warnings}`.
    ///
    /// # Errors
    ///
    /// When an object cannot be read.
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

    /// Returns file and name, by which cases are selected.
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
