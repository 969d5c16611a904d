//! The service account that a rolegate of the tests runs under: with the rights and within the policies that are shipped, so
//! that one that is missing, or in the way, stops a test, and one more where a test asks for more than is shipped.

use std::path::PathBuf;
use std::process::Command;

use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::{Value, json};

use super::control_plane::{ControlPlane, SYSTEM, rig_binary, rolegate_binary};
use super::stage::typed;
use super::wait::{PATIENT, eventually};

/// Makes the account of a name with the rights that `rolegate manifests` prints with more arguments, and returns its
/// kubeconfig.
pub async fn account(plane: &ControlPlane, client: &Client, name: &str, more: &[&str]) -> PathBuf {
    let file = path(plane, name);
    if file.exists() {
        return file;
    }
    let shipped = manifests(&[&["--part", "rbac,containment", "--namespace", SYSTEM, "--name", name], more].concat());
    let [shipped, _] = apart(&shipped);
    let more = to_keep_configurations(name).map(|object| object.to_string());
    plane.must(&["create", "-f", "-"], &[&[shipped], &more[..]].concat().join("\n---\n"));
    token(plane, name);
    // Roles and bindings reach the API server's own caches a moment later. These are the last of each kind.
    let secret = format!("{name}-certificates");
    for (verb, group, resource, namespace, object) in [
        ("update", "", "secrets", SYSTEM, secret.as_str()),
        ("create", "admissionregistration.k8s.io", "mutatingwebhookconfigurations", "", ""),
    ] {
        let asked: SubjectAccessReview = typed(json!({ "spec": {
            "user": format!("system:serviceaccount:{SYSTEM}:{name}"),
            "resourceAttributes": {
                "verb": verb, "group": group, "resource": resource, "namespace": namespace, "name": object,
            },
        } }));
        eventually(PATIENT, "the account has its rights", async || {
            let reviews: Api<SubjectAccessReview> = Api::all(client.clone());
            let answer = reviews.create(&PostParams::default(), &asked).await.unwrap().status.unwrap();
            if answer.allowed { Ok(()) } else { Err(format!("{answer:?}")) }
        })
        .await;
    }
    file
}

/// The shipped policies over webhook configurations. They are for an account that fills in bundles; one that keeps the whole
/// configurations (`--webhooks all`), as those of the tests, goes without.
pub fn webhook_policies(name: &str) -> String {
    let [_, policies] = apart(&manifests(&["--part", "containment", "--namespace", SYSTEM, "--name", name]));
    assert!(policies.contains("ValidatingAdmissionPolicy"));
    policies
}

/// Printed manifests but for policies over webhook configurations, and these.
fn apart(printed: &str) -> [String; 2] {
    let is_over_webhooks = |document: &&str| {
        document.contains("kind: ValidatingAdmissionPolicy") && document.contains("webhookconfigurations\n")
    };
    let (policies, others): (Vec<_>, Vec<_>) = printed.split("---\n").partition(is_over_webhooks);
    [others, policies].map(|documents| documents.join("---\n"))
}

/// What `rolegate manifests` prints.
pub fn manifests(arguments: &[&str]) -> String {
    let printed = Command::new(rolegate_binary()).arg("manifests").args(arguments).output().unwrap();
    assert!(printed.status.success(), "{printed:?}");
    String::from_utf8(printed.stdout).unwrap()
}

/// Writes the kubeconfig of an account that is there.
pub fn token(plane: &ControlPlane, name: &str) {
    let mut token = Command::new(rig_binary());
    token.args(["sa-kubeconfig", "--namespace", SYSTEM, "--name", name]).arg("--kubeconfig").arg(&plane.kubeconfig);
    let output = token.arg("--out").arg(path(plane, name)).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

fn path(plane: &ControlPlane, name: &str) -> PathBuf {
    plane.dir.join(format!("conf/account-{name}.kubeconfig"))
}

/// For `--webhooks all`: a rolegate of the tests makes its configurations itself, since only it knows its port.
fn to_keep_configurations(name: &str) -> [Value; 2] {
    let named = format!("{name}-configurations");
    let rbac = "rbac.authorization.k8s.io";
    let head = |kind: &str| json!({ "apiVersion": format!("{rbac}/v1"), "kind": kind, "metadata": { "name": named } });
    let (mut role, mut binding) = (head("ClusterRole"), head("ClusterRoleBinding"));
    role["rules"] = json!([{
        "apiGroups": ["admissionregistration.k8s.io"],
        "resources": ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
        "verbs": ["create"],
    }]);
    binding["roleRef"] = json!({ "apiGroup": rbac, "kind": "ClusterRole", "name": named });
    binding["subjects"] = json!([{ "kind": "ServiceAccount", "namespace": SYSTEM, "name": name }]);
    [role, binding]
}
