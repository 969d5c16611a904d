//! Graceful shutdown of the server.

use std::time::Duration;

use rolegate::server::http::accept::{Drain, Drained};
use tokio::net::TcpStream;

use super::support::{Options, Server, within};

#[tokio::test]
async fn draining_answers_with_close_and_still_accepts() {
    let mut options = Options::default();
    options.drain.grace = Duration::from_secs(3600);
    let server = Server::start(options).await;
    let mut old = server.h1().await;
    assert!(!old.get("/livez").await.unwrap().close);
    let gate = server.gate.clone();
    let mut busy = server.h1().await;
    let held = tokio::spawn(async move { busy.get("/hold").await });
    gate.arrived(1).await;
    server.draining.cancel();
    // Requests on kept-alive and new connections are answered with `Connection: close`; so is the request in progress.
    assert!(old.get("/livez").await.unwrap().close);
    within(old.closed).await.unwrap();
    assert!(server.h1().await.get("/livez").await.unwrap().close);
    gate.open.cancel();
    assert!(within(held).await.unwrap().unwrap().close);
}

#[tokio::test]
async fn draining_ends_when_the_last_request_is_answered() {
    let server = Server::start(Options::default()).await;
    let mut idle = server.h1().await;
    assert_eq!(idle.get("/livez").await.unwrap().status, 200);
    let (mut busy, gate, address) = (server.h1().await, server.gate.clone(), server.address);
    let held = tokio::spawn(async move { busy.get("/hold").await });
    gate.arrived(1).await;
    let finished = tokio::spawn(server.finish());
    within(async { while TcpStream::connect(address).await.is_ok() {} }).await;
    within(idle.closed).await.unwrap();
    assert!(!finished.is_finished());
    gate.open.cancel();
    assert_eq!(within(held).await.unwrap().unwrap().body, "held");
    assert_eq!(within(finished).await.unwrap(), Drained { cut: 0 });
}

#[tokio::test]
async fn draining_cuts_what_is_not_done_at_the_deadline() {
    let drain = Drain { grace: Duration::ZERO, deadline: Duration::from_millis(50) };
    let server = Server::start(Options { drain, ..Options::default() }).await;
    let (mut busy, gate) = (server.h1().await, server.gate.clone());
    let held = tokio::spawn(async move { busy.get("/hold").await });
    gate.arrived(1).await;
    assert_eq!(server.finish().await, Drained { cut: 1 });
    assert!(within(held).await.unwrap().is_err());
}
