//! What a pod was created with for its engine, beside what a pod that is created now gets.

use super::super::born::Outdated;
use super::super::env::{EnvValue, Recorded};
use super::{Given, Presets};
use crate::api::Pod;
use crate::model::engine::{Fact, Target};

/// The variables, labels and annotations that a pod has for its engine.
#[derive(Clone, Debug, Default)]
pub struct BornWith {
    /// Name, value where it is a text, and the fact behind it.
    pub has: Vec<(String, Option<String>, &'static Fact)>,
    /// Those that a pod created now would have with another value, or would have alone.
    pub outdated: Vec<Outdated>,
}

/// Compares what a pod has with what it would get now. A variable that its user set is neither.
pub fn born_with(pod: &Pod, presets: &Presets) -> BornWith {
    let recorded = Recorded::of(pod);
    let containers = || pod.spec.containers.iter().chain(&pod.spec.init_containers);
    let mut born = BornWith::default();
    for Given { fact, name, value } in &presets.given {
        let now = match value {
            EnvValue::Text(text) => Some(text.clone()),
            EnvValue::Field(_) => None,
        };
        let (is_there, has) = match fact.target {
            Target::Variable => {
                let of_engine = containers().find(|container| recorded.of_container(&container.name).contains(&**name));
                let own = of_engine.and_then(|container| container.env.iter().flatten().find(|own| own.name == *name));
                // A container that keeps its own value lacks nothing.
                let is_kept =
                    || containers().any(|container| container.env.iter().flatten().any(|own| own.name == *name));
                if own.is_none() && is_kept() {
                    continue;
                }
                (own.is_some(), own.and_then(|own| own.value.clone()))
            }
            Target::Label => (pod.metadata.label(name).is_some(), pod.metadata.label(name).map(str::to_owned)),
            Target::Annotation => {
                (pod.metadata.annotation(name).is_some(), pod.metadata.annotation(name).map(str::to_owned))
            }
        };
        if is_there {
            born.has.push((name.clone(), has.clone(), *fact));
        }
        if has != now || !is_there {
            born.outdated.push(Outdated { name: name.clone(), value: has, now });
        }
    }
    born
}
