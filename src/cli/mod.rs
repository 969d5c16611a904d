//! One file for each command.

pub mod crds;
mod duration;
pub mod serve;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Admission webhook and gate-lifting loop for disaggregated LLM inference on Kubernetes.
#[derive(Debug, Parser)]
#[command(name = "rolegate", version, about, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the webhook and the loop.
    Serve(Box<serve::ServeArgs>),
    /// Print CustomResourceDefinitions, or write each to a file of its own.
    Crds(crds::CrdsArgs),
}

/// Runs the command that the arguments ask for.
pub fn run() -> ExitCode {
    match Cli::parse().command {
        Command::Serve(args) => serve::run(*args),
        Command::Crds(args) => crds::run(&args),
    }
}
