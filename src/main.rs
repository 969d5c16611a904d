//! The `rolegate` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    rolegate::cli::run()
}
