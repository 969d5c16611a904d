//! The log, one line per event. Control characters are escaped, so that names and labels cannot forge lines or
//! terminal colours; values are cut, so that they cannot fill the disk.

use std::fmt::{self, Write as _};
use std::io::{self, IsTerminal, Write};

use serde_json::Value;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt::format;

use crate::cli::serve::args::LogFormat;

/// Maximum length of a value in bytes; names and labels of Kubernetes are below 400.
const VALUE_MAX: usize = 2048;
/// Maximum length of an unprocessed line in bytes: an event has at most a dozen values.
const LINE_MAX: usize = 16 * VALUE_MAX;

/// Starts the log on standard error, with colours only on a terminal.
pub(super) fn start(filter: EnvFilter, format: LogFormat) {
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(io::stderr().is_terminal());
    match format {
        LogFormat::Text => {
            let fields = format::debug_fn(|writer, field, value| match field.name() {
                "message" => write!(Escaped::new(writer), "{value:?}"),
                name => {
                    write!(writer, "{name}=")?;
                    write!(Escaped::new(writer), "{value:?}")
                }
            });
            log.fmt_fields(fields.delimited(" ")).with_writer(io::stderr).init();
        }
        LogFormat::Json => log.json().with_writer(|| ShortLines(io::stderr())).init(),
    }
}

/// Writes without control characters, up to a maximum length.
struct Escaped<W> {
    to: W,
    left: usize,
}

impl<W: fmt::Write> Escaped<W> {
    fn new(to: W) -> Self {
        Self { to, left: VALUE_MAX }
    }
}

impl<W: fmt::Write> fmt::Write for Escaped<W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            if self.left == 0 {
                return Ok(());
            }
            self.left = self.left.saturating_sub(character.len_utf8());
            if self.left == 0 {
                return self.to.write_str("… (cut)");
            }
            if character.is_control() {
                write!(self.to, "{}", character.escape_default())?;
            } else {
                self.to.write_char(character)?;
            }
        }
        Ok(())
    }
}

/// Writes JSON lines, and cuts the values of a line that is too long. JSON itself escapes control characters.
struct ShortLines<W>(W);

impl<W: Write> Write for ShortLines<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if line.len() <= LINE_MAX {
            self.0.write_all(line)?;
        } else if let Ok(mut event) = serde_json::from_slice::<Value>(line) {
            cut(&mut event);
            writeln!(self.0, "{event}")?;
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn cut(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > VALUE_MAX => {
            let end = (0..=VALUE_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
            text.truncate(end);
            text.push_str("… (cut)");
        }
        Value::Array(values) => values.iter_mut().for_each(cut),
        Value::Object(fields) => fields.values_mut().for_each(cut),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(text: &str) -> String {
        let mut out = String::new();
        write!(Escaped::new(&mut out), "{text}").unwrap();
        out
    }

    #[test]
    fn a_value_is_one_line_without_escapes_of_terminals() {
        assert_eq!(escaped("a\nINFO forged \u{1b}[31mred"), "a\\nINFO forged \\u{1b}[31mred");
        assert_eq!(escaped("grün \"pd\""), "grün \"pd\"");
    }

    #[test]
    fn a_value_of_two_megabytes_is_cut() {
        let long = escaped(&"ä\n".repeat(1 << 20));
        assert!(long.len() < 2 * VALUE_MAX && long.ends_with("… (cut)"), "{} bytes", long.len());
    }

    #[test]
    fn a_long_line_of_json_stays_json() {
        let mut out = Vec::new();
        let line = format!("{{\"fields\":{{\"name\":\"{}\",\"n\":1}}}}\n", "x\\n".repeat(1 << 20));
        assert_eq!(ShortLines(&mut out).write(line.as_bytes()).unwrap(), line.len());
        let event: Value = serde_json::from_slice(&out).unwrap();
        assert!(out.len() < 2 * VALUE_MAX + 100 && out.ends_with(b"\n"));
        assert_eq!(event["fields"]["n"], 1);
    }
}
