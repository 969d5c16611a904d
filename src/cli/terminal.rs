//! Text output of commands: tables and colours, as far as the terminal supports them.

use std::fmt::Write as _;
use std::io::{self, BufRead, IsTerminal, Write};
use std::process::ExitCode;

/// Prints the text to standard output.
pub fn print(text: &str) {
    let mut out = io::stdout().lock();
    let printed = out.write_all(text.as_bytes());
    end(&mut out, printed);
}

/// Ends the output of a command. A closed pipe, such as that of `head`, does not change the exit code.
pub fn end(out: &mut impl Write, printed: io::Result<()>) {
    _ = printed.and_then(|()| out.flush());
}

/// Prints the outcome of writes, then the failed ones to standard error. The exit code is 1 if one failed.
pub fn report(outcome: &str, failed: impl ExactSizeIterator<Item = String>) -> ExitCode {
    print(outcome);
    let code = if failed.len() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    failed.for_each(|failed| eprintln!("rolegate: {failed}"));
    code
}

/// Reports whether standard output is a terminal with colours, and `NO_COLOR` is not set.
pub fn use_color() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    !refused && !dumb && io::stdout().is_terminal()
}

/// Replaces control characters: text of others must not control the user's terminal.
pub fn shown(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() && letter != '\t' { '\u{fffd}' } else { letter }).collect()
}

/// Returns indented lines, with control characters replaced.
pub fn lines(all: impl IntoIterator<Item = String>) -> String {
    let mut text = String::new();
    all.into_iter().for_each(|line| _ = writeln!(text, "  {}", shown(&line)));
    text
}

/// Returns the columns of the terminal at standard output, or at standard error; without a terminal, `COLUMNS` or 80.
pub fn width() -> usize {
    let size = terminal_size::terminal_size_of(io::stdout()).or_else(|| terminal_size::terminal_size_of(io::stderr()));
    let told = || std::env::var("COLUMNS").ok()?.parse().ok();
    let columns = size.map(|(columns, _)| usize::from(columns.0)).or_else(told);
    columns.filter(|columns| *columns > 0).unwrap_or(80)
}

/// Escape sequences, empty when colours are off, and whether Unicode may be used.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// For the desired state.
    pub good: &'static str,
    /// For progress.
    pub moving: &'static str,
    /// For faults.
    pub bad: &'static str,
    /// For the most important text.
    pub strong: &'static str,
    /// For the least important text.
    pub faint: &'static str,
    /// Resets any of the above.
    pub end: &'static str,
    /// Whether block characters may be used.
    pub unicode: bool,
}

/// ASCII without escape sequences.
pub const PLAIN: Style = Style { good: "", moving: "", bad: "", strong: "", faint: "", end: "", unicode: false };

impl Style {
    /// Returns the style for standard output.
    pub fn of_stdout() -> Self {
        let style = Self { unicode: takes_unicode(|name| std::env::var(name).ok()), ..PLAIN };
        if !use_color() {
            return style;
        }
        Self {
            good: "\x1b[32m",
            moving: "\x1b[33m",
            bad: "\x1b[31m",
            strong: "\x1b[1m",
            faint: "\x1b[2m",
            end: "\x1b[0m",
            ..style
        }
    }
}

/// Reports whether the locale uses UTF-8; the variables are read in C's order.
fn takes_unicode(variable: impl Fn(&str) -> Option<String>) -> bool {
    let locale =
        ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| variable(name).filter(|value| !value.is_empty()));
    locale.is_some_and(|locale| locale.to_ascii_uppercase().replace('-', "").contains("UTF8"))
}

/// A table whose columns are two spaces apart.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn with_heading<S: Into<String>>(heading: impl IntoIterator<Item = S>) -> Self {
        let mut table = Self::default();
        table.row(heading);
        table
    }

    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(|cell| shown(&cell.into())).collect());
    }

    /// Formats the rows with an indent; the last cell of a row is not padded.
    pub fn text(&self, indent: usize) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<_> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = " ".repeat(indent);
            for (cell, width) in row.iter().zip(&widths) {
                // Writing to a string does not fail.
                _ = write!(line, "{cell:<width$}  ");
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// Asks on standard error; returns true only for `y` or `yes`.
pub fn says_yes(question: &str) -> bool {
    eprint!("{question} [y/N] ");
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// Reports whether standard input is a terminal.
pub fn is_asked() -> bool {
    io::stdin().is_terminal()
}

/// Formats a duration: `4m12s`, `2h5m`, `3d4h`.
pub fn age(seconds: u64) -> String {
    let units = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
    let first = units.iter().position(|(unit, _)| seconds >= *unit).unwrap_or(units.len() - 1);
    let mut text = String::new();
    let mut rest = seconds;
    for (unit, letter) in units.iter().skip(first).take(2) {
        if rest >= *unit || text.is_empty() {
            _ = write!(text, "{}{letter}", rest / unit);
        }
        rest %= unit;
    }
    text
}

/// Removes parts of system messages that mean nothing to users, such as `(os error 2)`.
pub fn in_words(text: &str) -> String {
    let mut told = text.replace("'\"", "\"").replace("\"'", "\"");
    while let Some((before, after)) = told.split_once(" (os error ") {
        told = format!("{before}{}", after.split_once(')').map_or("", |(_, rest)| rest));
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_says_is_told_without_its_numbers() {
        let told = in_words("(cannot read '\"/a\"': No such file (os error 2)), nor b (os error 13)");
        assert_eq!(told, "(cannot read \"/a\": No such file), nor b");
    }

    #[test]
    fn ages_have_two_units_at_most() {
        assert_eq!(age(0), "0s");
        assert_eq!(age(252), "4m12s");
        assert_eq!(age(3_600), "1h");
        assert_eq!(age(90_061), "1d1h");
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::with_heading(["A", "B"]);
        table.row(["long", "x\u{1b}[31m"]);
        assert_eq!(table.text(2), "  A     B\n  long  x\u{fffd}[31m\n");
    }

    #[test]
    fn the_first_locale_that_is_set_counts() {
        let locale = |name: &str| (name == "LANG").then(|| "en_US.UTF-8".to_owned());
        assert!(takes_unicode(locale));
        assert!(!takes_unicode(|name| if name == "LC_ALL" { Some("C".to_owned()) } else { locale(name) }));
    }
}
