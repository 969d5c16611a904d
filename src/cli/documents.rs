//! Reads YAML and JSON objects from files, directories and standard input: several documents per file, lists expanded.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde_json::Value;

use super::listed::{Listed, listed};
use super::node::{Kind, Node, Position};
use super::parse::{json_parts, parse, shifted};
use super::progress::Progress;
use super::terminal::{in_words, shown};
use crate::api::ObjectKind;
use crate::model::CARRIERS;
use crate::rules::{DecodeError, almost_ours};

/// Maximum size of a file, in bytes. An API server takes 3 MiB for one object.
const LARGEST: u64 = 64 << 20;
/// Maximum size of a cluster dump, in bytes: about 50,000 pods.
const LARGEST_DUMP: u64 = 256 << 20;

/// Most objects, and bytes of all files together, of one command. A dump may hold more objects.
const MOST_OBJECTS: usize = 10_000;
const MOST_BYTES: u64 = 256 << 20;

/// Returns the name of a file for messages: whoever names files controls neither the user's terminal nor the log of a CI system,
/// which reads a line that begins with `::` as a command.
pub fn name_of(path: &Path) -> String {
    let name = shown(&path.display().to_string());
    if name.starts_with("::") { format!("./{name}") } else { name }
}

/// A file and its text, for messages.
#[derive(Debug)]
pub struct Source {
    /// Name as given on the command line; `-` for standard input.
    pub name: String,
    pub text: String,
    /// Whether it was found in a folder, and not given by name.
    pub in_folder: bool,
    /// Offsets of the lines, computed on first use.
    lines: OnceCell<Vec<usize>>,
}

impl Source {
    /// Returns a line, counted from 1.
    pub fn line(&self, number: u64) -> Option<&str> {
        let starts = self.lines.get_or_init(|| {
            let breaks = self.text.match_indices('\n').map(|(at, _)| at + 1);
            std::iter::once(0).chain(breaks).collect()
        });
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        self.text.get(*starts.get(index)?..)?.lines().next()
    }
}

/// An object and its position in a file.
#[derive(Debug)]
pub struct Document {
    pub source: Rc<Source>,
    /// The parsed object with positions.
    pub node: Node,
    /// `apiVersion`, `""` when absent.
    pub api_version: String,
    /// `kind`, `""` when absent.
    pub kind: String,
    /// `metadata.namespace`, `""` when absent.
    pub namespace: String,
    /// `metadata.name`, or `metadata.generateName`, or `""`.
    pub name: String,
    /// The object as JSON.
    pub json: String,
}

/// Namespace of objects that name none.
const DEFAULT_NAMESPACE: &str = "default";

impl Document {
    /// Returns the object with a namespace, as the API server returns it.
    pub fn stored(&self) -> Cow<'_, str> {
        if self.namespace.is_empty() { in_namespace(&self.json).to_string().into() } else { self.json.as_str().into() }
    }

    /// Reports whether it is one object: one with `generateName` is a new one each time.
    fn is_named(&self) -> bool {
        !self.name.is_empty() && self.node_name().is_some()
    }

    fn node_name(&self) -> Option<&str> {
        if matches!(self.node.kind, Kind::List(_)) {
            return Some(&self.name);
        }
        self.node.get("metadata")?.get("name")?.as_str()
    }

    /// Returns its file and line: `a.yaml:3`.
    pub fn place(&self) -> String {
        format!("{}:{}", self.source.name, self.node.at.line)
    }

    /// Returns the identity of the object: group, kind, namespace and name, without the version.
    pub fn identity(&self) -> (&str, &str, &str, &str) {
        let group = self.api_version.rsplit_once('/').map_or("", |(group, _)| group);
        let namespace = if self.namespace.is_empty() { DEFAULT_NAMESPACE } else { &self.namespace };
        (group, &self.kind, namespace, &self.name)
    }
}

/// Returns the object with a namespace; `default` when it has none.
pub fn in_namespace(json: &str) -> Value {
    let mut object: Value = serde_json::from_str(json).unwrap_or_default();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        let namespace = metadata.entry("namespace").or_insert(Value::Null);
        if namespace.as_str().is_none_or(str::is_empty) {
            *namespace = DEFAULT_NAMESPACE.into();
        }
    }
    object
}

