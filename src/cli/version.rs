//! `rolegate version`: prints the release and its commit.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use super::options::Output;

/// Number and commit, as printed by `--version`.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("ROLEGATE_COMMIT"), ")");

/// Arguments of `version`.
#[derive(Args, Debug)]
pub struct VersionArgs {
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Serialize)]
struct Version {
    version: &'static str,
    commit: &'static str,
}

pub fn run(args: &VersionArgs) -> ExitCode {
    let version = Version { version: env!("CARGO_PKG_VERSION"), commit: env!("ROLEGATE_COMMIT") };
    let text = args.output.data().map_or_else(|| format!("rolegate {VERSION}\n"), |data| data.text(&version));
    // A closed pipe is not a failure.
    _ = io::stdout().lock().write_all(text.as_bytes());
    ExitCode::SUCCESS
}
