//! One shell in which a page is run.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// For a command that waits for what takes a while.
const DEADLINE: Duration = Duration::from_secs(180);
/// Begins the line that tells how a command ended; nobody else prints it.
const MARK: &str = "\u{1}ended ";

/// A shell that keeps its variables and its folder from one command to the next.
pub struct Shell {
    _process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    step: PathBuf,
}

/// What became of a command.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Standard output and standard error, as on a terminal.
    pub printed: String,
    pub code: i32,
}

impl Shell {
    /// Starts one in a folder; what is to be run is put into a file beside that.
    pub async fn start(folder: &Path, path: &str, variables: &[(&str, &Path)]) -> Self {
        let mut process = Command::new("bash")
            .args(["--noprofile", "--norc"])
            .current_dir(folder)
            .env("PATH", path)
            .env("HOME", folder)
            .env("LC_ALL", "C.UTF-8")
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (input, output) = (process.stdin.take().unwrap(), BufReader::new(process.stdout.take().unwrap()));
        let mut shell = Self { _process: process, input, output, step: folder.with_extension("step") };
        // A pipe fails with any of its commands.
        shell.input.write_all(b"exec 2>&1; set -o pipefail\n").await.unwrap();
        shell
    }

    /// Runs a command to its end.
    pub async fn run(&mut self, command: &str) -> Ran {
        std::fs::write(&self.step, format!("{command}\n")).unwrap();
        let line = format!(". {} </dev/null; printf '\\n{MARK}%s\\n' $?\n", self.step.display());
        self.input.write_all(line.as_bytes()).await.unwrap();
        let mut printed = String::new();
        let reading = async {
            loop {
                let mut line = Vec::new();
                if self.output.read_until(b'\n', &mut line).await.unwrap() == 0 {
                    return -1;
                }
                let line = String::from_utf8_lossy(&line);
                if let Some(code) = line.strip_prefix(MARK) {
                    return code.trim().parse().unwrap();
                }
                printed.push_str(&line);
            }
        };
        let code = tokio::time::timeout(DEADLINE, reading).await.ok();
        let Some(code) = code else { return Ran { printed: printed + "\n(not within its time)", code: -1 } };
        // The line end before the mark is ours.
        Ran { printed: printed.strip_suffix('\n').unwrap_or(&printed).to_owned(), code }
    }
}
