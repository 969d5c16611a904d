//! `rolegate version`: which release this is, and of which commit.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use super::options::Output;

/// Number and commit, as `--version` has them.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("ROLEGATE_COMMIT"), ")");

/// Arguments of `version`.
#[derive(Args, Debug)]
pub struct VersionArgs {
    /// How to print.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Serialize)]
struct Version {
    version: &'static str,
    commit: &'static str,
}

/// Prints them.
pub fn run(args: &VersionArgs) -> ExitCode {
    let version = Version { version: env!("CARGO_PKG_VERSION"), commit: env!("ROLEGATE_COMMIT") };
    let text = args.output.data().map_or_else(|| format!("rolegate {VERSION}\n"), |data| data.text(&version));
    // Whoever closed the pipe has seen enough.
    _ = io::stdout().lock().write_all(text.as_bytes());
    ExitCode::SUCCESS
}
