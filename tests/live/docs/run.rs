//! Runs a page from top to bottom.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::common::control_plane::{rig_binary, rolegate_binary, scratch_dir};
use crate::docs::cluster::{Cluster, Running};
use crate::docs::expect;
use crate::docs::page::{Command, Step, steps};
use crate::docs::shell::{Ran, Shell};
use crate::markdown;

/// How long what a command shows may be behind: a status is written once a second at most, and Events a moment later.
const LAG: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(250);
/// Commands that only look, and may look again.
const LOOKS: &[&str] =
    &["kubectl get ", "kubectl describe ", "kubectl events", "rolegate status", "rolegate explain ", "rolegate fit "];
/// Folders of the repository that commands name.
const FOLDERS: &[&str] = &["deploy", "examples", "policies"];

/// Adds a fake node, `fake-node NAME [pods=N] [cpu=N] [LABEL=VALUE]...`.
const FAKE_NODE: &str = r#"#!/usr/bin/env bash
set -euo pipefail
name=$1 pods=110 cpu=64 labels=
shift
for word; do
    case $word in
        pods=*) pods=${word#*=} ;;
        cpu=*) cpu=${word#*=} ;;
        *) labels+=", ${word%%=*}: \"${word#*=}\"" ;;
    esac
done
room="{cpu: \"$cpu\", memory: 256Gi, pods: \"$pods\"}"
kubectl create -f - <<YAML
apiVersion: v1
kind: Node
metadata:
  name: $name
  annotations: {kwok.x-k8s.io/node: fake}
  labels: {kubernetes.io/hostname: $name, kubernetes.io/os: linux$labels}
status: {allocatable: $room, capacity: $room}
YAML
kubectl wait --for=condition=Ready "node/$name" --timeout=60s
"#;

/// Runs a page on a cluster, and fails with all that is not as the page says.
pub async fn run(page: &str, name: &str, cluster: Cluster) {
    let (steps, faults) = steps(&markdown::read(page));
    assert!(faults.is_empty(), "{page}: {faults:?}");
    let mut cluster = cluster.start().await;
    let place = tempfile::tempdir().unwrap();
    let mut shell = enter(place.path(), &cluster).await;
    let mut transcript = Transcript::new(page, name);
    for step in &steps {
        match step {
            Step::File { name, text } => fs::write(place.path().join("page").join(name), text).unwrap(),
            Step::Run(command) => {
                let ran = carry_out(command, &mut shell, &mut cluster).await;
                if !transcript.take(command, &ran) {
                    break;
                }
                cluster.settle().await;
            }
            Step::Skipped { .. } => {}
        }
    }
    transcript.end();
    cluster.until_clean().await;
}

/// Runs a command; one that only looks is run again while what it shows is behind.
async fn carry_out(command: &Command, shell: &mut Shell, cluster: &mut Running) -> Ran {
    let start = Instant::now();
    loop {
        let ran = tokio::select! {
            ran = shell.run(&command.text) => ran,
            () = cluster.tend() => unreachable!("it never returns"),
        };
        let looks = LOOKS.iter().any(|look| command.text.starts_with(look));
        if !looks || is_as_said(command, &ran) || start.elapsed() > LAG {
            return ran;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn is_as_said(command: &Command, ran: &Ran) -> bool {
    ran.code == command.exit && (command.prints.is_empty() || expect::prints(&command.prints, &ran.printed))
}

/// A shell in a folder of its own, with what pages use.
async fn enter(place: &Path, cluster: &Running) -> Shell {
    let (folder, programs) = (place.join("page"), place.join("bin"));
    fs::create_dir(&folder).unwrap();
    fs::create_dir(&programs).unwrap();
    for shown in FOLDERS {
        symlink(Path::new(env!("CARGO_MANIFEST_DIR")).join(shown), folder.join(shown)).unwrap();
    }
    symlink(rolegate_binary(), programs.join("rolegate")).unwrap();
    let kubectl = format!("#!/bin/sh\nexec {} kubectl \"$@\"\n", rig_binary().display());
    for (name, text) in [("kubectl", kubectl.as_str()), ("fake-node", FAKE_NODE)] {
        let program = programs.join(name);
        fs::write(&program, text).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:/usr/bin:/bin", programs.display());
    Shell::start(&folder, &path, &[("KUBECONFIG", &cluster.kubeconfig()), ("AUDIT_LOG", &cluster.audit_log())]).await
}

/// What was typed and shown, and what of it is not as the page says.
struct Transcript {
    page: String,
    file: PathBuf,
    text: String,
    wrong: Vec<String>,
}

impl Transcript {
    fn new(page: &str, name: &str) -> Self {
        let file = scratch_dir().join(format!("docs-{name}.txt"));
        Self { page: page.to_owned(), file, text: String::new(), wrong: Vec::new() }
    }

    /// Notes a command; false when the page cannot go on.
    fn take(&mut self, command: &Command, ran: &Ran) -> bool {
        // Writing to a string does not fail.
        _ = write!(self.text, "# {}\n$ {}\n{}", command.line, command.text, ran.printed);
        fs::write(&self.file, &self.text).unwrap();
        if is_as_said(command, ran) {
            return true;
        }
        let ended = if ran.code == command.exit { String::new() } else { format!(", ended with {}", ran.code) };
        let expected = command.prints.join("\n");
        self.wrong.push(format!(
            "{}:{}: $ {}{ended}\n--- expected\n{expected}\n--- found\n{}",
            self.page, command.line, command.text, ran.printed
        ));
        ran.code == command.exit
    }

    fn end(&self) {
        assert!(self.wrong.is_empty(), "all of it is in {}\n{}", self.file.display(), self.wrong.join("\n"));
    }
}
