//! Limits on time, bytes and connections of callers.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
    time::{Instant, timeout},
};

use super::support::{H1, Options, PATIENT, Server, connect, limits, rest, within};

/// Idle timeout in these tests: longer than a busy machine takes from the handshake to the first request.
const IDLE: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_caller_that_does_not_shake_hands_is_dropped() {
    let server = Server::start(limits(|limits| limits.handshake = Duration::from_millis(100))).await;
    let silent = TcpStream::connect(server.address).await.unwrap();
    let mut half = TcpStream::connect(server.address).await.unwrap();
    half.write_all(&[22, 3, 1, 2]).await.unwrap();
    assert_eq!((rest(silent).await, rest(half).await), (String::new(), String::new()));
    server.counts("server_handshakes_failed_total{reason=\"timeout\"} 2").await;
    let probe = TcpStream::connect(server.address).await.unwrap();
    drop(probe);
    server.counts("server_handshakes_failed_total{reason=\"closed\"} 1").await;
}

#[tokio::test]
async fn slow_headers_are_cut_but_an_idle_connection_is_not() {
    let server = Server::start(limits(|limits| limits.header = Duration::from_millis(100))).await;
    let mut idle = server.h1().await;
    assert_eq!(idle.get("/livez").await.unwrap().status, 200);
    let mut slow = server.tls().await;
    slow.write_all(b"GET /livez HTTP/1.1\r\nHost: x\r\nX-A").await.unwrap();
    slow.flush().await.unwrap();
    let dripping = Instant::now();
    // Each byte is in time, but the headers as a whole are late.
    while slow.write_all(b"a").await.is_ok() && slow.flush().await.is_ok() {
        assert!(dripping.elapsed() < PATIENT);
        let mut byte = [0; 1];
        match timeout(Duration::from_millis(10), slow.read(&mut byte)).await {
            Err(_) => {}
            Ok(closed) => {
                assert!(matches!(closed, Ok(0) | Err(_)));
                break;
            }
        }
    }
    assert!(dripping.elapsed() >= Duration::from_millis(90), "{:?}", dripping.elapsed());
    assert_eq!(idle.get("/livez").await.unwrap().status, 200);
}

#[tokio::test]
async fn idle_connections_are_closed() {
    let server = Server::start(limits(|limits| limits.idle = IDLE)).await;
    let mut h1 = server.h1().await;
    assert_eq!(h1.get("/livez").await.unwrap().status, 200);
    within(h1.closed).await.unwrap();
    server.counts("server_connections_open 0").await;
}

#[tokio::test]
async fn a_request_outlives_the_idle_limit() {
    let server = Server::start(limits(|limits| limits.idle = IDLE)).await;
    let mut h1 = server.h1().await;
    let gate = server.gate.clone();
    let held = tokio::spawn(async move { h1.get("/hold").await });
    gate.arrived(1).await;
    let _ = timeout(IDLE + IDLE / 2, std::future::pending::<()>()).await;
    gate.open.cancel();
    assert_eq!(within(held).await.unwrap().unwrap().body, "held");
}

#[tokio::test]
async fn large_bodies_are_refused_announced_or_not() {
    let server = Server::start(limits(|limits| limits.body_bytes = 1 << 20)).await;
    let mut h1 = server.h1().await;
    assert_eq!(h1.post(vec![b'x'; 1 << 20]).await.unwrap().body.len(), 1 << 20);
    // A declared size: refused before any byte of the body.
    let mut announced = server.tls().await;
    announced.write_all(b"POST /validate HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999\r\n\r\n").await.unwrap();
    announced.flush().await.unwrap();
    let mut head = [0; 12];
    within(announced.read_exact(&mut head)).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 413");
    // Endless: as many chunks as the server accepts.
    let (mut read, mut write) = tokio::io::split(server.tls().await);
    write.write_all(b"POST /validate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n").await.unwrap();
    let endless = tokio::spawn(async move {
        let chunk = [b"10000\r\n".as_slice(), &vec![b'x'; 0x10000], b"\r\n"].concat();
        while write.write_all(&chunk).await.is_ok() && write.flush().await.is_ok() {}
    });
    within(read.read_exact(&mut head)).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 413");
    within(endless).await.unwrap();
}

#[tokio::test]
async fn a_body_that_stops_is_given_up() {
    let server = Server::start(limits(|limits| limits.body_time = Duration::from_millis(100))).await;
    let mut stream = server.tls().await;
    stream.write_all(b"POST /validate HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{").await.unwrap();
    stream.flush().await.unwrap();
    let mut head = [0; 12];
    within(stream.read_exact(&mut head)).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 408");
}

