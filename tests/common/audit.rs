//! What one rolegate has asked of the API server, from the server's own audit log: the control plane must be started with
//! `--audit`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use super::control_plane::SYSTEM;
use super::stage::Stage;

/// The service account of a stage's rolegate, by whose name its requests are known.
pub struct Account {
    user: String,
    log: PathBuf,
}

/// A request that was answered.
#[derive(Clone, Debug)]
pub struct Request {
    /// As the API server calls it, with the resource and subresource: `patch rolebasedgroups/status`.
    pub what: String,
    /// API that was asked, as `apps/v1`.
    pub version: String,
    /// The object's namespace, empty where it has none.
    pub namespace: String,
    /// The object's name, empty for a list or a watch.
    pub name: String,
    /// Status of the answer.
    pub code: u64,
}

impl Account {
    /// That of a stage.
    pub fn of(stage: &Stage) -> Self {
        let user = format!("system:serviceaccount:{SYSTEM}:{}", stage.namespace);
        Self { user, log: stage.plane.dir.join("log/audit.jsonl") }
    }

    /// Its answered requests so far, in order. Kinds that nobody defines are looked for now and then: that is left out.
    pub fn requests(&self) -> Vec<Request> {
        let log = std::fs::read_to_string(&self.log).unwrap();
        let text = |field: &Value| field.as_str().unwrap_or_default().to_owned();
        let request = |line: &str| {
            // The last line may be half written.
            let event: Value = serde_json::from_str(line).ok()?;
            if event["user"]["username"] != self.user.as_str() || event["stage"] != "ResponseComplete" {
                return None;
            }
            let agent = text(&event["userAgent"]);
            assert!(agent.starts_with("rolegate/"), "a request says that it is of {agent:?}: {event}");
            let object = &event["objectRef"];
            let resource = [text(&object["resource"]), text(&object["subresource"])].join("/");
            let what = format!("{} {}", text(&event["verb"]), resource.trim_end_matches('/'));
            let code = event["responseStatus"]["code"].as_u64().unwrap_or_default();
            let looked_for = (event["verb"] == "list" || event["verb"] == "watch") && code == 404;
            let version = [text(&object["apiGroup"]), text(&object["apiVersion"])].join("/");
            let [namespace, name] = ["namespace", "name"].map(|field| text(&object[field]));
            (!looked_for).then_some(Request { what, version, namespace, name, code })
        };
        log.lines().filter(|line| line.contains(&self.user)).filter_map(request).collect()
    }

    /// How many there were of each.
    pub fn counts(&self) -> BTreeMap<String, u32> {
        count(&self.requests())
    }
}

/// How many requests there are of each verb and resource.
pub fn count(requests: &[Request]) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for request in requests {
        *counts.entry(request.what.clone()).or_default() += 1;
    }
    counts
}