/// Returns the documents that a file sees: of those of one object, that of the file itself, else of a file that is given by name,
/// else of a folder; of several, the last.
pub fn seen_from<'a>(own: &str, documents: impl Iterator<Item = &'a Document> + Clone) -> Vec<&'a Document> {
    let rank = |document: &Document| match &document.source {
        source if source.name == own => 0,
        source => 1 + u8::from(source.in_folder),
    };
    let mut best: HashMap<_, (u8, usize)> = HashMap::new();
    for (index, document) in documents.clone().enumerate().filter(|(_, document)| document.is_named()) {
        let (rank, known) = (rank(document), best.entry(document.identity()).or_insert((u8::MAX, index)));
        if rank <= known.0 {
            *known = (rank, index);
        }
    }
    let is_seen = |(index, document): &(usize, &Document)| {
        !document.is_named() || best.get(&document.identity()).is_some_and(|(_, seen)| seen == index)
    };
    documents.enumerate().filter(is_seen).map(|(_, document)| document).collect()
}

/// The documents of one file, or of all, and those that they see.
pub type View<'a> = (&'a [Document], Vec<&'a Document>);

/// Returns what each file sees. There is one view for all where no object stands twice.
pub fn views<'a>(files: &'a [Document], with: &'a [Document]) -> Vec<View<'a>> {
    let all = || files.iter().chain(with);
    if repeated(all()).is_empty() {
        return vec![(files, all().collect())];
    }
    let of_file = |own: &'a [Document]| Some((own, seen_from(&own.first()?.source.name, all())));
    files.chunk_by(|one, other| one.source.name == other.source.name).filter_map(of_file).collect()
}

/// Returns the documents of objects that stand before, each with the first one of its object.
pub fn repeated<'a>(documents: impl Iterator<Item = &'a Document>) -> Vec<(&'a Document, &'a Document)> {
    let mut first: HashMap<_, &Document> = HashMap::new();
    let mut repeated = Vec::new();
    for document in documents.filter(|document| document.is_named()) {
        match first.get(&document.identity()) {
            Some(known) => repeated.push((document, *known)),
            None => _ = first.insert(document.identity(), document),
        }
    }
    repeated
}

/// A file or object that cannot be read, with the reason.
#[derive(Debug)]
pub struct Unreadable {
    pub file: String,
    /// Position in the file, if known.
    pub at: Option<Position>,
    pub message: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(at) = self.at {
            write!(f, ":{}:{}", at.line, at.column)?;
        }
        write!(f, ": unreadable: {}", shown(&self.message))
    }
}

#[derive(Debug, Default)]
#[allow(clippy::struct_field_names, reason = "documents are what was read")]
pub struct Documents {
    /// Objects in the order of the files.
    pub documents: Vec<Document>,
    pub unreadable: Vec<Unreadable>,
    /// Whether JSON is parsed without positions.
    at_once: bool,
    /// Bytes of the files so far.
    bytes: u64,
    /// Whether a bound was reached: nothing more is read.
    full: bool,
}

impl Document {
    /// Returns the kind of carrier; `None` for an object that carries no group.
    pub fn carrier_kind(&self) -> Option<ObjectKind> {
        CARRIERS.iter().copied().find(|kind| self.is(*kind))
    }

    pub fn is(&self, kind: ObjectKind) -> bool {
        kind.kind == self.kind && kind.api_version() == self.api_version
    }

    /// Returns an error when the object misspells the kind or version of a judged kind; `None` for known and unrelated
    /// kinds.
    fn almost_ours(&self) -> Option<Unreadable> {
        // The content is needed only to guess a missing kind.
        let is_nameless = self.kind.is_empty();
        let object = if is_nameless { serde_json::from_str(&self.json).unwrap_or_default() } else { Value::Null };
        let why = almost_ours(&self.api_version, &self.kind, &object)?;
        let field = if why.contains("kind: ") { "kind" } else { "apiVersion" };
        let at = Some(self.node.locate(&[(false, field.to_owned())])).filter(|at| at.line > 0);
        let kind = if self.kind.is_empty() { "object" } else { &self.kind };
        Some(Unreadable { file: self.source.name.clone(), at, message: format!("{kind} {:?}: {why}", self.name) })
    }

