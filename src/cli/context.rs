//! What objects in files say of each other.

use super::documents::{Document, Unreadable};
use crate::rules::{Options, World};

/// What rules know of the objects that a command is about, and of those that are there besides. One that does not have the
/// shape of its kind is no context, which is told here; of one that is judged its verdict tells it.
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
        unreadable.extend(added.err().filter(|_| !is_judged).map(|error| document.unreadable(&error)));
    }
    world
}
