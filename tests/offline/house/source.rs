//! Parses the modules of `src`, and the names that each mentions, inside and outside the crate.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::ext::IdentExt as _;
use syn::visit::Visit;
use syn::{Attribute, Item, ItemMod, ItemUse, UseTree, Visibility};

/// Path of the sources, relative to the crate's root.
pub const SRC: &str = "src";
/// Path of the crate of the pure rooms, which the other crate exports again.
const CORE: &str = "src/core";

/// A path of names: `["plan", "view", "PodRef"]` in the crate, `["tokio", "spawn"]` outside.
pub type Names = Vec<String>;

/// A path that a module mentions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mention {
    /// Names from the crate's root, for paths inside the crate.
    pub names: Names,
    /// True for paths inside the crate.
    pub ours: bool,
    /// True when only tests mention it.
    pub test: bool,
}

/// A file of `src`.
#[derive(Debug)]
pub struct Module {
    pub file: PathBuf,
    /// `["plan", "view"]` for `plan/view/mod.rs`.
    pub name: Names,
    pub mentions: Vec<Mention>,
    /// Names of `pub use`, and their targets.
    exports: BTreeMap<String, Names>,
    /// Modules that it declares for its tests only.
    test_modules: BTreeSet<String>,
    /// True for a file of tests.
    pub test: bool,
    pub has_async: bool,
}

#[derive(Debug)]
pub struct Sources(pub BTreeMap<Names, Module>);

impl Sources {
    /// Reads `src`, and marks modules that exist only for tests.
    pub fn read() -> Self {
        let files: Vec<_> = files(Path::new(SRC)).into_iter().filter(|file| is_rust(file)).collect();
        let known: BTreeSet<_> = files.iter().map(|file| name_of(file)).collect();
        let parse = |file: &PathBuf| {
            let name = name_of(file);
            let text = fs::read_to_string(file).unwrap();
            let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            let mut reader = Reader::new(&name, &known);
            reader.visit_file(&parsed);
            let Reader { mentions, exports, test_modules, has_async, .. } = reader;
            (name.clone(), Module { file: file.clone(), name, mentions, exports, test_modules, test: false, has_async })
        };
        let mut modules: BTreeMap<_, _> = files.iter().map(parse).collect();
        let tests: BTreeSet<_> =
            modules.values().filter(|module| module.is_test(&modules)).map(|m| m.name.clone()).collect();
        for (name, module) in &mut modules {
            let test = tests.contains(name);
            module.test = test;
            module.mentions.iter_mut().for_each(|mention| mention.test |= test);
        }
        Self(modules)
    }

    /// Returns the modules of a folder of `src`, including its own.
    pub fn below<'a>(&'a self, folder: &'a [String]) -> impl Iterator<Item = &'a Module> {
        self.0.values().filter(move |module| module.name.starts_with(folder))
    }

    /// Returns the module that defines a path, through re-exports.
    pub fn home(&self, names: &[String]) -> Option<&Module> {
        let depth = (0..=names.len()).rev().find(|depth| self.0.contains_key(&names[..*depth]))?;
        let module = &self.0[&names[..depth]];
        match names.get(depth).and_then(|item| module.exports.get(item)) {
            Some(place) if !names.starts_with(place) => self.home(place),
            _ => Some(module),
        }
    }
}

impl Module {
    /// Reports whether a file contains tests, by its name or its declaration.
    fn is_test(&self, modules: &BTreeMap<Names, Self>) -> bool {
        let Some((last, parents)) = self.name.split_last() else { return false };
        let declared = modules.get(parents).is_some_and(|parent| parent.test_modules.contains(last));
        declared || last == "tests" || last.ends_with("_tests")
    }
}

/// Returns a file, or all files below a folder.
pub fn files(place: &Path) -> Vec<PathBuf> {
    if place.is_file() {
        return vec![place.to_owned()];
    }
    let entries = fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| files(&path)).collect()
}

fn is_rust(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "rs")
}

fn name_of(file: &Path) -> Names {
    let place = file.strip_prefix(CORE).or_else(|_| file.strip_prefix(SRC)).unwrap().with_extension("");
    let mut name: Names = place.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if name.last().is_some_and(|last| ["mod", "lib"].contains(&last.as_str())) {
        name.pop();
    }
    name
}

/// Visits one file.
struct Reader<'a> {
    /// The current module, including inline modules.
    here: Names,
    known: &'a BTreeSet<Names>,
    test: bool,
    mentions: Vec<Mention>,
    exports: BTreeMap<String, Names>,
    test_modules: BTreeSet<String>,
    has_async: bool,
}

