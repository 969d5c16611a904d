//! An SVG picture of the releases: a row per role, a column per release, as high as the released share. It refers to
//! no other file, is readable on light and dark backgrounds, and has a text description.

use std::fmt::Write as _;

use super::stairs::{RoleStairs, Stairs};
use super::{Plan, Planned, text};
use crate::cli::data::xml;
use crate::cli::terminal::{PLAIN, shown};
use crate::model::wording::counted;

/// Maximum number of columns per role.
const MOST_COLUMNS: usize = 200;
/// Maximum number of columns of all roles together, as long as each has [`LEAST_COLUMNS`].
const MOST_CELLS: usize = 40_000;
const LEAST_COLUMNS: usize = 20;
/// Maximum number of columns whose counts are described one by one.
const MOST_COUNTS: usize = 20;
/// Errors of a refused group to list; further ones are counted.
const MOST_FAULTS: usize = 5;
/// Maximum number of lines about placements.
const MOST_PLACES: usize = 24;
/// Maximum length of a line, and of a name.
const LINE: usize = 120;
const NAME: usize = 22;

// Lengths in units of the picture.
const WIDTH: u32 = 960;
const LEFT: u32 = 190;
const PLOT: u32 = WIDTH - LEFT - 20;
const WIDEST: u32 = 80;
const ROW: u32 = 48;
const GAP: u32 = 22;

const STYLE: &str = "\
text{font:13px system-ui,sans-serif;fill:#1f2328}\
.head{font-size:16px;font-weight:600}.small{font-size:11px;fill:#59636e}.bad{fill:#b3261e}\
.ground{fill:#fff}.row{fill:#f1f3f5}.before{fill:#8fb8de}.new{fill:#1f6fb5}\
@media(prefers-color-scheme:dark){\
text{fill:#e6edf3}.small{fill:#9da7b1}.bad{fill:#ff8a80}\
.ground{fill:#0d1117}.row{fill:#1c2229}.before{fill:#28527a}.new{fill:#6cb6ff}}";

/// Returns the picture of all plans.
pub(super) fn picture(planned: &[Planned<'_>]) -> String {
    let mut picture = Picture { body: String::new(), words: Vec::new(), bottom: 12 };
    for planned in planned {
        picture.group(planned);
    }
    let Picture { body, words, bottom } = picture;
    let titles: Vec<_> = planned.iter().take(3).map(text::title).collect();
    let more = if planned.len() > 3 { format!(" and {} more", planned.len() - 3) } else { String::new() };
    let title = escaped(&format!("Releases of {}{more}", titles.join(", ")));
    let desc = escaped(&words.join(" "));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{bottom}\" viewBox=\"0 0 {WIDTH} {bottom}\" \
         role=\"img\" aria-labelledby=\"plan-title plan-desc\">\n\
         <title id=\"plan-title\">{title}</title>\n<desc id=\"plan-desc\">{desc}</desc>\n<style>{STYLE}</style>\n\
         <rect class=\"ground\" width=\"{WIDTH}\" height=\"{bottom}\"/>\n{body}</svg>\n"
    )
}

struct Picture {
    body: String,
    /// Text description, in sentences.
    words: Vec<String>,
    /// Vertical position of the next line.
    bottom: u32,
}

impl Picture {
    fn group(&mut self, planned: &Planned<'_>) {
        let (title, outcome) = (text::title(planned), text::outcome(planned, false, PLAIN));
        self.words.push(format!("{title}: {outcome}."));
        self.line("head", &title, 24);
        self.line("", &outcome, 20);
        let errors = &planned.judged.errors;
        for fault in errors.iter().take(MOST_FAULTS) {
            self.line("bad", &fault.to_string(), 18);
        }
        if let Some(more @ 1..) = errors.len().checked_sub(MOST_FAULTS) {
            self.line("bad", &format!("and {}", counted(more, "more error")), 18);
        }
        if let (true, Ok(Plan { group, run: Ok(run), .. })) = (planned.judged.is_allowed(), &planned.plan) {
            for (coordination, batching) in group.batched() {
                self.line("small", &text::batches_of(coordination, batching), 16);
            }
            let most = (MOST_CELLS / group.roles.len().max(1)).clamp(LEAST_COLUMNS, MOST_COLUMNS);
            let stairs = Stairs::of(group, run, most);
            self.stairs(&stairs);
            self.places(planned);
        }
        self.bottom += 16;
    }

    fn stairs(&mut self, stairs: &Stairs<'_>) {
        if stairs.columns > 0 {
            let columns = u32::try_from(stairs.columns).unwrap_or(u32::MAX);
            let column = (f64::from(PLOT) / f64::from(columns)).min(f64::from(WIDEST));
            for role in stairs.drawn() {
                self.role(stairs, role, column);
            }
            self.numbers(stairs, column);
        }
        if let Some(scale) = stairs.scale() {
            self.words.push(format!("{scale}.").replacen("each", "Each", 1));
            self.line("small", &scale, 16);
        }
        for role in &stairs.free {
            let free = text::in_no_batch(role);
            self.words.push(format!("{free}.").replacen("role", "Role", 1));
            self.line("small", &free, 16);
        }
    }

