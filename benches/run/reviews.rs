//! The reviews that are sent: a recorded one, as if its StatefulSet were the role of a group.

use bytes::Bytes;
use serde_json::{Value, json};

/// What a real API server sent for a pod of a StatefulSet.
const RECORDED: &str = include_str!("../../tests/fixtures/reviews/sts-parallel/pod-create.json");

/// The namespace of the recorded review.
pub const NAMESPACE: &str = "sts-parallel";

/// Reviews for the creation of `decode-0`, `decode-1`, … of the group `llm`.
pub fn of_decode_pods() -> Vec<Bytes> {
    (0..50).map(of_pod).collect()
}

fn of_pod(ordinal: u32) -> Bytes {
    let text = RECORDED.replace("decode-0", &format!("decode-{ordinal}"));
    let mut review: Value = serde_json::from_str(&text).unwrap();
    let labels = &mut review["request"]["object"]["metadata"]["labels"];
    labels["apps.kubernetes.io/pod-index"] = json!(ordinal.to_string());
    labels["rolegate.dev/group"] = json!("llm");
    labels["rolegate.dev/role"] = json!("decode");
    review.to_string().into()
}
