//! The ways by which the API server reaches the webhook outside of a cluster. All other tests go by a Service.

use crate::certificates::held_dry_run;
use crate::common::proxy::Proxy;
use crate::common::rolegate::client_configs;
use crate::common::{PATIENT, Stage, eventually};

/// It is asked there, and `doctor` says so.
async fn is_reached_at(stage: &Stage, address: &str) {
    for config in client_configs(&stage.client, &stage.namespace).await.unwrap() {
        let url = config.url.unwrap();
        assert!(url.starts_with(&format!("{address}/")) && config.service.is_none(), "{url}");
    }
    let shown = stage.doctor().await;
    assert!(shown.contains(&format!("the webhook is called at {address}\n")), "{shown}");
}

#[tokio::test]
async fn on_the_machine_of_the_api_server_it_is_reached_where_it_listens() {
    let (stage, rolegate) = Stage::new("reach-loopback").await.serve_with("reach", "loopback").await;
    is_reached_at(&stage, &format!("https://{}", rolegate.webhook)).await;
}

#[tokio::test]
async fn a_name_of_its_own_is_in_its_certificate() {
    let stage = Stage::new("reach-url").await;
    let service = Proxy::before("127.0.0.1:1".parse().unwrap()).await;
    let url = format!("https://localhost:{}", service.address.port());
    let rolegate = stage.launch().flag("reach", &url).start_unready().await;
    service.lead_to(&[rolegate.webhook]);
    rolegate.until_ready().await;
    eventually(PATIENT, "a pod that is held", async || held_dry_run(&stage.api(), &stage.namespace).await).await;
    is_reached_at(&stage, &url).await;
}
