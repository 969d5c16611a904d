//! Text output of `fit --suggest`.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::cli::terminal::{Table, shown};
use crate::fit::{MOST_SIZES, Size, Sizes, Suggestion};
use crate::model::wording::counted;
use crate::plan::placement::NotModelled;
use crate::plan::placement::needs::rounded;

/// Largest number of sizes to show.
const MOST_SHOWN: usize = 10;

pub(super) fn print(out: &mut impl Write, title: &str, suggestions: &[Suggestion], wide: bool) -> io::Result<()> {
    for suggestion in suggestions {
        let Suggestion { coordination, key, now, answer } = suggestion;
        let of = coordination.as_ref().map(|name| format!(", coordination {name:?}")).unwrap_or_default();
        let found = match answer {
            Ok(found) => found,
            Err(error) => {
                writeln!(out, "{title}{}", shown(&format!("{of}: {error}")))?;
                continue;
            }
        };
        let head = format!("{of}: segments in the ratio of {}", replicas(&found.ratio));
        writeln!(out, "{title}{}", shown(&head))?;
        writeln!(out, "  {}", shown(&room(found, key.as_deref())))?;
        if found.sizes.is_empty() && found.untried == 0 {
            let place = if key.is_some() { "no domain" } else { "the cluster does not" };
            let hold = if key.is_some() { "holds" } else { "hold" };
            writeln!(out, "  {place} {hold} a segment of {}", shown(&replicas(&found.ratio)))?;
        } else if !found.sizes.is_empty() {
            write!(out, "{}", table(found, now, wide).text(2))?;
        }
        let shown_sizes = if wide { found.sizes.len() } else { found.sizes.len().min(MOST_SHOWN) };
        if let Some(rest @ 1..) = found.sizes.len().checked_sub(shown_sizes) {
            writeln!(out, "  and {}: `-o wide` has each", counted(rest, "more size"))?;
        }
        if found.untried > 0 {
            let untried = counted(found.untried, "other size");
            writeln!(
                out,
                "  not tried: {untried}; at most {MOST_SIZES} are, first those that divide the replicas evenly"
            )?;
        }
        if let Some(beyond) = NotModelled::beyond(&found.not_modelled) {
            writeln!(out, "  {}", shown(&beyond))?;
        }
    }
    Ok(())
}

/// Describes the room: `64 nvidia.com/gpu free in 4 domains of rack`.
fn room(found: &Sizes, key: Option<&str>) -> String {
    let free = rounded(&found.resource, found.free);
    let place = match key {
        Some(key) => format!("{} of {key}", counted(found.domains, "domain")),
        None => "the cluster, of which all nodes are one domain: `--domain LABEL` fills racks".to_owned(),
    };
    format!("{free} {} free in {place}", found.resource)
}

fn table(found: &Sizes, now: &BTreeMap<String, u32>, wide: bool) -> Table {
    let mut table = Table::with_heading(["SEGMENT", "WANTED", "FIT", "UNUSED", ""]);
    for size in found.sizes.iter().take(if wide { usize::MAX } else { MOST_SHOWN }) {
        table.row([
            replicas(&size.sizes),
            size.wanted.to_string(),
            size.fits.to_string(),
            rounded(&found.resource, size.unused),
            remarks(size, now),
        ]);
    }
    table
}

fn remarks(size: &Size, now: &BTreeMap<String, u32>) -> String {
    let remarks = [(size.sizes == *now, "as written"), (!size.even, "the last one wanted is smaller")];
    remarks.into_iter().filter_map(|(is, remark)| is.then_some(remark)).collect::<Vec<_>>().join(", ")
}

/// Returns `10 decode and 20 prefill`.
fn replicas(sizes: &BTreeMap<String, u32>) -> String {
    sizes.iter().map(|(role, size)| format!("{size} {role}")).collect::<Vec<_>>().join(" and ")
}
