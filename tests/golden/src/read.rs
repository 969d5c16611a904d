//! Reads cases from folders. Faults are reported with their position; nothing is skipped silently.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::case::{API_VERSION, Asked, Case, Expect, Expected, Input, KIND, TestFile, WrittenCase};
use rolegate::cli::documents::{Documents, Unreadable, name_of, walk};
use rolegate::cli::node::{Node, Position};
use rolegate::cli::parse::parse;
use rolegate::cli::terminal::in_words;
use rolegate::rules::decode_value;

#[derive(Debug, Default)]
pub struct Suite {
    /// Cases in the order of their files, which are sorted.
    pub cases: Vec<Case>,
    pub faults: Vec<Unreadable>,
    /// Number of test files.
    pub files: usize,
    /// Number of YAML files without cases.
    pub others: usize,
}

/// Reads files, and the `*.yaml` and `*.yml` files of folders.
pub fn read<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Suite {
    let mut reader = Reader::default();
    for path in paths {
        if path.is_dir() {
            walk(path, &["yaml", "yml"], &mut |path, read| match read {
                Ok(()) => reader.file(path, false),
                Err(error) => reader.refuse(path, None, &error.to_string()),
            });
        } else {
            reader.file(path, true);
        }
    }
    reader.suite
}

#[derive(Default)]
struct Reader {
    suite: Suite,
    /// Objects of files that cases refer to, by path.
    objects: HashMap<PathBuf, Result<Vec<Value>, String>>,
}

