use super::*;

fn wanted(bundle: &str) -> [Value; 2] {
    let webhooks = json!({ "webhooks": [{ "name": "a", "clientConfig": { "caBundle": bundle } }] });
    [webhooks.clone(), webhooks]
}

fn there(bundle: &str) -> Configuration {
    let [webhooks, _] = wanted(bundle);
    Configuration::There(webhooks)
}

#[test]
fn what_others_add_is_theirs_and_what_they_change_is_not() {
    let wanted = json!({ "webhooks": [{ "name": "a", "rules": [{ "operations": ["CREATE"] }] }] });
    let rule = json!({ "operations": ["CREATE"], "scope": "*" });
    let added = json!({ "webhooks": [
        { "name": "z" }, { "name": "a", "rules": [rule.clone()], "objectSelector": {} },
    ] });
    assert!(has(&added, &wanted));
    let other = json!({ "operations": ["UPDATE"], "scope": "*" });
    for rules in [json!([]), json!([other.clone()]), json!([rule, other]), Value::Null] {
        assert!(!has(&json!({ "webhooks": [{ "name": "a", "rules": rules }] }), &wanted), "{rules}");
    }
    assert!(!has(&json!({ "webhooks": [{ "name": "z" }] }), &wanted));
}

#[test]
fn namespaces_that_others_take_out_stay_out_and_nothing_else_of_a_selector() {
    let with = |expressions: Value| json!({ "webhooks": [{ "name": "a", "namespaceSelector": { "matchExpressions": expressions } }] });
    let ours = json!({ "key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"] });
    let theirs = json!({ "key": "control-plane", "operator": "DoesNotExist" });
    let more = json!({ "key": "kubernetes.azure.com/managedby", "operator": "NotIn", "values": ["aks"] });
    let wanted = with(json!([ours]));
    let found = with(json!([theirs, ours, more]));
    assert!(has(&found, &wanted));
    assert_eq!(exclusions(&found, &wanted), BTreeSet::from([theirs.to_string(), more.to_string()]));
    assert!(exclusions(&wanted, &wanted).is_empty());
    let only = json!({ "key": "team", "operator": "In", "values": ["a"] });
    for other in [json!([]), json!([theirs]), json!([ours, only])] {
        assert!(!has(&with(other.clone()), &wanted), "{other}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_repair_comes_at_once_and_a_race_has_pauses() {
    let (ours, wanted) = (CaBundle("ours".to_owned()), wanted("ours"));
    let mut state = State::default();
    assert_eq!(state.due(&ours, &wanted), Some(Instant::now()), "the first is written in any case");
    state.written(ours.clone(), [there("ours"), there("ours")]);
    assert_eq!(state.due(&ours, &wanted), None);
    tokio::time::advance(EVERY * 5).await;
    let (mut repairs, start) = (0, Instant::now());
    while start.elapsed() < EVERY * 10 {
        state.see(1, there("theirs"));
        let due = state.due(&ours, &wanted).unwrap();
        assert!(repairs > 0 || due <= start, "the first repair comes at once");
        assert!(state.repairs(&ours, &wanted), "somebody else has changed it");
        tokio::time::advance(due.saturating_duration_since(Instant::now())).await;
        state.written(ours.clone(), [there("ours"), there("ours")]);
        repairs += 1;
    }
    assert!((12..=20).contains(&repairs), "{repairs} in ten minutes");
    assert!(!state.repairs(&ours, &wanted));
    let new = CaBundle("new".to_owned());
    assert_eq!(state.due(&new, &wanted), state.last, "a new bundle does not wait");
    assert!(!state.repairs(&new, &wanted));
}

#[tokio::test(start_paused = true)]
async fn one_that_is_gone_comes_back_after_a_minute() {
    let (ours, wanted) = (CaBundle("ours".to_owned()), wanted("ours"));
    let mut state = State::default();
    state.written(ours.clone(), [there("ours"), there("ours")]);
    tokio::time::advance(EVERY * 5).await;
    state.see(0, Configuration::Gone(Instant::now()));
    assert_eq!(state.carries(&wanted), Some(false));
    assert_eq!(state.due(&ours, &wanted), Some(Instant::now() + EVERY));
    state.failed();
    assert_eq!(state.due(&ours, &wanted), Some(Instant::now() + RETRY));
    state.see(0, Configuration::Unknown);
    assert_eq!(state.carries(&wanted), None, "who cannot look says nothing");
}

#[tokio::test(start_paused = true)]
async fn what_another_replica_has_put_back_is_published_as_well() {
    let (ours, wanted) = (CaBundle("ours".to_owned()), wanted("ours"));
    let mut state = State::default();
    for bundle in ["first", "second", "third"] {
        state.written(CaBundle(bundle.to_owned()), [there(bundle), there(bundle)]);
    }
    state.written(ours.clone(), [there("ours"), there("ours")]);
    assert_eq!(state.carries(&wanted), Some(true));
    state.see(1, there("third"));
    assert_eq!(state.carries(&wanted), Some(false));
    assert_eq!(state.due(&ours, &wanted), Some(Instant::now() + FIRST_PAUSE), "new bundles are no repairs");
    state.see(1, there("ours"));
    assert_eq!((state.carries(&wanted), state.due(&ours, &wanted)), (Some(true), None));
}

#[test]
fn each_webhook_that_leads_to_us_gets_the_bundle_and_no_other_is_named() {
    let hook = |name: &str, client: Value| json!({ "name": name, "clientConfig": client, "sideEffects": "None" });
    let service =
        |name: &str| json!({ "service": { "namespace": "ns", "name": name, "path": "/mutate", "port": 8443 } });
    let at = |base: &str| json!({ "url": format!("{base}/mutate") });
    let found = json!({ "webhooks": [
        hook("pods.rolegate.dev", service("rolegate")), hook("of-a-later-version.rolegate.dev", service("rolegate")),
        hook("elsewhere", service("other")), hook("by-url", at("https://a:9443")), hook("longer", at("https://a:94430")),
    ] });
    let named = |reach: &Reach| {
        let wanted = ca_bundles(&found, reach, &CaBundle("pem".to_owned()));
        let all = wanted["webhooks"].as_array().unwrap();
        assert!(
            all.iter()
                .all(|one| one["clientConfig"] == json!({ "caBundle": "cGVt" }) && one.as_object().unwrap().len() == 2)
        );
        all.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let by_service = Reach::Service { namespace: "ns".to_owned(), name: "rolegate".to_owned(), port: 443 };
    assert_eq!(named(&by_service), ["pods.rolegate.dev", "of-a-later-version.rolegate.dev"]);
    assert_eq!(named(&Reach::Url("https://a:9443".to_owned())), ["by-url"]);
}
