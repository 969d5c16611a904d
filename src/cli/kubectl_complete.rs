//! Completions for kubectl, which runs `kubectl_complete-rolegate` from the path: this program under another name. The
//! output follows the protocol of cobra: a line for each completion, then a directive for the shell.

use std::process::ExitCode;

use clap::{Arg, ArgAction, Command};

use super::terminal::print;

/// The file name that kubectl looks for.
pub const NAME: &str = "kubectl_complete-rolegate";

/// Directive of cobra: complete file names.
const FILES: u8 = 0;
/// Directive of cobra: complete nothing else.
const NOTHING_ELSE: u8 = 4;

/// Prints the completions of the last word. The exit code is always 0: errors in earlier words are reported by the
/// command.
pub fn run() -> ExitCode {
    let words: Vec<_> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let mut command = super::command();
    command.build();
    print(&completions(&command, &words));
    ExitCode::SUCCESS
}

fn completions(root: &Command, words: &[String]) -> String {
    let Some((last, before)) = words.split_last() else { return lines(&subcommands(root), "", NOTHING_ELSE) };
    let (mut command, mut positional, mut value_of) = (root, 0_usize, None);
    for word in before {
        if value_of.take().is_some() {
            continue;
        }
        match (word.starts_with('-'), command.find_subcommand(word)) {
            (true, _) => value_of = option(command, word),
            (false, Some(found)) => command = found,
            (false, None) => positional += 1,
        }
    }
    let (found, beside) = match (value_of, last.split_once('=')) {
        (Some(option), _) => values(option, ""),
        (None, Some((name, _))) if name.starts_with("--") => {
            option(command, name).map_or((Vec::new(), NOTHING_ELSE), |option| values(option, &format!("{name}=")))
        }
        _ if last.starts_with('-') => (options(command), NOTHING_ELSE),
        _ if command.has_subcommands() => (subcommands(command), NOTHING_ELSE),
        _ => {
            // The last positional argument takes all further words.
            let all: Vec<_> = command.get_positionals().collect();
            let at = all.get(positional).or(all.last());
            at.map_or((Vec::new(), NOTHING_ELSE), |argument| values(argument, ""))
        }
    };
    lines(&found, last, beside)
}

/// Returns the option of this spelling, if it takes a value.
fn option<'a>(command: &'a Command, word: &str) -> Option<&'a Arg> {
    let long = word.strip_prefix("--");
    let is_it = |arg: &&Arg| match long {
        Some(long) => arg.get_long() == Some(long),
        None => arg.get_short().is_some_and(|short| word.strip_prefix('-') == Some(short.to_string().as_str())),
    };
    command.get_arguments().filter(|arg| takes_value(arg)).find(is_it)
}

fn takes_value(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Set | ArgAction::Append)
}

type Completion = (String, String);

/// Returns the possible values of an argument, each with the prefix `before`; file names if it takes files.
fn values(argument: &Arg, before: &str) -> (Vec<Completion>, u8) {
    let words = argument.get_possible_values();
    let names_files = argument.get_value_names().unwrap_or_default().iter().any(|name| name.contains("FILE"));
    let shown = words.iter().filter(|word| !word.is_hide_set());
    let found = shown.map(|word| (format!("{before}{}", word.get_name()), first_line(word.get_help())));
    (found.collect(), if names_files { FILES } else { NOTHING_ELSE })
}

fn options(command: &Command) -> Vec<Completion> {
    let named = command.get_arguments().filter(|arg| !arg.is_hide_set());
    named.filter_map(|arg| Some((format!("--{}", arg.get_long()?), first_line(arg.get_help())))).collect()
}

fn subcommands(command: &Command) -> Vec<Completion> {
    let all = command.get_subcommands().filter(|command| !command.is_hide_set());
    all.map(|command| (command.get_name().to_owned(), first_line(command.get_about()))).collect()
}

fn first_line(help: Option<&clap::builder::StyledStr>) -> String {
    help.map(ToString::to_string).unwrap_or_default().lines().next().unwrap_or_default().to_owned()
}

fn lines(found: &[Completion], begun: &str, beside: u8) -> String {
    let fitting = found.iter().filter(|(word, _)| word.starts_with(begun));
    let lines =
        fitting.map(|(word, help)| if help.is_empty() { format!("{word}\n") } else { format!("{word}\t{help}\n") });
    lines.chain([format!(":{beside}\n")]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &[&str]) -> (Vec<String>, String) {
        let mut command = crate::cli::command();
        command.build();
        let line: Vec<_> = line.iter().map(|word| (*word).to_owned()).collect();
        let text = completions(&command, &line);
        let mut words: Vec<_> = text.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect();
        let beside = words.pop().unwrap();
        (words, beside)
    }

    #[test]
    fn words_are_completed_by_where_they_stand() {
        let own =
            |words: &[&str], beside: &str| (words.iter().map(|word| (*word).to_owned()).collect(), beside.to_owned());
        let cases: &[(&[&str], &[&str], &str)] = &[
            (&["ex"], &["explain"], ":4"),
            (&["explain", ""], &["pod", "group", "workload"], ":4"),
            (&["explain", "-n", "pod", "g"], &["group"], ":4"),
            (&["explain", "pod", "x"], &[], ":4"),
            (&["status", "--all"], &["--all-namespaces"], ":4"),
            (&["status", "-o", ""], &["text", "wide", "json", "yaml"], ":4"),
            (&["status", "--output=j"], &["--output=json"], ":4"),
            (&["status", "-A", "--output", "y"], &["yaml"], ":4"),
            (&["plan", "a.yaml", "b"], &[], ":0"),
            (&["plan", "--with", ""], &[], ":0"),
            (&["nonsense", "--x="], &[], ":4"),
        ];
        for (line, expected, beside) in cases {
            assert_eq!(words(line), own(expected, beside), "{line:?}");
        }
        assert!(words(&[]).0.contains(&"doctor".to_owned()));
    }
}
