//! The imports between the files of a crate.

use std::collections::{BTreeMap, BTreeSet};

use curium_tests::TestResult;
use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, ItemUse, Macro, UseTree, Visibility};

/// The path of a module below the root of its crate.
type Module = Vec<String>;

/// Nodes, each with those that it imports.
pub(super) type Graph = BTreeMap<String, BTreeSet<String>>;

/// The modules of a crate that have a file of their own.
#[derive(Default)]
pub(super) struct Modules {
    files: BTreeMap<Module, File>,
}

/// The imports of a file, and its exports from other modules.
#[derive(Default)]
struct File {
    /// Each path with the module around it, which may be inline.
    imports: Vec<(Module, Vec<String>)>,
    exports: BTreeMap<String, Vec<String>>,
    /// The files of tests, which may import everything.
    tests: BTreeSet<String>,
}

/// Collects the imports of a file, outside of its tests.
struct Imports {
    module: Module,
    file: File,
}

impl Modules {
    /// Adds the file of a module.
    pub(super) fn add(&mut self, module: Module, file: &syn::File) {
        let mut imports = Imports {
            module: module.clone(),
            file: File::default(),
        };
        imports.visit_file(file);
        self.files.insert(module, imports.file);
    }

    /// Returns the files, each with those that it imports.
    pub(super) fn files(&self) -> Graph {
        let mut graph = Graph::new();
        for (from, to) in self.edges() {
            graph
                .entry(from.join("/"))
                .or_default()
                .insert(to.join("/"));
        }
        graph
    }

    /// Returns the rooms beside each other by their folder, each with those that it imports.
    pub(super) fn rooms(&self) -> BTreeMap<String, Graph> {
        let mut rooms: BTreeMap<String, Graph> = BTreeMap::new();
        for (from, to) in self.edges() {
            let shared = from
                .iter()
                .zip(to)
                .take_while(|(one, other)| one == other)
                .count();
            if from.len() == shared || to.len() == shared {
                // A folder and its own module are one room.
                continue;
            }
            let are_rooms = [from, to].iter().all(|module| {
                let room = &module[..=shared];
                shared == 0 || self.files.keys().any(|file| is_below(file, room))
            });
            if are_rooms {
                rooms
                    .entry(from[..shared].join("/"))
                    .or_default()
                    .entry(from[shared].clone())
                    .or_default()
                    .insert(to[shared].clone());
            }
        }
        rooms
    }

    /// Returns the imports of one file by another. The root of the crate, which declares and
    /// exports the modules, is left out.
    fn edges(&self) -> BTreeSet<(&Module, &Module)> {
        let mut edges = BTreeSet::new();
        for (module, file) in &self.files {
            if module.is_empty() || self.is_test(module) {
                continue;
            }
            for (around, path) in &file.imports {
                if let Some(target) = self.resolve(around, path, 0)
                    && target != module
                    && !target.is_empty()
                    && !self.is_test(target)
                {
                    edges.insert((module, target));
                }
            }
        }
        edges
    }

    /// Returns `true` for a module of tests, and for those below it.
    fn is_test(&self, module: &Module) -> bool {
        (1..=module.len()).any(|length| {
            let (name, parent) = module[..length]
                .split_last()
                .expect("the length is not zero");
            self.files
                .get(parent)
                .is_some_and(|parent| parent.tests.contains(name))
        })
    }

    /// Returns the module with a file of its own that defines the item at `path`, as seen from the
    /// module `around`. `None` for an item of another crate.
    fn resolve(&self, around: &[String], path: &[String], depth: usize) -> Option<&Module> {
        const MAX_DEPTH: usize = 8;
        let mut current = around.to_vec();
        let mut names = path.iter();
        match path.first()?.as_str() {
            "crate" => {
                current.clear();
                names.next();
            }
            "self" => {
                names.next();
            }
            "super" => {
                while names.as_slice().first().is_some_and(|name| name == "super") {
                    current.pop();
                    names.next();
                }
            }
            first
                if self
                    .files
                    .contains_key(&[around, &[first.to_owned()]].concat()) => {}
            _ => return None,
        }
        for name in names {
            let child = [current.as_slice(), std::slice::from_ref(name)].concat();
            if self.files.contains_key(&child) {
                current = child;
                continue;
            }
            let export = self.files.get(&current)?.exports.get(name);
            if let Some(export) = export
                && depth < MAX_DEPTH
                && let Some(target) = self.resolve(&current, export, depth + 1)
            {
                return Some(target);
            }
            break;
        }
        // An inline module belongs to its file.
        (0..=current.len())
            .rev()
            .find_map(|length| self.files.get_key_value(&current[..length]))
            .map(|(module, _)| module)
    }
}

/// Returns `true` if `file` is in the folder of `room`.
fn is_below(file: &[String], room: &[String]) -> bool {
    file.len() > room.len() && file.starts_with(room)
}

/// Returns the groups of nodes that reach each other, each in the order of their names.
pub(super) fn circles(graph: &Graph) -> Vec<Vec<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> = graph
        .keys()
        .map(|node| (node, reachable(graph, node)))
        .collect();
    let mut circles = BTreeSet::new();
    for (node, targets) in &reached {
        let circle: Vec<String> = targets
            .iter()
            .filter(|target| reached.get(*target).is_some_and(|back| back.contains(node)))
            .map(|target| (*target).clone())
            .collect();
        if circle.len() > 1 {
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}

/// Returns the nodes that are reached from `start` by one edge or more.
fn reachable<'a>(graph: &'a Graph, start: &String) -> BTreeSet<&'a String> {
    let mut reached = BTreeSet::new();
    let mut pending: Vec<&String> = graph[start].iter().collect();
    while let Some(node) = pending.pop() {
        if reached.insert(node) {
            pending.extend(graph.get(node).into_iter().flatten());
        }
    }
    reached
}