impl<'a> Reader<'a> {
    fn new(name: &Names, known: &'a BTreeSet<Names>) -> Self {
        let (mentions, exports, test_modules) = Default::default();
        Self { here: name.clone(), known, test: false, mentions, exports, test_modules, has_async: false }
    }

    /// Returns the path from the crate's root; `None` for paths outside the crate, as far as the path shows.
    fn in_crate(&self, names: &[String]) -> Option<Names> {
        let (first, rest) = names.split_first()?;
        let from = |place: &[String], rest: &[String]| Some([place, rest].concat());
        match first.as_str() {
            "crate" => Some(rest.to_vec()),
            "self" => from(&self.here, rest),
            "super" => {
                let up = names.iter().take_while(|name| *name == "super").count();
                from(&self.here[..self.here.len().checked_sub(up)?], &names[up..])
            }
            child => {
                let below = [self.here.as_slice(), &[child.to_owned()]].concat();
                // A single name may be a variable.
                (names.len() > 1 && self.known.contains(&below)).then(|| [self.here.as_slice(), names].concat())
            }
        }
    }

    fn mention(&mut self, names: Names) {
        let inside = self.in_crate(&names);
        let ours = inside.is_some();
        self.mentions.push(Mention { names: inside.unwrap_or(names), ours, test: self.test });
    }

    /// Finds paths in the tokens of a macro.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path = Names::new();
        // Number of colons since the last name.
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
                TokenTree::Ident(name) => {
                    if colons != 2 && !path.is_empty() {
                        self.mention(std::mem::take(&mut path));
                    }
                    self.has_async |= name == "async";
                    path.push(name.unraw().to_string());
                    colons = 0;
                }
                other => {
                    if let TokenTree::Group(group) = other {
                        self.tokens(group.stream());
                    }
                    if !path.is_empty() {
                        self.mention(std::mem::take(&mut path));
                    }
                    colons = 0;
                }
            }
        }
        if !path.is_empty() {
            self.mention(path);
        }
    }
}

/// Returns the paths of a `use`, with their local names.
fn leaves(tree: &UseTree, mut before: Names) -> Vec<(String, Names)> {
    match tree {
        UseTree::Path(path) => {
            before.push(path.ident.unraw().to_string());
            leaves(&path.tree, before)
        }
        UseTree::Group(group) => group.items.iter().flat_map(|tree| leaves(tree, before.clone())).collect(),
        UseTree::Glob(_) => vec![("*".to_owned(), before)],
        UseTree::Name(name) => leaf(name.ident.unraw().to_string(), None, before),
        UseTree::Rename(name) => leaf(name.ident.unraw().to_string(), Some(name.rename.unraw().to_string()), before),
    }
}

fn leaf(name: String, here: Option<String>, mut before: Names) -> Vec<(String, Names)> {
    if name == "self" {
        return vec![(here.or_else(|| before.last().cloned()).unwrap_or_default(), before)];
    }
    before.push(name.clone());
    vec![(here.unwrap_or(name), before)]
}

fn for_tests(attributes: &[Attribute]) -> bool {
    let test = |attribute: &Attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg")
                && attribute.parse_args::<syn::Path>().is_ok_and(|argument| argument.is_ident("test"))
    };
    attributes.iter().any(test)
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Fn(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            Item::Mod(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            _ => return syn::visit::visit_item(self, item),
        };
        let outside = self.test;
        self.test |= for_tests(attributes);
        syn::visit::visit_item(self, item);
        self.test = outside;
    }

    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        let name = module.ident.unraw().to_string();
        if self.test {
            self.test_modules.insert(name.clone());
        }
        self.here.push(name);
        syn::visit::visit_item_mod(self, module);
        self.here.pop();
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        for (name, names) in leaves(&item.tree, Names::new()) {
            match self.in_crate(&names) {
                // A re-export from the module's own folder is not a use.
                Some(place) if !matches!(item.vis, Visibility::Inherited) && place.starts_with(&self.here) => {
                    self.exports.insert(name, place);
                }
                _ => self.mention(names),
            }
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.mention(path.segments.iter().map(|segment| segment.ident.unraw().to_string()).collect());
        syn::visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.tokens(call.tokens.clone());
        syn::visit::visit_macro(self, call);
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.has_async |= signature.asyncness.is_some();
        syn::visit::visit_signature(self, signature);
    }

    fn visit_expr_async(&mut self, block: &'ast syn::ExprAsync) {
        self.has_async = true;
        syn::visit::visit_expr_async(self, block);
    }

    fn visit_expr_closure(&mut self, closure: &'ast syn::ExprClosure) {
        self.has_async |= closure.asyncness.is_some();
        syn::visit::visit_expr_closure(self, closure);
    }
}
