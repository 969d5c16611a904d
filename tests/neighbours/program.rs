//! Programs of `tests/controlplane/neighbours`, and what was tried with them.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use crate::common::control_plane::{rig_binary, scratch_dir};
use crate::common::figures::record_in;

/// One module in `tests/controlplane/neighbours`: its programs are built first where they are missing.
pub struct Neighbour {
    /// The folder's name, and that of its table in `README.md`.
    pub name: &'static str,
    /// Whose version its `go.mod` gives.
    pub module: &'static str,
}

impl Neighbour {
    /// Where its programs and files are.
    pub fn built(&self) -> PathBuf {
        let built = rig_binary().with_file_name("neighbours").join(self.name);
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/controlplane/build.sh");
        let status = Command::new(script).arg(format!("neighbours/{}", self.name)).status().unwrap();
        assert!(status.success(), "{} could not be built", self.name);
        built
    }

    /// What `go.mod` names.
    pub fn version(&self) -> String {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/controlplane/neighbours").join(self.name).join("go.mod");
        let module = fs::read_to_string(&path).unwrap();
        let named =
            module.lines().find_map(|line| line.trim().trim_start_matches("require ").strip_prefix(self.module));
        let version = named.and_then(|rest| rest.split_whitespace().next());
        version.unwrap_or_else(|| panic!("{} names no {}", path.display(), self.module)).to_owned()
    }

    /// Writes down what was seen: `tried` and `result` are short sentences. The row is the one that begins with `tried`.
    pub fn record(&self, tried: &str, result: &str) {
        record(self.name, &self.version(), tried, result);
    }

    /// Starts one of its programs, which ends with this process, however that ends. Its output is in a file of the scratch folder.
    pub fn start(&self, program: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Running {
        let log = scratch_dir().join(format!("{program}-{}-{}.log", std::process::id(), fresh()));
        let file = File::create(&log).unwrap();
        let process = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--"])
            .arg(self.built().join(program))
            .args(arguments)
            .envs(environment.iter().copied())
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .spawn()
            .unwrap();
        Running { process, log }
    }
}

/// Records a result in a table of `README.md`, with the version and date of the last run.
pub fn record(table: &str, version: &str, tried: &str, result: &str) {
    let today = jiff::Timestamp::now().strftime("%Y-%m-%d");
    for row in [["last run", &format!("{version}, {today}")], [tried, result]] {
        record_in("tests/neighbours/README.md", table, &row);
    }
}

/// A number that no other call in this process has got.
fn fresh() -> usize {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A program that runs until this is dropped.
pub struct Running {
    process: Child,
    /// Where its output goes.
    pub log: PathBuf,
}

impl Running {
    /// How it has ended, if it has.
    pub fn ended(&mut self) -> Option<String> {
        let status = self.process.try_wait().unwrap()?;
        Some(format!("{status}: {}", fs::read_to_string(&self.log).unwrap_or_default()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}
