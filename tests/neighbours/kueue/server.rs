//! Kueue's own manager on loopback: scheduler of queues, controllers, and webhooks that the API server asks.

use std::sync::mpsc;
use std::thread;

use super::ADMISSION;
use crate::common::prelude::*;
use crate::common::rolegate::free_port;
use crate::program::{Neighbour, Running};

/// Kueue, as its module names it.
pub const KUEUE: Neighbour = Neighbour { name: "kueue", module: "sigs.k8s.io/kueue" };
/// Where it would run.
const NAMESPACE: &str = "kueue-system";
/// Its definitions of more than one version.
const CONVERTED: [&str; 5] = ["clusterqueues", "cohorts", "localqueues", "multikueueclusters", "workloads"];
/// The Secret with the certificate that it makes itself, and the Service that this is for.
const CERTIFICATE: &str = "kueue-webhook-server-cert";
const SERVICE: &str = "kueue-webhook-service";

/// Starts it on a control plane: its definitions, its manager, and its webhook configurations. It runs until this process ends.
/// `settings` are merged into its configuration.
pub fn start(plane: &Arc<ControlPlane>, settings: &Value) {
    let (tell, told) = mpsc::channel();
    let (plane, settings) = (plane.clone(), settings.clone());
    // What a thread has started ends with that thread; this one stays.
    thread::spawn(move || {
        let running = started(&plane, &settings);
        tell.send(()).unwrap();
        let _running = running;
        loop {
            thread::park();
        }
    });
    told.recv().expect("Kueue starts");
}

fn started(plane: &ControlPlane, settings: &Value) -> Running {
    let files = KUEUE.built();
    let [webhook, probe] = [free_port(), free_port()];
    let dir = scratch_dir().join(format!("kueue-{}-{webhook}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    plane.must(&["create", "namespace", NAMESPACE], "");
    plane.must(&["-n", NAMESPACE, "create", "secret", "generic", CERTIFICATE], "");
    plane.must(&["create", "-f", "-"], &service(webhook).to_string());
    plane.must(&["apply", "--server-side", "-f", &files.join("crds").display().to_string()], "");
    for name in CONVERTED {
        let reached = reached(webhook, "/convert");
        let webhook = json!({ "clientConfig": reached, "conversionReviewVersions": ["v1"] });
        let patch = json!({ "spec": { "conversion": { "strategy": "Webhook", "webhook": webhook } } }).to_string();
        plane.must(&["patch", "crd", &format!("{name}.kueue.x-k8s.io"), "--type=merge", "-p", &patch], "");
    }
    plane.until_defined();
    for configuration in webhooks(plane, &files, webhook) {
        plane.must(&["create", "-f", "-"], &configuration.to_string());
    }

    let mut configuration = json!({
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": NAMESPACE,
        "health": { "healthProbeBindAddress": format!("127.0.0.1:{probe}") },
        "metrics": { "bindAddress": "0" },
        "webhook": { "host": "127.0.0.1", "port": webhook, "certDir": dir.display().to_string() },
        "leaderElection": { "leaderElect": false },
        "integrations": { "frameworks": ["pod", "statefulset", "leaderworkerset.x-k8s.io/leaderworkerset"] },
        "featureGates": { "VisibilityOnDemand": false, "MultiKueue": false },
    });
    json_patch::merge(&mut configuration, settings);
    let file = dir.join("configuration.yaml");
    std::fs::write(&file, configuration.to_string()).unwrap();
    let kubeconfig = plane.kubeconfig.display().to_string();
    let mut running = KUEUE.start(
        "kueue",
        &["--config", &file.display().to_string(), "--zap-log-level=3"],
        &[("KUBECONFIG", &kubeconfig)],
    );
    mount(plane, &dir, &mut running);
    until_asked(plane, &mut running);
    running
}

/// Puts the certificate that Kueue makes itself where it looks for it, as a kubelet does.
fn mount(plane: &ControlPlane, dir: &Path, running: &mut Running) {
    use base64::Engine;
    let mut read = || {
        let read = plane.must(&["-n", NAMESPACE, "get", "secret", CERTIFICATE, "-o", "json"], "");
        let secret: Value = serde_json::from_str(&read).unwrap();
        let of = |name: &str| secret["data"][name].as_str().map(str::to_owned);
        Some((of("tls.key")?, of("tls.crt")?))
    };
    let (key, certificate) = patiently(running, "the certificate", &mut read);
    let decoded = |text: &str| base64::engine::general_purpose::STANDARD.decode(text).unwrap();
    std::fs::write(dir.join("tls.key"), decoded(&key)).unwrap();
    std::fs::write(dir.join("tls.crt"), decoded(&certificate)).unwrap();
}

/// The Service by whose name it is certified, which leads to loopback.
fn service(port: u16) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "name": SERVICE, "namespace": NAMESPACE },
        "spec": { "type": "ExternalName", "externalName": "localhost", "ports": [{ "port": port }] },
    })
}

fn reached(port: u16, path: &str) -> Value {
    json!({ "service": { "name": SERVICE, "namespace": NAMESPACE, "port": port, "path": path } })
}

/// Waits for something as long as it runs.
fn patiently<T>(running: &mut Running, what: &str, look: &mut dyn FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        if let Some(ended) = running.ended() {
            panic!("Kueue has ended: {ended}");
        }
        assert!(Instant::now() < end, "not in time: {what}; {}", running.log.display());
        thread::sleep(Duration::from_millis(50));
    }
}

/// Waits until the API server knows its webhooks, and it answers.
fn until_asked(plane: &ControlPlane, running: &mut Running) {
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": "probe", "labels": { "kueue.x-k8s.io/queue-name": "none" } },
        "spec": { "automountServiceAccountToken": false, "containers": [{ "name": "main", "image": "none" }] },
    });
    let mut asked = || {
        let create = ["-n", "default", "create", "--dry-run=server", "-o", "json", "-f", "-"];
        let tried = plane.kubectl(&create, &pod.to_string());
        String::from_utf8_lossy(&tried.stdout).contains(ADMISSION).then_some(())
    };
    patiently(running, "a pod that Kueue gates", &mut asked);
}

/// Its webhook configurations, under the names that they have when it is installed.
fn webhooks(plane: &ControlPlane, files: &Path, port: u16) -> Vec<Value> {
    let manifests = files.join("webhook/manifests.yaml").display().to_string();
    let read = plane.must(&["create", "--dry-run=client", "-o", "json", "-f", &manifests], "");
    let mut found: Vec<Value> =
        serde_json::Deserializer::from_str(&read).into_iter::<Value>().map(|one| one.unwrap()).collect();
    if let [Value::Object(list)] = found.as_slice()
        && list["kind"] == "List"
    {
        found = list["items"].as_array().unwrap().clone();
    }
    for one in &mut found {
        one["metadata"]["name"] = format!("kueue-{}", one["metadata"]["name"].as_str().unwrap()).into();
        for hook in one["webhooks"].as_array_mut().unwrap() {
            let path = hook["clientConfig"]["service"]["path"].as_str().unwrap().to_owned();
            hook["clientConfig"] = reached(port, &path);
            hook["namespaceSelector"] = json!({ "matchExpressions": [
                { "key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", NAMESPACE] },
            ] });
        }
    }
    found
}
