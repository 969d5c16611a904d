//! An installation through its life on a real control plane: looked at, replaced by another version, taken out.

mod doctor;
mod downgrade;
mod uninstall;
mod upgrade;

use std::path::Path;

use serde_json::Value;

use crate::common::Stage;
use crate::common::rolegate::rolegate_command;

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
    let output = rolegate_command(kubeconfig, arguments).output().await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

/// A command that looks at the stage's rolegate, which has its name.
async fn rolegate(stage: &Stage, arguments: &[&str]) -> Ran {
    let named = [arguments, &["--name", &stage.namespace]].concat();
    rolegate_with(&stage.plane.kubeconfig, &named).await
}
