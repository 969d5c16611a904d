//! `docs/cli.md` matches the help of the commands, and its examples work.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use clap::{Arg, ArgAction};
use rolegate::cli::command;
use rolegate::cli::examples::{EXAMPLES, Examples};
use serde_json::json;

/// Returns the commands in the order of the help.
fn commands() -> Vec<clap::Command> {
    let mut all = command();
    all.build();
    all.get_subcommands().filter(|command| command.get_name() != "help" && !command.is_hide_set()).cloned().collect()
}

fn examples_of(command: &str) -> &'static Examples {
    EXAMPLES.iter().find(|examples| examples.command == command).unwrap_or_else(|| panic!("{command} has no examples"))
}

/// Number of commands from which an option is described once for all of them.
const COMMON: usize = 2;

/// Returns the reference page of the command line, from its definitions.
fn page() -> String {
    let mut page = "# Command line\n\nThe help of all commands, written by `make docs`. `kubectl rolegate COMMAND` runs the same commands\n\
                    ([plugin](guides/installing.md#as-a-plugin-of-kubectl)).\n\n"
        .to_owned();
    let is_shown = |arg: &&Arg| !arg.is_hide_set() && !matches!(arg.get_id().as_str(), "help" | "version");
    let described = |command: clap::Command| {
        let arguments: Vec<_> = command.get_arguments().filter(is_shown).map(argument).collect();
        (command, arguments)
    };
    let commands: Vec<_> = commands().into_iter().map(described).collect();
    let links: Vec<_> = commands.iter().map(|(command, _)| command.get_name()).collect();
    let links: Vec<_> = links.iter().map(|name| format!("[`{name}`](#rolegate-{name})")).collect();
    _ = writeln!(page, "Commands: {}.", links.join(",\n"));
    page.push_str("\n## Options of several commands\n\n");
    let mut all: Vec<_> = commands.iter().flat_map(|(_, arguments)| arguments).collect();
    let is_common = |argument: &(String, String)| all.iter().filter(|other| **other == argument).count() >= COMMON;
    let common: BTreeSet<_> = all.iter().filter(|argument| is_common(argument)).copied().collect();
    let mut seen = BTreeSet::new();
    all.retain(|argument| common.contains(argument) && seen.insert(*argument));
    all.iter().for_each(|(_, text)| page.push_str(text));
    for (command, arguments) in &commands {
        let usage = command.clone().render_usage().to_string();
        let usage = usage.trim_start_matches("Usage: ");
        _ = write!(page, "\n## rolegate {}\n\n{}.\n\n", command.get_name(), command.get_about().unwrap());
        _ = write!(page, "```\n{usage}\n```\n\n");
        let (shared, own): (Vec<_>, Vec<_>) = arguments.iter().partition(|argument| common.contains(argument));
        own.iter().for_each(|(_, text)| page.push_str(text));
        let shared: Vec<_> = shared.iter().map(|(name, _)| format!("`{name}`")).collect();
        if !shared.is_empty() {
            let and = if own.is_empty() { "" } else { "\n" };
            _ = writeln!(
                page,
                "{and}[Options of several commands](#options-of-several-commands): {}.",
                shared.join(", ")
            );
        }
        let examples = examples_of(command.get_name());
        page.push_str("\n```console\n");
        for (does, line) in examples.examples {
            let comment = if does.is_empty() { String::new() } else { format!("# {does}\n") };
            _ = writeln!(page, "{comment}$ {line}");
        }
        let exits: Vec<_> = examples.exits.iter().map(|(code, says)| format!("{code}: {says}")).collect();
        _ = writeln!(page, "```\n\nExit codes: {}.", exits.join("; "));
    }
    page
}

/// Returns the name of an argument, and its line with one for each of its possible values.
fn argument(arg: &Arg) -> (String, String) {
    let value = match arg.get_action() {
        ArgAction::Set | ArgAction::Append => {
            let names: Vec<_> =
                arg.get_value_names().unwrap_or_default().iter().map(|name| format!("<{name}>")).collect();
            names.join(" ")
        }
        _ => String::new(),
    };
    let long = arg.get_long().map(|long| format!("--{long} {value}").trim_end().to_owned());
    let short = arg.get_short().map(|short| format!("-{short}"));
    let spelled: Vec<_> = short.into_iter().chain(long).map(|name| format!("`{name}`")).collect();
    let spelled = if spelled.is_empty() { format!("`{value}`") } else { spelled.join(", ") };
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let help = help.replace('*', "\\*");
    let mut text = format!("- {spelled}: {}", help.trim_end_matches('.'));
    let default: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if !default.is_empty() && !value.is_empty() {
        _ = write!(text, "; `{}` by default", default.join(","));
    }
    if let Some(variable) = arg.get_env() {
        _ = write!(text, "; or `${}`", variable.to_string_lossy());
    }
    text.push('\n');
    let words = if value.is_empty() { Vec::new() } else { arg.get_possible_values() };
    for word in words.iter().filter(|word| !word.is_hide_set()) {
        let help = word.get_help().map(|help| format!(": {}", help.to_string().trim_end_matches('.')));
        _ = writeln!(text, "  - `{}`{}", word.get_name(), help.unwrap_or_default());
    }
    (arg.get_long().map_or(spelled, |long| format!("--{long}")), text)
}

