//! Answers of the commands for the objects of a case, from the commands' own functions.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::case::{Asked, Asks, Expected, Input};
use rolegate::api::ObjectKind;
use rolegate::api::pod_group::POD_GROUPS;
use rolegate::api::provisioning::{CAPACITY_BUFFER, PROVISIONING_REQUEST};
use rolegate::cli::check::{judge, world};
use rolegate::cli::documents::{Document, Documents};
use rolegate::cli::mutate::known::Known;
use rolegate::cli::mutate::mutated::{Mutated, all};
use rolegate::cli::{fit, plan};
use rolegate::model::{AwaitedKind, WorkloadKey, WorkloadKind};
use rolegate::rules::{Judged, KaiDialect, Need, Operation, Options, Violation, World, judged_kinds, needs};

/// Requests for nodes that an author may create.
const REQUESTS: [ObjectKind; 2] = [CAPACITY_BUFFER, PROVISIONING_REQUEST];

/// The objects of a case, and its context.
struct Files {
    objects: Vec<Document>,
    old: Vec<Document>,
    with: Vec<Document>,
}

impl Files {
    /// Parses the objects; the error lists their faults.
    fn of(input: &Input) -> Result<Self, Vec<String>> {
        let mut unreadable = Vec::new();
        let mut documents = |field: &str, objects: &[Value]| {
            let read = Documents::of_objects(field, objects);
            unreadable.extend(read.unreadable.iter().map(ToString::to_string));
            read.documents
        };
        let (objects, old) = (documents("objects", &input.objects), documents("old", &input.old));
        let with = documents("with", &input.with);
        let is_there = |old: &&Document| objects.iter().any(|object| object.identity() == old.identity());
        let stray = old.iter().find(|old| !is_there(old));
        unreadable.extend(stray.map(|old| format!("old: {} {:?} is not among the objects", old.kind, old.name)));
        if unreadable.is_empty() { Ok(Self { objects, old, with }) } else { Err(unreadable) }
    }

    fn old(&self, object: &Document) -> Option<&Document> {
        self.old.iter().find(|old| old.identity() == object.identity())
    }
}

/// Returns the answer of a command, with long parts limited to the expected ones.
///
/// # Errors
///
/// When the command cannot read an object.
pub(crate) fn answer(input: &Input, expected: &Expected) -> Result<Map<String, Value>, Vec<String>> {
    let files = Files::of(input)?;
    let mut unreadable = Vec::new();
    let ignored = input.options.ignore_resources;
    let answer = match expected.asked {
        Asked::Check => checked(&verdicts(input, &files)?),
        Asked::Mutate => mutated(input, &files, expected.written.as_ref(), &mut unreadable),
        Asked::Plan => {
            let state = input.state.as_ref().map(|counts| ("state".to_owned(), counts));
            let options = Options { ignored_resources: ignored, ..Options::default() };
            with_exit(plan::data(&files.objects, &files.with, state.as_ref(), options, &mut unreadable))
        }
        Asked::Fit => with_exit(fit::data((&files.objects, &files.with), ignored, &mut unreadable)),
    };
    if unreadable.is_empty() { Ok(answer) } else { Err(unreadable) }
}

fn with_exit((exit, answer): (u8, Value)) -> Map<String, Value> {
    let mut all = Map::from_iter([("exit".to_owned(), exit.into())]);
    if let Value::Object(answer) = answer {
        all.extend(answer);
    }
    all
}

/// Returns the verdict of each object, with the object's name.
///
/// # Errors
///
/// When a context object lacks the shape of its kind, or no rule judges any object.
pub(crate) fn judged(input: &Input) -> Result<Vec<(String, Judged)>, Vec<String>> {
    verdicts(input, &Files::of(input)?)
}

fn verdicts(input: &Input, files: &Files) -> Result<Vec<(String, Judged)>, Vec<String>> {
    let options = Options {
        kai_dialect: input.options.kai_dialect.unwrap_or(KaiDialect::Auto),
        strict_roles: input.options.strict_roles.unwrap_or_default(),
        rules: input.options.rules.unwrap_or_default(),
        mode: input.options.mode.unwrap_or_default(),
        allowed: input.options.allow.unwrap_or_default(),
        ready_kinds: input.options.ready_kinds.unwrap_or_default(),
        ignored_resources: input.options.ignore_resources,
    };
    let is_judged = |document: &Document| judged_kinds().any(|kind| document.is(kind));
    if !files.objects.iter().any(is_judged) {
        return Err(vec!["no rule judges an object of these kinds: nothing could ever be refused".to_owned()]);
    }
    let mut unreadable = Vec::new();
    let of_files = input.asks == Asks::Files;
    let mut world = world(options, (&files.objects, of_files), &files.with, None, &mut unreadable);
    if !unreadable.is_empty() {
        return Err(unreadable.iter().map(ToString::to_string).collect());
    }
    let asked = |document| {
        let old = files.old(document).map(Document::stored);
        let operation = match input.operation {
            Some(action) => action.into(),
            None if old.is_some() => Operation::Update,
            None => Operation::Create,
        };
        (document, operation, old)
    };
    let asked: Vec<_> = files.objects.iter().map(asked).collect();
    for (document, operation, old) in &asked {
        allow(&mut world, input, document);
        if !of_files {
            close(&mut world, document, *operation, old.as_deref());
        }
    }
    let verdict = |(document, operation, old): (&Document, Operation, Option<Cow<'_, str>>)| {
        (document.name.clone(), judge(document, operation, old.as_deref(), &world))
    };
    Ok(asked.into_iter().map(verdict).collect())
}

