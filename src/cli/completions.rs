//! `rolegate completions`: what shells complete.

use std::io;
use std::process::ExitCode;

use clap::Args;
use clap_complete::Shell;

/// Arguments of `completions`.
#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

/// Prints the script for a shell.
pub fn run(args: &CompletionsArgs) -> ExitCode {
    // What is typed is the file's name, also where kubectl would find it.
    let name = if super::is_plugin() { "kubectl-rolegate" } else { "rolegate" };
    clap_complete::generate(args.shell, &mut super::command(), name, &mut io::stdout());
    ExitCode::SUCCESS
}
