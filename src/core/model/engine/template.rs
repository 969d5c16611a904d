//! What the templates of one replica ask for: their pods form one process group, and must count alike.

use super::devices::of_template;
use super::{Computed, Engine, Target, read_annotation};
use crate::api::scheduling::SchedulingSpec;
use crate::api::workload::PodTemplate;
use crate::model::names;

/// What a pod template says of the engine in its pods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemplateEngine {
    /// The annotation.
    pub asked: Option<String>,
    /// Devices of the container that has most; `None` where they are those of claims.
    pub devices: Option<u32>,
    /// Variables of its containers whose value is a number.
    pub numbers: Vec<(String, u32)>,
}

impl TemplateEngine {
    pub fn of(template: &PodTemplate) -> Self {
        Self::new(template.metadata.annotation(names::ENGINE), &template.spec)
    }

    pub fn new(asked: Option<&str>, pods: &SchedulingSpec) -> Self {
        let containers = pods.containers.iter().chain(&pods.init_containers);
        Self {
            asked: asked.map(str::to_owned),
            devices: of_template(pods),
            numbers: containers.flat_map(|container| container.numbers.iter().cloned()).collect(),
        }
    }

    /// Returns the engine of its pods; `of_role` is that of their role.
    fn engine(&self, of_role: Option<&Engine>) -> Option<Engine> {
        match &self.asked {
            Some(text) => read_annotation(text).ok(),
            None => of_role.cloned(),
        }
    }

    /// Returns the variable by which it says itself how many processes are in a pod.
    fn written(&self, engine: &Engine) -> Option<(&str, u32)> {
        self.numbers.iter().find(|(name, _)| engine.counts_by(name)).map(|(name, number)| (name.as_str(), *number))
    }

    /// Returns the number of processes in a pod.
    fn processes(&self, engine: &Engine) -> Option<u32> {
        let written = || self.written(engine).map(|(_, number)| number);
        engine.procs_per_pod.or_else(written).or(self.devices).map(|processes| processes.max(1))
    }
}

impl Engine {
    /// Reports whether a variable of this name is the number of processes in a pod.
    pub fn counts_by(&self, variable: &str) -> bool {
        let is_it = |fact: &super::Fact| fact.target == Target::Variable && fact.name == variable;
        self.facts().any(|fact| fact.computed == Computed::Processes && is_it(fact))
    }
}

/// Tells where the pods of one replica, of these templates, do not form one process group, and the setting that helps. Of two
/// templates, the first is that of the leader. `of_role` is the engine of their role.
pub fn half_groups(templates: &[TemplateEngine], of_role: Option<&Engine>) -> Vec<String> {
    let mut told: Vec<_> = templates.iter().filter_map(|template| template.contradicts(of_role)).collect();
    let [leader, workers] = templates else { return told };
    let meets = |engine: &Engine| engine.meets();
    match (leader.engine(of_role).filter(meets), workers.engine(of_role).filter(meets)) {
        (None, None) => {}
        (Some(_), None) | (None, Some(_)) if [leader, workers].iter().any(|one| one.is_unreadable()) => {}
        (Some(_), None) => told.push(lacks("workers", "leader")),
        (None, Some(_)) => told.push(lacks("leader", "workers")),
        (Some(one), Some(other)) => {
            if one.scope != other.scope {
                told.push(format!(
                    "`scope` is {:?} in the template of the leader and {:?} in that of the workers: they are in two process \
                     groups; set one `scope` in both",
                    one.scope.as_str(),
                    other.scope.as_str()
                ));
            }
            told.extend(sizes([("the leader", leader), ("the workers", workers)], of_role));
        }
    }
    told
}

/// Tells which pods of one process group count another number of processes than the first of them, each with the name of its
/// pods.
pub fn sizes<'a>(
    templates: impl IntoIterator<Item = (&'a str, &'a TemplateEngine)>,
    of_role: Option<&Engine>,
) -> Vec<String> {
    let mut counted = templates.into_iter().filter_map(|(name, template)| {
        let engine = template.engine(of_role).filter(Engine::counts_processes)?;
        Some((name, template.processes(&engine)?))
    });
    let Some((first, size)) = counted.next() else { return Vec::new() };
    let others = counted.filter(|(_, other)| *other != size);
    let told = others.map(|(name, other)| {
        format!(
            "a pod of {first} counts {size} processes and one of {name} {other}: their process group has two sizes and never \
             forms; set one `procsPerPod` in both templates"
        )
    });
    told.collect()
}

