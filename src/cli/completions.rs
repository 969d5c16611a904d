//! `rolegate completions`: prints shell completions.

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

pub fn run(args: &CompletionsArgs) -> ExitCode {
    // Users type the file's name, also when kubectl finds it as a plugin.
    let name = if super::is_plugin() { "kubectl-rolegate" } else { "rolegate" };
    clap_complete::generate(args.shell, &mut super::command(), name, &mut io::stdout());
    ExitCode::SUCCESS
}
