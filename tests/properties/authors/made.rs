//! A random RoleCoordination: what is made of it, and in which words that is written.

use std::collections::BTreeSet;

use proptest::prelude::*;
use rolegate::api::ObjectKind;
use rolegate::model::Mode;
use rolegate::rules::{Need, Operation, Options, Violation, World, judge_json, needs};
use serde_json::{Value, json};

/// What an author asks for, by the right that it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Made {
    pub segments: Option<u8>,
    pub size: u8,
    /// Which StatefulSets make the pods.
    pub makers: u8,
    /// A time after which an unready replica is lost, and the window.
    pub recovery: Option<(u8, u8)>,
    /// By segment, going back, and the number of unavailable replicas.
    pub update: Option<(bool, bool, u8)>,
    /// Queue of PodGroups.
    pub gang: Option<u8>,
    pub rack: bool,
    /// The Job that is waited for.
    pub job: Option<u8>,
    /// Batches for which nodes are requested.
    pub nodes: Option<u8>,
    /// Times at which a rollback, the end of a recovery's wait and that of a rollout's are asked for.
    pub by_hand: [Option<u8>; 3],
}

/// Annotations by which a person asks.
pub const BY_HAND: [&str; 3] =
    ["rolegate.dev/rollout-rolled-back-at", "rolegate.dev/resumed-at", "rolegate.dev/rollout-resumed-at"];

fn few() -> impl Strategy<Value = u8> {
    prop_oneof![3 => Just(1_u8), 1 => Just(2)]
}

fn some<T: std::fmt::Debug>(of: impl Strategy<Value = T>) -> impl Strategy<Value = Option<T>> {
    prop::option::weighted(0.5, of)
}

pub fn made() -> impl Strategy<Value = Made> {
    let update = some((any::<bool>(), any::<bool>(), few()));
    let by_hand = prop::array::uniform3(prop::option::weighted(0.2, few()));
    let first = (some(0..3_u8), few(), few(), some((few(), few())), update);
    (first, (some(few()), any::<bool>(), some(few()), some(few()), by_hand)).prop_map(|(first, second)| {
        let (segments, size, makers, recovery, update) = first;
        let (gang, rack, job, nodes, by_hand) = second;
        Made { segments, size, makers, recovery, update, gang, rack, job, nodes, by_hand }
    })
}

/// An object, and the one that follows it: most of what is asked for stays.
pub fn update() -> impl Strategy<Value = (Made, Made)> {
    (made(), made(), prop::array::uniform10(prop::bool::weighted(0.25))).prop_map(|(old, new, changes)| {
        let mut next = old.clone();
        let [segments, size, makers, recovery, update, gang, rack, job, nodes, by_hand] = changes;
        if segments {
            next.segments = new.segments;
        }
        if size {
            next.size = new.size;
        }
        if makers {
            next.makers = new.makers;
        }
        if recovery {
            next.recovery = new.recovery;
        }
        if update {
            next.update = new.update;
        }
        if gang {
            next.gang = new.gang;
        }
        if rack {
            next.rack = new.rack;
        }
        if job {
            next.job = new.job;
        }
        if nodes {
            next.nodes = new.nodes;
        }
        if by_hand {
            next.by_hand = new.by_hand;
        }
        (old, next)
    })
}