    /// Adds the placement of batches, if there are nodes.
    fn places(&mut self, planned: &Planned<'_>) {
        let lines: Vec<_> = planned.fitted().iter().flat_map(text::placed).collect();
        self.words.extend(lines.iter().take(MOST_PLACES).map(|line| format!("{}.", line.trim())));
        for line in lines.iter().take(MOST_PLACES) {
            self.line("small", line.trim(), 16);
        }
        if let Some(more @ 1..) = lines.len().checked_sub(MOST_PLACES) {
            self.line("small", &format!("and {}", counted(more, "more line")), 16);
        }
    }

    /// Draws the replicas released before each release, and those that it adds, as one shape each.
    fn role(&mut self, stairs: &Stairs<'_>, role: &RoleStairs<'_>, column: f64) {
        let says = says(stairs, role);
        self.words.push(says.clone());
        let top = self.bottom + GAP;
        let base = top + ROW;
        let (mut before_shape, mut new_shape, mut counts) = (String::new(), String::new(), String::new());
        let columns = u32::try_from(stairs.columns).unwrap_or(u32::MAX);
        for (number, (before, after)) in (0_u32..).zip(role.steps()) {
            let (from, to) = (edge(number, column), edge(number + 1, column));
            let (low, high) = (role.part(before, ROW), role.part(after, ROW));
            if low > 0 {
                _ = write!(before_shape, "M{from} {base}V{}H{to}V{base}z", base - low);
            }
            if high > low {
                _ = write!(new_shape, "M{from} {}V{}H{to}V{}z", base - low, base - high, base - low);
            }
            if stairs.columns <= MOST_COUNTS {
                let middle = f64::from(LEFT) + (f64::from(number) + 0.5) * column;
                let above = base - high - 4;
                _ = write!(
                    counts,
                    "<text class=\"small\" text-anchor=\"middle\" x=\"{middle:.1}\" y=\"{above}\">{after}</text>"
                );
            }
        }
        let end = f64::from(columns) * column;
        let (name_at, count_at) = (top + 20, top + 38);
        _ = writeln!(
            self.body,
            "<g><title>{says}</title><rect class=\"row\" x=\"{LEFT}\" y=\"{top}\" width=\"{end:.1}\" height=\"{ROW}\"/>\
             <path class=\"before\" d=\"{before_shape}\"/><path class=\"new\" d=\"{new_shape}\"/>{counts}\
             <text x=\"12\" y=\"{name_at}\">{name}</text>\
             <text class=\"small\" x=\"12\" y=\"{count_at}\">{replicas}</text></g>",
            says = escaped(&says),
            name = escaped(&elided(role.name, NAME)),
            replicas = counted(role.desired, "replica"),
        );
        self.bottom = base;
    }

    /// Draws the numbers of releases below the rows, as many as fit.
    fn numbers(&mut self, stairs: &Stairs<'_>, column: f64) {
        let y = self.bottom + 16;
        _ = write!(self.body, "<g><text class=\"small\" x=\"12\" y=\"{y}\">release</text>");
        // A digit is about 7 units wide.
        let room = 7 * u32::try_from(stairs.releases.to_string().len() + 1).unwrap_or(u32::MAX);
        let mut free_from = 0.0;
        for (number, at) in (0_u32..).zip(0..stairs.columns) {
            let middle = f64::from(LEFT) + (f64::from(number) + 0.5) * column;
            if middle < free_from {
                continue;
            }
            free_from = middle + f64::from(room);
            let release = stairs.last_of(at);
            _ = write!(
                self.body,
                "<text class=\"small\" text-anchor=\"middle\" x=\"{middle:.1}\" y=\"{y}\">{release}</text>"
            );
        }
        self.body.push_str("</g>\n");
        self.bottom = y + 8;
    }

    fn line(&mut self, class: &str, text: &str, height: u32) {
        self.bottom += height;
        let (y, text) = (self.bottom, escaped(&elided(text, LINE)));
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        _ = writeln!(self.body, "<text{class} x=\"12\" y=\"{y}\">{text}</text>");
    }
}

/// Returns the left edge of a column, with one decimal.
fn edge(number: u32, column: f64) -> String {
    let at = format!("{:.1}", f64::from(LEFT) + f64::from(number) * column);
    at.strip_suffix(".0").map(str::to_owned).unwrap_or(at)
}

/// Describes a role: `prefill, 8 replicas: 2, 4, 6, 8 released, release by release.`
fn says(stairs: &Stairs<'_>, role: &RoleStairs<'_>) -> String {
    let replicas = counted(role.desired, "replica");
    let (first, last) = (role.released.first().copied().unwrap_or(0), role.released.last().copied().unwrap_or(0));
    let after = if stairs.columns <= MOST_COUNTS {
        let counts: Vec<_> = role.released.iter().map(ToString::to_string).collect();
        format!("{} released, release by release", counts.join(", "))
    } else {
        let (from, to) = (stairs.last_of(0), stairs.releases);
        format!("{first} released after {}, {last} after {}", counted(from, "release"), counted(to, "release"))
    };
    format!("{}, {replicas}: {after}.", role.name)
}

/// Shortens a text to a maximum number of characters.
fn elided(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

fn escaped(text: &str) -> String {
    xml(&shown(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_xml_cannot_have_is_replaced() {
        assert_eq!(
            escaped("a<b>&\"\u{0}\u{1b}\u{fffe}\u{85}"),
            "a&lt;b&gt;&amp;&quot;\u{fffd}\u{fffd}\u{fffd}\u{fffd}"
        );
        assert_eq!(elided("abcdef", 4), "abc…");
    }
}
