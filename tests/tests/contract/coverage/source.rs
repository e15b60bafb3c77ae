//! The functions of a crate as its source has them: which of them users can call, and which may end in a call of the driver.
//!
//! What a function calls is told by name. A call on `self` or through the path of a type is found exactly; of a method of another
//! value only the name is known, so it may be any method of that name. That is wrong in one direction only: a function may be said
//! to call the driver that does not.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::Visit;
use syn::{
    Attribute, File, FnArg, ImplItem, Item, ItemImpl, ItemMacro, ItemMod, Meta, Signature, TraitItem, Type, UseTree,
    Visibility,
};

use super::callees::{Callee, Callees};

/// The functions of some crates.
#[derive(Default)]
pub(super) struct Source {
    /// By `Type::function`, or `module::function` where there is no type.
    functions: BTreeMap<String, Function>,
    /// The names that a crate gives to its users.
    exported: BTreeSet<String>,
    /// The types that macros add public methods to.
    makers: BTreeMap<String, String>,
}

/// A function, or several of one name in several implementations of a type.
#[derive(Default)]
struct Function {
    is_public: bool,
    calls_driver: bool,
    callees: BTreeSet<Callee>,
    /// How many arguments it takes beside `self`: one number for each implementation.
    parameters: BTreeSet<usize>,
}

/// A method by what a call shows of it.
type Shape<'a> = (&'a str, usize);

impl Source {
    /// Reads the crate in `folder`.
    pub(super) fn read(&mut self, folder: &Path) {
        let folder = folder.join("src");
        let root = parse(&folder.join("lib.rs"));
        for item in &root.items {
            match item {
                Item::Use(item) if is_public(&item.vis) && !is_hidden(&item.attrs) => self.export(&item.tree),
                Item::Mod(module) if is_public(&module.vis) => {
                    let (items, _) = open(module, &folder);
                    self.exported.extend(items.iter().filter_map(public_name));
                    for item in &items {
                        if let Item::Use(item) = item
                            && is_public(&item.vis)
                        {
                            self.export(&item.tree);
                        }
                    }
                }
                _ => {}
            }
        }
        self.read_items(&root.items, &folder);
    }

    /// The functions that users can call.
    pub(super) fn public(&self) -> impl Iterator<Item = &str> {
        let public = self.functions.iter().filter(|(name, function)| {
            let (owner, last) = name.split_once("::").unwrap_or_default();
            function.is_public && self.exported.contains(if is_type(owner) { owner } else { last })
        });
        public.map(|(name, _)| name.as_str())
    }

    /// The functions that call the driver or may call one that does, each with what it calls on the way there.
    pub(super) fn reaching(&self) -> BTreeMap<&str, String> {
        let direct = self.functions.iter().filter(|(_, function)| function.calls_driver);
        let mut reaching: BTreeMap<&str, String> =
            direct.map(|(name, _)| (name.as_str(), "call!".to_owned())).collect();
        loop {
            let methods: BTreeSet<Shape<'_>> = reaching.keys().flat_map(|name| self.shapes(name)).collect();
            let others = self.functions.iter().filter(|(name, _)| !reaching.contains_key(name.as_str()));
            let more: Vec<_> = others
                .filter_map(|(name, function)| {
                    let is_way = |callee: &&Callee| self.reaches(name, callee, &reaching, &methods);
                    Some((name.as_str(), function.callees.iter().find(is_way)?.to_string()))
                })
                .collect();
            if more.is_empty() {
                return reaching;
            }
            reaching.extend(more);
        }
    }

    fn reaches(
        &self,
        caller: &str,
        callee: &Callee,
        reaching: &BTreeMap<&str, String>,
        methods: &BTreeSet<Shape<'_>>,
    ) -> bool {
        let of = |owner: &str, name: &str| format!("{owner}::{name}");
        let (exact, method) = match callee {
            Callee::Free(module, name) => (self.free(module, name), None),
            Callee::OfType(owner, name) => (of(owner, name), None),
            Callee::OfSelf(name, count) => {
                (of(caller.split("::").next().unwrap_or_default(), name), Some((name.as_str(), *count)))
            }
            Callee::Method(name, count) => (String::new(), Some((name.as_str(), *count))),
        };
        match method {
            // A method that the type does not have itself is that of a trait, or of what it stands for.
            Some(shape) if !self.functions.contains_key(&exact) => methods.contains(&shape),
            _ => reaching.contains_key(exact.as_str()),
        }
    }

    /// A method of this name as calls of it look.
    fn shapes<'a>(&'a self, name: &'a str) -> impl Iterator<Item = Shape<'a>> {
        let last = name.rsplit("::").next().unwrap_or_default();
        self.functions.get(name).into_iter().flat_map(|function| &function.parameters).map(move |count| (last, *count))
    }

    /// The function of no type that `name` means in `module`: that of the module, or else any.
    fn free(&self, module: &str, name: &str) -> String {
        let exact = format!("{module}::{name}");
        if self.functions.contains_key(&exact) {
            return exact;
        }
        let is_meant =
            |key: &&String| key.split_once("::").is_some_and(|(owner, last)| last == name && !is_type(owner));
        self.functions.keys().find(is_meant).cloned().unwrap_or_default()
    }

