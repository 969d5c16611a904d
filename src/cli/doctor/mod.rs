//! `rolegate doctor`: reports the faults of an installation, and how to fix them.

mod checks;
mod facts;
mod finding;
mod hooks;
mod reads;
mod rights;
mod warned;

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use crate::cli::connection::{ConnectionArgs, LiveArgs, block_on};
use crate::cli::doctor::facts::Target;
use crate::cli::doctor::finding::{Finding, Level};
use crate::cli::doctor::reads::Reader;
use crate::cli::options::{Output, parse_dns_label, parse_subdomain};
use crate::cli::terminal::{Style, print, shown};
use crate::model::wording::counted;

/// Arguments of `doctor`.
#[derive(Args, Debug)]
pub struct DoctorArgs {
    #[command(flatten)]
    connection: ConnectionArgs,
    /// Namespace of rolegate.
    #[arg(short, long, default_value = "rolegate-system", value_parser = parse_dns_label)]
    namespace: String,
    /// Name of the webhook configurations and the Lease.
    #[arg(long, default_value = "rolegate", value_parser = parse_subdomain)]
    name: String,
    /// User whose rights are checked; by default the ServiceAccount of that name, or yours if it does not exist.
    #[arg(long)]
    user: Option<String>,
    /// Namespace of the dry-run pod.
    #[arg(long, default_value = "default", value_name = "NAMESPACE", value_parser = parse_dns_label)]
    try_in: String,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// Exit code when the cluster cannot be reached.
const UNREACHABLE: u8 = 2;

#[derive(Serialize)]
struct DoctorReport<'a> {
    /// Worst level of all findings.
    level: Level,
    findings: &'a [Finding],
}

/// Prints the findings. The exit code is 0 without errors, 1 with errors, 2 when the cluster cannot be reached.
pub fn run(args: &DoctorArgs) -> ExitCode {
    block_on(async {
        let live = LiveArgs::new(args.connection.clone(), &args.namespace);
        let look = async {
            let connection = live.connect(false).await?;
            let target = Target { namespace: args.namespace.clone(), name: args.name.clone() };
            let reader =
                Reader { connection: &connection, target, user: args.user.clone(), try_in: args.try_in.clone() };
            Box::pin(reader.facts()).await
        };
        let facts = match look.await {
            Ok(facts) => facts,
            Err(failure) => {
                eprintln!("rolegate: {failure}");
                return Ok(ExitCode::from(UNREACHABLE));
            }
        };
        let findings = checks::judge(&facts);
        let level = findings.iter().map(|finding| finding.level).max().unwrap_or(Level::Ok);
        let text = match args.output.data() {
            None => crate::cli::as_called(&text(&findings, Style::of_stdout())).into_owned(),
            Some(data) => data.text(&DoctorReport { level, findings: &findings }),
        };
        print(&text);
        Ok(if level == Level::Error { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    })
}

/// Returns the findings of a healthy installation with one group.
#[cfg(test)]
pub fn told_of(picture: &crate::report::Picture) -> String {
    let mut facts = checks::healthy::healthy();
    facts.groups.iter_mut().for_each(|groups| groups.held = reads::holds(picture).collect());
    text(&checks::judge(&facts), Style::of_stdout())
}

/// Returns one line for each finding, and one for its hint.
fn text(findings: &[Finding], style: Style) -> String {
    let mut text = String::new();
    for finding in findings {
        let (color, word) = match finding.level {
            Level::Ok => (style.good, "ok"),
            Level::Info => (style.faint, "info"),
            Level::Warning => (style.moving, "warning"),
            Level::Error => (style.bad, "error"),
        };
        _ = writeln!(text, "{color}{word:<8}{} {:<20} {}", style.end, finding.check, shown(&finding.what));
        if let Some(hint) = &finding.hint {
            _ = writeln!(text, "{:30}{}{}{}", "", style.faint, shown(hint), style.end);
        }
    }
    let count = |level| findings.iter().filter(|finding| finding.level == level).count();
    let (errors, warnings) = (counted(count(Level::Error), "error"), counted(count(Level::Warning), "warning"));
    text + &format!("{errors}, {warnings}\n")
}
