//! One file for each command.

pub mod check;
mod connection;
pub mod crds;
mod documents;
mod duration;
mod live;
pub mod mutate;
mod node;
pub mod plan;
pub mod serve;
pub mod status;
mod terminal;

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
    /// Show what objects in files would become, without a cluster.
    Mutate(mutate::MutateArgs),
    /// Judge objects in files by the webhook's rules, without a cluster.
    Check(check::CheckArgs),
    /// Show in what order the gates of a group would be lifted, without a cluster.
    Plan(plan::PlanArgs),
    /// Show groups of a cluster with their batches.
    Status(status::StatusArgs),
    /// Print CustomResourceDefinitions, or write each to a file of its own.
    Crds(crds::CrdsArgs),
}

/// Runs the command that the arguments ask for.
pub fn run() -> ExitCode {
    match Cli::parse().command {
        Command::Serve(args) => serve::run(*args),
        Command::Mutate(args) => mutate::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Status(args) => status::run(&args),
        Command::Crds(args) => crds::run(&args),
    }
}
