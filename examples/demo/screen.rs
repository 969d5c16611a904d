//! Output of the demo.

use std::io::{IsTerminal, Write, stdout};

pub fn title(text: &str) {
    if stdout().is_terminal() {
        println!("\n\x1b[1m── {text}\x1b[0m");
    } else {
        println!("\n── {text}");
    }
}

/// Bars and a caption that are redrawn in place on a terminal; elsewhere each new caption is a line.
#[derive(Default)]
pub struct Live {
    shown: (Vec<String>, String),
}

impl Live {
    /// Shows bars and a caption instead of the last ones; a change of the time alone is ignored.
    pub fn show(&mut self, bars: Vec<String>, caption: String, seconds: f64) {
        let next = (bars, caption);
        if next == self.shown {
            return;
        }
        let mut out = stdout().lock();
        let caption = format!("   {seconds:4.1} s   {}", next.1);
        if out.is_terminal() {
            if !self.shown.0.is_empty() {
                _ = write!(out, "\x1b[{}A", self.shown.0.len() + 1);
            }
            for line in next.0.iter().chain([&caption]) {
                _ = writeln!(out, "\x1b[2K{line}");
            }
        } else if next.1 != self.shown.1 {
            _ = writeln!(out, "{caption}");
        }
        _ = out.flush();
        self.shown = next;
    }
}

/// Returns a bar: `█` for ready, `▒` for released, `·` for held.
pub fn bar(ready: usize, released: usize, all: usize) -> String {
    let released = released.max(ready);
    format!("{}{}{}", "█".repeat(ready), "▒".repeat(released - ready), "·".repeat(all.saturating_sub(released)))
}
