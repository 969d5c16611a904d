//! Texts that become a part of a request's path, a label or a key of one: whatever they hold, the request stays the one that
//! is meant, and the label one that the API server takes.

use kube::api::ListParams;
use rolegate::api::pod::POD;
use rolegate::api::rbg::ROLE_BASED_GROUP;
use rolegate::cluster::objects;
use rolegate::model::{names, object_name};
use rolegate::mutate::Subject;
use rolegate::rules::{judge_names, label_key_fault};
use serde_json::json;

/// Tries one text: lines are a namespace, a name, and what stands in a pod's labels and annotations.
pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let lines: Vec<_> = text.split('\n').collect();
    let line = |index: usize| lines.get(index).copied().unwrap_or(&text);
    paths(line(0), line(1));
    for line in &lines {
        label(line);
    }
    pod(line(0), line(1), line(2), line(3));
}

fn paths(namespace: &str, name: &str) {
    for kind in [POD, ROLE_BASED_GROUP] {
        let root = if kind.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", kind.group) };
        let all = format!("{root}/{}/namespaces/{namespace}/{}", kind.version, kind.plural);
        let get = objects::get(kind, Some(namespace), name);
        assert_eq!(get.is_ok(), is_label(namespace) && is_subdomain(name), "{namespace:?} {name:?}");
        if let Ok(get) = get {
            assert_eq!(get.uri().path(), format!("{all}/{name}"));
            assert!(get.uri().query().unwrap_or_default().is_empty(), "{}", get.uri());
        }
        let list = objects::list(kind, Some(namespace), &ListParams::default());
        assert_eq!(list.is_ok(), is_label(namespace), "{namespace:?}");
        list.into_iter().for_each(|list| assert_eq!(list.uri().path(), all));
    }
}

/// RFC 1123, in other words than the code's.
fn is_part(text: &str) -> bool {
    let all = text.bytes().all(|byte| b"abcdefghijklmnopqrstuvwxyz0123456789-".contains(&byte));
    all && !text.is_empty() && !text.starts_with('-') && !text.ends_with('-')
}

fn is_label(text: &str) -> bool {
    text.len() <= 63 && is_part(text)
}

fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_part)
}

fn label(text: &str) {
    let value = names::label_value(text);
    let edge = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_alphanumeric());
    let inner = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let is_value = |value: &str| {
        value.len() <= 63 && value.chars().all(inner) && edge(value.chars().next()) && edge(value.chars().last())
    };
    assert!(is_value(&value), "{text:?} becomes {value:?}");
    assert_eq!(names::is_label_value(text), is_value(text), "{text:?}");
    assert_eq!(value == text, is_value(text), "{text:?} becomes {value:?}");
    let (prefix, name) = text.split_once('/').map_or((None, text), |(prefix, name)| (Some(prefix), name));
    let is_key = is_value(name) && prefix.is_none_or(|prefix| object_name::subdomain_fault(prefix).is_none());
    assert_eq!(label_key_fault(text).is_none(), is_key, "{text:?}");
}

/// Whatever a pod names that nobody refuses can be asked for.
fn pod(group: &str, role: &str, name: &str, other: &str) {
    for (group_key, role_key) in names::LABEL_SCHEMES {
        let pod = json!({
            "metadata": {
                "name": name, "namespace": "ns",
                "labels": {
                    (*group_key): group, (*role_key): role, (names::POD_INDEX): other, (names::LWS_GROUP_INDEX): other,
                    (names::LWS_WORKER_INDEX): other, (names::RBG_INSTANCE): name, (names::RBG_INSTANCE_SIZE): other,
                    (names::GROVE_CLIQUE): group, (names::PART_OF): role, (names::GROVE_POD_INDEX): other,
                    (names::GROVE_SET_REPLICA[0]): other, (names::STATEFUL_SET_POD): name,
                },
                "annotations": { (names::KAI_POD_GROUP): other, (names::LWS_SIZE): other, (names::COMPLETION_INDEX): other },
                "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "StatefulSet", "name": role, "uid": "u", "controller": true }],
            },
        });
        let pod = serde_json::from_value(pod).expect("a pod");
        let subject = Subject::of(&pod, "ns", &());
        if subject.is_foreign() || !judge_names(&pod).is_allowed() {
            continue;
        }
        if let Some(key) = subject.group() {
            assert!(is_subdomain(&key.name), "{key}");
            let get = objects::get(ROLE_BASED_GROUP, Some(&key.namespace), &key.name);
            assert!(get.is_ok(), "{key}");
        }
    }
}

/// Names of every kind.
pub fn seeds() -> Vec<Vec<u8>> {
    let texts = [
        "ns\npd-1\nprefill-0\n7",
        "prod\nmy.group.example.com\nA_b.c\n4294967295",
        "../x\n/\na?watch=true\na%2f..",
        "rolegate.dev/group\nkubernetes.io/hostname\n-a\na.",
        "é\nx/status\n\n00000000000000000001",
        "inf\ninf-0-decode-0-dleader\ninf-0-decode-0-dleader-1\n-1",
    ];
    let long = ["a".repeat(63), "a".repeat(64), format!("{}\n{}", "a".repeat(253), "b.".repeat(126)), "é".repeat(40)];
    texts.into_iter().map(str::to_owned).chain(long).map(String::into_bytes).collect()
}
