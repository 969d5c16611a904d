//! Tests that offline commands and the index choose the same carrier of a group.

use serde_json::{Value, json};

use super::*;
use crate::cli::mutate::known::Known;
use crate::cluster::index::{CarrierObject, Index};
use crate::model::GroupKey;

fn rbg(created: &str, coordinated_by: Option<&str>, coordination: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "workloads.x-k8s.io/v1alpha1", "kind": "RoleBasedGroup",
        "metadata": { "name": "pd", "namespace": "ns", "creationTimestamp": created },
        "spec": { "roles": [{ "name": "prefill", "replicas": 2 }], "coordination": coordination },
    });
    if let Some(by) = coordinated_by {
        object["metadata"]["annotations"] = json!({ "rolegate.dev/group": by });
    }
    object
}

fn coordination(name: &str, created: &str) -> Value {
    json!({
        "apiVersion": "rolegate.dev/v1alpha1", "kind": "RoleCoordination",
        "metadata": { "name": name, "namespace": "ns", "creationTimestamp": created },
        "spec": { "groupRef": { "name": "pd" }, "coordination": segments() },
    })
}

fn segments() -> Value {
    json!([{ "name": "c", "strategy": { "segmentPlacement": { "segmentSize": { "prefill": 1 } } } }])
}

/// The title of the controlling carrier, and of the others.
type Found = (Option<String>, Vec<String>);

fn title(group: &Group) -> String {
    format!("{} {}", group.carrier.kind.kind, group.carrier.name)
}

fn in_index(documents: &[Document], key: &GroupKey) -> Found {
    let mut index = Index::default();
    for document in documents {
        let kind = document.carrier_kind().unwrap();
        index.apply_carrier(
            None,
            match kind.kind {
                "RoleCoordination" => CarrierObject::coordination(serde_json::from_str(&document.json).unwrap()),
                _ => CarrierObject::rbg(kind, &serde_json::from_str(&document.json).unwrap()),
            },
        );
    }
    let Some(claims) = index.snapshot(key).claims else { return (None, Vec::new()) };
    (Some(title(&claims.group)), claims.others.iter().map(|other| title(other)).collect())
}

fn in_plan(documents: &[Document], world: &World) -> Found {
    let found = carried(documents, &[], world);
    let mut carries = found.iter().filter_map(|(_, group)| group.as_ref().ok()).map(|group| title(group));
    let conflicted = found.iter().filter_map(|(_, group)| match group {
        Err(NoPlan::Conflicted(group, _)) => Some(title(group)),
        _ => None,
    });
    (carries.next(), conflicted.collect())
}

#[test]
fn all_agree_on_who_carries_a_group() {
    let (early, late) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
    let sets = [
        vec![rbg(early, None, &json!([]))],
        vec![rbg(early, Some("a"), &json!([]))],
        vec![rbg(early, Some("a"), &json!([])), coordination("a", late), coordination("b", early)],
        vec![rbg(early, None, &segments()), coordination("a", late), coordination("b", late)],
        vec![rbg(early, None, &segments()), coordination("z", early), coordination("a", early)],
        vec![coordination("pd", early), rbg(late, None, &segments())],
    ];
    let key = GroupKey::new("ns", "pd");
    for mut set in sets {
        let mut seen = Vec::new();
        for _ in 0..set.len() {
            set.rotate_left(1);
            let file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
            let texts: Vec<_> = set.iter().map(ToString::to_string).collect();
            std::fs::write(file.path(), texts.join("\n---\n")).unwrap();
            let documents = Documents::read(&[file.path().to_owned()]).documents;
            assert_eq!(documents.len(), set.len());
            let known = Known::of(documents.iter(), &mut Vec::new());
            let index = in_index(&documents, &key);
            assert_eq!(known.group(&key).map(title), index.0, "mutate: {texts:?}");
            let (carries, mut conflicted) = in_plan(&documents, &known.world);
            conflicted.sort_by_key(|name| index.1.iter().position(|other| other == name));
            assert_eq!((carries, conflicted), index, "plan: {texts:?}");
            seen.push(index);
        }
        assert!(seen.iter().all(|found| *found == seen[0]), "{seen:?}");
    }
}

/// What `plan --state` reads is named in its help: serde lists the fields that it knows.
#[test]
fn the_help_names_every_field_of_a_state() {
    use clap::CommandFactory as _;
    #[derive(clap::Parser)]
    struct Command {
        #[command(flatten)]
        _plan: PlanArgs,
    }
    let command = Command::command();
    let state = command.get_arguments().find(|argument| argument.get_id() == "state").unwrap();
    let help = state.get_help().unwrap().to_string();
    for unknown in [json!({ "x": 1 }), json!({ "roles": { "prefill": { "x": 1 } } })] {
        let error = serde_json::from_value::<ObservedCounts>(unknown).unwrap_err().to_string();
        let fields: Vec<_> = error.split('`').skip(3).step_by(2).collect();
        assert!(fields.len() > 5, "{error}");
        assert!(fields.iter().all(|field| help.contains(field)), "{error}\n{help}");
    }
}
