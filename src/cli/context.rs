//! The context of rules, from objects in files.

use std::collections::HashSet;

use super::documents::{Document, Unreadable, seen_from};
use crate::api::role_coordination::ROLE_COORDINATION;
use crate::model::GroupKey;
use crate::rules::{Options, World};

/// Builds the context of the rules from the judged files and from `with`. An object without the shape of its kind goes
/// to `unreadable`, unless it is judged: its verdict says so. With `own`, the context is that of this file.
pub fn context(
    options: Options,
    (files, is_judged): (&[Document], fn(&Document) -> bool),
    with: &[Document],
    own: Option<&str>,
    unreadable: &mut Vec<Unreadable>,
) -> World {
    let mut world = World::of_manifests(options);
    add_order(&mut world, files);
    let seen = own.map(|own| seen_from(own, files.iter().chain(with)));
    let seen: Option<HashSet<_>> = seen.map(|seen| seen.into_iter().map(std::ptr::from_ref).collect());
    let files = files.iter().map(|document| (document, is_judged(document)));
    let all = files.chain(with.iter().map(|document| (document, false)));
    let is_seen = |document: &Document| seen.as_ref().is_none_or(|seen| seen.contains(&std::ptr::from_ref(document)));
    for (document, is_judged) in all.filter(|(document, _)| is_seen(document)) {
        let added = world.add_json(&document.api_version, &document.kind, &document.stored());
        unreadable.extend(added.err().filter(|_| !is_judged).map(|error| document.misshapen(&error)));
    }
    world
}

/// Adds what stands before each RoleCoordination in its file.
fn add_order(world: &mut World, files: &[Document]) {
    for (index, document) in files.iter().enumerate().filter(|(_, document)| document.is(ROLE_COORDINATION)) {
        let (_, _, namespace, name) = document.identity();
        let is_of_file = |other: &&Document| other.source.name == document.source.name;
        let is_beside = |other: &&Document| is_of_file(other) && other.identity().2 == namespace;
        for before in files.iter().take(index).filter(is_beside) {
            world.add_before(GroupKey::new(namespace, name), (&before.kind, &before.name));
        }
    }
}
