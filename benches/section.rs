//! A section of `docs/performance.md`, which the benchmark that measures it prints and writes.

use std::fmt;
use std::path::Path;

/// What is written to it is printed at once, and stands in the document in the end.
pub struct Section {
    name: &'static str,
    text: String,
}

impl Section {
    /// The section between `<!-- NAME -->` and `<!-- end of NAME -->`.
    pub fn new(name: &'static str) -> Self {
        Self { name, text: String::new() }
    }

    /// Puts what was written in the place of what the document has.
    pub fn finish(self) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/performance.md");
        let document = std::fs::read_to_string(&path).unwrap();
        let [begin, end] = [format!("<!-- {} -->\n", self.name), format!("<!-- end of {} -->", self.name)];
        let (before, rest) = document.split_once(&begin).expect("the document has the section");
        let (_, after) = rest.split_once(&end).expect("the section has an end");
        let text = self.text.trim_end();
        std::fs::write(path, format!("{before}{begin}{}\n\n{text}\n\n{end}{after}", machine())).unwrap();
    }
}

impl fmt::Write for Section {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        print!("{text}");
        self.text.push_str(text);
        Ok(())
    }
}

/// When and on what.
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
