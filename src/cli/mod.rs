//! The commands of `rolegate`, one module each.

pub mod adopt;
mod allow;
mod asked;
mod bytes;
mod certificate_words;
pub mod check;
pub mod completions;
mod connection;
mod context;
mod data;
pub mod doctor;
pub mod documents;
mod draw;
mod duration;
pub mod examples;
pub mod explain;
mod failure;
pub mod fit;
mod kubeconfig;
mod kubeconfig_words;
mod kubectl_complete;
mod listed;
mod live;
pub mod manifests;
pub mod mutate;
pub mod node;
mod numbers;
mod options;
pub mod parse;
pub mod plan;
mod progress;
pub mod ready_kinds;
pub mod release;
pub mod resume;
pub mod rights;
pub mod rollback;
pub mod serve;
mod serving;
pub mod status;
pub mod terminal;
pub mod uninstall;
pub mod version;
mod watch;
mod yaml_words;

use std::borrow::Cow;
use std::path::Path;
use std::process::ExitCode;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

/// Admission webhook and gate-lifting loop for disaggregated LLM inference on Kubernetes.
#[derive(Debug, Parser)]
#[command(name = "rolegate", version = version::VERSION, about, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the webhook and the loop.
    Serve(Box<serve::ServeArgs>),
    /// Show the mutated objects of files, without a cluster.
    Mutate(mutate::MutateArgs),
    /// Validate the objects of files by the rules of the webhook, without a cluster.
    Check(check::CheckArgs),
    /// Show the order of release of a group's pods, without a cluster.
    Plan(plan::PlanArgs),
    /// Show the number and the places of a group's batches that fit into free room.
    Fit(fit::FitArgs),
    /// Removed.
    #[command(hide = true)]
    Test(RemovedArgs),
    /// Show the groups of a cluster and their batches.
    Status(status::StatusArgs),
    /// Explain why a pod or group of a cluster is held, and the remedy.
    Explain(explain::ExplainArgs),
    /// Make running workloads the roles of a group, and restart their pods: label pods, workloads and templates, in that order.
    Adopt(adopt::AdoptArgs),
    /// Lift the gates of pods by hand.
    Release(release::ReleaseArgs),
    /// Resume a group that waits for a person.
    Resume(resume::ResumeArgs),
    /// Send the rollouts of a group back to the revisions from which they came.
    Rollback(rollback::RollbackArgs),
    /// Check an installation, and explain faults and remedies.
    Doctor(doctor::DoctorArgs),
    /// Remove rolegate from a cluster, and release all held pods.
    Uninstall(uninstall::UninstallArgs),
    /// Print the completion script of a shell.
    Completions(completions::CompletionsArgs),
    /// Print the objects of an installation.
    Manifests(manifests::ManifestsArgs),
    /// Removed.
    #[command(hide = true)]
    Crds(RemovedArgs),
    /// Print the version and its commit.
    Version(version::VersionArgs),
}

/// Parses the arguments and runs the command.
pub fn run() -> ExitCode {
    if called_as() == kubectl_complete::NAME {
        return kubectl_complete::run();
    }
    let parsed = Cli::from_arg_matches(&command().get_matches()).unwrap_or_else(|error| error.exit());
    match parsed.command {
        Command::Serve(args) => serve::run(*args),
        Command::Mutate(args) => mutate::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Fit(args) => fit::run(&args),
        Command::Test(_) => removed(
            "test",
            "`check -o json`, `mutate`, `plan -o json` and `fit -o json` give the same answers: keep them in files, and compare",
        ),
        Command::Status(args) => status::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Adopt(args) => adopt::run(&args),
        Command::Release(args) => release::run(&args),
        Command::Resume(args) => resume::run(&args),
        Command::Rollback(args) => rollback::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Uninstall(args) => uninstall::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Manifests(args) => manifests::run(&args),
        Command::Crds(_) => removed(
            "crds",
            "`manifests --part crds` prints the definitions, `--part optional-crds` those of the designs",
        ),
        Command::Version(args) => version::run(&args),
    }
}

/// What follows a command that exists no longer.
#[derive(Args, Debug)]
struct RemovedArgs {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    _rest: Vec<String>,
}

fn removed(command: &str, instead: &str) -> ExitCode {
    eprintln!("rolegate: there is no command `{command}` any more: {instead}");
    ExitCode::from(2)
}

/// Returns the file name of the running program.
fn called_as() -> String {
    let program = std::env::args_os().next().unwrap_or_default();
    let name = Path::new(&program).file_name();
    name.unwrap_or_default().to_string_lossy().into_owned()
}

/// Reports whether kubectl runs the program: a file `kubectl-rolegate` on the path is the command `kubectl rolegate`.
fn is_plugin() -> bool {
    let name = called_as();
    name.starts_with("kubectl-") || name == kubectl_complete::NAME
}

/// Returns the command line, with the name under which the program was called.
pub fn command() -> clap::Command {
    let program = if is_plugin() { "kubectl rolegate" } else { "rolegate" };
    let command = examples::EXAMPLES.iter().fold(Cli::command(), |command, examples| {
        command.mut_subcommand(examples.command, |command| command.after_help(examples.help(program)))
    });
    command.bin_name(program)
}

/// Renames commands in a text to the name under which the program was called.
fn as_called(text: &str) -> Cow<'_, str> {
    if is_plugin() { text.replace("`rolegate ", "`kubectl rolegate ").into() } else { text.into() }
}
