//! rolegate as a plugin: kubectl finds it on the path, and hands on its arguments.

use std::os::unix::fs::symlink;

use tempfile::TempDir;
use tokio::process::Command;

use crate::common::control_plane::{rig_binary, rolegate_binary};
use crate::common::prelude::*;

/// A folder with the two names under which kubectl looks for a plugin.
fn plugins() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["kubectl-rolegate", "kubectl_complete-rolegate"] {
        symlink(rolegate_binary(), folder.path().join(name)).unwrap();
    }
    folder
}

/// Runs kubectl as somebody who has no kubeconfig but the one that is named.
async fn kubectl(plugins: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let path = format!("{}:{}", plugins.display(), std::env::var("PATH").unwrap());
    let mut kubectl = Command::new(rig_binary());
    kubectl.arg("kubectl").args(arguments).env("PATH", path).env("LC_ALL", "C").env("HOME", plugins);
    let output = kubectl.env_remove("KUBECONFIG").stdin(Stdio::null()).output().await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[tokio::test]
async fn kubectl_runs_rolegate_with_its_own_flags() {
    let stage = Stage::new("kubectl-plugin").await;
    stage.create_group(&Group::three_segments()).await;
    let folder = plugins();
    // The kubeconfig of the control plane, once more under another name, beside a context that leads nowhere.
    let config: Value = serde_saphyr::from_str(&std::fs::read_to_string(&stage.plane.kubeconfig).unwrap()).unwrap();
    let mut two = config.clone();
    let mut nowhere = config["clusters"][0].clone();
    nowhere["name"] = "nowhere".into();
    nowhere["cluster"]["server"] = "https://127.0.0.1:1".into();
    let user = config["users"][0]["name"].clone();
    let context = |name: &str, cluster: &Value| serde_json::json!({ "name": name, "context": { "cluster": cluster, "user": user } });
    two["clusters"].as_array_mut().unwrap().push(nowhere);
    let here = &config["clusters"][0]["name"];
    two["contexts"] = vec![context("here", here), context("nowhere", &"nowhere".into())].into();
    two["current-context"] = "nowhere".into();
    let file = folder.path().join("two.kubeconfig");
    std::fs::write(&file, two.to_string()).unwrap();
    let file = file.to_str().unwrap();

    let status = ["rolegate", "status", "llm", "-o", "json", "-n", &stage.namespace, "--kubeconfig", file];
    let (code, out, errors) = kubectl(folder.path(), &[&status[..], &["--context", "here"]].concat()).await;
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    let found: Value = serde_json::from_str(&out).unwrap();
    let group = &found["groups"][0];
    assert!(group["name"] == "llm" && group["namespace"] == "kubectl-plugin", "{found}");

    // The current context leads nowhere, and the exit code comes back.
    let (code, out, errors) = kubectl(folder.path(), &status).await;
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(errors.starts_with("rolegate: cannot reach the API server at https://127.0.0.1:1/: "), "{errors}");

    let (code, help, _) = kubectl(folder.path(), &["rolegate", "status", "--help"]).await;
    assert_eq!(code, Some(0));
    assert!(help.contains("Usage: kubectl rolegate status [OPTIONS] [GROUP]"), "{help}");
    assert!(help.contains("\n  kubectl rolegate status -A\n"), "{help}");
}

#[tokio::test]
async fn kubectl_completes_what_rolegate_takes() {
    let folder = plugins();
    let (code, out, errors) = kubectl(folder.path(), &["__complete", "rolegate", "explain", ""]).await;
    assert_eq!(code, Some(0), "{errors}");
    let words: Vec<_> = out.lines().map(|line| line.split('\t').next().unwrap()).collect();
    assert_eq!(words, ["pod", "group", "workload", ":4"], "{out}{errors}");
    let (_, out, _) = kubectl(folder.path(), &["__complete", "rolegate", "status", "--all"]).await;
    assert!(out.starts_with("--all-namespaces\t"), "{out}");
}