impl Reader {
    /// Reads a file. Files in a folder may be unrelated; a named file must be a test.
    fn file(&mut self, path: &Path, named: bool) {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) => return self.refuse(path, None, &error.to_string()),
        };
        let mut tests = 0;
        if named || may_be_test(&text) {
            for (number, document) in parse(&text).into_iter().enumerate() {
                match document {
                    Ok(node) if is_test(&node) => {
                        tests += 1;
                        self.document(path, number, &node);
                    }
                    Ok(_) => {}
                    Err((at, message)) => {
                        tests += 1;
                        self.refuse(path, at, &message);
                    }
                }
            }
        }
        match (tests, named) {
            (0, true) => {
                self.refuse(
                    path,
                    None,
                    &format!("no test in it: no document of apiVersion {API_VERSION}, kind {KIND}"),
                );
            }
            (0, false) => self.suite.others += 1,
            _ => self.suite.files += 1,
        }
    }

    fn document(&mut self, path: &Path, number: usize, node: &Node) {
        let value = node.to_json();
        let file: TestFile = match decode_value(&value) {
            Ok(file) => file,
            Err(error) => return self.refuse(path, Some(node.locate_path(&error.path)), &error.to_string()),
        };
        for (field, found, must) in [("apiVersion", &file.api_version, API_VERSION), ("kind", &file.kind, KIND)] {
            if found != must {
                let at = node.locate(&[(false, field.to_owned())]);
                return self.refuse(path, Some(at), &format!("{field}: must be {must}, and is {found:?}"));
            }
        }
        if file.cases.is_empty() {
            return self.refuse(path, Some(node.at), "cases: there are none");
        }
        let mut names: HashMap<String, u64> = self.names_of(path);
        for (index, written) in file.cases.into_iter().enumerate() {
            let here = |field: &str| {
                let mut steps = vec![(false, "cases".to_owned()), (true, index.to_string())];
                steps.extend(field.split('.').filter(|field| !field.is_empty()).map(|step| (false, step.to_owned())));
                node.locate(&steps)
            };
            let line = here("").line;
            let raw = value.pointer(&format!("/cases/{index}/expect"));
            match self.case(path, written, raw) {
                Ok(case) => {
                    let case = Case { line, place: (number, index), ..case };
                    if let Some(first) = names.insert(case.name.clone(), line) {
                        let message =
                            format!("cases[{index}].name: {:?} is the name of the case in line {first}", case.name);
                        self.refuse(path, Some(here("name")), &message);
                    } else {
                        self.suite.cases.push(case);
                    }
                }
                Err((field, message)) => {
                    let dot = if field.is_empty() { "" } else { "." };
                    self.refuse(path, Some(here(&field)), &format!("cases[{index}]{dot}{field}: {message}"));
                }
            }
        }
    }

    /// Returns the names of the file's cases so far, with their lines.
    fn names_of(&self, path: &Path) -> HashMap<String, u64> {
        let file = name_of(path);
        let of_file = self.suite.cases.iter().filter(|case| case.file == file);
        of_file.map(|case| (case.name.clone(), case.line)).collect()
    }

    /// Parses a case; the error is the field and a message.
    fn case(&mut self, path: &Path, written: WrittenCase, raw: Option<&Value>) -> Result<Case, (String, String)> {
        let fault = |field: &str, message: &str| (field.to_owned(), message.to_owned());
        if written.name.trim().is_empty() {
            return Err(fault("name", "must say what the case shows"));
        }
        let expected = expected(written.expect.as_ref(), raw)?;
        let objects = match (written.object, written.objects) {
            (Some(Value::Array(_)), _) => return Err(fault("object", "must be one: several go into `objects`")),
            (Some(object), None) => self.objects(path, "object", vec![object])?,
            (None, Some(objects)) => self.objects(path, "objects", objects)?,
            (Some(_), Some(_)) => return Err(fault("objects", "may not be beside `object`")),
            (None, None) => return Err(fault("", "must have `object` or `objects`")),
        };
        if objects.is_empty() {
            return Err(fault("objects", "there are none"));
        }
        let old = self.objects(path, "old", list(written.old))?;
        let with = self.objects(path, "with", list(written.with))?;
        let options = written.options.unwrap_or_default();
        let asks = |asked| expected.iter().any(|expected: &Expected| expected.asked == asked);
        // A field that no command reads is an error of the author.
        let unread = [
            ("operation", written.operation.is_some(), "check", asks(Asked::Check)),
            ("as", written.asks.is_some(), "check", asks(Asked::Check)),
            ("author", written.author.is_some(), "check", asks(Asked::Check)),
            ("options", options.of_check(), "check", asks(Asked::Check)),
            ("options", options.of_mutate(), "mutate", asks(Asked::Mutate)),
            ("options", options.of_room(), "check, fit and plan", !asks(Asked::Mutate) || expected.len() > 1),
            ("old", !old.is_empty(), "check and mutate", asks(Asked::Check) || asks(Asked::Mutate)),
            ("state", written.state.is_some(), "plan", asks(Asked::Plan)),
        ];
        if let Some((field, _, reader, _)) = unread.into_iter().find(|(_, is_set, _, read)| *is_set && !read) {
            return Err((field.to_owned(), format!("is read by {reader} alone, of which nothing is expected")));
        }
        let input = Input {
            objects,
            old,
            with,
            operation: written.operation,
            asks: written.asks.unwrap_or_default(),
            author: written.author.unwrap_or_default(),
            options,
            state: written.state,
        };
        let file = name_of(path);
        Ok(Case { file, line: 0, place: (0, 0), name: written.name, input, expected })
    }

    /// Returns the objects of a field: each entry is an object, or the path of a file or folder.
    fn objects(&mut self, path: &Path, field: &str, entries: Vec<Value>) -> Result<Vec<Value>, (String, String)> {
        let mut all = Vec::new();
        for entry in entries {
            match entry {
                Value::Object(_) => all.push(in_review(entry, field)),
                Value::String(named) => {
                    let beside = path.parent().unwrap_or(Path::new("")).join(&named);
                    let read = self.objects.entry(beside).or_insert_with_key(|path| objects_of(path));
                    let objects = read.as_ref().map_err(|why| (field.to_owned(), why.clone()))?;
                    all.extend(objects.iter().map(|object| in_review(object.clone(), field)));
                }
                other => {
                    let message = format!("must be an object or the path of a file, and is {other}");
                    return Err((field.to_owned(), message));
                }
            }
        }
        Ok(all)
    }

    fn refuse(&mut self, path: &Path, at: Option<Position>, message: &str) {
        let file = name_of(path);
        self.suite.faults.push(Unreadable { file, at, message: in_words(message) });
    }
}

