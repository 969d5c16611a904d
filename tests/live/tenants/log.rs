//! What the log never has, however much is logged: the private keys, the token, and what pods have in their environment.

use base64::Engine as _;

use crate::common::prelude::*;
use crate::tenants::stage;

const VALUE: &str = "a-password-in-the-environment-of-a-pod";

/// A pod with a value that nobody else may read, once as a template of a workload.
async fn review_all(stage: &Stage, group: &Group) {
    let env = json!([{ "name": "TOKEN", "value": VALUE }]);
    let container = json!([{ "name": "main", "image": "registry.invalid/x:1", "env": env, "args": [VALUE] }]);
    let group = group.clone().template(&json!({ "spec": { "containers": container } }));
    stage.deploy(&group).await;
    let mut pod = group.pod("main", "alone", &stage.namespace);
    pod["spec"]["containers"] = container;
    stage.create(pod.clone()).await;
    // One that is refused is told of in other words than one that passes.
    pod["metadata"]["name"] = json!("refused");
    pod["metadata"]["labels"]["rolegate.dev/group"] = json!("My_Group");
    assert_eq!(stage.post(CORE, "pods", &pod).await.code, 422);
}

/// Every line of at least this many characters, since a text may be logged in part.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| line.len() >= 40 && !line.starts_with("-----"))
}

#[tokio::test]
async fn no_secret_is_logged_even_when_everything_is() {
    let stage = stage("secrets").await.with_room(10).await;
    let launch = stage.launch().flag("log", "trace");
    let rolegate = launch.start().await;
    let group = Group::new("llm").role("main", 2, 1);
    let statuses = stage.statuses(&group);
    review_all(&stage, &group).await;
    statuses.until("it is ready", |status| status.ready().starts_with("True")).await;
    // A body that cannot be read has a fault that is told of.
    let mut caller = launch.caller(&rolegate).await;
    let broken = json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": VALUE });
    let broken = broken.to_string();
    for body in [broken.clone(), broken[..broken.len() - 1].to_owned(), VALUE.to_owned()] {
        assert_eq!(caller.post("/mutate", body).await.unwrap().0, 400);
    }

    let kubeconfig = std::fs::read_to_string(launch.kubeconfig().await).unwrap();
    let token = kubeconfig.lines().find_map(|line| line.trim().strip_prefix("token: ")).unwrap().trim_matches('"');
    let secrets: Api<Secret> = Api::namespaced(stage.client.clone(), SYSTEM);
    let kept = secrets.get(&format!("{}-certificates", stage.namespace)).await.unwrap().data.unwrap();
    let keys: Vec<_> = kept.iter().filter(|(name, _)| name.ends_with("key")).collect();
    assert!(keys.len() >= 2, "{:?}", kept.keys());

    let log = rolegate.log();
    let count = log.lines().count();
    assert!(count > 500 && log.contains("TRACE"), "{count} lines: that is not everything");
    let signature = token.rsplit('.').next().unwrap();
    assert!(token.len() > 100 && !log.contains(token) && !log.contains(signature), "the token is logged");
    for (name, key) in keys {
        let pem = String::from_utf8(key.0.clone()).unwrap();
        assert!(pem.contains("PRIVATE KEY"), "{name}");
        let encoded = base64::engine::general_purpose::STANDARD.encode(&pem);
        for part in lines(&pem).chain([&encoded[40..120]]) {
            assert!(!log.contains(part), "{name} is logged");
        }
    }
    let told: Vec<_> = log.lines().filter(|line| line.contains(VALUE)).collect();
    assert_eq!(told, Vec::<&str>::new(), "the environment of pods is logged");
}