    /// Returns an error for a field of this object, at its position.
    pub fn misshapen(&self, error: &DecodeError) -> Unreadable {
        let at = Some(self.node.locate_path(&error.path)).filter(|at| at.line > 0);
        Unreadable { at, ..self.unreadable(error) }
    }

    /// Returns an error for this object, at its position.
    pub fn unreadable(&self, why: &dyn fmt::Display) -> Unreadable {
        let at = Some(self.node.at).filter(|at| at.line > 0);
        Unreadable { file: self.source.name.clone(), at, message: format!("{} {:?}: {why}", self.kind, self.name) }
    }
}

impl Documents {
    /// Reads files, directories (their `*.yaml`, `*.yml` and `*.json` files, sorted) and `-`.
    pub fn read<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Self {
        Self::default().and(paths)
    }

    /// Like [`Documents::read`], for large inputs such as cluster dumps: JSON is parsed without positions.
    pub fn read_dump<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Self {
        Self { at_once: true, ..Self::default() }.and(paths)
    }

    fn and<'a>(mut self, paths: impl IntoIterator<Item = &'a PathBuf>) -> Self {
        for path in paths {
            let _progress = Progress::of(&format!("reading {}", name_of(path)));
            if path.as_os_str() == "-" {
                self.add("-", false, read_text(io::stdin().lock(), self.largest()));
            } else if path.is_dir() {
                walk(path, &["yaml", "yml", "json"], &mut |path, read| match read {
                    Ok(()) => self.add_file(path, true),
                    Err(error) => self.refuse(&name_of(path), None, &error.to_string()),
                });
            } else {
                self.add_file(path, false);
            }
        }
        self
    }

    /// Creates documents from objects that are in no file, with lists expanded.
    pub fn of_objects<'a>(name: &str, objects: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut read = Self::default();
        for object in objects {
            let text = object.to_string();
            match listed(&text) {
                Ok(listed) => read.add_listed(name, false, listed),
                Err(error) => read.refuse(name, None, &error.to_string()),
            }
        }
        read
    }

    /// Like [`Documents::read`], but reports an input without objects as unreadable.
    pub fn read_some(paths: &[PathBuf]) -> Self {
        let mut read = Self::read(paths);
        if read.documents.is_empty() && read.unreadable.is_empty() {
            let names: Vec<_> = paths.iter().map(|path| name_of(path)).collect();
            read.refuse(&names.join(", "), None, "no object in it");
        }
        read
    }

    fn largest(&self) -> u64 {
        if self.at_once { LARGEST_DUMP } else { LARGEST }
    }

    fn add_file(&mut self, path: &Path, in_folder: bool) {
        if self.full {
            return;
        }
        let text = File::open(path).and_then(|file| read_text(file, self.largest()));
        self.add(&name_of(path), in_folder, text);
    }

    fn add(&mut self, name: &str, in_folder: bool, text: io::Result<String>) {
        let text = match text {
            Ok(text) => text,
            Err(error) => return self.refuse(name, None, &error.to_string()),
        };
        self.bytes = self.bytes.saturating_add(text.len() as u64);
        if self.bytes > MOST_BYTES {
            return self.stop(name, &format!("more than {} MiB in all files together", MOST_BYTES >> 20));
        }
        // Text that is not JSON may be YAML that begins like it.
        if self.at_once
            && text.trim_start().starts_with('{')
            && let Ok(listed) = listed(&text)
        {
            return self.add_listed(name, in_folder, listed);
        }
        let source = Rc::new(Source { name: name.to_owned(), text, in_folder, lines: OnceCell::new() });
        let parsed = if source.text.trim_start().starts_with(['{', '[']) {
            json_parts(&source.text)
                .map_or_else(|| parse(&source.text), |parts| parts.into_iter().flat_map(shifted).collect())
        } else {
            parse(&source.text)
        };
        for node in parsed {
            match node {
                Ok(node) => self.expand(&source, node, None),
                Err((at, message)) => self.refuse(name, at, &message),
            }
        }
    }

    fn add_listed(&mut self, name: &str, in_folder: bool, listed: Vec<Listed<'_>>) {
        let source = Rc::new(Source { name: name.to_owned(), text: String::new(), in_folder, lines: OnceCell::new() });
        for object in listed {
            self.push(Document {
                source: Rc::clone(&source),
                node: Node { at: Position::default(), kind: Kind::List(Vec::new()) },
                api_version: object.api_version,
                kind: object.kind,
                namespace: object.namespace,
                name: object.name,
                json: object.json.to_owned(),
            });
        }
    }

    /// Adds an object, or the items of a list. Items of a typed list get its version, and its kind without `List`.
    fn expand(&mut self, source: &Rc<Source>, mut node: Node, of: Option<(&str, &str)>) {
        let text = |node: &Node, path: &[&str]| {
            let node = path.iter().try_fold(node, |node, key| node.get(key));
            node.and_then(Node::as_str).unwrap_or_default().to_owned()
        };
        if !matches!(node.kind, Kind::Map(_)) {
            return self.refuse(&source.name, Some(node.at), "must be an object with apiVersion and kind");
        }
        let (mut api_version, mut kind) = (text(&node, &["apiVersion"]), text(&node, &["kind"]));
        if let Some((list_version, item_kind)) = of
            && kind.is_empty()
        {
            list_version.clone_into(&mut api_version);
            item_kind.clone_into(&mut kind);
        }
        if let Some(item_kind) = kind.strip_suffix("List")
            && let Kind::Map(entries) = &mut node.kind
            && let Some((_, _, items)) = entries.iter_mut().find(|(_, key, _)| key == "items")
            && let Kind::List(items) = &mut items.kind
        {
            for item in std::mem::take(items) {
                self.expand(source, item, Some((&api_version, item_kind)));
            }
            return;
        }
        let name = text(&node, &["metadata", "name"]);
        let name = if name.is_empty() { text(&node, &["metadata", "generateName"]) } else { name };
        self.push(Document {
            source: Rc::clone(source),
            namespace: text(&node, &["metadata", "namespace"]),
            name,
            json: node.to_json().to_string(),
            api_version,
            kind,
            node,
        });
    }

    fn push(&mut self, document: Document) {
        if !self.at_once && self.documents.len() >= MOST_OBJECTS {
            return self
                .stop(&document.source.name, &format!("more than {MOST_OBJECTS} objects in all files together"));
        }
        if let Some(fault) = document.almost_ours() {
            return self.unreadable.push(fault);
        }
        self.documents.push(document);
    }

    /// Refuses the rest, once.
    fn stop(&mut self, name: &str, why: &str) {
        if !std::mem::replace(&mut self.full, true) {
            self.refuse(name, None, why);
        }
    }

    fn refuse(&mut self, file: &str, at: Option<Position>, message: &str) {
        self.unreadable.push(Unreadable { file: file.to_owned(), at, message: in_words(message) });
    }
}

