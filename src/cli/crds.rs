//! `rolegate crds`: the CustomResourceDefinitions, generated from the types.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::api::crd;
use crate::cli::manifests::{Certificates, Serve, definitions_with_v1beta1};

/// Options of `crds`.
#[derive(Debug, Args)]
pub struct CrdsArgs {
    /// Those that other projects own, for clusters without them: RoleBasedGroup in the shape of the KEPs.
    #[arg(long)]
    optional: bool,
    /// Serve RoleCoordination in another version as well; its objects are converted by the webhook.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "VERSION", conflicts_with = "optional")]
    serve: Vec<Serve>,
    /// With --serve: the namespace of the webhook's Service.
    #[arg(long, default_value = "rolegate-system", requires = "serve")]
    namespace: String,
    /// With --serve: its name.
    #[arg(long, default_value = "rolegate", requires = "serve")]
    name: String,
    /// With --serve: where the webhook's certificate comes from.
    #[arg(long, value_enum, default_value = "self-managed", requires = "serve")]
    certificates: Certificates,
    /// Write each to a file of its own in this folder.
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// Prints or writes them.
pub fn run(args: &CrdsArgs) -> ExitCode {
    let definitions = if args.serve.is_empty() {
        crd::files(args.optional)
    } else {
        definitions_with_v1beta1(&args.namespace, &args.name, args.certificates)
    };
    for (name, yaml) in definitions {
        let Some(folder) = &args.output else {
            print!("---\n{yaml}");
            continue;
        };
        if let Err(error) = std::fs::write(folder.join(&name), yaml) {
            eprintln!("rolegate: {}: {error}", folder.join(&name).display());
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
