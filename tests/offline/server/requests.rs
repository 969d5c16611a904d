//! Requests are answered.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use axum::routing::get;
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use rolegate::server::http::accept::{Drained, Listener};
use rolegate::server::http::metrics;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::support::{Options, Server, limits, rest, within};

#[tokio::test]
async fn http1_and_http2_are_served() {
    let server = Server::start(Options::default()).await;
    let mut h1 = server.h1().await;
    for _ in 0..3 {
        let answer = h1.post(b"{}".to_vec()).await.unwrap();
        assert_eq!((answer.status, answer.close, answer.body), (StatusCode::OK, false, Bytes::from("{}")));
    }
    let h2 = server.h2().await;
    let requests = (0..50).map(|number| {
        let mut h2 = h2.clone();
        async move {
            let body = Full::from(format!("{number}"));
            let response = h2.send_request(Request::post("https://x/validate").body(body).unwrap()).await.unwrap();
            assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), format!("{number}"));
        }
    });
    within(futures::future::join_all(requests)).await;
    server.counts("server_requests_total{path=\"validate\",code=\"200\"} 53").await;
    server.counts("server_connections_open 2").await;
    drop((h1, h2));
    server.counts("server_connections_open 0").await;
}

#[tokio::test]
async fn two_hundred_callers_at_once() {
    let server = Arc::new(Server::start(Options::default()).await);
    let mut callers = JoinSet::new();
    for _ in 0..200 {
        let server = Arc::clone(&server);
        callers.spawn(async move {
            let mut h1 = server.h1().await;
            for _ in 0..5 {
                assert_eq!(h1.post(vec![b'x'; 4096]).await.unwrap().body.len(), 4096);
            }
        });
    }
    while let Some(caller) = within(callers.join_next()).await {
        caller.unwrap();
    }
    server.counts("server_requests_total{path=\"validate\",code=\"200\"} 1000").await;
}

#[tokio::test]
async fn a_panic_is_one_failed_request() {
    let server = Server::start(Options::default()).await;
    let mut h1 = server.h1().await;
    assert_eq!(h1.get("/panic").await.unwrap().status, 500);
    assert_eq!(h1.get("/livez").await.unwrap().status, 200);
}

#[tokio::test]
async fn without_tls_the_same_limits_hold() {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let options = limits(|limits| limits.header = Duration::from_millis(50));
    let listener = Listener {
        socket,
        tls: None,
        app: Router::new().route("/livez", get(|| async { Response::new(Body::from("ok")) })),
        limits: options.limits,
        metrics: metrics::ServerMetrics::default(),
        drain: options.drain,
    };
    let stop = CancellationToken::new();
    let running = tokio::spawn(listener.run(stop.clone()));
    let mut good = TcpStream::connect(address).await.unwrap();
    good.write_all(b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
    assert!(rest(good).await.ends_with("ok"));
    let mut slow = TcpStream::connect(address).await.unwrap();
    slow.write_all(b"GET /li").await.unwrap();
    assert_eq!(rest(slow).await, "");
    stop.cancel();
    assert_eq!(within(running).await.unwrap(), Drained { cut: 0 });
}
