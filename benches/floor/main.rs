//! The floor of the benchmark: rolegate's TLS and HTTP stack, with its limits and counters, and a constant answer. The
//! difference to rolegate is the cost of judging a pod.
//!
//! `floor CERT KEY`

use std::process::ExitCode;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use http::{StatusCode, header};
use prometheus_client::registry::Registry;
use rolegate::server::http::accept::{Drain, Listener};
use rolegate::server::http::body::Bodies;
use rolegate::server::http::limits::Limits;
use rolegate::server::http::metrics;
use rolegate::tls::acceptor::{CertStore, OldestTls, server_config};
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// An answer as long as rolegate's to the pod of the benchmark.
const ANSWER: &str = concat!(
    r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":"#,
    r#"{"uid":"a73f0a50-ff6b-4c98-9439-dbaabc26614a","allowed":true,"patch":""#,
    "W3sib3AiOiJhZGQiLCJwYXRoIjoiL21ldGFkYXRhL2xhYmVscy9yb2xlYmFzZWRncm91cC53b3JrbG9hZHMueC1rOHMuaW9+MW5hbWUi",
    "LCJ2YWx1ZSI6ImxsbSJ9LHsib3AiOiJhZGQiLCJwYXRoIjoiL21ldGFkYXRhL2xhYmVscy9yb2xlYmFzZWRncm91cC53b3JrbG9hZHMu",
    "LCJ2YWx1ZSI6ImxsbSJ9LHsib3AiOiJhZGQiLCJwYXRoIjoiL21ldGFkYXRhL2xhYmVscy9yb2xlYmFzZWRncm91cC53b3JrbG9hZHMu",
    "LCJ2YWx1ZSI6ImxsbSJ9LHsib3AiOiJhZGQiLCJwYXRoIjoiL21ldGFkYXRhL2xhYmVscy9yb2xlYmFzZWRncm91cC53b3JrbG9hZHMu",
    "LCJ2YWx1ZSI6ImxsbSJ9LHsib3AiOiJhZGQiLCJwYXRoIjoiL21ldGFkYXRhL2xhYmVscy9yb2xlYmFzZWRncm91cC53b3JrbG9hZHMu",
    "eC1rOHMuaW9+MXJvbGUiLCJ2YWx1ZSI6ImRlY29kZSJ9LHsib3AiOiJhZGQiLCJwYXRoIjoiL3NwZWMvc2NoZWR1bGluZ0dhdGVzIiwi",
    r#"dmFsdWUiOlt7Im5hbWUiOiJyb2xlZ2F0ZS5kZXYvaG9sZCJ9XX1d","patchType":"JSONPatch"}}"#
);

#[tokio::main]
async fn main() -> ExitCode {
    match serve().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("floor: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve() -> Result<(), Box<dyn std::error::Error>> {
    let mut files = std::env::args_os().skip(1);
    let (Some(certificate), Some(key)) = (files.next(), files.next()) else {
        return Err("usage: floor CERT KEY".into());
    };
    let store = CertStore::empty();
    store.set(&std::fs::read(certificate)?, &std::fs::read(key)?)?;
    let tls = server_config(OldestTls::default(), &store, None)?;
    let socket = TcpListener::bind("127.0.0.1:0").await?;
    println!("serving webhook=https://{}", socket.local_addr()?);
    let listener = Listener {
        socket,
        tls: Some(tls.into()),
        app: axum::Router::new().route("/mutate", post(answer)).with_state(Bodies::new(&Limits::default())),
        limits: Limits::default(),
        metrics: metrics::register(&mut Registry::default()),
        drain: Drain::default(),
    };
    listener.run(CancellationToken::new()).await;
    Ok(())
}

async fn answer(State(bodies): State<Bodies>, body: Body) -> Response {
    match bodies.read(body, Instant::now() + Limits::default().body_time).await {
        Ok(_) => ([(header::CONTENT_TYPE, "application/json")], ANSWER).into_response(),
        Err(_) => StatusCode::BAD_REQUEST.into_response(),
    }
}