/// Sets what the author of an object may do.
fn allow(world: &mut World, input: &Input, document: &Document) {
    let stored: Value = serde_json::from_str(&document.stored()).unwrap_or_default();
    let namespace = stored.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default();
    let author = input.author;
    let creations = [(POD_GROUPS, author.may_create_pod_groups), (&REQUESTS, author.may_request_nodes)];
    for (kinds, may) in creations.into_iter().filter_map(|(kinds, may)| Some((kinds, may?))) {
        for kind in kinds.iter().copied() {
            world.answer(Need::MayCreate { namespace: namespace.to_owned(), kind }, may);
        }
    }
    for (key, may) in workloads(&stored, namespace).filter_map(|key| Some((key, author.may_scale?))) {
        world.answer(Need::MayScale(key), may);
    }
    for (kind, may) in awaited(&stored).filter_map(|kind| Some((kind, author.may_get?))) {
        world.answer(Need::MayGet { namespace: namespace.to_owned(), kind }, may);
    }
    if let Some(may) = author.may_delete_pods {
        world.answer(Need::MayDeletePods { namespace: namespace.to_owned() }, may);
    }
}

/// Returns the kinds of the objects that coordinations wait for.
fn awaited(object: &Value) -> impl Iterator<Item = AwaitedKind> + '_ {
    let coordinations = object.pointer("/spec/coordination").and_then(Value::as_array).into_iter().flatten();
    let places = ["/strategy/segmentPlacement", "/strategy/rollingUpdate", "/strategy"];
    let found =
        coordinations.flat_map(move |entry| places.map(|place| entry.pointer(&format!("{place}/readyWhen/object"))));
    found.flatten().filter_map(|object| {
        let group = object.get("apiVersion")?.as_str()?.split_once('/').map_or("", |(group, _)| group);
        Some(AwaitedKind { group: group.to_owned(), kind: object.get("kind")?.as_str()?.to_owned() })
    })
}

/// Returns the workloads that the roles of an object refer to.
fn workloads<'a>(object: &'a Value, namespace: &'a str) -> impl Iterator<Item = WorkloadKey> + 'a {
    let roles = object.pointer("/spec/roles").and_then(Value::as_array).into_iter().flatten();
    roles.filter_map(move |role| {
        let kind = WorkloadKind::parse(role.pointer("/workloadRef/kind")?.as_str()?)?;
        let name = role.pointer("/workloadRef/name")?.as_str()?.to_owned();
        Some(WorkloadKey { namespace: namespace.to_owned(), kind, name })
    })
}

/// Marks everything not in the case as missing, as for a webhook that has looked it up. An object without the shape of
/// its kind needs no lookups.
fn close(world: &mut World, document: &Document, operation: Operation, old: Option<&str>) {
    world.manifests = false;
    let needed = needs(&document.api_version, &document.kind, operation, &document.stored(), old, world);
    for need in needed.unwrap_or_default() {
        world.answer(need, false);
    }
}

fn checked(verdicts: &[(String, Judged)]) -> Map<String, Value> {
    let several = verdicts.len() > 1;
    let list = |of: fn(&Judged) -> &[Violation]| {
        let all = verdicts.iter().flat_map(|(name, judged)| of(judged).iter().map(move |violation| (name, violation)));
        all.map(|(name, violation)| {
            let texts = [
                ("object", several.then(|| name.clone())),
                ("rule", Some(violation.rule.to_owned())),
                ("field", Some(violation.path.to_string())),
                ("reason", Some(violation.cause.as_str().to_owned())),
                ("message", Some(violation.message())),
            ];
            texts
                .into_iter()
                .filter_map(|(key, text)| Some((key.to_owned(), Value::from(text?))))
                .collect::<Map<_, _>>()
        })
        .map(Value::from)
        .collect::<Value>()
    };
    let allowed = verdicts.iter().all(|(_, judged)| judged.is_allowed());
    Map::from_iter([
        ("allowed".to_owned(), allowed.into()),
        ("violations".to_owned(), list(|judged| &judged.errors)),
        ("warnings".to_owned(), list(|judged| &judged.warnings)),
        ("notes".to_owned(), list(|judged| &judged.notes)),
    ])
}

