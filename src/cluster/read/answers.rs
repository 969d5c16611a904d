//! What the API server answers to the reads of a review, and what that means to the rules.

use std::fmt::Display;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::api::{Meta, ObjectKind};
use crate::cluster::read::reads::name_in;
use crate::rules::{Need, World};

/// What was read.
#[derive(Default)]
pub(super) struct Found {
    pub(super) objects: Vec<(ObjectKind, String)>,
    answers: Vec<(Need, bool)>,
    /// Why something may not be read: then we do not know what is not there.
    pub(super) forbidden: Option<String>,
}

impl Found {
    pub(super) fn answer(&mut self, need: &Need, there: bool) {
        self.answers.push((need.clone(), there));
    }

    pub(super) fn into_world(self, world: &mut World, unread: &mut Unread) {
        for (kind, object) in self.objects {
            // One without the expected shape is as good as unknown.
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

/// What could not be read for one review: told in one line, however much it is.
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

/// What the API server answers.
pub(super) enum Answer {
    Text(String),
    Absent,
    /// In the API server's words.
    Forbidden(String),
}

pub(super) fn items(list: &str) -> Vec<&RawValue> {
    serde_json::from_str::<List<'_>>(list).map(|list| list.items).unwrap_or_default()
}

/// What to ask for to get the next page of a list.
pub(super) fn next_page(list: &str) -> Option<String> {
    let next = serde_json::from_str::<List<'_>>(list).ok()?.metadata.next;
    Some(next).filter(|next| !next.is_empty())
}

/// A list, its objects left as they are.
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

/// An object of which only the metadata is read.
#[derive(Deserialize)]
pub(super) struct Named {
    pub(super) metadata: Meta,
}
