//! A cluster whose machines have addresses of IPv6 alone.

use std::io::Write;
use std::net::{Ipv6Addr, TcpListener};

use tokio::process::Command;

use crate::common::account::policy_on_authors;
use crate::common::control_plane::rig_binary;
use crate::common::http;
use crate::common::prelude::*;
use crate::common::rolegate::IPV6_SERVICE;
use crate::install::support::create_endpoint;

/// Set where this test has started itself again.
const INSIDE: &str = "ROLEGATE_TEST_WITHOUT_IPV4";

/// It starts itself again in a network namespace of its own, in which no address is of IPv4, not even 127.0.0.1. Where the machine
/// permits no such namespaces, or has no IPv6, it says so on the standard error of all tests, and passes.
#[tokio::test]
async fn a_cluster_of_ipv6_alone_is_served() {
    if std::env::var_os(INSIDE).is_some() {
        return served().await;
    }
    let unshare = match namespaces().await {
        Ok(unshare) => unshare,
        Err(reason) => {
            // Not by a macro that prints: what a test that passes prints is not shown.
            let words = format!("\nNOT RUN: install::ipv6, a cluster of IPv6 alone is not tried here: {reason}\n\n");
            return std::io::stderr().write_all(words.as_bytes()).unwrap();
        }
    };
    let mut inside = Command::new("unshare");
    inside.args(unshare).arg(rig_binary()).args(["ipv6-alone", IPV6_SERVICE]);
    inside.arg(std::env::current_exe().unwrap());
    inside.args(["--exact", "install::ipv6::a_cluster_of_ipv6_alone_is_served", "--nocapture"]).env(INSIDE, "1");
    let output = inside.stdin(Stdio::null()).kill_on_drop(true).output().await.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && out.contains("1 passed"), "{out}\n{errors}");
}

/// The options with which `unshare` makes a network namespace here: without the rights of root, in one of users.
async fn namespaces() -> Result<&'static [&'static str], String> {
    if !std::path::Path::new("/proc/net/if_inet6").exists() {
        return Err("the kernel has no IPv6".to_owned());
    }
    let mut reasons = Vec::new();
    for options in [&["--net"][..], &["--user", "--map-root-user", "--net"]] {
        match Command::new("unshare").args(options).arg("true").output().await {
            Ok(output) if output.status.success() => return Ok(options),
            Ok(output) => reasons.push(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(error) => reasons.push(format!("unshare: {error}")),
        }
    }
    Err(reasons.join("; "))
}

async fn served() {
    TcpListener::bind("127.0.0.1:0").expect_err("no address is of IPv4");
    let plane = ControlPlane::own(|| ControlPlane::start_with_groups("kwok", &["--ipv6"])).await;
    let (stage, rolegate) = Stage::on(plane, "ipv6").await.with_room(6).await.serve_with("allow", "scale").await;

    let group = Group::new("llm").role("prefill", 4, 2).role("decode", 2, 1).bare_names();
    let coordination = group.coordination();
    let mut wrong = coordination.clone();
    wrong["spec"]["coordination"][0]["strategy"]["segmentPlacement"]["segmentSize"]["router"] = json!(1);
    let refused = stage.post("/apis/rolegate.dev/v1alpha1", "rolecoordinations", &wrong).await;
    assert!(refused.code == 422 && refused.body.to_string().contains("router"), "{refused:?}");
    stage.create(coordination).await;
    let statuses = stage.coordination_statuses("llm");
    stage.create_claimed_sets(&group).await;
    statuses.until("it serves", |status| status.ready() == "True AllReplicasReady: 6/6 pods ready").await;

    let admin = SocketAddr::new(Ipv6Addr::LOCALHOST.into(), rolegate.admin.port());
    for path in ["/livez", "/readyz", "/metrics", "/page/"] {
        let (code, said) = http::get(admin, path).await.unwrap();
        assert_eq!(code, 200, "{path}: {said}");
    }
    rolegate.until_metric("rolegate_releases_total{outcome=\"released\"}", 6).await;
    // The Service selects no pods, as there are none of rolegate here, and has no endpoint by itself.
    let port = json!({ "port": rolegate.webhook.port() });
    create_endpoint(&stage.plane, "ipv6", ("IPv6", IPV6_SERVICE), &port);
    // Accounts of tests go without it.
    stage.plane.must(&["apply", "-f", "-"], &policy_on_authors("ipv6", &["--allow", "scale"]));
    until_says("\n0 errors, 0 warnings\n", async || stage.doctor().await).await;
    let (ended, _) = rolegate.terminate().await;
    assert!(ended.success(), "{ended:?}");
}