/// Mutates the objects.
///
/// # Errors
///
/// When an object cannot be read.
pub(crate) fn mutations(input: &Input) -> Result<Vec<Mutated>, Vec<String>> {
    let mut unreadable = Vec::new();
    let mutated = mutate(input, &Files::of(input)?, &mut unreadable);
    if unreadable.is_empty() { Ok(mutated) } else { Err(unreadable) }
}

fn mutate(input: &Input, files: &Files, unreadable: &mut Vec<String>) -> Vec<Mutated> {
    let mut misshapen = Vec::new();
    let mut known = Known::of(files.objects.iter().chain(&files.with), &mut misshapen);
    known.manager.clone_from(&input.options.field_manager);
    let mut faults: Vec<_> = misshapen.iter().map(|(document, error)| document.misshapen(error)).collect();
    let objects = all(&files.objects, &files.old, &known, &input.options.settings(), &mut faults);
    unreadable.extend(faults.iter().map(ToString::to_string));
    objects
}

fn mutated(
    input: &Input,
    files: &Files,
    written: Option<&Map<String, Value>>,
    unreadable: &mut Vec<String>,
) -> Map<String, Value> {
    let objects = mutate(input, files, unreadable);
    let wanted = |field: &str| {
        let keys = written.and_then(|written| written.get(field)?.as_object()).into_iter().flat_map(Map::keys);
        keys.cloned().collect::<Vec<_>>()
    };
    let names = objects.iter().map(|object| object.name.as_str()).collect::<Value>();
    let labels = wanted("labels").into_iter().map(|key| (key.clone(), by_label(&objects, &key)));
    let labels: Map<_, _> = labels.collect();
    let env = wanted("env").into_iter().filter_map(|name| {
        let pod = objects.iter().find(|object| object.name == name)?;
        Some((name, environments(&pod.after)))
    });
    let env: Map<_, _> = env.collect();
    let texts = |of: fn(&Mutated) -> &[String]| {
        let mut all: Vec<&String> = Vec::new();
        for text in objects.iter().flat_map(of) {
            if !all.contains(&text) {
                all.push(text);
            }
        }
        json!(all)
    };
    Map::from_iter([
        ("allowed".to_owned(), objects.iter().all(|object| object.refused.is_empty()).into()),
        ("names".to_owned(), names),
        ("patches".to_owned(), by_name(&objects, |object| json!(object.patch))),
        ("objects".to_owned(), by_name(&objects, |object| object.after.clone())),
        ("labels".to_owned(), labels.into()),
        ("env".to_owned(), env.into()),
        ("warnings".to_owned(), texts(|object| &object.warnings)),
        ("refused".to_owned(), texts(|object| &object.refused)),
    ])
}

/// Maps names of objects to a value of each. Differing values under one name are numbered: pods with only a prefix
/// share it.
fn by_name(objects: &[Mutated], of: impl Fn(&Mutated) -> Value) -> Value {
    let mut all: Map<String, Value> = Map::new();
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    for object in objects {
        let value = of(object);
        let count = names.entry(&object.name).or_default();
        let key = |number: usize| if number == 1 { object.name.clone() } else { format!("{} #{number}", object.name) };
        if (1..=*count).all(|number| all.get(&key(number)) != Some(&value)) {
            *count += 1;
            all.insert(key(*count), value);
        }
    }
    all.into()
}

/// Maps the values of a label to the names of objects.
fn by_label(objects: &[Mutated], key: &str) -> Value {
    let mut all: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for object in objects {
        let labels = object.after.pointer("/metadata/labels");
        if let Some(value) = labels.and_then(|labels| labels.get(key)?.as_str()) {
            all.entry(value).or_default().push(&object.name);
        }
    }
    json!(all)
}

/// Returns the environment of each container of a pod, including init containers.
fn environments(pod: &Value) -> Value {
    let lists = ["/spec/initContainers", "/spec/containers"].into_iter();
    let containers = lists.filter_map(|list| pod.pointer(list)?.as_array()).flatten();
    let environment = |container: &Value| {
        let variables = container.get("env").and_then(Value::as_array).into_iter().flatten();
        let all: Vec<_> = variables.map(variable).collect();
        Some((container.get("name")?.as_str()?.to_owned(), json!(all)))
    };
    containers.filter_map(environment).collect::<Map<_, _>>().into()
}

fn variable(variable: &Value) -> String {
    let text = |field: &str| variable.get(field).and_then(Value::as_str);
    let name = text("name").unwrap_or_default();
    text("value").map_or_else(|| name.to_owned(), |value| format!("{name}={value}"))
}
