//! Output for terminals only: colours, a chart of the terminal's width, and progress.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::pty::Terminal;

fn folder() -> TempDir {
    let node = r#"{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"example.com/rack": "r"}},
        "status": {"allocatable": {"pods": "9", "cpu": "9"}, "conditions": [{"type": "Ready", "status": "True"}]}}"#;
    let (racks, conflict) = (include_str!("../../examples/racks.yaml"), include_str!("../../examples/conflict.yaml"));
    crate::answers::folder(&[("racks.yaml", racks), ("conflict.yaml", conflict), ("node.json", node)])
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rolegate"));
    command.args(arguments).current_dir(folder).env_remove("NO_COLOR").env("TERM", "xterm").env("LC_ALL", "C.UTF-8");
    command.stdin(Stdio::null());
    command
}

/// Returns the output of a command on a terminal with this number of columns.
fn on_terminal(mut command: Command, columns: u16) -> String {
    let terminal = Terminal::open(columns);
    let mut child = command.stdout(terminal.stream()).stderr(Stdio::null()).spawn().unwrap();
    // The command holds streams that would keep the terminal open.
    drop(command);
    let text = terminal.read_all();
    child.wait().unwrap();
    text
}

#[test]
fn colours_are_for_terminals_and_for_whoever_wants_them() {
    let folder = folder();
    let for_people: &[&[&str]] = &[
        &["check", "conflict.yaml"],
        &["mutate", "racks.yaml", "-o", "diff"],
        &["plan", "racks.yaml"],
        &["plan", "racks.yaml", "-o", "wide"],
        &["plan", "racks.yaml", "-o", "chart"],
        &["fit", "racks.yaml", "--with", "node.json"],
        &["fit", "racks.yaml", "--with", "node.json", "-o", "wide"],
    ];
    for arguments in for_people {
        let run = || command(folder.path(), arguments);
        let coloured = |text: &str| text.contains("\x1b[");
        assert!(coloured(&on_terminal(run(), 80)), "{arguments:?} has no colours");
        for (name, value) in [("NO_COLOR", "1"), ("TERM", "dumb")] {
            let mut without = run();
            without.env(name, value);
            let text = on_terminal(without, 80);
            assert!(!text.is_empty() && !coloured(&text), "{name}: {arguments:?}: {text}");
        }
        let piped = run().output().unwrap();
        let text = String::from_utf8([piped.stdout, piped.stderr].concat()).unwrap();
        assert!(!text.is_empty() && !coloured(&text), "in a pipe: {arguments:?}: {text}");
    }
    for format in ["svg", "json", "yaml"] {
        let text = on_terminal(command(folder.path(), &["plan", "racks.yaml", "-o", format]), 80);
        assert!(!text.is_empty() && !text.contains('\x1b'), "{format}: {text}");
    }
}

#[test]
fn blocks_are_for_terminals_that_take_them() {
    let folder = folder();
    for arguments in [&["plan", "racks.yaml", "-o", "chart"] as &[&str], &["fit", "racks.yaml", "--with", "node.json"]]
    {
        let mut ascii = command(folder.path(), arguments);
        ascii.env("LC_ALL", "C");
        let bars = |text: &str| text.lines().filter(|line| line.contains(['|', '[', '│'])).collect::<String>();
        let (plain, blocks) = (on_terminal(ascii, 80), on_terminal(command(folder.path(), arguments), 80));
        assert!(!bars(&plain).is_empty() && bars(&plain).is_ascii(), "{plain}");
        assert!(blocks.contains(['█', '▒']), "{blocks}");
    }
}

#[test]
fn a_chart_is_as_wide_as_the_terminal_and_no_wider() {
    let folder = folder();
    let group = include_str!("../../examples/story-1.yaml")
        .replace("prefill: 10", "prefill: 1")
        .replace("decode: 5", "decode: 1");
    fs::write(folder.path().join("steps.yaml"), group).unwrap();
    for columns in [30_u16, 60, 100, 180] {
        let mut chart = command(folder.path(), &["plan", "steps.yaml", "-o", "chart"]);
        chart.env("NO_COLOR", "1");
        let text = on_terminal(chart, columns);
        let lines = text.lines().filter(|line| line.contains('│'));
        let widest = lines.map(|line| line.chars().count()).max().unwrap();
        let columns = usize::from(columns);
        assert!(widest <= columns && widest > columns / 2, "{widest} of {columns}:\n{text}");
        assert_eq!(text.contains("each column is"), columns < 110, "{text}");
    }
}

/// Reading from an open standard input takes long enough to show progress.
#[test]
fn what_takes_its_time_is_told_on_a_terminal_and_taken_away() {
    let folder = folder();
    let mut terminal = Terminal::open(80);
    let mut plan = command(folder.path(), &["plan", "-"]);
    plan.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(terminal.stream());
    let mut child = plan.spawn().unwrap();
    drop(plan);
    let mut told = String::new();
    while !told.contains("reading -") {
        let more = terminal.read_some();
        assert!(!more.is_empty(), "nothing was told: {told:?}");
        told += &more;
    }
    let mut input = child.stdin.take().unwrap();
    input.write_all(&fs::read(folder.path().join("racks.yaml")).unwrap()).unwrap();
    drop(input);
    told += &terminal.read_all();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(told.starts_with("\r\x1b[Kreading - ("), "{told:?}");
    assert!(told.ends_with("\r\x1b[K") && !told.contains('\n'), "one line, which is taken away: {told:?}");
}
