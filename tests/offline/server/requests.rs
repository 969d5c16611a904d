//! Answers to requests.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use axum::routing::get;
use bytes::Bytes;
use http::StatusCode;
use prometheus_client::registry::Registry;
use rolegate::server::http::accept::{Drained, Listener};
use rolegate::server::http::metrics;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::support::{H1, Options, Server, limits, offering, rest, within};

#[tokio::test]
async fn a_connection_serves_one_request_after_the_other() {
    let server = Server::start(Options::default()).await;
    let mut h1 = server.h1().await;
    for _ in 0..3 {
        let answer = h1.post(b"{}".to_vec()).await.unwrap();
        assert_eq!((answer.status, answer.close, answer.body), (StatusCode::OK, false, Bytes::from("{}")));
    }
    // Pipelined requests are answered in order.
    let pipelined = (0..50).map(|number| {
        let close = if number == 49 { "Connection: close\r\n" } else { "" };
        format!("POST /validate HTTP/1.1\r\nHost: x\r\n{close}Content-Length: 4\r\n\r\n<{number:02}>")
    });
    let mut stream = server.tls().await;
    stream.write_all(pipelined.collect::<String>().as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    let answers = rest(stream).await;
    let numbers = answers.split('<').skip(1).map(|answer| answer[..2].parse::<u32>().unwrap());
    assert!(numbers.eq(0..50), "{answers}");
    server.counts("server_requests_total{path=\"validate\",code=\"200\"} 53").await;
    server.counts("server_connections_open 1").await;
    drop(h1);
    server.counts("server_connections_open 0").await;
}

#[tokio::test]
async fn who_offers_http2_falls_back_and_who_offers_nothing_else_is_refused() {
    let server = Server::start(Options::default()).await;
    for (offered, agreed) in [(&["h2", "http/1.1"][..], Some(&b"http/1.1"[..])), (&[], None)] {
        let stream = offering(offered, server.address, &server.ca, None).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), agreed);
        assert_eq!(H1::over(stream).await.post(b"{}".to_vec()).await.unwrap().status, StatusCode::OK);
    }
    let refused = offering(&["h2"], server.address, &server.ca, None).await.unwrap_err();
    assert!(refused.to_string().contains("NoApplicationProtocol"), "{refused}");
    server.counts("server_handshakes_failed_total{reason=\"tls\"} 1").await;
    // A client that uses HTTP/2 without negotiation gets no answer, and the connection ends.
    let mut stream = server.tls().await;
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    stream.flush().await.unwrap();
    assert_eq!(rest(stream).await, "");
    server.counts("server_connections_open 0").await;
    assert_eq!(server.h1().await.get("/livez").await.unwrap().status, StatusCode::OK);
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
        metrics: metrics::register(&mut Registry::default()),
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
