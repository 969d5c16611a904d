//! What a page does, in its order.

use crate::docs::OTHER_SHELLS;
use crate::markdown::{Fence, Item};

/// Something that a page does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Text for a file.
    File { name: String, text: String },
    /// A command.
    Run(Command),
    /// A block that is not run, and why.
    Skipped { line: usize, reason: String },
}

/// A command with what it prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    pub line: usize,
    pub text: String,
    /// What it prints; empty where the page does not say.
    pub prints: Vec<String>,
    /// What it ends with.
    pub exit: i32,
    /// Readers do not see it.
    pub hidden: bool,
}

/// A line that is wrong, and what is wrong with it.
pub type Fault = (usize, String);

impl Step {
    /// Line and reason of a block that is not run.
    pub fn skipped(&self) -> Option<(usize, &str)> {
        match self {
            Self::Skipped { line, reason } => Some((*line, reason)),
            _ => None,
        }
    }
}

/// The steps of a page.
pub fn steps(items: &[Item]) -> (Vec<Step>, Vec<Fault>) {
    let (mut steps, mut faults) = (Vec::new(), Vec::new());
    // The mark of the next block.
    let mut mark: Option<(usize, String)> = None;
    for item in items {
        match item {
            Item::Comment { line, text } => {
                if let Some(reason) = text.strip_prefix("not run:") {
                    let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
                    if reason.is_empty() {
                        faults.push((*line, "not run, and no reason given".to_owned()));
                    }
                    mark = Some((*line, reason));
                } else if let Some(hidden) = text.strip_prefix("test:") {
                    let lines: Vec<_> = hidden.lines().map(str::to_owned).collect();
                    let commands = commands(*line, &lines, true);
                    if commands.is_empty() {
                        faults.push((*line, "set-up without a command".to_owned()));
                    }
                    steps.extend(commands.into_iter().map(Step::Run));
                }
            }
            Item::Fence(fence) => match (fence.language.as_str(), mark.take()) {
                ("console", Some((_, reason))) => steps.push(Step::Skipped { line: fence.line, reason }),
                ("console", None) => console(fence, &mut steps, &mut faults),
                (_, Some((line, _))) => faults.push((line, "the block that follows is not `console`".to_owned())),
                (language, None) => {
                    if let Some(name) = fence.options.get("file") {
                        steps.push(Step::File { name: name.clone(), text: fence.lines.join("\n") + "\n" });
                    } else if OTHER_SHELLS.contains(&language) && fence.lines.iter().any(|line| line.starts_with("$ "))
                    {
                        faults.push((fence.line, "commands in a block that is not `console`".to_owned()));
                    }
                }
            },
            Item::Heading { .. } => {}
            Item::Text { text, .. } if text.is_empty() => {}
            Item::Text { .. } => {
                if let Some((line, _)) = mark.take() {
                    faults.push((line, "a mark belongs right before its block".to_owned()));
                }
            }
        }
    }
    (steps, faults)
}

fn console(fence: &Fence, steps: &mut Vec<Step>, faults: &mut Vec<Fault>) {
    let mut commands = commands(fence.line, &fence.lines, false);
    match (commands.last_mut(), fence.options.get("exit").map(|exit| exit.parse::<i32>())) {
        (None, _) => faults.push((fence.line, "a console without a command: lines begin with `$ `".to_owned())),
        (Some(last), Some(Ok(exit))) => last.exit = exit,
        (Some(_), Some(Err(_))) => faults.push((fence.line, "`exit` is no number".to_owned())),
        (Some(_), None) => {}
    }
    steps.extend(commands.into_iter().map(Step::Run));
}

/// The commands of a block whose first line has this number.
fn commands(first: usize, lines: &[String], hidden: bool) -> Vec<Command> {
    let mut commands: Vec<Command> = Vec::new();
    let mut lines = (first..).zip(lines);
    while let Some((line, text)) = lines.next() {
        let Some(command) = text.strip_prefix("$ ") else {
            // Before the first command there is nothing that could print it.
            if let Some(last) = commands.last_mut() {
                last.prints.push(text.clone());
            }
            continue;
        };
        let mut text = command.to_owned();
        let mut end = here_document(command);
        let mut last = command;
        while end.is_some() || last.ends_with('\\') {
            let Some((_, more)) = lines.next() else { break };
            text.push('\n');
            text.push_str(more);
            last = more;
            if end.as_ref().is_some_and(|end| more.trim() == end) {
                end = None;
            }
        }
        commands.push(Command { line, text, prints: Vec::new(), exit: 0, hidden });
    }
    commands
}

/// The word that ends the here-document which a command begins.
fn here_document(command: &str) -> Option<String> {
    let (_, word) = command.split_once("<<")?;
    let word = word.trim_start_matches(['-', ' ', '\'', '"']);
    let end = word.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(word.len());
    // Nothing follows in `<<<`, which begins no document.
    word.get(..end).filter(|word| !word.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::markdown::parse;

    fn read(page: &str) -> (Vec<Step>, Vec<Fault>) {
        steps(&parse(page))
    }

    fn command(line: usize, text: &str, prints: &[&str]) -> Command {
        let prints = prints.iter().map(|&line| line.to_owned()).collect();
        Command { line, text: text.to_owned(), prints, exit: 0, hidden: false }
    }

    #[test]
    fn blocks_are_files_commands_and_what_they_print() {
        let page = "```yaml file=a.yaml\na: 1\n```\n```yaml\nb: 2\n```\n```console exit=3\n$ one \\\n  more\nout\n$ two\n```\n";
        let file = Step::File { name: "a.yaml".to_owned(), text: "a: 1\n".to_owned() };
        let one = command(8, "one \\\n  more", &["out"]);
        let two = Command { exit: 3, ..command(11, "two", &[]) };
        assert_eq!(read(page), (vec![file, Step::Run(one), Step::Run(two)], vec![]));
    }

    #[test]
    fn a_here_document_ends_at_its_word_and_set_up_is_hidden() {
        let page = "<!-- test: nodes\n$ cat <<'EOF'; done\n$ not a command\nEOF\n-->\n";
        let hidden = Command { hidden: true, ..command(2, "cat <<'EOF'; done\n$ not a command\nEOF", &[]) };
        assert_eq!(read(page), (vec![Step::Run(hidden)], vec![]));
    }

    #[test]
    fn what_is_neither_run_nor_marked_is_a_fault() {
        let skipped = Step::Skipped { line: 4, reason: "no cloud".to_owned() };
        assert_eq!(read("<!-- not run: no cloud -->\n\n```console\n$ x\n```\n"), (vec![skipped], vec![]));
        for wrong in [
            "<!-- not run: -->\n```console\n$ x\n```\n",
            "<!-- not run: why -->\ntext\n```console\n$ x\n```\n",
            "<!-- not run: why -->\n```yaml\na: 1\n```\n",
            "<!-- test: nothing -->\n",
            "```console\nx\n```\n",
            "```console exit=x\n$ x\n```\n",
            "```bash\n$ x\n```\n",
        ] {
            assert_eq!(read(wrong).1.len(), 1, "{wrong}");
        }
    }
}