/// Visits the files of a folder with these extensions, sorted, and what cannot be read. Links are followed to files within the folder,
/// as in a mounted ConfigMap, and not out of it.
pub fn walk(folder: &Path, extensions: &[&str], visit: &mut impl FnMut(&Path, io::Result<()>)) {
    match folder.canonicalize() {
        Ok(root) => walk_in(&root, folder, extensions, visit),
        Err(error) => visit(folder, Err(error)),
    }
}

fn walk_in(root: &Path, folder: &Path, extensions: &[&str], visit: &mut impl FnMut(&Path, io::Result<()>)) {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut paths: Vec<_> = match entries {
        Ok(entries) => entries.into_iter().map(|entry| entry.path()).collect(),
        Err(error) => return visit(folder, Err(error)),
    };
    paths.sort();
    for path in paths {
        let is_wanted = || path.extension().is_some_and(|found| extensions.iter().any(|wanted| found == *wanted));
        let leads_out = || path.is_symlink() && path.canonicalize().is_ok_and(|target| !target.starts_with(root));
        // Symbolic links to folders are skipped: they may form a cycle.
        if path.is_dir() && !path.is_symlink() {
            walk_in(root, &path, extensions, visit);
        } else if path.is_file() && is_wanted() {
            let read =
                if leads_out() { Err(io::Error::other("is a link that leads out of the folder")) } else { Ok(()) };
            visit(&path, read);
        }
    }
}

fn read_text(reader: impl Read, largest: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    reader.take(largest + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > largest {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("larger than {} MiB", largest >> 20)));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "not UTF-8 text"))
}