impl Made {
    /// Writes the object; `spelling` chooses among words of one meaning, and what no right guards.
    pub fn object(&self, name: &str, namespace: &str, spelling: u8) -> Value {
        let is = |bit: u8| spelling >> bit & 1 == 1;
        let mut segment = json!({ "segmentSize": { "prefill": self.size, "decode": 1 } });
        if let Some((unready, window)) = self.recovery {
            let minutes = u32::from(window) * 60;
            let window = if is(0) { format!("{window}h") } else { format!("{minutes}m") };
            segment["recovery"] = json!({ "policy": "Recreate", "unreadyFor": format!("{}s", u32::from(unready) * 30), "window": window });
            if is(1) {
                segment["recovery"]["limit"] = json!(3);
            }
        }
        if let Some(queue) = self.gang {
            segment["podGroupPolicy"] = json!({ "kai": { "queue": format!("q{queue}") } });
        }
        if self.rack {
            segment["topologyAffinity"] = json!({ "topologyKey": "rack", "strategy": "RequireSegmentAffinity" });
        }
        if let Some(job) = self.job {
            segment["readyWhen"] =
                json!({ "object": { "apiVersion": "batch/v1", "kind": "Job", "name": format!("warm-{job}") } });
        }
        let mut entry =
            json!({ "name": "pd", "roles": ["prefill", "decode"], "strategy": { "segmentPlacement": segment } });
        if let Some((by_segment, back, unavailable)) = self.update {
            let update = &mut entry["strategy"]["rollingUpdate"];
            *update = json!({ "maxUnavailable": unavailable });
            if by_segment || is(2) {
                update["by"] = json!(if by_segment { "Segment" } else { "Replica" });
            }
            if back {
                update["onFailure"] = json!("Rollback");
                if is(3) {
                    update["failAfter"] = json!("600s");
                }
            }
        }
        if let Some(ahead) = self.nodes {
            entry["whenNoFit"] = json!("provision");
            entry["provision"] = json!({ "maxSegmentsAhead": ahead });
            if is(4) {
                entry["provision"]["deadline"] = json!("900s");
            }
        }
        let role = |role: &str| {
            let workload = json!({ "kind": "StatefulSet", "name": format!("{role}-{}", self.makers) });
            json!({ "name": role, "workloadRef": workload })
        };
        let mut roles = vec![role("prefill"), role("decode")];
        if is(5) {
            roles.reverse();
        }
        let mut object = json!({
            "apiVersion": "rolegate.dev/v1alpha1",
            "kind": "RoleCoordination",
            "metadata": { "name": name, "namespace": namespace, "annotations": { "team": if is(6) { "a" } else { "b" } } },
            "spec": { "roles": roles, "coordination": [entry] },
        });
        if let Some(segments) = self.segments {
            object["spec"]["segments"] = json!(segments);
        }
        for (key, day) in BY_HAND.iter().zip(self.by_hand).filter_map(|(key, day)| Some((key, day?))) {
            object["metadata"]["annotations"][*key] = json!(format!("2026-01-0{day}T00:00:00Z"));
        }
        object
    }

    /// Reports whether what a right guards is another one than in `old`.
    pub fn differs(&self, old: &Self, rule: &str, subject: &str) -> bool {
        let made = |of: &Self| (of.size, of.makers);
        match rule {
            "segments-scale" => (self.segments, made(self)) != (old.segments, made(old)),
            "recovery" | "rollback-right" | "rollout-by" => {
                (self.recovery, self.update, made(self)) != (old.recovery, old.update, made(old))
            }
            "pod-group-rights" => (self.gang, self.size, self.rack) != (old.gang, old.size, old.rack),
            "ready-when" => self.job != old.job,
            "provision-rights" => (self.nodes, self.segments, made(self)) != (old.nodes, old.segments, made(old)),
            "rollback-by-hand" | "resume-by-hand" => {
                let at = BY_HAND.iter().position(|key| *key == subject).unwrap();
                self.by_hand[at] != old.by_hand[at]
            }
            other => panic!("{other} guards something that is not tried here"),
        }
    }
}

const JOB: ObjectKind = ObjectKind { group: "batch", version: "v1", kind: "Job", plural: "jobs", namespaced: true };

/// What an author may do: delete pods, scale, create PodGroups, request nodes, get Jobs.
pub type Author = [bool; 5];

/// Judges an object, and returns the missing rights that refuse it: rule and subject.
pub fn refused((old, new): (Option<&Value>, &Value), author: Author, mode: Mode) -> BTreeSet<(&'static str, String)> {
    let options = Options { ready_kinds: &[JOB], mode, ..Options::default() };
    let mut world = World::of_manifests(options);
    world.manifests = false;
    let (text, old) = (new.to_string(), old.map(ToString::to_string));
    let operation = if old.is_some() { Operation::Update } else { Operation::Create };
    let asked = |world: &World| {
        needs("rolegate.dev/v1alpha1", "RoleCoordination", operation, &text, old.as_deref(), world).unwrap()
    };
    let [deletes, scales, makes, requests, gets] = author;
    for need in asked(&world) {
        let there = match &need {
            Need::MayDeletePods { .. } => deletes,
            Need::MayScale(_) => scales,
            Need::MayCreate { kind, .. } if kind.group == "autoscaling.x-k8s.io" => requests,
            Need::MayCreate { .. } => makes,
            Need::MayGet { .. } => gets,
            _ => false,
        };
        world.answer(need, there);
    }
    let judged = judge_json("rolegate.dev/v1alpha1", "RoleCoordination", operation, &text, old.as_deref(), &world);
    let errors = judged.unwrap().unwrap().errors.into_iter();
    let missing = errors.filter(Violation::is_missing_right);
    missing.map(|error| (error.rule, error.subject)).collect()
}
