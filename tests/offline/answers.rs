//! Runs the binary on files.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

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
