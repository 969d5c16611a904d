//! A progress line on standard error for a user at a terminal: shown after one second, then rewritten in place, and
//! cleared at the end.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::terminal::{shown, width};

/// Time before the line is shown.
const QUIET: Duration = Duration::from_secs(1);
/// Interval of updates.
const PAUSE: Duration = Duration::from_millis(250);
/// Moves to the beginning of the line, and clears it.
const CLEAR: &str = "\r\x1b[K";

/// A progress line; dropping it ends it.
#[derive(Debug)]
pub struct Progress(Option<(Sender<()>, JoinHandle<()>)>);

impl Progress {
    /// Starts a progress line such as `reading nodes.json`; nothing is shown unless standard error is a terminal.
    pub fn of(what: &str) -> Self {
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        if is_dumb || !io::stderr().is_terminal() {
            return Self(None);
        }
        let (end, ended) = channel::<()>();
        let (what, begun) = (shown(what), Instant::now());
        let tell = move || {
            let mut pause = QUIET;
            let mut said = false;
            while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let line = line(&what, begun.elapsed(), width());
                // Other output overwrites the line, because the cursor stays at its beginning. A closed terminal is
                // not a failure.
                _ = write!(io::stderr(), "{CLEAR}{line}\r");
                (pause, said) = (PAUSE, true);
            }
            if said {
                _ = write!(io::stderr(), "{CLEAR}");
            }
        };
        // Without a thread, nothing is shown.
        let teller = std::thread::Builder::new().name("progress".to_owned()).spawn(tell);
        Self(teller.ok().map(|teller| (end, teller)))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((end, teller)) = self.0.take() {
            drop(end);
            // Waits, or the next output would be mixed into this line.
            _ = teller.join();
        }
    }
}

/// Returns a line shorter than the terminal's width: a wrapped line cannot be rewritten.
fn line(what: &str, since: Duration, width: usize) -> String {
    let text = format!("{what} ({} s)", since.as_secs());
    text.chars().take(width.saturating_sub(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_never_wraps() {
        let since = Duration::from_millis(2_900);
        assert_eq!(line("reading a", since, 80), "reading a (2 s)");
        assert_eq!(line("reading a", since, 8), "reading");
        assert_eq!(line("reading a", since, 0), "");
    }
}
