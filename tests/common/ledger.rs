//! What each test costs: lines of test, subject and number in the file that `ROLEGATE_LEDGER` names, which
//! `tests/all.sh` adds up. Without it nothing is written.

use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::LazyLock;

static FILE: LazyLock<Option<File>> = LazyLock::new(|| {
    let path = std::env::var_os("ROLEGATE_LEDGER")?;
    Some(OpenOptions::new().create(true).append(true).open(path).unwrap())
});

thread_local! {
    /// The test that this thread works for, where it is not the test's own thread.
    static WORKS_FOR: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Returns the name of the test that runs on this thread: libtest names threads after their tests.
pub fn test() -> String {
    let borrowed = WORKS_FOR.with_borrow(Clone::clone);
    borrowed.unwrap_or_else(|| std::thread::current().name().unwrap_or("-").to_owned())
}

/// Carries out what a test asks of another thread.
pub fn on_behalf_of<T>(test: String, work: impl FnOnce() -> T) -> T {
    let before = WORKS_FOR.replace(Some(test));
    let result = work();
    WORKS_FOR.set(before);
    result
}

/// Counts one of something, such as a control plane.
pub fn count(subject: &str) {
    add(subject, 1.0);
}

/// Adds a number, such as seconds of processor time.
pub fn add(subject: &str, number: f64) {
    if let Some(mut file) = FILE.as_ref() {
        // One write: lines of other threads and processes do not come between.
        file.write_all(format!("{}\t{subject}\t{number}\n", test()).as_bytes()).unwrap();
    }
}

/// Adds the processor time that a process has taken so far, its children included that have ended.
pub fn add_process(subject: &str, pid: u32) {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return };
    // Fields 14 to 17, counted behind the name, which may contain spaces; in hundredths of a second.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks: f64 = fields.split_whitespace().skip(11).take(4).filter_map(|field| field.parse::<f64>().ok()).sum();
    add(subject, ticks / 100.0);
}
