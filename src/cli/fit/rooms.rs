//! Draws a bar for each domain or node: used by others, used by batches, free.

use std::fmt::Write as _;

use crate::cli::draw::{ROOM, bar, proportion};
use crate::cli::terminal::{Style, shown};
use crate::fit::{DomainRoom, Fitted, Rooms, Sums};
use crate::model::wording::{counted, numbers};

/// Number of cells in a bar.
const WIDTH: usize = 30;
/// Maximum number of domains to show.
const MOST_DOMAINS: usize = 16;

/// Returns a heading such as `nvidia.com/gpu by rack:`, and a line for each domain or node.
pub(super) fn drawn(rooms: &Rooms, fitted: &Fitted, style: &Style, wide: bool) -> String {
    let by = fitted.key.as_deref().map_or_else(|| "in the cluster".to_owned(), |key| format!("by {key}"));
    let mut text = format!("  {} {}\n", shown(&rooms.resource), shown(&by));
    let most = if wide { usize::MAX } else { MOST_DOMAINS };
    let name = |domain: &DomainRoom| shown(domain.name.as_deref().unwrap_or("all nodes"));
    let shown_domains = rooms.domains.iter().take(most);
    let names = shown_domains.clone().flat_map(|domain| {
        let nodes = domain.nodes.iter().filter(|_| wide).map(|node| node.name.chars().count() + 2);
        std::iter::once(name(domain).chars().count()).chain(nodes)
    });
    let width = names.max().unwrap_or_default();
    let mut line = |name: &str, sums: &Sums, batches: &[u32]| {
        let cells = proportion(&[sums.used, sums.taken, sums.closed, sums.free], WIDTH);
        let says = says(rooms, fitted, sums, batches);
        _ = writeln!(text, "    {name:<width$}  {}  {says}", bar(style, ROOM, &cells, WIDTH));
    };
    for domain in shown_domains {
        line(&name(domain), &domain.sums(), &domain.batches());
        for node in domain.nodes.iter().filter(|_| wide) {
            let batches: Vec<_> = node.taken.keys().copied().collect();
            line(&format!("  {}", shown(&node.name)), &node.sums(), &batches);
        }
    }
    if let Some(rest @ [_, ..]) = rooms.domains.get(most.min(rooms.domains.len())..) {
        let free = rest.iter().map(|domain| domain.sums().free).fold(0_i64, i64::saturating_add);
        let all = counted(rest.len(), "more domain");
        _ = writeln!(text, "    and {all} with {} free: `-o wide` has each", rooms.written(free));
    }
    text
}

/// Describes a bar: `8 for segments 1-2, 4 of 16 free, 4 closed`.
fn says(rooms: &Rooms, fitted: &Fitted, sums: &Sums, batches: &[u32]) -> String {
    let kind = fitted.batching.kind;
    let word = if batches.len() == 1 { kind.word() } else { kind.words() };
    // Users count from 1.
    let from_one: Vec<_> = batches.iter().map(|index| index.saturating_add(1)).collect();
    let mut parts = Vec::new();
    if !batches.is_empty() {
        parts.push(format!("{} for {word} {}", rooms.written(sums.taken), numbers(&from_one)));
    }
    parts.push(format!("{} of {} free", rooms.written(sums.free), rooms.written(sums.total)));
    if sums.closed > 0 {
        parts.push(format!("{} closed", rooms.written(sums.closed)));
    }
    parts.join(", ")
}
