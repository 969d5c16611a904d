//! Notes the commit that a release is built of, for `rolegate --version`. Of other builds none is noted: each commit would build
//! the whole crate anew.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=ROLEGATE_COMMIT");
    let commit = env::var("ROLEGATE_COMMIT").ok().filter(|commit| !commit.is_empty()).or_else(of_release);
    println!("cargo:rustc-env=ROLEGATE_COMMIT={}", commit.unwrap_or_else(|| "no commit noted".to_owned()));
}

/// The commit of the work tree, with a word where what is built differs from it.
fn of_release() -> Option<String> {
    if env::var("PROFILE").ok()? != "release" {
        return None;
    }
    let folder = git(&["rev-parse", "--absolute-git-dir"])?;
    let common = git(&["rev-parse", "--path-format=absolute", "--git-common-dir"])?;
    let head = format!("{folder}/HEAD");
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]).map(|branch| format!("{common}/{branch}"));
    for watched in ["src".to_owned(), "Cargo.toml".to_owned(), "Cargo.lock".to_owned(), head].into_iter().chain(branch)
    {
        println!("cargo:rerun-if-changed={watched}");
    }
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--", "src", "Cargo.toml", "Cargo.lock"])?;
    Some(if changed.is_empty() { commit } else { format!("{commit}, changed since") })
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = output.status.success().then(|| String::from_utf8(output.stdout).ok())??;
    Some(text.trim().to_owned())
}