    fn export(&mut self, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => self.export(&path.tree),
            UseTree::Name(name) => drop(self.exported.insert(name.ident.to_string())),
            UseTree::Rename(name) => drop(self.exported.insert(name.rename.to_string())),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.export(tree)),
            UseTree::Glob(_) => panic!("an export of everything names nothing"),
        }
    }

    fn read_items(&mut self, items: &[Item], folder: &Path) {
        let module = folder.file_name().unwrap_or_default().to_string_lossy();
        for item in items {
            match item {
                Item::Mod(module) if !is_for_tests(&module.attrs) => {
                    let (items, inner) = open(module, folder);
                    self.read_items(&items, &inner);
                }
                Item::Impl(item) if !is_for_tests(&item.attrs) => self.read_implementation(item, &module),
                Item::Trait(item) => {
                    for function in &item.items {
                        if let TraitItem::Fn(function) = function {
                            let mut callees = Callees::new(&module, Some(&item.ident.to_string()));
                            callees.visit_trait_item_fn(function);
                            let name = format!("{}::{}", item.ident, function.sig.ident);
                            self.add(name, false, callees, parameters(&function.sig));
                        }
                    }
                }
                Item::Fn(function) if !is_for_tests(&function.attrs) => {
                    let mut callees = Callees::new(&module, None);
                    callees.visit_item_fn(function);
                    let is_public = is_public(&function.vis) && !is_hidden(&function.attrs);
                    let name = format!("{module}::{}", function.sig.ident);
                    self.add(name, is_public, callees, parameters(&function.sig));
                }
                Item::Macro(item) => self.read_macro(item),
                _ => {}
            }
        }
    }

    fn read_implementation(&mut self, item: &ItemImpl, module: &str) {
        let Some(owner) = type_name(&item.self_ty) else { return };
        let of_trait = item.trait_.as_ref().and_then(|path| path.0.segments.last()).map(|last| last.ident.to_string());
        for function in &item.items {
            let ImplItem::Fn(function) = function else { continue };
            if is_for_tests(&function.attrs) {
                continue;
            }
            let mut callees = Callees::new(module, Some(&owner));
            callees.visit_impl_item_fn(function);
            let is_public = match &of_trait {
                Some(name) => self.exported.contains(name),
                None => is_public(&function.vis) && !is_hidden(&function.attrs),
            };
            self.add(format!("{owner}::{}", function.sig.ident), is_public, callees, parameters(&function.sig));
        }
    }

    /// Macros that make a public method of each name that they are given: what they make is taken for calling the driver.
    fn read_macro(&mut self, item: &ItemMacro) {
        let name = item.ident.as_ref().map_or_else(|| path_end(&item.mac.path), ToString::to_string);
        let tokens = item.mac.tokens.clone();
        if item.ident.is_some() {
            let text = tokens.to_string();
            if let Some((_, after)) = text.split_once("impl").filter(|_| text.contains("pub fn $")) {
                let after = after.trim_start().strip_prefix('<').and_then(|after| after.split_once('>'));
                let owner = after.map_or("", |(_, owner)| owner).trim_start();
                let end = owner.find(|letter: char| !letter.is_alphanumeric()).unwrap_or(owner.len());
                self.makers.insert(name, owner[..end].to_owned());
            }
        } else if let Some(owner) = self.makers.get(&name).cloned() {
            for method in names_of_entries(tokens) {
                let callees = Callees::of_driver();
                self.add(format!("{owner}::{method}"), true, callees, 1);
            }
        } else if name == "argument_as" {
            // A list of generic parameters, and then the type that becomes an argument.
            let owner = tokens.into_iter().find(|token| matches!(token, TokenTree::Ident(_)));
            let callees = Callees::of_driver();
            self.add(format!("{}::bind", owner.expect("the macro names a type")), true, callees, 1);
        }
    }

    fn add(&mut self, name: String, is_public: bool, callees: Callees, parameters: usize) {
        let function = self.functions.entry(name).or_default();
        function.is_public |= is_public;
        function.calls_driver |= callees.calls_driver;
        function.callees.extend(callees.callees);
        function.parameters.insert(parameters);
    }
}

/// How many arguments a function takes beside `self`.
fn parameters(signature: &Signature) -> usize {
    signature.inputs.iter().filter(|input| !matches!(input, FnArg::Receiver(_))).count()
}

fn is_type(owner: &str) -> bool {
    owner.starts_with(char::is_uppercase)
}

fn parse(path: &Path) -> File {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What a module holds, and the folder of the modules within.
fn open(module: &ItemMod, folder: &Path) -> (Vec<Item>, PathBuf) {
    let inner = folder.join(module.ident.to_string());
    match &module.content {
        Some((_, items)) => (items.clone(), inner),
        None => (parse(&inner.with_extension("rs")).items, inner),
    }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn public_name(item: &Item) -> Option<String> {
    match item {
        Item::Struct(item) if is_public(&item.vis) => Some(item.ident.to_string()),
        Item::Enum(item) if is_public(&item.vis) => Some(item.ident.to_string()),
        Item::Trait(item) if is_public(&item.vis) => Some(item.ident.to_string()),
        Item::Fn(item) if is_public(&item.vis) => Some(item.sig.ident.to_string()),
        _ => None,
    }
}

fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        matches!(&attribute.meta, Meta::List(list) if list.path.is_ident("doc") && list.tokens.to_string() == "hidden")
    })
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        matches!(&attribute.meta, Meta::List(list) if list.path.is_ident("cfg") && list.tokens.to_string() == "test")
    })
}

fn type_name(of: &Type) -> Option<String> {
    match of {
        Type::Path(path) => Some(path_end(&path.path)),
        Type::Reference(reference) => type_name(&reference.elem),
        _ => None,
    }
}

fn path_end(path: &syn::Path) -> String {
    path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default()
}

/// The names that begin the entries of a list: `#[…] name: …;`.
fn names_of_entries(tokens: TokenStream) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_begin = true;
    for token in tokens {
        match token {
            TokenTree::Ident(name) if is_begin => {
                names.push(name.to_string());
                is_begin = false;
            }
            TokenTree::Punct(mark) if mark.as_char() == ';' => is_begin = true,
            _ => {}
        }
    }
    names
}