#[test]
fn the_page_of_the_command_line_is_that_of_its_definitions() {
    crate::generated::is_current("docs/cli.md", &page());
}

#[test]
fn every_command_has_examples_and_its_help_shows_them() {
    let named: Vec<_> = EXAMPLES.iter().map(|examples| examples.command.to_owned()).collect();
    assert_eq!(named, commands().iter().map(|command| command.get_name().to_owned()).collect::<Vec<_>>());
    for command in commands() {
        let mut command = command.term_width(100);
        let examples = examples_of(command.get_name());
        assert!((2..=5).contains(&examples.examples.len()), "{}", command.get_name());
        let help = command.render_help().to_string();
        for (_, line) in examples.examples {
            assert!(help.contains(line), "{line} is not in:\n{help}");
        }
        assert!(help.contains("\nExit codes:\n  0  "), "{help}");
    }
}

/// Returns the words of the rolegate command in a line.
fn ours(line: &str) -> Vec<String> {
    let from = line.find("rolegate ").unwrap();
    let mut words = vec![String::new()];
    let mut quote = None;
    for letter in line[from..].chars() {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (None, '\'' | '"') => quote = Some(letter),
            (None, '|' | '>' | ')') => break,
            (None, ' ') => words.push(String::new()),
            _ => words.last_mut().unwrap().push(letter),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn every_example_is_a_command_line() {
    for examples in EXAMPLES {
        for (_, line) in examples.examples {
            let words = ours(line);
            assert_eq!(words[1], examples.command, "{line}");
            if let Err(error) = command().try_get_matches_from(&words) {
                panic!("{line}: {error}");
            }
        }
    }
}

fn node(number: u32) -> serde_json::Value {
    let labels = json!({ "example.com/rack": format!("rack-{}", number / 3) });
    crate::build::node(&format!("node-{number}"), &labels, &json!({ "pods": "110", "cpu": "4" }))
}

/// Words of earlier commands say where what they did is done now.
#[test]
fn a_command_that_is_no_more_names_the_one_in_its_place() {
    for (word, instead) in [("crds", "`manifests --part crds`"), ("test", "`check -o json`")] {
        let output = Command::new(env!("CARGO_BIN_EXE_rolegate")).args([word, "--optional", "x"]).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), errors.lines().count()), (Some(2), 1), "{errors}");
        assert!(errors.contains(instead), "{errors}");
    }
}

/// Runs the examples that need no cluster in a shell, in a folder with the files that they name.
#[test]
fn examples_without_a_cluster_work() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let racks = include_str!("../../examples/racks.yaml");
    let (group, workloads) = racks.split_once("\n---\n").unwrap();
    write("group.yaml", group);
    write("group-before.yaml", &group.replace("replicas: 4", "replicas: 8"));
    write("workloads.yaml", workloads);
    write("workloads-before.yaml", &workloads.replace("main:1", "main:0"));
    write("counts.yaml", "roles: {prefill: {created: 4}, decode: {created: 2}}");
    let nodes: Vec<_> = (0..6).map(node).collect();
    write("cluster.json", &json!({ "apiVersion": "v1", "kind": "List", "items": nodes }).to_string());
    let program = Path::new(env!("CARGO_BIN_EXE_rolegate")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let offline = ["mutate", "check", "plan", "fit", "completions", "manifests"];
    let mut run = BTreeSet::new();
    for examples in EXAMPLES.iter().filter(|examples| offline.contains(&examples.command)) {
        let lines = examples.examples.iter().map(|(_, line)| *line);
        for line in lines.filter(|line| ["kubectl ", "fpath", "~/", "-n prod"].iter().all(|not| !line.contains(not))) {
            let output = Command::new("bash")
                .args(["-c", &format!("set -eo pipefail; {line}")])
                .current_dir(folder.path())
                .env("PATH", &path)
                .output()
                .unwrap();
            let errors = String::from_utf8_lossy(&output.stderr);
            assert_eq!((output.status.code(), errors.as_ref()), (Some(0), ""), "{line}: {output:?}");
            run.insert(examples.command);
        }
    }
    assert_eq!(run, offline.into_iter().collect(), "no example of one of these was run");
    assert!(fs::read_to_string(folder.path().join("plan.svg")).unwrap().starts_with("<svg "));
}
