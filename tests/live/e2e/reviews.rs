//! Reviews that real API servers sent for real operators, and bodies that nobody should send, over real TLS.

use base64::Engine as _;
use http::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::common::prelude::*;

fn recorded() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/reviews");
    let folders = std::fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let files = folders.flat_map(|folder| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|kind| kind == "json")).collect();
    files.sort();
    files
}

/// The answer is one that an API server accepts; returns the object as it would be.
fn check(name: &str, review: &Value, answer: &(u16, bytes::Bytes)) -> Value {
    assert_eq!(answer.0, 200, "{name}: {:?}", answer.1);
    let answer: Value = serde_json::from_slice(&answer.1).unwrap();
    assert_eq!((&answer["apiVersion"], &answer["kind"]), (&review["apiVersion"], &json!("AdmissionReview")), "{name}");
    let (request, response) = (&review["request"], &answer["response"]);
    assert_eq!(response["uid"], request["uid"], "{name}");
    assert!(response["allowed"].is_boolean(), "{name}: {response}");
    assert_eq!(response["patch"].is_null(), response["patchType"].is_null(), "{name}: {response}");
    assert!(response.get("warnings").is_none_or(Value::is_array), "{name}: {response}");
    if response["allowed"] == false {
        assert!(response["status"]["message"].is_string() && response["status"]["code"].is_u64(), "{name}: {response}");
    }
    let mut object = request["object"].clone();
    if let Some(patch) = response["patch"].as_str() {
        assert_eq!(response["patchType"], "JSONPatch", "{name}");
        let patch = base64::engine::general_purpose::STANDARD.decode(patch).unwrap();
        let patch: json_patch::Patch = serde_json::from_slice(&patch).unwrap();
        assert!(!patch.is_empty(), "{name}: an empty patch");
        json_patch::patch(&mut object, &patch).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    object
}

#[tokio::test]
async fn every_recorded_review_gets_a_well_formed_answer() {
    let stage = Stage::new("reviews").await;
    let launch = stage.launch();
    let rolegate = launch.start().await;
    let mut caller = launch.caller(&rolegate).await;
    let files = recorded();
    assert!(files.len() >= 32, "{} files", files.len());
    let mut held = Vec::new();
    for file in files {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let body = std::fs::read(&file).unwrap();
        let review: Value = serde_json::from_slice(&body).unwrap();
        for path in ["/validate", "/mutate?timeout=3s"] {
            let answer = caller.post(path, body.clone()).await.unwrap();
            let object = check(&name, &review, &answer);
            if object == review["request"]["object"] {
                continue;
            }
            // Only pods are changed, only at CREATE, and a second look finds nothing left to do.
            let request = &review["request"];
            assert!(request["kind"]["kind"] == "Pod" && request["operation"] == "CREATE", "{name}");
            held.push(name.clone());
            let mut again = review.clone();
            again["request"]["object"] = object.clone();
            let answer = caller.post(path, again.to_string()).await.unwrap();
            assert_eq!(check(&name, &again, &answer), object, "{name}");
        }
    }
    // The pods of RBG say which group they belong to; nobody else's pods are touched.
    let of_rbg = [
        "pod-leaderworker-leader",
        "pod-leaderworker-worker",
        "pod-lws-workload-worker",
        "pod-standalone-after-rollout",
        "pod-standalone-prefill-0",
        "pod-statefulset-workload",
    ];
    assert_eq!(held, of_rbg);
}

/// Largest body.
const LIMIT: usize = 7 << 20;

/// Reads until the text ends with these words, or the other side closes.
async fn until(stream: &mut (impl AsyncReadExt + Unpin), words: &str) -> String {
    let mut text = Vec::new();
    while !text.ends_with(words.as_bytes()) && stream.read_buf(&mut text).await.is_ok_and(|count| count > 0) {}
    String::from_utf8(text).unwrap()
}

#[tokio::test]
async fn bodies_that_are_no_review_are_refused_in_plain_words() {
    let stage = Stage::new("no-reviews").await;
    let launch = stage.launch();
    let rolegate = launch.start().await;
    let mut caller = launch.caller(&rolegate).await;
    let no_request = r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}"#;
    let deep = format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"object":{}1{}}}}}"#,
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    let bodies = [
        ("", "the body is not an AdmissionReview: not JSON: it ends too early"),
        ("{}", "the body is not an AdmissionReview: apiVersion: must be set"),
        ("null", "the body is not an AdmissionReview: "),
        ("[]", "the body is not an AdmissionReview: "),
        ("{", "the body is not an AdmissionReview: not JSON: it ends too early"),
        ("\u{0}\u{1}", "the body is not an AdmissionReview: "),
        (no_request, "the AdmissionReview has no `request`"),
        (r#"{"apiVersion":"v1","kind":"Pod"}"#, "the body is not an AdmissionReview of admission.k8s.io/v1"),
        (&deep, "the body is nested deeper than 512 levels"),
    ];
    for path in ["/mutate", "/validate"] {
        for (body, words) in bodies {
            let (status, text) = caller.post(path, body.to_owned()).await.unwrap();
            let text = String::from_utf8(text.to_vec()).unwrap();
            assert!(status == 400 && text.starts_with(words), "{status} {text:?} for {body:.60}");
        }
        let (status, text) = caller.send(Method::POST, path, "text/plain", no_request).await.unwrap();
        assert_eq!((status, &text[..]), (415, &b"Content-Type must be application/json"[..]));
        let (status, _) = caller.send(Method::GET, path, "application/json", "").await.unwrap();
        assert_eq!(status, 405);
        // As long as allowed: it is read, and is nonsense. One byte more: it is refused before it comes.
        let (status, _) = caller.post(path, vec![b' '; LIMIT]).await.unwrap();
        assert_eq!(status, 400);
        let mut stream = launch.tls(&rolegate).await;
        let length = LIMIT + 1;
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let answer = until(&mut stream, "bytes").await;
        assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
        assert!(answer.ends_with("\r\n\r\nrequest body may be at most 7340032 bytes"), "{answer}");
    }
    let (status, _) = caller.post("/elsewhere", "{}").await.unwrap();
    assert_eq!(status, 404);
    let unreadable = 2 * i64::try_from(bodies.len() + 1).unwrap();
    assert_eq!(rolegate.metric("rolegate_unreadable_bodies_total").await, unreadable);

    // After all that it works as before.
    let pod = Group::new("llm").pod("main", "after", &stage.namespace);
    let kind = json!({ "group": "", "version": "v1", "kind": "Pod" });
    let resource = json!({ "group": "", "version": "v1", "resource": "pods" });
    let review = json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "42", "kind": kind, "resource": resource, "operation": "CREATE", "namespace": stage.namespace,
        "userInfo": {}, "object": pod,
    }});
    let answer = caller.post("/mutate", review.to_string()).await.unwrap();
    assert_eq!(check("after", &review, &answer)["spec"]["schedulingGates"], json!([{ "name": "rolegate.dev/hold" }]));
}
