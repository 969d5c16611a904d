use proptest::prelude::*;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::read;
use crate::api::Pod;
use crate::api::review::Review;

const REVIEW: &str = include_str!("../../../tests/fixtures/reviews/sts-parallel/pod-create.json");

/// Reads it as serde_json does, or gives it back where serde_json may have more to say.
fn agrees(text: &str) {
    let taken = read::<Value>(text);
    if let Some(value) = &taken {
        assert_eq!(serde_json::from_str::<Value>(text).ok().as_ref(), Some(value), "{text}");
    }
    assert_eq!(read::<IgnoredAny>(text).is_some(), serde_json::from_str::<IgnoredAny>(text).is_ok(), "{text}");
    let [ours, theirs] = [read::<&RawValue>(text), serde_json::from_str(text).ok()];
    assert_eq!(ours.map(RawValue::get), theirs.map(RawValue::get), "{text}");
}

#[test]
fn a_recorded_review_is_read_as_serde_json_reads_it() {
    agrees(REVIEW);
    let ours: Review<'_, Pod> = read(REVIEW).unwrap();
    let theirs: Review<'_, Pod> = serde_json::from_str(REVIEW).unwrap();
    assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
}

#[test]
fn what_is_no_json_is_given_back() {
    for text in [
        "",
        " ",
        "{",
        "}",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{,}",
        r#"{"a":1,}"#,
        r#"{"a"}"#,
        r#"{"a" 1}"#,
        "{1:2}",
        "01",
        "-",
        "1.",
        ".5",
        "1e",
        "+1",
        "1e400",
        "tru",
        "truer",
        "nul",
        "\"",
        "\"\\\"",
        "\"\\x\"",
        "\"\\u12g4\"",
        "\"\\ud800\"",
        "\"a\nb\"",
        "1 1",
        "[1}",
        "{\"a\":1]",
        "\u{a0}1",
        "'a'",
        "nan",
        "[\"\u{1}\"]",
        "\"12345678\u{1f}\"",
    ] {
        assert_eq!(read::<Value>(text), None, "{text}");
        agrees(text);
    }
}

#[test]
fn numbers_escapes_and_white_space_are_serde_jsons() {
    for (text, value) in [
        (" [ 1 , -2 , 0 , 1.5e3 ] ", json!([1, -2, 0, 1500.0])),
        ("18446744073709551616", json!(18_446_744_073_709_551_616_f64)),
        (
            "\t{\"a\\u0041\\n\" : \"\\ud83d\\ude00 \u{e4}\\\\\" ,\r\n\"b\":{ } , \"c\":[ ] }",
            json!({ "aA\n": "\u{1f600} \u{e4}\\", "b": {}, "c": [] }),
        ),
        ("{\"a\":1,\"a\":2}", json!({ "a": 2 })),
    ] {
        assert_eq!(read::<Value>(text), Some(value), "{text}");
        agrees(text);
    }
    assert_eq!(format!("{:?}", read::<Value>("-0")), format!("{:?}", serde_json::from_str::<Value>("-0").ok()));
}

#[test]
fn it_goes_no_deeper_than_serde_json() {
    let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    for (depth, is_read) in [(127, true), (128, false)] {
        assert_eq!(read::<Value>(&nested(depth)).is_some(), is_read);
        assert_eq!(serde_json::from_str::<Value>(&nested(depth)).is_ok(), is_read);
    }
    for (depth, is_read) in [(512, true), (513, false), (100_000, false)] {
        let empty = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(read::<IgnoredAny>(&nested(depth)).is_some(), is_read);
        assert_eq!(read::<&RawValue>(&empty).is_some(), is_read);
    }
}

#[test]
fn a_field_that_is_there_twice_is_left_to_serde_json() {
    assert!(read::<Pod>(r#"{"spec":{},"spec":{}}"#).is_none());
    assert!(read::<Pod>(r#"{"spec":{"nodeName":"n"}}"#).is_some());
}

fn any_text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[ -~\u{e4}\n\"\\\\]{0,20}".prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map("[a-z\"\\\\\u{e4}]{0,9}", inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    (value, any::<bool>()).prop_map(|(value, pretty)| if pretty { format!("{value:#}") } else { value.to_string() })
}

proptest! {
    #[test]
    fn any_json_is_read_as_serde_json_reads_it(text in any_text()) {
        prop_assert!(read::<Value>(&text).is_some());
        agrees(&text);
    }

    #[test]
    fn a_text_that_was_tampered_with_is_read_alike_or_given_back(
        text in prop_oneof![any_text(), Just(REVIEW.to_owned())],
        edits in prop::collection::vec((any::<prop::sample::Index>(), "[\\[\\]{}:,\"\\\\0-9eE.u \n\u{1}tn-]{0,2}", 0..3_usize), 1..4),
    ) {
        let mut characters: Vec<char> = text.chars().collect();
        for (place, inserted, removed) in edits {
            let at = place.index(characters.len() + 1);
            let end = (at + removed).min(characters.len());
            characters.splice(at..end, inserted.chars());
        }
        let text: String = characters.into_iter().collect();
        agrees(&text);
        if let Some(pod) = read::<Review<'_, Pod>>(&text) {
            let theirs: Review<'_, Pod> = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(format!("{pod:?}"), format!("{theirs:?}"));
        }
    }
}
