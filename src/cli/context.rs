//! The context of rules, from objects in files.

use super::documents::{Document, Unreadable};
use crate::rules::{Options, World};

/// Builds the context of the rules from the judged files and from `with`. An object without the shape of its kind goes
/// to `unreadable`, unless it is judged: its verdict says so.
pub fn context(
    options: Options,
    (files, is_judged): (&[Document], fn(&Document) -> bool),
    with: &[Document],
    unreadable: &mut Vec<Unreadable>,
) -> World {
    let mut world = World::of_manifests(options);
    let files = files.iter().map(|document| (document, is_judged(document)));
    for (document, is_judged) in files.chain(with.iter().map(|document| (document, false))) {
        let added = world.add_json(&document.api_version, &document.kind, &document.stored());
        unreadable.extend(added.err().filter(|_| !is_judged).map(|error| document.misshapen(&error)));
    }
    world
}
