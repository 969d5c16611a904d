//! Runs the binary.

use std::path::Path;
use std::process::{Command, Output};

/// Runs a command of rolegate in a folder, with an ASCII locale.
pub fn rolegate(folder: &Path, command: &str, arguments: &[&str]) -> Output {
    let mut rolegate = Command::new(env!("CARGO_BIN_EXE_rolegate"));
    rolegate.arg(command).args(arguments).current_dir(folder).env("LC_ALL", "C").output().expect("the binary runs")
}