impl TemplateEngine {
    /// Tells that a container has another number of processes than the setting.
    pub fn contradicts(&self, of_role: Option<&Engine>) -> Option<String> {
        let engine = self.engine(of_role)?;
        let (set, (name, written)) = (engine.procs_per_pod?, self.written(&engine)?);
        (set != written).then(|| {
            format!(
                "a container sets {name}={written}, and `procsPerPod` is {set}: the process group waits for processes that no pod \
                 starts; remove the variable, or set `procsPerPod` to {written}"
            )
        })
    }

    /// Reports whether its annotation has faults, which are told by themselves.
    fn is_unreadable(&self) -> bool {
        self.asked.as_ref().is_some_and(|text| read_annotation(text).is_err())
    }
}

fn lacks(one: &str, other: &str) -> String {
    format!(
        "the template of the {one} lacks annotation {}, which that of the {other} has: half of the process group has no numbers, \
         and the rest waits for it; set the annotation in both templates",
        names::ENGINE
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn template(engine: Option<&str>, gpus: u32, env: &Value) -> TemplateEngine {
        let annotations = engine.map(|engine| json!({ names::ENGINE: engine }));
        let main = json!({ "name": "main", "resources": { "limits": { "nvidia.com/gpu": gpus } }, "env": env });
        let template = json!({ "metadata": { "annotations": annotations }, "spec": { "containers": [main] } });
        TemplateEngine::of(&serde_json::from_value(template).unwrap())
    }

    #[test]
    fn templates_that_count_alike_are_silent() {
        let of_role = read_annotation("vllm").unwrap();
        let none = json!([]);
        let four =
            json!([{ "name": "DP_SIZE_LOCAL", "value": "4" }, { "name": "X", "value": "text" }, { "name": "Y" }]);
        for templates in [
            vec![template(Some("vllm"), 8, &none), template(Some("vllm, llm-d"), 8, &none)],
            vec![template(Some("vllm"), 8, &four), template(Some("vllm; procsPerPod=4"), 2, &none)],
            vec![template(None, 8, &none), template(None, 4, &none)],
            vec![template(Some("dynamo"), 8, &none), template(None, 4, &none)],
            vec![template(Some("sglang"), 8, &none), template(Some("sglang"), 4, &none)],
            vec![template(Some("vllm"), 8, &none)],
            vec![template(Some("vllm"), 8, &none), template(Some("vlm"), 8, &none)],
        ] {
            assert_eq!(half_groups(&templates, None), Vec::<String>::new(), "{templates:?}");
        }
        let one = vec![template(Some("vllm"), 8, &none), template(None, 8, &none)];
        assert_eq!(half_groups(&one, Some(&of_role)), Vec::<String>::new());
    }

    #[test]
    fn what_splits_a_process_group_is_told_with_the_setting_that_helps() {
        let none = json!([]);
        let four = json!([{ "name": "DP_SIZE_LOCAL", "value": "4" }]);
        for (templates, told) in [
            (vec![template(Some("vllm"), 8, &none), template(None, 8, &none)], "template of the workers lacks"),
            (vec![template(None, 8, &none), template(Some("sglang"), 8, &none)], "template of the leader lacks"),
            (vec![template(Some("vllm"), 1, &none), template(Some("vllm"), 8, &none)], "set one `procsPerPod`"),
            (vec![template(Some("torch"), 8, &four), template(Some("vllm"), 8, &four)], "set one `procsPerPod`"),
            (vec![template(Some("torch; scope=role"), 8, &none), template(Some("torch"), 8, &none)], "set one `scope`"),
            (vec![template(Some("vllm; procsPerPod=8"), 8, &four)], "set `procsPerPod` to 4"),
        ] {
            let found = half_groups(&templates, None);
            assert!(found.len() == 1 && found[0].contains(told), "{found:?}");
        }
    }
}
