//! An installation through its life on a real control plane: looked at, replaced by another version, taken out.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panic"
)]

#[path = "../common/mod.rs"]
mod common;

mod doctor;
mod uninstall;
mod upgrade;

use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use tokio::process::Command;

use common::control_plane::rolegate_binary;
use common::{Group, Stage};

/// Three segments of 4 prefill and 2 decode; the pods do not become ready by themselves.
fn group() -> Group {
    Group::new("llm").role("prefill", 12, 4).role("decode", 6, 2).held_back()
}

/// What a command of ours did.
#[derive(Debug)]
struct Ran {
    code: i32,
    out: String,
    err: String,
}

impl Ran {
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

async fn rolegate_with(kubeconfig: &Path, arguments: &[&str]) -> Ran {
    let mut command = Command::new(rolegate_binary());
    command.args(arguments).arg("--kubeconfig").arg(kubeconfig).env("LC_ALL", "C").stdin(Stdio::null());
    let output = command.kill_on_drop(true).output().await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

/// A command that looks at the stage's rolegate, which has its name.
async fn rolegate(stage: &Stage, arguments: &[&str]) -> Ran {
    let named = [arguments, &["--name", &stage.namespace]].concat();
    rolegate_with(&stage.plane.kubeconfig, &named).await
}