#[tokio::test]
async fn above_the_cap_callers_wait_and_are_served() {
    let server = Server::start(limits(|limits| {
        limits.newcomers = 2;
        limits.newcomer = Duration::from_secs(3600);
    }))
    .await;
    let gate = server.gate.clone();
    let mut held = JoinSet::new();
    for _ in 0..2 {
        let mut h1 = server.h1().await;
        held.spawn(async move { h1.get("/hold").await });
    }
    gate.arrived(2).await;
    let (address, ca) = (server.address, server.ca.clone());
    let mut waiting = tokio::spawn(async move {
        let mut h1 = H1::over(connect(address, &ca, None).await.unwrap()).await;
        h1.get("/livez").await
    });
    assert!(timeout(Duration::from_millis(100), &mut waiting).await.is_err(), "served above the cap");
    assert!(server.metrics().contains("server_connections_open 2"));
    gate.open.cancel();
    while let Some(answer) = within(held.join_next()).await {
        assert_eq!(answer.unwrap().unwrap().status, 200);
    }
    assert_eq!(within(waiting).await.unwrap().unwrap().status, 200);
}

#[tokio::test]
async fn idle_connections_make_room_when_all_are_taken() {
    let server = Server::start(limits(|limits| {
        limits.newcomers = 2;
        limits.newcomer = IDLE;
    }))
    .await;
    let (mut one, mut two) = (server.h1().await, server.h1().await);
    assert_eq!(one.get("/livez").await.unwrap().status, 200);
    assert_eq!(two.get("/livez").await.unwrap().status, 200);
    assert_eq!(within(server.h1()).await.get("/livez").await.unwrap().status, 200);
}

/// The answer is larger than the buffers of both sides.
#[tokio::test]
async fn an_answer_that_is_never_taken_ends_the_connection() {
    const ANSWER: usize = 32 << 20;
    let server = Server::start(limits(|limits| {
        limits.write = Duration::from_millis(200);
        limits.body_bytes = ANSWER;
        limits.body_memory = 4 * ANSWER;
    }))
    .await;
    let mut stream = server.tls().await;
    let head = format!("POST /validate HTTP/1.1\r\nHost: x\r\nContent-Length: {ANSWER}\r\n\r\n");
    within(stream.write_all(head.as_bytes())).await.unwrap();
    within(stream.write_all(&vec![b'x'; ANSWER])).await.unwrap();
    within(stream.flush()).await.unwrap();
    server.counts("server_requests_total{path=\"validate\",code=\"200\"} 1").await;
    server.counts("server_connections_open 0").await;
    assert!(rest(stream).await.len() < ANSWER);
}

#[tokio::test]
async fn headers_without_end_are_refused() {
    let server = Server::start(Options::default()).await;
    let one = format!("X-A: {}\r\n", "a".repeat(64 << 10));
    for headers in [one, "X-A: a\r\n".repeat(10_000)] {
        let (mut read, mut write) = tokio::io::split(server.tls().await);
        let endless = tokio::spawn(async move {
            _ = write.write_all(b"GET /livez HTTP/1.1\r\nHost: x\r\n").await;
            while write.write_all(headers.as_bytes()).await.is_ok() && write.flush().await.is_ok() {}
        });
        let mut head = [0; 12];
        within(read.read_exact(&mut head)).await.unwrap();
        assert_eq!(&head, b"HTTP/1.1 431");
        within(endless).await.unwrap();
    }
    server.counts("server_connections_open 0").await;
}

/// Runs in a separate process with few file descriptors, because the limit is per process.
#[tokio::test]
async fn without_file_descriptors_the_loop_waits_and_recovers() {
    const RESTRICTED: &str = "ROLEGATE_TEST_RESTRICTED";
    if std::env::var_os(RESTRICTED).is_none() {
        // Test names do not contain the name of the binary.
        let (_, place) = module_path!().split_once("::").unwrap();
        let child = tokio::process::Command::new("sh")
            .args(["-c", "ulimit -n 48; exec \"$0\" --exact \"$1\""])
            .arg(std::env::current_exe().unwrap())
            .arg(format!("{place}::without_file_descriptors_the_loop_waits_and_recovers"))
            .env(RESTRICTED, "1")
            .output();
        let child = within(child).await.unwrap();
        let said = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    let server = Server::start(Options::default()).await;
    let mut callers = Vec::new();
    while let Ok(caller) = TcpStream::connect(server.address).await {
        callers.push(caller);
        assert!(callers.len() < 48);
    }
    within(async {
        while server.accept_errors() == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let before = server.accept_errors();
    let _ = timeout(Duration::from_millis(300), std::future::pending::<()>()).await;
    assert!(server.accept_errors() - before < 10, "the loop spins");
    drop(callers);
    let answer = async {
        loop {
            if let Ok(stream) = connect(server.address, &server.ca, None).await {
                return H1::over(stream).await.get("/livez").await.unwrap().status;
            }
        }
    };
    assert_eq!(within(answer).await, 200);
}
