//! Parts of the control plane stop, and watches fall behind what etcd has compacted.

use base64::Engine as _;
use http_body_util::{BodyExt, Full};
use tokio::net::TcpStream;

use crate::chaos::faults::story::{Story, tell};
use crate::common::http;
use crate::common::prelude::*;

/// How long a component is paused.
const PAUSE: Duration = Duration::from_secs(20);

#[tokio::test]
#[ignore = "minutes: make chaos"]
async fn the_api_server_and_etcd_are_paused() {
    let plane = ControlPlane::own_with_groups().await;
    let mut story = Story::begin(Stage::on(plane.clone(), "faults-paused").await).await;
    story.overlook_refusals();
    for component in ["kube-apiserver", "etcd"] {
        plane.command("pause", component).await;
        tokio::time::sleep(PAUSE).await;
        plane.command("resume", component).await;
        let time = story.moves_again().await;
        let fault = format!("{component} paused (SIGSTOP) for {} s", PAUSE.as_secs());
        tell(&fault, time, "no replica leads meanwhile");
    }
    story.end().await;
}

/// Asks etcd, by its JSON gateway.
async fn etcd(plane: &ControlPlane, path: &str, body: &Value) -> Value {
    let cluster: Value = serde_json::from_slice(&std::fs::read(plane.dir.join("cluster.json")).unwrap()).unwrap();
    let address = format!("127.0.0.1:{}", cluster["ports"]["etcd"]);
    let mut sender = http::handshake(TcpStream::connect(&address).await.unwrap()).await.unwrap();
    let request = ::http::Request::post(path).header("host", &address).header("content-type", "application/json");
    let answer = sender.send_request(request.body(Full::from(body.to_string())).unwrap()).await.unwrap();
    let (parts, body) = answer.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    assert!(parts.status.is_success(), "{parts:?} {body:?}");
    serde_json::from_slice(&body).unwrap()
}

#[tokio::test]
#[ignore = "minutes: make chaos"]
async fn watches_fall_behind_a_compaction() {
    let plane = ControlPlane::own_with_groups().await;
    let stage = Stage::on(plane.clone(), "faults-compacted").await;
    let server = plane.server.trim_start_matches("https://").parse().unwrap();
    let link = Proxy::before(server).await;
    let launch = |launch: crate::common::rolegate::Launch| {
        launch.through(&link).env("ROLEGATE_LOG", "info,kube_client=off,rolegate::cluster::watch=debug")
    };
    let mut story = Story::begin_with(stage, launch, launch).await;
    story.overlook_refusals();
    story.rest().await;
    story.nothing_went_wrong();
    // For rolegate the API server is away; for all others things go on, and etcd forgets what was before.
    link.lead_to(&[]);
    link.cut();
    story.stage.let_ready(Pod::is_scheduled).await;
    let key = base64::engine::general_purpose::STANDARD.encode("/registry/health");
    let revision = etcd(&plane, "/v3/kv/range", &json!({ "key": key })).await["header"]["revision"].clone();
    etcd(&plane, "/v3/kv/compaction", &json!({ "revision": revision, "physical": true })).await;
    // It keeps a window of events of its own, which begins anew.
    plane.command("restart", "kube-apiserver").await;
    story.observe_anew().await;
    let before = story.released_now().await;
    let over = Instant::now();
    story.go_on();
    link.lead_to(&[server]);
    let time = story.moves_beyond(before, over).await;
    story.end().await;
    let log = story.leader().log();
    assert!(log.contains("watch is too old, listing again"), "no watch was answered 410:\n{log}");
    tell(
        "API server out of reach while etcd is compacted and the API server restarted: every watch answered 410 Gone",
        time,
        "all is listed again",
    );
}
