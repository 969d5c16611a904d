//! The service account of the tests' rolegates, with the shipped rights and policies, so that a missing right or an
//! obstructive policy fails a test. Some tests use a second account with more rights.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;

use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::{Value, json};

use super::control_plane::{ControlPlane, SYSTEM, rig_binary, rolegate_binary};
use super::stage::{create, typed};
use super::wait::{PATIENT, eventually};

/// Creates an account with the rights that `rolegate manifests` prints with further arguments; returns its kubeconfig.
pub async fn account(plane: &ControlPlane, client: &Client, name: &str, more: &[&str]) -> PathBuf {
    let file = path(plane, name);
    if file.exists() {
        return file;
    }
    let [shipped, _] = apart(&shipped(name, more));
    let shipped: Vec<Value> = serde_saphyr::from_multiple(&shipped).unwrap();
    let creations = shipped.into_iter().chain(to_keep_configurations(name)).map(|object| {
        let namespace = object["metadata"]["namespace"].as_str().map(str::to_owned);
        async move { create(client, namespace.as_deref(), object).await }
    });
    futures::future::join_all(creations).await;
    write_kubeconfig(plane, name, &issue_token(client, name).await);
    // RBAC reaches the API server's caches with a delay; these are the last rights of each kind.
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

/// Returns the shipped rights and policies of an account. They are printed once for each set of arguments.
fn shipped(name: &str, more: &[&str]) -> String {
    static PRINTED: Mutex<BTreeMap<Vec<String>, String>> = Mutex::new(BTreeMap::new());
    const ANY_NAME: &str = "name-of-an-account";
    let arguments = [&["--part", "rbac,containment", "--namespace", SYSTEM, "--name", ANY_NAME], more].concat();
    let mut printed = PRINTED.lock().unwrap();
    let key = arguments.iter().map(|&argument| argument.to_owned()).collect();
    printed.entry(key).or_insert_with(|| manifests(&arguments)).replace(ANY_NAME, name)
}

/// Returns the shipped policies on webhook configurations, and the one on authors. The former allow only bundles to change, so
/// accounts with `--webhooks all`, as in the tests, go without them; the latter answers before the webhook does.
pub fn webhook_policies(name: &str) -> String {
    let [_, policies] = apart(&manifests(&["--part", "containment", "--namespace", SYSTEM, "--name", name]));
    assert!(policies.contains("ValidatingAdmissionPolicy"));
    policies
}

/// Returns the shipped policy on authors.
pub fn policy_on_authors(name: &str, more: &[&str]) -> String {
    let printed = manifests(&[&["--part", "containment", "--namespace", SYSTEM, "--name", name], more].concat());
    let on_authors = printed.split("---\n").filter(|document| document.contains("-authors\n"));
    on_authors.collect::<Vec<_>>().join("---\n")
}

/// Splits printed manifests into all but the policies on webhook configurations and on authors, and these policies.
fn apart(printed: &str) -> [String; 2] {
    let is_apart = |document: &&str| {
        document.contains("kind: ValidatingAdmissionPolicy")
            && (document.contains("webhookconfigurations\n") || document.contains("-authors\n"))
    };
    let (policies, others): (Vec<_>, Vec<_>) = printed.split("---\n").partition(is_apart);
    [others, policies].map(|documents| documents.join("---\n"))
}

/// Returns the output of `rolegate manifests`.
pub fn manifests(arguments: &[&str]) -> String {
    let printed = Command::new(rolegate_binary()).arg("manifests").args(arguments).output().unwrap();
    assert!(printed.status.success(), "{printed:?}");
    String::from_utf8(printed.stdout).unwrap()
}

/// Asks the API server for a token of an existing account.
async fn issue_token(client: &Client, name: &str) -> String {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), SYSTEM);
    let asked = typed(json!({ "spec": { "audiences": null, "expirationSeconds": 86_400 } }));
    accounts.create_token_request(name, &PostParams::default(), &asked).await.unwrap().status.unwrap().token.unwrap()
}

/// Writes the kubeconfig of an account: the administrator's with its token.
fn write_kubeconfig(plane: &ControlPlane, name: &str, token: &str) {
    let administrator = std::fs::read_to_string(&plane.kubeconfig).unwrap();
    let administrator = administrator.replace("namespace: default", &format!("namespace: {SYSTEM}"));
    let (rest, users) = administrator.split_once("users:\n").unwrap();
    let user = users.lines().find_map(|line| line.trim_start_matches(['-', ' ']).strip_prefix("name: ")).unwrap();
    let text = format!("{rest}users:\n- name: {user}\n  user:\n    token: {token}\n");
    std::fs::write(path(plane, name), text).unwrap();
}

/// Writes the kubeconfig of an existing account.
pub fn token(plane: &ControlPlane, name: &str) {
    let mut token = Command::new(rig_binary());
    token.args(["sa-kubeconfig", "--namespace", SYSTEM, "--name", name]).arg("--kubeconfig").arg(&plane.kubeconfig);
    let output = token.arg("--out").arg(path(plane, name)).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

fn path(plane: &ControlPlane, name: &str) -> PathBuf {
    plane.dir.join(format!("conf/account-{name}.kubeconfig"))
}

/// Returns the RBAC objects for `--webhooks all`: a rolegate of the tests creates its configurations itself, since
/// only it knows its port.
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
