//! Requests that two readers could read differently: whoever sends them gets one answer at most for each that is meant, and is
//! left alone where it is not certain where the next one begins.

use std::time::Duration;

use super::attackers::{Attackers, answered};
use super::target::Target;

/// How long a connection stays open that is not closed.
const OPEN: Duration = Duration::from_millis(700);

/// What comes behind each request: answered 200 if that ended where it should.
const NEXT: &str = "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n";

/// A name, the request behind its first line, the statuses of the answers, and whether the connection is closed then.
const SHAPES: &[(&str, &str, &[&str], bool)] = &[
    ("a length", "Content-Length: 2\r\n\r\n{}", &["415", "200"], false),
    ("two equal lengths", "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", &["415", "200"], false),
    ("two lengths", "Content-Length: 2\r\nContent-Length: 5\r\n\r\n{}", &["400"], true),
    ("two lengths in one", "Content-Length: 2, 5\r\n\r\n{}", &["400"], true),
    ("a length with a sign", "Content-Length: +2\r\n\r\n{}", &["400"], true),
    ("a length below zero", "Content-Length: -2\r\n\r\n{}", &["400"], true),
    ("chunks", "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", &["415", "200"], false),
    ("chunks and a length", "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n", &["415"], true),
    ("an encoding that is none", "Transfer-Encoding: xchunked\r\n\r\n{}", &["400"], true),
    ("gzip in chunks", "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", &["501"], true),
    ("chunks in gzip", "Transfer-Encoding: chunked, gzip\r\n\r\n{}", &["400"], true),
    ("a blank before the colon", "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", &["400"], true),
    ("a folded header", "X: a\r\n b\r\nContent-Length: 2\r\n\r\n{}", &["400"], true),
    ("a chunk longer than it says", "Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n", &["415"], true),
    ("an endless chunk size", "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{}", &["415"], true),
];

fn statuses(answers: &str) -> Vec<&str> {
    answers.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect()
}

#[tokio::test]
async fn requests_end_where_they_say_or_their_connection_does() {
    let target = Target::start("net-shapes").await;
    let attackers = Attackers::of(&target);
    let mut wrong = Vec::new();
    for (name, shape, expected, closes) in SHAPES {
        let stream = attackers.tls().await.unwrap();
        let said = format!("POST /mutate HTTP/1.1\r\nHost: x\r\n{shape}{NEXT}");
        let (answers, closed) = answered(stream, said.as_bytes(), OPEN).await;
        if (&statuses(&answers)[..], closed) != (*expected, *closes) {
            wrong.push(format!("{name}: {:?}, closed: {closed}", statuses(&answers)));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
