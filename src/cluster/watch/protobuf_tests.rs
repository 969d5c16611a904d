use std::convert::Infallible;
use std::sync::Mutex;

use http::StatusCode;
use http_body_util::Full;
use tower::ServiceExt;

use super::*;

/// `{"type": "ADDED"}` of the node `n`, in a frame.
const NODE_N: &[u8] =
    b"\0\0\0\x26\x0a\x05ADDED\x12\x1d\x0a\x1bk8s\0\x0a\x0a\x0a\x02v1\x12\x04Node\x12\x05\x0a\x03\x0a\x01n\x1a\0\"\0";
const NODE_LINE: &str =
    "{\"type\":\"ADDED\",\"object\":{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n\"}}}\n";
/// A Status with code 422.
const STATUS: &[u8] = b"k8s\0\x0a\x0c\x0a\x02v1\x12\x06Status\x12\x03\x30\xa6\x03";

#[test]
fn frames_are_read_wherever_they_are_cut() {
    let two = [NODE_N, NODE_N].concat();
    for first in 0..two.len() {
        for second in first..two.len() {
            let mut frames = Frames::default();
            let parts = [&two[..first], &two[first..second], &two[second..]];
            let lines: Vec<_> = parts.iter().flat_map(|part| frames.lines(part).unwrap()).collect();
            assert_eq!(String::from_utf8(lines).unwrap(), NODE_LINE.repeat(2), "cut at {first} and {second}");
        }
    }
}

#[test]
fn the_length_of_a_frame_does_not_decide_what_is_kept_for_it() {
    let error = Frames::default().lines(b"\xff\xff\xff\xff").unwrap_err();
    assert_eq!(error.to_string(), "a frame of 4294967295 bytes");
}

/// Sends a request to a server with this answer; returns the accepted type and the converted answer.
async fn asked(
    protobuf: &Protobuf,
    uri: &str,
    answer: (u16, &'static str, &'static [u8]),
) -> (Option<String>, Result<(StatusCode, String), String>) {
    let noted = Arc::new(Mutex::new(None));
    let note = noted.clone();
    let service = tower::service_fn(move |request: Request<RequestBody>| {
        *note.lock().unwrap() = request.headers().get(ACCEPT).map(|accept| accept.to_str().unwrap().to_owned());
        let (code, kind, body) = answer;
        let answer = Response::builder().status(code).header(CONTENT_TYPE, kind).body(Full::new(Bytes::from(body)));
        std::future::ready(Ok::<_, Infallible>(answer.unwrap()))
    });
    let request = Request::get(uri).body(RequestBody::empty()).unwrap();
    let read = async {
        let answer = Asking { inner: service, protobuf: protobuf.clone() }.oneshot(request).await?;
        let status = answer.status();
        assert_ne!(answer.headers()[CONTENT_TYPE], PROTOBUF);
        let body = answer.into_body().collect().await?.to_bytes();
        Ok::<_, BoxError>((status, String::from_utf8(body.to_vec())?))
    };
    let read = read.await.map_err(|error| error.to_string());
    let accepted = noted.lock().unwrap().clone();
    (accepted, read)
}

const WATCH: &str = "/api/v1/nodes?watch=true&timeoutSeconds=290";
const PROTOBUF_OF_WATCH: &str = "application/vnd.kubernetes.protobuf;stream=watch";

#[tokio::test]
async fn watches_of_pods_and_nodes_are_asked_for_in_protobuf_and_read_as_json() {
    let protobuf = Protobuf::default();
    for uri in [WATCH, "/api/v1/pods?watch=true", "/api/v1/namespaces/ns/pods?watch=true"] {
        let (accepted, read) = asked(&protobuf, uri, (200, PROTOBUF_OF_WATCH, NODE_N)).await;
        assert!(accepted.unwrap().starts_with(PROTOBUF_OF_WATCH), "{uri}");
        assert_eq!(read, Ok((StatusCode::OK, NODE_LINE.to_owned())));
    }
    let (_, refused) = asked(&protobuf, WATCH, (422, PROTOBUF, STATUS)).await;
    let status = r#"{"apiVersion":"v1","kind":"Status","code":422}"#.to_owned();
    assert_eq!(refused, Ok((StatusCode::UNPROCESSABLE_ENTITY, status)));
}

#[tokio::test]
async fn an_api_server_that_answers_in_json_is_read_as_it_is() {
    let (_, read) = asked(&Protobuf::default(), WATCH, (200, "application/json", b"{}\n")).await;
    assert_eq!(read, Ok((StatusCode::OK, "{}\n".to_owned())));
}

#[tokio::test]
async fn what_has_no_schema_is_asked_for_in_json() {
    for uri in [
        "/api/v1/nodes?limit=500",
        "/apis/apps/v1/statefulsets?watch=true",
        "/api/v1/pods",
        "/api/v1/namespaces?watch=true",
    ] {
        let (accepted, _) = asked(&Protobuf::default(), uri, (200, "application/json", b"{}")).await;
        assert_eq!(accepted, None, "{uri}");
    }
}

#[tokio::test]
async fn what_is_not_understood_is_asked_for_in_json_from_then_on() {
    for (code, kind, body) in [(200, PROTOBUF_OF_WATCH, &b"\0\0\0\x02{}"[..]), (500, PROTOBUF, b"x")] {
        let protobuf = Protobuf::default();
        let (accepted, read) = asked(&protobuf, WATCH, (code, kind, body)).await;
        assert!(accepted.is_some());
        assert_eq!(read.unwrap_err(), "a protobuf message is cut off or malformed");
        let (accepted, _) = asked(&protobuf.clone(), WATCH, (200, "application/json", b"")).await;
        assert_eq!(accepted, None);
    }
}
