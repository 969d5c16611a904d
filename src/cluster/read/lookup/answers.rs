//! Answers of the API server to the reads of a review, and their meaning for the rules.

use std::fmt::Display;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::reads::name_in;
use super::{Looked, LookupError};
use crate::api::ObjectKind;
use crate::cluster::failure::forbidden;
use crate::rules::{Need, World};

/// Results of the reads.
#[derive(Default)]
pub(super) struct NeedAnswers {
    pub(super) objects: Vec<(ObjectKind, String)>,
    answers: Vec<(Need, bool)>,
    /// Reason for which something may not be read: absence is not proven then.
    pub(super) forbidden: Option<String>,
}

impl NeedAnswers {
    pub(super) fn answer(&mut self, need: &Need, there: bool) {
        self.answers.push((need.clone(), there));
    }

    /// Returns what was read, `None` where it does not exist or may not be read.
    pub(super) fn allowed(&mut self, read: Looked<Option<String>>) -> Looked<Option<String>> {
        if let Err(LookupError::Read { source, .. }) = &read
            && let Some(why) = forbidden(source)
        {
            self.forbidden = Some(why.to_owned());
            return Ok(None);
        }
        read
    }

    pub(super) fn into_world(self, world: &mut World, unread: &mut FailedReads) {
        for (kind, object) in self.objects {
            // An object without the expected shape counts as unknown.
            if let Err(error) = world.add_json(&kind.api_version(), kind.kind, &object) {
                unread.note(&format_args!("{} does not have the expected shape: {error}", kind.kind));
            }
        }
        let is_list = |need: &Need| name_in(need).is_none();
        let known = |(need, there): &(Need, bool)| self.forbidden.is_none() || (*there && !is_list(need));
        self.answers.into_iter().filter(known).for_each(|(need, there)| world.answer(need, there));
        if let Some(why) = self.forbidden {
            unread.note(&why);
        }
    }
}

/// Failed reads of one review, reported in one line.
#[derive(Default)]
pub(super) struct FailedReads {
    count: usize,
    first: String,
}

impl FailedReads {
    pub(super) fn note(&mut self, why: &dyn Display) {
        if self.count == 0 {
            self.first = why.to_string();
        }
        self.count += 1;
    }

    pub(super) fn tell(&self, of: ObjectKind) {
        if self.count > 0 {
            let Self { count, first } = self;
            tracing::warn!(of = of.kind, count, first, "cannot be read: rules that look at it do not judge");
        }
    }
}

/// Reads a list; an unreadable one is empty.
pub(super) fn list(text: &str) -> List<'_> {
    serde_json::from_str(text).unwrap_or_default()
}

/// A list whose objects stay unparsed.
#[derive(Default, Deserialize)]
pub(super) struct List<'a> {
    #[serde(default)]
    pub(super) metadata: ListMeta,
    #[serde(borrow, default)]
    pub(super) items: Vec<&'a RawValue>,
}

#[derive(Default, Deserialize)]
pub(super) struct ListMeta {
    /// The continue token; empty on the last page.
    #[serde(default, rename = "continue")]
    pub(super) next: String,
}
