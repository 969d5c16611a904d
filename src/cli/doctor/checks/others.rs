//! Checks of other rolegate installations in the cluster.

use crate::cli::doctor::facts::Facts;
use crate::cli::doctor::finding::Findings;
use crate::model::wording::counted;

/// Namespaces to name; further ones are counted.
const NAMED: usize = 3;

/// Checks that no other installation holds the same pods.
pub fn serve_the_same(facts: &Facts, found: &mut Findings) {
    let Some(others) = found.known(&facts.others, "other rolegates") else { return };
    for other in others {
        let shared = &other.shared;
        if shared.is_empty() {
            found.ok(format!("the rolegate {} serves other namespaces than ours", other.name));
            continue;
        }
        let named = shared.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more = shared.len().saturating_sub(NAMED);
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        found.error(
            format!(
                "the rolegate {} serves {} that ours serves too: {named}{more}",
                other.name,
                counted(shared.len(), "namespace")
            ),
            "both decide about each group there: give them namespaces apart (--namespaces, --namespace-selector), or uninstall \
             one of them",
        );
    }
}