/// Reports whether a text may be a test, without parsing: folders may contain templates that are not YAML.
fn may_be_test(text: &str) -> bool {
    text.contains("cli.rolegate.dev") || text.lines().any(|line| line.starts_with("cases:"))
}

/// Reports whether a document is a test, or was meant to be one.
fn is_test(node: &Node) -> bool {
    let text = |key: &str| node.get(key).and_then(Node::as_str).unwrap_or_default();
    text("apiVersion").starts_with("cli.rolegate.dev")
        || node.get("cases").is_some() && text("kind") == KIND
        || node.get("cases").is_some() && node.get("apiVersion").is_none()
}

fn list(value: Option<Value>) -> Vec<Value> {
    match value {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(all)) => all,
        Some(one) => vec![one],
    }
}

/// Reads the objects of a file or folder.
fn objects_of(path: &Path) -> Result<Vec<Value>, String> {
    let read = Documents::read_some(&[path.to_owned()]);
    if let Some(unreadable) = read.unreadable.first() {
        return Err(unreadable.to_string());
    }
    let objects = read.documents.iter().map(|document| serde_json::from_str(&document.json));
    objects.collect::<Result<_, _>>().map_err(|error| format!("{}: {error}", name_of(path)))
}

/// Returns the object in a recorded AdmissionReview; other objects are returned as they are.
fn in_review(mut object: Value, field: &str) -> Value {
    if object.get("kind").and_then(Value::as_str) != Some("AdmissionReview") {
        return object;
    }
    let part = if field == "old" { "/request/oldObject" } else { "/request/object" };
    object.pointer_mut(part).map(Value::take).unwrap_or(object)
}

/// Returns the expected answers; the error is the field and a message.
fn expected(expect: Option<&Expect>, raw: Option<&Value>) -> Result<Vec<Expected>, (String, String)> {
    let matching = |asked: Asked| {
        expect.and_then(|expect| match asked {
            Asked::Check => expect.check.matching(|part| part.matching),
            Asked::Mutate => expect.mutate.matching(|part| part.matching),
            Asked::Plan => expect.plan.matching(|part| part.matching),
            Asked::Fit => expect.fit.matching(|part| part.matching),
        })
    };
    if Asked::ALL.iter().all(|asked| matching(*asked).is_none()) {
        let message = "a case that expects nothing cannot fail: name what check, mutate, plan or fit must answer, or one of \
                       them without a value, which `--update` writes";
        return Err(("expect".to_owned(), message.to_owned()));
    }
    let mut all = Vec::new();
    for asked in Asked::ALL {
        let Some(matching) = matching(asked) else { continue };
        let written = raw.and_then(|raw| raw.get(asked.name())?.as_object()).map(|written| {
            let fields = written.iter().filter(|(key, value)| key.as_str() != "match" && !value.is_null());
            fields.map(|(key, value)| (key.clone(), value.clone())).collect::<serde_json::Map<_, _>>()
        });
        let by_name = ["patches", "objects", "labels", "env"];
        let is_silent = |(key, value): (&String, &Value)| {
            by_name.contains(&key.as_str()) && value.as_object().is_some_and(serde_json::Map::is_empty)
        };
        if written.as_ref().is_some_and(|written| written.iter().all(is_silent)) {
            let message = "says nothing, and a case that expects nothing cannot fail".to_owned();
            return Err((format!("expect.{}", asked.name()), message));
        }
        all.push(Expected { asked, matching, written });
    }
    Ok(all)
}
