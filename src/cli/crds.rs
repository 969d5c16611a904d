//! `rolegate crds`: the CustomResourceDefinitions, generated from the types.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::terminal::{in_words, print};
use crate::api::crd;

/// Options of `crds`.
#[derive(Debug, Args)]
pub struct CrdsArgs {
    /// Print RoleBasedGroup in the shape of the KEPs, for clusters without an RBG operator.
    #[arg(long)]
    optional: bool,
    /// Folder for one file for each definition.
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
}

pub fn run(args: &CrdsArgs) -> ExitCode {
    for (name, yaml) in crd::files(args.optional) {
        let Some(folder) = &args.output else {
            print(&format!("---\n{yaml}"));
            continue;
        };
        if let Err(error) = std::fs::write(folder.join(&name), yaml) {
            eprintln!("rolegate: {}: {}", folder.join(&name).display(), in_words(&error.to_string()));
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
