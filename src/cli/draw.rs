//! Draws bars of cells: ASCII letters, or blocks when the terminal supports them, with colours.

use std::fmt::Write as _;

use super::terminal::Style;

#[derive(Clone, Copy, Debug)]
pub struct Cell {
    ascii: &'static str,
    block: &'static str,
    paint: fn(&Style) -> &'static str,
    /// Meaning of the cell in the legend.
    word: &'static str,
}

/// Cells for batches, from the best state to the worst.
pub const BATCH: &[Cell] = &[
    Cell { ascii: "#", block: "█", paint: |style| style.good, word: "ready" },
    Cell { ascii: "+", block: "▒", paint: |style| style.moving, word: "released" },
    Cell { ascii: ">", block: "░", paint: |style| style.strong, word: "may go" },
    Cell { ascii: ".", block: "·", paint: |style| style.faint, word: "held" },
];

/// Cells for room: used by others, used by batches, closed to batches, free.
pub const ROOM: &[Cell] = &[
    Cell { ascii: "#", block: "█", paint: |style| style.faint, word: "used" },
    Cell { ascii: "+", block: "▒", paint: |style| style.moving, word: "batches go here" },
    Cell { ascii: "x", block: "╳", paint: |style| style.bad, word: "closed to them" },
    Cell { ascii: ".", block: "·", paint: |style| style.good, word: "free" },
];

impl Cell {
    pub fn word(&self) -> &'static str {
        self.word
    }

    fn letter(&self, style: &Style) -> &'static str {
        if style.unicode { self.block } else { self.ascii }
    }
}

/// Draws a bar; `cells` are indices into `sorts`. Cells that share a column show their highest index.
pub fn bar(style: &Style, sorts: &[Cell], cells: &[usize], width: usize) -> String {
    let count = cells.len().min(width.max(1));
    let shown = (0..count).map(|position| {
        let (from, to) = (position * cells.len() / count, (position + 1) * cells.len() / count);
        cells.get(from..to).unwrap_or_default().iter().max().copied().unwrap_or_default()
    });
    let painted = shown.filter_map(|sort| sorts.get(sort)).map(|cell| ((cell.paint)(style), cell.letter(style)));
    format!("[{}]", paint(style, painted))
}

/// Colours letters; equal neighbours share an escape sequence.
pub fn paint<'a>(style: &Style, letters: impl Iterator<Item = (&'static str, &'a str)>) -> String {
    let (mut text, mut paint) = (String::new(), "");
    for (next, letter) in letters {
        if next != paint {
            text.push_str(if paint.is_empty() { "" } else { style.end });
            text.push_str(next);
            paint = next;
        }
        text.push_str(letter);
    }
    text.push_str(if paint.is_empty() { "" } else { style.end });
    text
}

/// Returns the legend of the seen sorts: `# ready  . held`.
pub fn legend(style: &Style, sorts: &[Cell], is_seen: impl Fn(usize) -> bool) -> String {
    let mut text = String::new();
    for (_, cell) in sorts.iter().enumerate().filter(|(sort, _)| is_seen(*sort)) {
        let space = if text.is_empty() { "" } else { "  " };
        _ = write!(text, "{space}{}{}{} {}", (cell.paint)(style), cell.letter(style), style.end, cell.word);
    }
    text
}

/// Returns `width` cells in proportion to the parts, as indices of the parts; none when the sum is 0.
pub fn proportion(parts: &[i64], width: usize) -> Vec<usize> {
    let parts = parts.iter().map(|part| i128::from((*part).max(0)));
    let whole: i128 = parts.clone().sum();
    let width = i128::try_from(width).unwrap_or_default();
    let (mut cells, mut sum) = (Vec::new(), 0);
    for (sort, part) in parts.enumerate().filter(|_| whole > 0) {
        sum += part;
        // Rounds to the nearest cell.
        let end = (2 * sum * width + whole) / (2 * whole);
        cells.resize(usize::try_from(end).unwrap_or_default().max(cells.len()), sort);
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::terminal::PLAIN;

    #[test]
    fn a_bar_that_is_too_long_shows_the_worst() {
        let bar = |cells: &[usize], width| bar(&PLAIN, BATCH, cells, width);
        assert_eq!(bar(&[0, 1, 2, 3, 3], 40), "[#+>..]");
        assert_eq!(bar(&[0, 0, 0, 1], 2), "[#+]");
        assert_eq!(bar(&[], 40), "[]");
    }

    #[test]
    fn a_bar_changes_its_colour_only_where_the_sort_changes() {
        let style = Style { good: "<", moving: "{", end: ">", unicode: true, ..PLAIN };
        assert_eq!(bar(&style, BATCH, &[0, 0, 1], 9), "[<██>{▒>]");
        assert_eq!(legend(&style, BATCH, |sort| sort < 2), "<█> ready  {▒> released");
    }

    #[test]
    fn cells_are_in_proportion_to_the_parts() {
        assert_eq!(proportion(&[1, 0, 1, 2], 8), [0, 0, 2, 2, 3, 3, 3, 3]);
        assert_eq!(proportion(&[999, 1], 10), [0; 10]);
        assert_eq!(proportion(&[-5, i64::MAX, i64::MAX], 4), [1, 1, 2, 2]);
        assert_eq!(proportion(&[0, 0], 10), [0; 0]);
    }
}
