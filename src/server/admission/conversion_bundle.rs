//! Keeps the `caBundle` of the definition of RoleCoordination, where it says that we convert its objects: an opt-in, with a right
//! of its own. Nothing else waits for it, neither certificates nor webhook configurations.

use std::pin::pin;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::api::crd::CONVERT_PATH;
use crate::api::role_coordination::ROLE_COORDINATION;
use crate::cluster::write::deadline::{WRITE_TIMEOUT, within};
use crate::cluster::write::writer::params;
use crate::server::admission::registration::Reach;
use crate::server::tls::certificates::CaBundle;

/// Between two writes of what somebody else changes, or that fail; doubles up to [`LONGEST`] while that goes on.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);

/// Keeps the bundle.
pub struct ConversionBundle {
    api: Api<DynamicObject>,
    reach: Reach,
}

impl ConversionBundle {
    /// That of the definition, where it leads to us.
    pub fn new(client: Client, reach: Reach) -> Self {
        let kind = ApiResource::erase::<CustomResourceDefinition>(&());
        Self { api: Api::all_with(client, &kind), reach }
    }

    /// Fills in each new bundle, until `stop` is cancelled.
    pub async fn run(self, mut bundle: watch::Receiver<Option<CaBundle>>, stop: CancellationToken) {
        let name = ROLE_COORDINATION.crd_name();
        let mut looks = pin!(watcher::watch_object(self.api.clone(), &name).default_backoff());
        let mut definition: Option<DynamicObject> = None;
        let options: PatchParams = params();
        let (mut pause, mut last) = (FIRST_PAUSE, None::<Instant>);
        loop {
            let wanted = bundle.borrow_and_update().clone();
            let patch =
                definition.as_ref().zip(wanted.as_ref()).and_then(|(found, ca)| missing(found, &self.reach, ca));
            let due = async {
                match &patch {
                    Some(_) => sleep_until(last.map_or_else(Instant::now, |last| last + pause)).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                changed = bundle.changed() => if changed.is_err() { return },
                Some(seen) = looks.next() => match seen {
                    Ok(seen) => definition = seen,
                    Err(error) => tracing::warn!(%error, name, "watch of the definition failed"),
                },
                () = due => {
                    let now = Instant::now();
                    let again = last.is_some_and(|last| now - last < 2 * LONGEST);
                    pause = if again { (2 * pause).min(LONGEST) } else { FIRST_PAUSE };
                    last = Some(now);
                    let Some(patch) = patch else { continue };
                    match within(WRITE_TIMEOUT, self.api.patch(&name, &options, &Patch::Merge(patch))).await {
                        Ok(written) => {
                            tracing::info!(name, "caBundle of the conversion written");
                            definition = Some(written);
                        }
                        Err(error) => tracing::warn!(%error, name, "caBundle of the conversion cannot be written, will retry"),
                    }
                }
            }
        }
    }
}

/// What makes the bundle that of ours, on condition that nothing else has changed meanwhile; `None` where it is so, and where
/// objects are not converted, or by somebody else.
fn missing(definition: &DynamicObject, reach: &Reach, bundle: &CaBundle) -> Option<Value> {
    let conversion = definition.data.pointer("/spec/conversion")?;
    if conversion.get("strategy")? != "Webhook" {
        return None;
    }
    let client = conversion.pointer("/webhook/clientConfig")?;
    let leads_to_us = match reach {
        Reach::Url(base) => *client.get("url")? == format!("{base}{CONVERT_PATH}"),
        Reach::Service { namespace, name } => {
            let service = client.get("service")?;
            service.get("namespace")? == namespace && service.get("name")? == name
        }
    };
    let wanted = STANDARD.encode(&bundle.0);
    if !leads_to_us || client.get("caBundle").is_some_and(|found| *found == wanted) {
        return None;
    }
    Some(json!({
        "metadata": { "resourceVersion": definition.metadata.resource_version },
        "spec": { "conversion": { "webhook": { "clientConfig": { "caBundle": wanted } } } },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_definition_that_leads_to_us_gets_our_bundle() {
        let definition = |conversion: Value| -> DynamicObject {
            let metadata = json!({ "name": "x", "resourceVersion": "7" });
            serde_json::from_value(json!({ "metadata": metadata, "spec": { "conversion": conversion } })).unwrap()
        };
        let webhook =
            |client: Value| definition(json!({ "strategy": "Webhook", "webhook": { "clientConfig": client } }));
        let service = |name: &str| json!({ "namespace": "ns", "name": name });
        let us = Reach::Service { namespace: "ns".to_owned(), name: "us".to_owned() };
        let url = Reach::Url("https://127.0.0.1:1".to_owned());
        let bundle = CaBundle("ours".to_owned());
        let wanted = STANDARD.encode("ours");
        let patch = missing(&webhook(json!({ "service": service("us"), "caBundle": "b2xk" })), &us, &bundle).unwrap();
        assert_eq!(patch["metadata"]["resourceVersion"], "7");
        assert_eq!(patch["spec"]["conversion"]["webhook"]["clientConfig"], json!({ "caBundle": wanted }));
        assert!(missing(&webhook(json!({ "url": "https://127.0.0.1:1/convert" })), &url, &bundle).is_some());
        for others in [
            webhook(json!({ "service": service("us"), "caBundle": wanted })),
            webhook(json!({ "service": service("them") })),
            webhook(json!({ "url": "https://127.0.0.1:2/convert" })),
            definition(json!({ "strategy": "None" })),
            definition(Value::Null),
        ] {
            assert_eq!(missing(&others, &us, &bundle), None, "{others:?}");
            assert_eq!(missing(&others, &url, &bundle), None, "{others:?}");
        }
    }
}
