//! A terminal chart: a column per role and release, as high as the released share.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::stairs::{RoleStairs, Stairs};
use super::{Plan, Planned, text};
use crate::cli::draw::paint;
use crate::cli::terminal::{Style, shown, width};

/// Height of a role, in lines.
const HEIGHT: u32 = 4;
/// Maximum width of a column, including the gap.
const WIDEST: usize = 6;
/// Maximum width of a name.
const NAME: usize = 24;
/// Label of the row of numbers.
const RELEASE: &str = "release";
/// Steps of height per line.
const PARTS: u32 = 8;

/// Cells by fill level, in steps of 1/8.
const BLOCKS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
const ASCII: [&str; 9] = [" ", ".", ".", ".", ":", ":", ":", "#", "#"];

pub(super) fn print(out: &mut impl Write, planned: &[Planned<'_>]) -> io::Result<()> {
    let (style, width) = (Style::of_stdout(), width());
    for (position, planned) in planned.iter().enumerate() {
        if position > 0 {
            writeln!(out)?;
        }
        text::head(out, planned, false, style)?;
        text::all_findings(out, planned, style)?;
        if let (true, Ok(Plan { group, run: Ok(run), .. })) = (planned.judged.is_allowed(), &planned.plan) {
            let names = group.roles.iter().map(|role| role.name.chars().count());
            let names = names.chain([RELEASE.len()]).max().unwrap_or_default().min(NAME);
            let counts = group.roles.iter().map(|role| role.desired.to_string().len()).max().unwrap_or_default();
            let margin = Margin { names, counts };
            // A chart needs at least two columns.
            let cells = width.saturating_sub(margin.width()).max(2);
            let stairs = Stairs::of(group, run, cells);
            write!(out, "{}", chart(&stairs, margin, cells, &style))?;
        }
    }
    Ok(())
}

/// The widths left of the columns.
#[derive(Clone, Copy)]
struct Margin {
    names: usize,
    counts: usize,
}

impl Margin {
    fn width(self) -> usize {
        self.names + self.counts + 5
    }

    /// Returns the beginning of a line.
    fn line(self, name: &str, count: &str, edge: &str) -> String {
        let (names, counts) = (self.names, self.counts);
        let name: String = shown(name).chars().take(names).collect();
        format!("  {name:<names$} {count:>counts$} {edge}")
    }
}

fn chart(stairs: &Stairs<'_>, margin: Margin, cells: usize, style: &Style) -> String {
    let mut text = String::new();
    if let Some(column) = cells.checked_div(stairs.columns) {
        let column = column.clamp(1, WIDEST);
        for role in stairs.drawn() {
            text += &rows(role, margin, column, style);
        }
        text += &(margin.line(RELEASE, "", " ") + &numbers(stairs, column) + "\n");
    }
    if let Some(scale) = stairs.scale() {
        _ = writeln!(text, "  {scale}");
    }
    for role in &stairs.free {
        _ = writeln!(text, "  {}", shown(&text::in_no_batch(role)));
    }
    text
}

/// Returns the lines of a role, top first.
fn rows(role: &RoleStairs<'_>, margin: Margin, column: usize, style: &Style) -> String {
    let letters = if style.unicode { &BLOCKS } else { &ASCII };
    let edge = if style.unicode { "│" } else { "|" };
    // Wide columns have a gap.
    let (bar, gap) = if column > 2 { (column - 1, 1) } else { (column, 0) };
    let mut text = String::new();
    for line in (0..HEIGHT).rev() {
        let base = line * PARTS;
        let cells = role.steps().flat_map(|(before, after)| {
            let full = |count| role.part(count, HEIGHT * PARTS);
            let filled = full(after).saturating_sub(base).min(PARTS);
            let letter = usize::try_from(filled).ok().and_then(|filled| letters.get(filled)).copied().unwrap_or(" ");
            let color = match filled {
                0 => "",
                _ if full(before) > base => style.good,
                _ => style.moving,
            };
            std::iter::repeat_n((color, letter), bar).chain(std::iter::repeat_n(("", " "), gap))
        });
        let (name, count) = match line {
            _ if line == HEIGHT - 1 => (role.name, role.desired.to_string()),
            0 => ("", "0".to_owned()),
            _ => ("", String::new()),
        };
        let line = margin.line(name, &count, edge) + &paint(style, cells);
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// Returns the row of release numbers, as many as fit.
fn numbers(stairs: &Stairs<'_>, column: usize) -> String {
    let longest = stairs.releases.to_string().len();
    let every = (longest + 1).div_ceil(column);
    let mut text = String::new();
    for at in (0..stairs.columns).step_by(every) {
        text.push_str(&" ".repeat((at * column).saturating_sub(text.len())));
        text.push_str(&stairs.last_of(at).to_string());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::terminal::PLAIN;

    fn stairs(releases: usize, per_column: usize, counts: &[u32]) -> Stairs<'static> {
        let roles = vec![RoleStairs { name: "prefill", desired: 10, begun: 0, released: counts.to_vec() }];
        Stairs { releases, per_column, columns: counts.len(), roles, free: vec!["router"] }
    }

    #[test]
    fn columns_are_as_high_as_the_released_share() {
        let margin = Margin { names: 7, counts: 2 };
        let found = chart(&stairs(4, 1, &[2, 5, 8, 10]), margin, 16, &PLAIN);
        let expected = "  prefill 10 |        ... ###\n             \
             |        ### ###\n             \
             |    ### ### ###\n           \
             0 |::: ### ### ###\n  \
             release     1   2   3   4\n  \
             role \"router\" is in no batch: its pods get no gate\n";
        assert_eq!(found, expected, "{found}");
    }

    #[test]
    fn many_releases_share_columns_and_it_is_said() {
        let margin = Margin { names: 7, counts: 2 };
        let found = chart(&stairs(9, 3, &[3, 6, 10]), margin, 3, &Style { unicode: true, ..PLAIN });
        assert!(found.contains("prefill 10 │  █\n"), "{found}");
        assert!(found.contains("  each column is 3 releases of 9 in all\n"), "{found}");
    }

    #[test]
    fn a_share_that_is_new_has_another_colour() {
        let style = Style { good: "<", moving: "{", end: ">", ..PLAIN };
        let found = chart(&stairs(2, 1, &[5, 10]), Margin { names: 7, counts: 2 }, 8, &style);
        assert!(found.contains("prefill 10 |    {###>\n"), "{found}");
        assert!(found.contains("          0 |{###> <###>\n"), "{found}");
    }
}
