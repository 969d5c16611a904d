use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value as Json, json};

use super::*;

fn varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(u8::try_from(number).unwrap());
}

/// Encodes a field of bytes.
fn bytes(number: u64, value: impl AsRef<[u8]>) -> Vec<u8> {
    let mut out = Vec::new();
    varint(number << 3 | 2, &mut out);
    varint(value.as_ref().len() as u64, &mut out);
    out.extend_from_slice(value.as_ref());
    out
}

/// Encodes a field of a number.
fn number(number: u64, value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    varint(number << 3, &mut out);
    varint(value, &mut out);
    out
}

fn sent(kind: &str, raw: &[u8]) -> Vec<u8> {
    let type_meta = [bytes(1, "v1"), bytes(2, kind)].concat();
    [MAGIC.to_vec(), bytes(1, type_meta), bytes(2, raw), bytes(3, ""), bytes(4, "")].concat()
}

fn read(kind: &str, fields: &[Vec<u8>]) -> Json {
    serde_json::from_slice(&object(&sent(kind, &fields.concat())).unwrap()).unwrap()
}

fn entry_of(key: &str, value: impl AsRef<[u8]>) -> Vec<u8> {
    [bytes(1, key), bytes(2, value)].concat()
}

/// Encodes a pod with a field of every kind.
fn pod_with_all() -> Vec<u8> {
    let metadata = [
        bytes(1, "p"),
        bytes(2, ""),
        number(7, 0),
        bytes(8, number(1, 1_790_000_000)),
        bytes(9, number(1, NO_TIME.cast_unsigned())),
        bytes(11, entry_of("a", "1")),
        bytes(11, entry_of("b", "")),
        bytes(13, [bytes(1, "StatefulSet"), number(6, 1)].concat()),
        bytes(14, "x\"y\n"),
        bytes(14, ""),
        bytes(17, "managed fields"),
    ];
    let container = [bytes(1, "c"), bytes(8, bytes(1, entry_of("cpu", bytes(1, "100m"))))];
    let spec = [
        bytes(1, [bytes(1, "data"), bytes(2, bytes(10, bytes(1, "claim")))].concat()),
        bytes(2, container.concat()),
        bytes(2, bytes(1, "d")),
        number(11, 0),
        number(25, (-5_i64).cast_unsigned()),
    ];
    [bytes(1, metadata.concat()), bytes(2, spec.concat()), bytes(3, "")].concat()
}

#[test]
fn every_kind_of_field_is_read_as_from_the_json_of_the_api_server() {
    assert_eq!(
        read("Pod", &[pod_with_all()]),
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": "p", "creationTimestamp": "2026-09-21T14:13:20Z", "labels": { "a": "1", "b": "" },
                "ownerReferences": [{ "kind": "StatefulSet", "controller": true }], "finalizers": ["x\"y\n", ""],
            },
            "spec": {
                "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": "claim" } }],
                "containers": [{ "name": "c", "resources": { "limits": { "cpu": "100m" } } }, { "name": "d" }],
                "hostNetwork": false, "priority": -5,
            },
            "status": {},
        })
    );
}

#[test]
fn an_event_is_a_line() {
    let frame = [bytes(1, "ADDED"), bytes(2, bytes(1, sent("Node", &bytes(1, bytes(1, "n")))))].concat();
    let mut line = Vec::new();
    write_event(&mut line, &frame).unwrap();
    assert_eq!(
        String::from_utf8(line).unwrap(),
        "{\"type\":\"ADDED\",\"object\":{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n\"}}}\n"
    );
    let status = read("Status", &[bytes(2, "Failure"), bytes(4, "Expired"), number(6, 410)]);
    assert_eq!(
        status,
        json!({ "apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "Expired", "code": 410 })
    );
}

#[test]
fn what_is_not_understood_is_not_guessed_at() {
    let unread = |bytes: &[u8]| object(bytes).unwrap_err();
    assert_eq!(unread(b"{}"), Unread::Malformed(Malformed));
    assert_eq!(unread(&sent("Secret", b"")).to_string(), "there is no schema for Secret of v1");
    let compressed = [MAGIC.to_vec(), bytes(3, "gzip")].concat();
    // Repeated fields whose entries are not adjacent.
    let apart = [bytes(14, "a"), bytes(1, "p"), bytes(14, "b")].concat();
    let twice = [bytes(1, "p"), bytes(2, "g"), bytes(1, "p")].concat();
    let pod = |metadata: &[u8]| sent("Pod", &bytes(1, metadata));
    for bytes in
        [compressed, pod(&apart), pod(&twice), pod(&bytes(1, b"\xff")), pod(&bytes(7, "7")), pod(&number(1, 7))]
    {
        assert_eq!(unread(&bytes), Unread::Malformed(Malformed), "{bytes:?}");
    }
    // A singular field twice in a row.
    assert_eq!(unread(&pod(&[bytes(1, "p"), bytes(1, "q")].concat())), Unread::Malformed(Malformed));
}

#[test]
fn rows_are_in_order_and_fit_the_set_of_those_seen() {
    fn check(message: &Message) {
        assert!(message.0.is_sorted_by(|one, next| one.number < next.number) && message.0.len() <= 64, "{message:?}");
        for field in message.0 {
            if let Kind::Message(inner) | Kind::Inline(inner) | Kind::Messages(inner) = field.kind {
                check(inner);
            }
        }
    }
    [&schemas::POD, &schemas::NODE, &schemas::STATUS].into_iter().for_each(check);
}

proptest! {
    #[test]
    fn whatever_arrives_is_refused_or_becomes_one_line_of_json(
        changes in vec((any::<Index>(), any::<u8>()), 0..6), cut in any::<Index>(), whole in any::<bool>(), noise in vec(any::<u8>(), 0..64),
    ) {
        let mut frame = [bytes(1, "ADDED"), bytes(2, bytes(1, sent("Pod", &pod_with_all())))].concat();
        for (at, byte) in changes {
            let at = at.index(frame.len());
            frame[at] = byte;
        }
        frame.truncate(if whole { frame.len() } else { cut.index(frame.len()) });
        for frame in [frame, noise] {
            let mut line = Vec::new();
            if write_event(&mut line, &frame).is_ok() {
                let (end, line) = line.split_last().unwrap();
                prop_assert_eq!(*end, b'\n');
                prop_assert!(!line.contains(&b'\n'));
                prop_assert!(serde_json::from_slice::<Json>(line).is_ok(), "{}", String::from_utf8_lossy(line));
            }
        }
    }
}
