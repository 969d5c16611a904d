//! What the page's streams say, and to whom.

use ::http::Request;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use tokio::net::TcpStream;

use crate::common::http;
use crate::common::prelude::*;
use crate::page::{RACKS, scene};

type Headers<'a> = &'a [(&'a str, &'a str)];

/// A stream of pictures.
struct Stream {
    body: Incoming,
    rest: Vec<u8>,
}

/// Status and body of an answer that has come in part.
async fn ask(rolegate: &Rolegate, path: &str, headers: Headers<'_>) -> (u16, Stream) {
    let stream = TcpStream::connect(rolegate.admin).await.unwrap();
    let mut sender = http::handshake(stream).await.unwrap();
    let host = rolegate.admin.to_string();
    let mut request = Request::get(path);
    if !headers.iter().any(|(name, _)| *name == "host") {
        request = request.header("host", &host);
    }
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let answer = sender.send_request(request.body(Full::<Bytes>::default()).unwrap()).await.unwrap();
    (answer.status().as_u16(), Stream { body: answer.into_body(), rest: Vec::new() })
}

impl Stream {
    /// The next picture.
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.rest.windows(2).position(|two| two == b"\n\n") {
                let event: Vec<_> = self.rest.drain(..end + 2).collect();
                let event = String::from_utf8(event).unwrap();
                match event.strip_prefix("data: ") {
                    Some(data) => return Some(serde_json::from_str(data.trim()).unwrap()),
                    None => continue,
                }
            }
            let frame = tokio::time::timeout(PATIENT, self.body.frame()).await.expect("something comes")?;
            self.rest.extend(frame.ok()?.into_data().unwrap_or_default());
        }
    }

    /// The first picture that is so.
    async fn until(&mut self, what: &str, test: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        let found = tokio::time::timeout(PATIENT, async {
            while let Some(picture) = self.next().await {
                if test(&picture) {
                    return picture;
                }
                last = picture;
            }
            Value::Null
        })
        .await;
        found.unwrap_or_else(|_| panic!("{what} did not come: {last}"))
    }
}

