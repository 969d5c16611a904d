//! Prints the state of a live cluster once, or after each change of a group or its pods.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use super::connection::{Connection, Failure};
use super::data::Data;
use super::live;
use super::progress::Progress;
use crate::cluster::index::{Index, SharedIndex};
use crate::cluster::watch::sources::Sources;

/// Time during which changes are combined.
const COALESCE: Duration = Duration::from_millis(200);
/// Time limit for the first lists of a watch: a forbidden list never arrives.
const FIRST_LISTS: Duration = Duration::from_secs(3);
/// Moves the cursor to the top, and clears the screen.
const CLEAR: &str = "\x1b[H\x1b[2J";

#[derive(Clone, Copy, Debug)]
pub struct Show {
    /// Prints after each change, until interrupted.
    pub again: bool,
    /// Data format; `None` for text.
    pub data: Option<Data>,
}

impl Show {
    /// Creates a [`Show`]; repeated JSON is printed on one line each.
    pub fn new(again: bool, data: Option<Data>) -> Self {
        let data = data.map(|data| if again && data == Data::Json { Data::JsonLine } else { data });
        Self { again, data }
    }

    /// Prints what `tell` makes of what `look` finds in a namespace, or in all. The exit code is 0 when the first look
    /// finds it; if it vanishes later, it may come back.
    pub async fn run<S>(
        self,
        connection: &Connection,
        scope: Option<&str>,
        look: impl Fn(&Index) -> Result<S, Failure>,
        tell: impl AsyncFn(S) -> Result<String, Failure>,
    ) -> Result<ExitCode, Failure> {
        // A list reports errors of the connection; a watch would retry forever.
        let progress = Progress::of("listing groups and pods");
        let seen = live::list(connection, scope).await?;
        let mut last = tell(look(&seen.index)?).await?;
        drop((seen, progress));
        // A closed pipe is not a failure.
        let shown = self.print(&last);
        if !self.again || shown.is_err() {
            return Ok(ExitCode::SUCCESS);
        }
        let index = SharedIndex::default();
        let serving = connection.serving().await;
        let ready_kinds = serving.ready_kinds.clone();
        index.write_quietly(|index| index.serve(serving));
        let namespaces: Vec<_> = scope.map(str::to_owned).into_iter().collect();
        let mut sources = Sources::of_groups(&connection.client, &index, &namespaces);
        if let Some(kinds) = ready_kinds {
            sources.add_awaited(kinds.leak(), &namespaces);
        }
        _ = tokio::time::timeout(FIRST_LISTS, index.synced().wait_for(|synced| *synced)).await;
        loop {
            let found = look(&index.read());
            let told = match found {
                Ok(seen) => tell(seen).await,
                Err(failure) => Err(failure),
            };
            let now = told.unwrap_or_else(|failure| self.failed(&failure));
            if now != last {
                if self.print(&now).is_err() {
                    return Ok(ExitCode::SUCCESS);
                }
                last = now;
            }
            index.changed().await;
            tokio::time::sleep(COALESCE).await;
        }
    }

    /// Formats a failure in place of the output for users; for programs, prints it to standard error instead.
    fn failed(self, failure: &Failure) -> String {
        if self.data.is_none() {
            return format!("{failure}\n");
        }
        eprintln!("rolegate: {failure}");
        String::new()
    }

    fn print(self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        let before = match self.data {
            None if self.again && out.is_terminal() => CLEAR,
            None | Some(Data::Yaml) if self.again && !text.is_empty() => "---\n",
            _ => "",
        };
        out.write_all(before.as_bytes())?;
        match self.data {
            None => out.write_all(super::as_called(text).as_bytes())?,
            Some(_) => out.write_all(text.as_bytes())?,
        }
        out.flush()
    }
}
