//! Judging never panics, whatever the object.

use rolegate::rules::{KaiDialect, Operation, Options, World, judge_json, needs};

use crate::objects::object;
use crate::prelude::*;

proptest! {
    #![proptest_config(crate::tried(500))]

    #[test]
    fn nothing_panics_and_the_same_object_again_is_never_refused(
        object in object(), with in prop::collection::vec(object(), 0..3),
        kai_dialect in prop::sample::select(vec![KaiDialect::Auto, KaiDialect::Proposal, KaiDialect::Upstream, KaiDialect::Pods]),
        strict_roles in any::<bool>(),
    ) {
        let mut world = World::of_manifests(Options { kai_dialect, strict_roles, ..Options::default() });
        let typed = |object: &Value| {
            let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
            (text("apiVersion"), text("kind"), object.to_string())
        };
        for there in &with {
            let (api_version, kind, json) = typed(there);
            let _ = world.add_json(&api_version, &kind, &json);
        }
        let (api_version, kind, json) = typed(&object);
        let _ = needs(&api_version, &kind, Operation::Create, &json, None, &world);
        let _ = judge_json(&api_version, &kind, Operation::Create, &json, None, &world);
        let again = judge_json(&api_version, &kind, Operation::Update, &json, Some(&json), &world);
        if let Some(Ok(judged)) = again {
            prop_assert!(judged.is_allowed(), "{:?}", judged.errors);
        }
    }
}
