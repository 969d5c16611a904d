//! Writes a section of `benches/README.md`.

use std::fmt;
use std::path::Path;

/// A section. Text is printed at once, and written into the document at the end.
pub struct Section {
    name: &'static str,
    text: String,
    figures: Vec<(&'static str, String)>,
}

impl Section {
    /// Creates the section between `<!-- NAME -->` and `<!-- end of NAME -->`.
    pub fn new(name: &'static str) -> Self {
        Self { name, text: String::new(), figures: Vec::new() }
    }

    /// Sets the measured value of a row in the table of targets.
    #[allow(dead_code, reason = "not every benchmark has a target")]
    pub fn figure(&mut self, what: &'static str, figure: impl Into<String>) {
        self.figures.push((what, figure.into()));
    }

    /// Replaces the section of the document.
    pub fn finish(self) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/README.md");
        let document = std::fs::read_to_string(&path).unwrap();
        let [begin, end] = [format!("<!-- {} -->\n", self.name), format!("<!-- end of {} -->", self.name)];
        let (before, rest) = document.split_once(&begin).expect("the document has the section");
        let (_, after) = rest.split_once(&end).expect("the section has an end");
        let text = self.text.trim_end();
        let document = format!("{before}{begin}{}\n\n{text}\n\n{end}{after}", machine());
        let document = self.figures.iter().fold(document, |document, (what, figure)| entered(&document, what, figure));
        std::fs::write(path, document).unwrap();
    }
}

impl fmt::Write for Section {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        print!("{text}");
        self.text.push_str(text);
        Ok(())
    }
}

/// Returns the document with a figure in its row of the table of targets.
fn entered(document: &str, what: &str, figure: &str) -> String {
    let row = format!("| {what} | ");
    let date = jiff::Timestamp::now().strftime("%Y-%m-%d");
    let line = document.lines().find(|line| line.starts_with(&row)).expect("the table of targets has the row");
    let asked = line.split(" | ").nth(1).expect("the row has a target");
    document.replacen(line, &format!("{row}{asked} | {figure} | {date} |"), 1)
}

/// Describes the date and the machine.
fn machine() -> String {
    let file = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpus = file("/proc/cpuinfo");
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let threads = std::thread::available_parallelism().unwrap();
    let system = file("/proc/sys/kernel/osrelease");
    let date = jiff::Timestamp::now().strftime("%Y-%m-%d");
    let load = file("/proc/loadavg");
    format!(
        "{date}, {threads} × {}, Linux {}, rolegate {}, load at the end {}:",
        model.map_or("unknown", |(_, model)| model),
        system.trim(),
        env!("CARGO_PKG_VERSION"),
        load.split_whitespace().next().unwrap_or_default(),
    )
}
