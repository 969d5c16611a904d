//! Runs the binary on files.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// Runs a command of rolegate in a folder, with an ASCII locale.
pub fn rolegate(folder: &Path, command: &str, arguments: &[&str]) -> Output {
    let mut rolegate = Command::new(env!("CARGO_BIN_EXE_rolegate"));
    rolegate.arg(command).args(arguments).current_dir(folder).env("LC_ALL", "C").output().expect("the binary runs")
}

/// Writes files into a new folder.
pub fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

/// What a command has answered.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

/// Runs a command line, whose words are apart by spaces, in a folder.
pub fn ran(folder: impl AsRef<Path>, line: &str) -> Ran {
    let words: Vec<_> = line.split_whitespace().collect();
    rolegate(folder.as_ref(), words[0], &words[1..]).into()
}

/// The same with words of their own behind it.
pub fn ran_with(folder: impl AsRef<Path>, line: &str, more: &[&str]) -> Ran {
    let words: Vec<_> = line.split_whitespace().chain(more.iter().copied()).collect();
    rolegate(folder.as_ref(), words[0], &words[1..]).into()
}

/// Runs a command line that reads this.
pub fn fed(line: &str, input: &str) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rolegate"));
    command.args(line.split_whitespace()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary starts");
    // A command that fails over its arguments does not read its input.
    _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    child.wait_with_output().expect("it ends").into()
}