fn cells<'a>(picture: &'a Value, role: &str) -> &'a str {
    picture["group"]["roles"][role]["cells"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn every_replica_draws_each_pod_as_it_is() {
    let stage = Stage::new("page-cells").await.with_room(18).await;
    let group = Group::three_segments();
    let launch = stage.launch();
    let leader = launch.start().await;
    leader.until_metric("rolegate_leader", 1).await;
    let follower = launch.clone().flag("webhooks", "off").start().await;
    stage.deploy(&group).await;
    let path = "/page/groups/page-cells/llm";
    let (_, mut leads) = ask(&leader, path, &[]).await;
    let (_, mut follows) = ask(&follower, path, &[]).await;
    let drawn = |prefill: &'static str, decode: &'static str| {
        move |picture: &Value| cells(picture, "prefill") == prefill && cells(picture, "decode") == decode
    };
    let held = drawn("sssshhhhhhhh", "sshhhh");
    let (one, other) = (leads.until("the first runs", held).await, follows.until("the same", held).await);
    assert_eq!((one["replica"]["leads"].as_bool(), other["replica"]["leads"].as_bool()), (Some(true), Some(false)));
    assert_eq!(one["group"]["holds"], other["group"]["holds"]);
    assert_eq!(one["group"]["coordinations"][0]["batches"].as_array().unwrap().len(), 3);
    stage.let_ready(Pod::is_released).await;
    let ready = drawn("rrrrsssshhhh", "rrsshh");
    leads.until("the second runs", ready).await;
    let told = follows
        .until("its Events", |now| ready(now) && now["events"].as_array().is_some_and(|all| all.len() > 1))
        .await;
    assert!(told["events"].as_array().unwrap().iter().all(|event| event["time"].as_str().unwrap() > "2020"), "{told}");
    // A pod that is gone leaves its place empty, and one that nobody gates waits for a node.
    let (_, mut all) = ask(&follower, "/page/groups", &[]).await;
    let all = all.next().await.unwrap();
    let line = &all["groups"][0];
    assert_eq!((line["name"].as_str(), line["reason"].as_str()), (Some("llm"), Some("PreviousSegmentNotReady")));
    assert!(line["sentence"].as_str().unwrap().contains("segment"), "{all}");
    // Who leaves in the middle of a stream does not wait for its viewers.
    let log = follower.log_file();
    follower.terminate().await;
    let log = std::fs::read_to_string(log).unwrap();
    assert!(log.contains("drained cut=0"), "{log}");
    assert!(follows.until("its end", |_| false).await.is_null());
}

#[tokio::test]
async fn domains_have_their_room_and_the_next_batch_its_place() {
    let (stage, rolegate) = Stage::new("page-domains").await.serve().await;
    scene(&stage).await;
    let (_, mut stream) = ask(&rolegate, "/page/groups/page-domains/llm", &[]).await;
    let amounts = |of: &Value| ["total", "used", "taken", "free"].map(|sort| of[sort].as_i64().unwrap_or(-1));
    let drawn = |picture: &Value| picture["group"]["domains"][0].clone();
    // Nodes and pods are told of apart from the group: a moment later all of it is known.
    let is_settled = |picture: &Value| {
        let drawn = drawn(picture);
        let boxes = drawn["boxes"].as_array().cloned().unwrap_or_default();
        let given = boxes.iter().filter(|one| one["batches"] == json!([0]) && amounts(one) == [8, 6, 0, 2]);
        let next = boxes.iter().filter(|one| one["coming"] == json!([1]) && amounts(one) == [8, 0, 6, 2]);
        drawn["next"] == 1 && (boxes.len(), given.count(), next.count()) == (2, 1, 1)
    };
    let drawn = drawn(&stream.until("one rack has the first segment, the other one takes the next", is_settled).await);
    assert_eq!(drawn["takes"]["nvidia.com/gpu"], 6, "{drawn}");
    let boxes = drawn["boxes"].as_array().unwrap();
    assert!(boxes.iter().all(|one| RACKS.contains(&one["name"].as_str().unwrap())), "{drawn}");
    // rolegate may have seen the pods go before this test does.
    stage.pods.until("the first one goes", |now| now.count_all(Pod::is_released) == 6).await;
    stage.let_ready(Pod::is_released).await;
    stage.pods.until("the second one goes", |now| now.count_all(Pod::is_released) == 12).await;
    stage.let_ready(Pod::is_released).await;
    let stopped = stream.until("nothing fits", |now| now["group"]["reason"] == "NoRoom").await;
    assert!(!stopped["group"]["fit"][0]["stop"]["reason"].is_null(), "{stopped}");
}

#[tokio::test]
async fn it_is_shown_to_who_may_look() {
    let stage = Stage::new("page-access").await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "a-token-of-some-length\n").unwrap();
    let own = stage.launch().start().await;
    let guarded = stage.launch().flag("webhooks", "off").flag("page-token-file", file.to_str().unwrap()).start().await;
    let off = stage.launch().flag("webhooks", "off").flag("page", "off").start().await;
    let token = ("authorization", "Bearer a-token-of-some-length");
    let cases: [(&Rolegate, &str, Headers<'_>, u16); 12] = [
        (&own, "/page/groups", &[], 200),
        (&own, "/page/groups/page-access/none", &[], 200),
        (&own, "/page/groups", &[("host", "localhost:8080")], 200),
        (&own, "/page/groups", &[("host", "gate.example")], 403),
        (&own, "/page/", &[("host", "gate.example")], 200),
        (&own, "/page/nothing", &[], 404),
        (&guarded, "/page/", &[], 200),
        (&guarded, "/page/groups", &[], 401),
        (&guarded, "/page/groups", &[("authorization", "Bearer another")], 401),
        (&guarded, "/page/groups", &[token, ("host", "gate.example")], 200),
        (&off, "/page/", &[], 404),
        (&off, "/page/groups", &[token], 404),
    ];
    for (rolegate, path, headers, expected) in cases {
        assert_eq!(ask(rolegate, path, headers).await.0, expected, "{path} {headers:?}");
    }
    let (_, mut absent) = ask(&own, "/page/groups/page-access/none", &[]).await;
    assert!(absent.next().await.unwrap()["group"].is_null());
    // Who comes later sees the same at once, although nothing changes.
    let (_, mut later) = ask(&own, "/page/groups/page-access/none", &[]).await;
    assert!(later.next().await.unwrap()["group"].is_null());
    // Nobody changes anything here, nor shows it in a frame.
    let mut sender = http::handshake(TcpStream::connect(own.admin).await.unwrap()).await.unwrap();
    let request = Request::post("/page/groups").header("host", own.admin.to_string());
    let answer = sender.send_request(request.body(Full::<Bytes>::default()).unwrap()).await.unwrap();
    assert_eq!(answer.status().as_u16(), 405);
    let policy = answer.headers()["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"), "{policy}");

    let mut viewers = Vec::new();
    for _ in 0..64 {
        viewers.push(ask(&guarded, "/page/groups", &[token]).await);
    }
    assert!(viewers.iter().all(|(status, _)| *status == 200));
    assert_eq!(ask(&guarded, "/page/groups", &[token]).await.0, 503);
    viewers.clear();
    until_is("their places are free", async || ask(&guarded, "/page/groups", &[token]).await.0, 200).await;
}