impl<'a> Visit<'a> for Imports {
    fn visit_item(&mut self, item: &'a Item) {
        if !is_test(attributes(item)) {
            visit::visit_item(self, item);
        } else if let Item::Mod(item) = item {
            self.file.tests.insert(item.ident.to_string());
        }
    }

    fn visit_item_mod(&mut self, item: &'a ItemMod) {
        if item.content.is_some() {
            self.module.push(item.ident.to_string());
            visit::visit_item_mod(self, item);
            self.module.pop();
        }
    }

    fn visit_item_use(&mut self, item: &'a ItemUse) {
        for path in paths(&item.tree) {
            if !matches!(item.vis, Visibility::Inherited)
                && let Some(name) = path.last()
            {
                self.file.exports.insert(name.clone(), path.clone());
            }
            self.file.imports.push((self.module.clone(), path));
        }
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        let names = path
            .segments
            .iter()
            .map(|segment| segment.ident.to_string());
        self.add(names.collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'a Macro) {
        self.visit_tokens(item.tokens.clone());
        visit::visit_macro(self, item);
    }
}

impl Imports {
    /// Adds a path that begins in this crate.
    fn add(&mut self, path: Vec<String>) {
        let is_ours = matches!(
            path.first().map(String::as_str),
            Some("crate" | "self" | "super")
        );
        if is_ours && path.len() > 1 {
            self.file.imports.push((self.module.clone(), path));
        }
    }

    /// Adds the paths in the arguments of a macro. A path that begins with `$crate` belongs to the
    /// macro's user.
    fn visit_tokens(&mut self, tokens: TokenStream) {
        let mut path = Vec::new();
        let mut is_variable = false;
        let mut is_joined = false;
        for token in tokens {
            let is_dollar = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == '$');
            let is_colon = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == ':');
            if !is_colon && !is_joined {
                self.add(std::mem::take(&mut path));
            }
            match token {
                TokenTree::Ident(name) if !is_variable => path.push(name.to_string()),
                TokenTree::Group(group) => self.visit_tokens(group.stream()),
                _ => {}
            }
            is_joined = is_colon && !path.is_empty();
            is_variable = is_dollar;
        }
        self.add(path);
    }
}

/// Returns the paths of a `use`.
fn paths(tree: &UseTree) -> Vec<Vec<String>> {
    match tree {
        UseTree::Path(path) => {
            let name = path.ident.to_string();
            paths(&path.tree)
                .into_iter()
                .map(|path| [vec![name.clone()], path].concat())
                .collect()
        }
        UseTree::Name(name) => vec![vec![name.ident.to_string()]],
        UseTree::Rename(rename) => vec![vec![rename.ident.to_string()]],
        UseTree::Glob(_) => vec![Vec::new()],
        UseTree::Group(group) => group.items.iter().flat_map(paths).collect(),
    }
}

/// Returns the attributes of the items that tests are.
fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Mod(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        _ => &[],
    }
}

/// Returns `true` if an item is compiled for tests only.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<TokenStream>()
                .is_ok_and(|condition| {
                    let condition = condition.to_string();
                    condition == "test" || condition.starts_with("all (test")
                })
    })
}

/// Imports through exports, parents, inline modules and macros are resolved to files, and those of
/// tests are left out.
#[test]
fn imports_are_resolved() -> TestResult {
    let mut modules = Modules::default();
    for (module, text) in [
        ("", "mod a; mod b; mod c; pub use self::b::inner::Item;"),
        (
            "a",
            "use crate::Item; mod inline { use super::super::c::C; }",
        ),
        (
            "b",
            "mod inner; pub(crate) use self::inner::Other; #[cfg(test)] mod tests;",
        ),
        ("b/inner", "pub struct Item; pub struct Other;"),
        ("b/tests", "use crate::a::A;"),
        (
            "c",
            "fn f() { println!(\"{}\", crate::b::Other); } #[cfg(test)] mod t { use crate::a::A; }",
        ),
    ] {
        let module = module.split('/').filter(|name| !name.is_empty());
        modules.add(module.map(str::to_owned).collect(), &syn::parse_file(text)?);
    }
    let files = modules.files();
    let imports: Vec<_> = files
        .iter()
        .flat_map(|(from, to)| to.iter().map(move |to| (from.as_str(), to.as_str())))
        .collect();
    let expected = [
        ("a", "b/inner"),
        ("a", "c"),
        ("b", "b/inner"),
        ("c", "b/inner"),
    ];
    assert_eq!(imports, expected);
    assert_eq!(circles(&modules.rooms()[""]), [[""; 0]; 0]);
    Ok(())
}

/// A circle of rooms is found, also through other rooms, and a room that only imports it is not in
/// it.
#[test]
fn circles_are_detected() -> TestResult {
    let mut modules = Modules::default();
    for (module, text) in [
        ("a", "use crate::b::below::B;"),
        ("b", "mod below;"),
        ("b/below", "use crate::c::C;"),
        ("c", "use crate::a::A;"),
        ("d", "use crate::a::A;"),
    ] {
        let module = module.split('/').map(str::to_owned).collect();
        modules.add(module, &syn::parse_file(text)?);
    }
    assert_eq!(circles(&modules.rooms()[""]), [["a", "b", "c"]]);
    Ok(())
}
