//! Answers of the API server to the reads of a review, and their meaning for the rules.

use std::fmt::Display;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::api::{Meta, ObjectKind};
use crate::cluster::read::reads::name_in;
use crate::rules::{Need, World};

/// Results of the reads.
#[derive(Default)]
pub(super) struct Found {
    pub(super) objects: Vec<(ObjectKind, String)>,
    answers: Vec<(Need, bool)>,
    /// Reason for which something may not be read: absence is not proven then.
    pub(super) forbidden: Option<String>,
}

impl Found {
    pub(super) fn answer(&mut self, need: &Need, there: bool) {
        self.answers.push((need.clone(), there));
    }

    pub(super) fn into_world(self, world: &mut World, unread: &mut Unread) {
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
pub(super) struct Unread {
    count: usize,
    first: String,
}

impl Unread {
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

pub(super) enum Answer {
    Text(String),
    Absent,
    /// Message of the API server.
    Forbidden(String),
}

pub(super) fn items(list: &str) -> Vec<&RawValue> {
    serde_json::from_str::<List<'_>>(list).map(|list| list.items).unwrap_or_default()
}

/// Returns the continue token of a list.
pub(super) fn next_page(list: &str) -> Option<String> {
    let next = serde_json::from_str::<List<'_>>(list).ok()?.metadata.next;
    Some(next).filter(|next| !next.is_empty())
}

/// A list whose objects stay unparsed.
#[derive(Deserialize)]
struct List<'a> {
    #[serde(default)]
    metadata: ListMeta,
    #[serde(borrow, default)]
    items: Vec<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct ListMeta {
    #[serde(default, rename = "continue")]
    next: String,
}

#[derive(Deserialize)]
pub(super) struct Named {
    pub(super) metadata: Meta,
}
