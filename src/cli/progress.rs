//! What is under way, for whoever waits at a terminal: one line on standard error, from the second second on, which is
//! written over and taken away at the end.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::terminal::{shown, width};

/// What is done within this time is not spoken of.
const QUIET: Duration = Duration::from_secs(1);
/// Between two lines.
const PAUSE: Duration = Duration::from_millis(250);
/// To the beginning of the line, and clears it.
const CLEAR: &str = "\r\x1b[K";

/// Something that takes its time; it is over when this is dropped.
#[derive(Debug)]
pub struct Progress(Option<(Sender<()>, JoinHandle<()>)>);

impl Progress {
    /// Begins something, as `reading nodes.json`. Where standard error is no terminal nothing is ever said.
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
                // Whatever else is said meanwhile begins where this does. Who has closed the terminal does not wait.
                _ = write!(io::stderr(), "{CLEAR}{line}\r");
                (pause, said) = (PAUSE, true);
            }
            if said {
                _ = write!(io::stderr(), "{CLEAR}");
            }
        };
        // Where no thread can be had it is done without a word.
        let teller = std::thread::Builder::new().name("progress".to_owned()).spawn(tell);
        Self(teller.ok().map(|teller| (end, teller)))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((end, teller)) = self.0.take() {
            drop(end);
            // Or the next line would be written into this one.
            _ = teller.join();
        }
    }
}

/// One line, shorter than the terminal is wide: one that wraps cannot be written over.
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
