//! Reads the requests of a rolegate from the API server's audit log; the control plane must be started with `--audit`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Mutex;

use serde_json::Value;

use super::control_plane::SYSTEM;
use super::stage::Stage;

/// The service account of a stage's rolegate.
pub struct Account {
    user: String,
    log: PathBuf,
    /// What was read of the log: bytes of whole lines, and the requests in them.
    read: Mutex<(u64, Vec<Request>)>,
}

/// An answered request.
#[derive(Clone, Debug)]
pub struct Request {
    /// Verb, resource and subresource: `patch rolebasedgroups/status`.
    pub what: String,
    /// API version, such as `apps/v1`.
    pub version: String,
    /// Namespace of the object; empty for cluster-scoped objects.
    pub namespace: String,
    /// Name of the object; empty for a list or a watch.
    pub name: String,
    /// Status code of the answer.
    pub code: u64,
}

impl Account {
    /// Returns the account of a stage.
    pub fn of(stage: &Stage) -> Self {
        let user = format!("system:serviceaccount:{SYSTEM}:{}", stage.namespace);
        Self { user, log: stage.plane.dir.join("log/audit.jsonl"), read: Mutex::default() }
    }

    /// Returns the answered requests so far, in order, without the periodic probes for undefined kinds.
    pub fn requests(&self) -> Vec<Request> {
        let mut read = self.read.lock().unwrap();
        let (mut file, mut log) = (File::open(&self.log).unwrap(), Vec::new());
        file.seek(SeekFrom::Start(read.0)).unwrap();
        file.read_to_end(&mut log).unwrap();
        // The last line may be incomplete.
        log.truncate(log.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1));
        let log = String::from_utf8(log).unwrap();
        let text = |field: &Value| field.as_str().unwrap_or_default().to_owned();
        let request = |line: &str| {
            let event: Value = serde_json::from_str(line).unwrap();
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
        let more = log.lines().filter(|line| line.contains(&self.user)).filter_map(request);
        read.1.extend(more);
        read.0 += log.len() as u64;
        read.1.clone()
    }

    /// Returns the number of requests by kind.
    pub fn counts(&self) -> BTreeMap<String, u32> {
        count(&self.requests())
    }
}

/// Counts requests by verb and resource.
pub fn count(requests: &[Request]) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for request in requests {
        *counts.entry(request.what.clone()).or_default() += 1;
    }
    counts
}
