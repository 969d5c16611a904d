//! Rules of rollouts in steps (KEP-30, Summary).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::model::fault::MUST_BE_A_TIME;
use crate::model::rollout_step::{DURATION, PAUSE, read_duration, share};
use crate::model::{Coordination, FieldPath, Group, RollingBounds};
use crate::rules::names::hint;
use crate::rules::violation::quoted;
use crate::rules::{Cause, Report, World};

type Entry = BTreeMap<String, Value>;

/// Largest number of entries. Each is followed at every look at the group.
const MOST: usize = 64;

/// Requires that the shares of the steps rise to the end, and that pauses stand between steps.
pub(super) fn steps(group: &Group, _: &World, report: &mut Report) {
    for coordination in &group.coordinations {
        let Some((update, at)) = &coordination.rolling_update else { continue };
        let Some(entries) = &update.steps else { continue };
        let at = at.child("steps");
        let subject = coordination.display_name();
        if entries.is_empty() {
            let detail = "must have a step; without the field, all roles are updated at one rate";
            report.error(&subject, at, Cause::Invalid, Some("[]".to_owned()), detail);
            continue;
        }
        if entries.len() > MOST {
            let detail = format!("must have at most {MOST} items");
            report.error(&subject, at, Cause::TooMany, Some(entries.len().to_string()), detail);
            continue;
        }
        if coordination.names(PAUSE) {
            let detail =
                format!("may not be the name of a role that is updated in steps: in `{at}`, `{PAUSE}` is a pause");
            report.error(PAUSE, coordination.path_of(PAUSE), Cause::Invalid, quoted(PAUSE), detail);
            continue;
        }
        if let Some((role, other)) = shared(group, coordination) {
            let detail = format!(
                "may not be set while coordination {other:?} updates role {role:?} too: a role in steps waits for no other \
                 coordination"
            );
            report.forbid(&subject, at.clone(), detail);
        }
        let mut walk = Walk { coordination, at, reached: BTreeMap::new(), faulty: false, report };
        for (index, entry) in entries.iter().enumerate() {
            if entry.contains_key(PAUSE) {
                walk.pause(index, entry, entries);
            } else {
                walk.step(index, entry);
            }
        }
        walk.end();
    }
}

/// Returns a role of the coordination that another one updates too: each could wait for the other for ever.
pub(super) fn shared<'a>(group: &'a Group, coordination: &'a Coordination) -> Option<(&'a str, String)> {
    let others = group.coordinations.iter().filter(|other| other.index != coordination.index);
    let mut others = others.filter(|other| other.rolling_update.is_some());
    others.find_map(|other| {
        let role = coordination.role_names().into_iter().find(|role| other.names(role))?;
        Some((role, other.display_name()))
    })
}

/// The walk over the entries of one coordination.
struct Walk<'a> {
    coordination: &'a Coordination,
    at: FieldPath,
    /// The last share of each role, with the number of its step from 1.
    reached: BTreeMap<&'a str, (u32, usize)>,
    /// Whether a share is faulty: the last shares are then not known.
    faulty: bool,
    report: &'a mut Report,
}

impl Walk<'_> {
    fn error(&mut self, path: FieldPath, cause: Cause, value: Option<String>, detail: impl Into<String>) {
        self.report.error(&self.coordination.display_name(), path, cause, value, detail);
    }

    /// Judges an entry with a pause.
    fn pause(&mut self, index: usize, entry: &Entry, all: &[Entry]) {
        let at = self.at.index(index).child(PAUSE);
        let is_step = |at: Option<usize>| at.and_then(|at| all.get(at)).is_some_and(|entry| !entry.contains_key(PAUSE));
        if entry.len() > 1 {
            let detail = "must be an entry of its own: it stands between two steps";
            self.error(at.clone(), Cause::Forbidden, None, detail);
        } else if !is_step(index.checked_sub(1)) || !is_step(index.checked_add(1)) {
            let more = if index + 1 == all.len() { "; `partition` leaves replicas old at the end" } else { "" };
            self.error(at.clone(), Cause::Forbidden, None, format!("must stand between two steps{more}"));
        }
        let Some(Value::Object(fields)) = entry.get(PAUSE) else {
            let value = entry.get(PAUSE).map(Value::to_string);
            let detail = "must be {}, which lasts until it is resumed, or have a `duration`, such as {duration: 10m}";
            return self.error(at, Cause::Invalid, value, detail);
        };
        for (field, value) in fields {
            let path = at.child(field.clone());
            if field != DURATION {
                let detail = format!("no such field{}", hint(field, [DURATION]));
                self.error(path, Cause::Invalid, Some(value.to_string()), detail);
            } else if read_duration(value).is_none() {
                self.error(path, Cause::Invalid, Some(value.to_string()), MUST_BE_A_TIME);
            }
        }
    }

    /// Judges an entry with shares.
    fn step(&mut self, index: usize, entry: &Entry) {
        let (coordination, at, number) = (self.coordination, self.at.index(index), index + 1);
        if entry.is_empty() {
            return self.error(at, Cause::Required, None, "must name a role with its share, or `pause`");
        }
        let (mut rises, before) = (false, self.report.len());
        for (name, value) in entry {
            let path = at.key(name);
            let roles = coordination.role_names();
            let Some(role) = roles.get(name.as_str()).copied() else {
                let must = "must be a role of the coordination, or `pause`";
                let detail = self.report.with_hint(must, name, roles.into_iter().chain([PAUSE]));
                self.report.error(name, path, Cause::NotFound, quoted(name), detail);
                continue;
            };
            let (least, step) = self.reached.get(role).copied().unwrap_or_default();
            match share(value) {
                None => {
                    let detail = "must be a percentage without decimals, from \"0%\" to \"100%\", or 0";
                    self.report.error(name, path, Cause::Invalid, Some(value.to_string()), detail);
                }
                Some(share) if share < least => {
                    let detail = format!(
                        "must be at least {least}%, as in `{}`: a share does not fall",
                        self.at.index(step - 1)
                    );
                    self.report.error(name, path, Cause::Invalid, Some(value.to_string()), detail);
                }
                Some(share) => {
                    rises |= share > least;
                    self.reached.insert(role, (share, number));
                }
            }
        }
        let faulty = self.report.len() > before;
        self.faulty |= faulty;
        if !rises && !faulty {
            self.error(at, Cause::Invalid, None, "must raise the share of a role");
        }
    }

    /// Requires that the last shares leave no replica old that `partition` does not keep.
    fn end(self) {
        if self.faulty {
            return;
        }
        let kept = RollingBounds::of(self.coordination).map_or(0, |bounds| bounds.partition);
        let end = 100 - kept.min(100);
        let reached = |role: &str| self.reached.get(role).map_or(0, |(share, _)| *share);
        let roles: BTreeSet<_> = self.coordination.role_names();
        for role in roles.into_iter().filter(|role| reached(role) < end) {
            let share = reached(role);
            let detail = format!(
                "must lead to {end}% of role {role:?}, and end at {share}%: add a step {{{role}: {end}%}}, or set `partition` to \
                 leave a share of each role old"
            );
            self.report.error(role, self.at.clone(), Cause::Invalid, None, detail);
        }
    }
}
