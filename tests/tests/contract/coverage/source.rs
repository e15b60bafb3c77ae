//! The functions of a crate as its source has them: which of them users can call, and which may end in a call of the driver.
//!
//! What a function calls is told by the type of a value where that is written (in a field, a parameter, what a function returns) and
//! by name elsewhere, so that it may be any method of that name and as many arguments. That is wrong in one direction only: a function
//! may be said to call the driver that does not.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::parse::{ParseStream, Parser as _};
use syn::{
    Attribute, Block, Field, Fields, File, Generics, Ident, ImplItem, Item, ItemImpl, ItemMacro, ItemMod, ItemTrait,
    Signature, Token, TraitItem, Type, UseTree, Visibility,
};

use super::callees::{Callee, Callees};
use super::item::{
    implemented, is_derived, is_for_tests, is_hidden, is_public, methods_of, names_of_entries, parameters, path_end,
    public_name, type_name, type_parameters,
};
use super::known_type::KnownType;
use super::type_index::TypeIndex;

/// The functions of some crates.
#[derive(Default)]
pub(super) struct Source {
    /// By `Type::function`, or `module::function` where there is no type.
    functions: BTreeMap<String, Function>,
    /// The names that a crate gives to its users.
    exported: BTreeSet<String>,
    /// The types that macros add public methods to.
    makers: BTreeMap<String, String>,
    /// The methods that macros without parameters add to an implementation.
    methods: BTreeMap<String, Vec<ImplItem>>,
    types: TypeIndex,
    /// The implementations, each with its module, until the macros in them are known.
    implementations: Vec<(ItemImpl, String)>,
    /// What was read, until all types are known.
    bodies: Vec<Body>,
}

/// The parameters that stand for types, each with the traits that it is bound to have.
pub(super) type Parameters = BTreeMap<String, Vec<String>>;

/// A function as it is written.
#[derive(Clone)]
pub(super) struct Body {
    pub(super) name: String,
    pub(super) module: String,
    /// The type or trait that it belongs to.
    pub(super) owner: Option<String>,
    pub(super) parameters: Parameters,
    pub(super) signature: Signature,
    pub(super) block: Option<Block>,
    is_public: bool,
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

    /// The functions of a text.
    pub(super) fn of_text(text: &str) -> Self {
        let mut source = Self::default();
        let file = syn::parse_file(text).unwrap_or_else(|error| panic!("{error}"));
        source.read_items(&file.items, Path::new("text"));
        source.finish();
        source
    }

    /// Looks for what each function calls, now that all types are known.
    pub(super) fn finish(&mut self) {
        for (item, module) in std::mem::take(&mut self.implementations) {
            self.read_implementation(&item, &module);
        }
        let bodies = std::mem::take(&mut self.bodies);
        bodies.iter().for_each(|body| self.types.add_result(body));
        for body in bodies {
            let Callees { callees, calls_driver, .. } = Callees::of(&self.types, &body);
            self.add(body.name, body.is_public, (callees, calls_driver), parameters(&body.signature));
        }
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
                    let is_way = |callee: &&Callee| self.reaches(callee, &reaching, &methods);
                    Some((name.as_str(), function.callees.iter().find(is_way)?.to_string()))
                })
                .collect();
            if more.is_empty() {
                return reaching;
            }
            reaching.extend(more);
        }
    }

    fn reaches(&self, callee: &Callee, reaching: &BTreeMap<&str, String>, methods: &BTreeSet<Shape<'_>>) -> bool {
        let is_any = |name: &str, count: Option<usize>| {
            methods.iter().any(|(method, parameters)| *method == name && count.is_none_or(|count| count == *parameters))
        };
        match callee {
            Callee::Free(module, name) => reaching.contains_key(self.free(module, name).as_str()),
            Callee::Method(name, count) => is_any(name, Some(*count)),
            Callee::Associated(name) => is_any(name, None),
            Callee::OfField(owner, name) => self.reaches_of(owner, name, reaching).unwrap_or_default(),
            // What the type does not have itself is of a trait, or of what it stands for.
            Callee::OfType(owner, name) => self.reaches_of(owner, name, reaching).unwrap_or_else(|| is_any(name, None)),
            Callee::OfValue(owner, name, count) => {
                self.reaches_of(owner, name, reaching).unwrap_or_else(|| is_any(name, Some(*count)))
            }
        }
    }

    /// Whether a function of this type calls the driver, if the type has it.
    fn reaches_of(&self, owner: &str, name: &str, reaching: &BTreeMap<&str, String>) -> Option<bool> {
        let exact = format!("{owner}::{name}");
        self.functions.contains_key(&exact).then(|| reaching.contains_key(exact.as_str()))
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
                Item::Struct(item) => {
                    self.read_fields(&item.ident.to_string(), &item.fields, &item.generics);
                    self.read_derived(&item.ident.to_string(), &item.attrs, item.fields.iter());
                }
                Item::Enum(item) => {
                    self.types.own.insert(item.ident.to_string());
                    let fields = item.variants.iter().flat_map(|variant| &variant.fields);
                    self.read_derived(&item.ident.to_string(), &item.attrs, fields);
                }
                Item::Union(item) => drop(self.types.own.insert(item.ident.to_string())),
                Item::Static(item) => self.types.add_static(item.ident.to_string(), KnownType::of(&item.ty, None)),
                Item::Const(item) => self.types.add_static(item.ident.to_string(), KnownType::of(&item.ty, None)),
                // What is called as what it stands for is that: `Result` with an error of its own.
                Item::Type(item) if type_name(&item.ty).is_none_or(|name| item.ident != name) => {
                    self.types.aliases.insert(item.ident.to_string());
                }
                Item::Impl(item) if !is_for_tests(&item.attrs) => {
                    self.implementations.push((item.clone(), module.to_string()));
                }
                Item::Trait(item) => self.read_trait(item, &module),
                Item::Fn(function) if !is_for_tests(&function.attrs) => self.bodies.push(Body {
                    name: format!("{module}::{}", function.sig.ident),
                    module: module.to_string(),
                    owner: None,
                    parameters: type_parameters(&[&function.sig.generics]),
                    signature: function.sig.clone(),
                    block: Some((*function.block).clone()),
                    is_public: is_public(&function.vis) && !is_hidden(&function.attrs),
                }),
                Item::Macro(item) if item.mac.path.is_ident("thread_local") => self.read_thread_local(item),
                Item::Macro(item) => self.read_macro(item),
                _ => {}
            }
        }
    }

    fn read_fields(&mut self, owner: &str, fields: &Fields, generics: &Generics) {
        self.types.own.insert(owner.to_owned());
        let parameters = type_parameters(&[generics]);
        for (index, field) in fields.iter().enumerate() {
            let name = field.ident.as_ref().map_or_else(|| index.to_string(), ToString::to_string);
            self.types.add_field(owner, name, &field.ty, &parameters);
        }
    }

    /// Functions that are derived call those of the fields.
    fn read_derived<'a>(&mut self, owner: &str, attributes: &[Attribute], fields: impl Iterator<Item = &'a Field>) {
        let fields: Vec<_> = fields.filter_map(|field| type_name(&field.ty)).collect();
        for (derived, function, parameters) in [("Clone", "clone", 0), ("Default", "default", 0)] {
            if is_derived(attributes, derived) {
                let callees = fields.iter().map(|name| Callee::OfField(name.clone(), function.to_owned()));
                self.add(format!("{owner}::{function}"), false, (callees.collect(), false), parameters);
            }
        }
    }

    fn read_trait(&mut self, item: &ItemTrait, module: &str) {
        let owner = item.ident.to_string();
        self.types.traits.insert(owner.clone());
        for function in &item.items {
            let TraitItem::Fn(function) = function else { continue };
            self.types.of_traits.entry(function.sig.ident.to_string()).or_default().insert(owner.clone());
            self.bodies.push(Body {
                name: format!("{owner}::{}", function.sig.ident),
                module: module.to_owned(),
                owner: Some(owner.clone()),
                parameters: type_parameters(&[&item.generics, &function.sig.generics]),
                signature: function.sig.clone(),
                block: function.default.clone(),
                is_public: false,
            });
        }
    }

    fn read_implementation(&mut self, item: &ItemImpl, module: &str) {
        let of_trait = item.trait_.as_ref().and_then(|path| path.0.segments.last()).map(|last| last.ident.to_string());
        let owner = type_name(&item.self_ty);
        self.types.implementations.extend(of_trait.clone().map(|of_trait| (of_trait, owner.clone())));
        let Some(owner) = owner else { return };
        if of_trait.is_none() {
            self.types.own.insert(owner.clone());
        }
        let made = item.items.iter().flat_map(|item| match item {
            ImplItem::Macro(item) => self.methods.get(&path_end(&item.mac.path)).cloned().unwrap_or_default(),
            _ => vec![],
        });
        for function in item.items.iter().cloned().chain(made.collect::<Vec<_>>()) {
            let ImplItem::Fn(function) = &function else { continue };
            if is_for_tests(&function.attrs) {
                continue;
            }
            let is_public = match &of_trait {
                Some(name) => self.exported.contains(name),
                None => is_public(&function.vis) && !is_hidden(&function.attrs),
            };
            let body = Body {
                name: format!("{owner}::{}", function.sig.ident),
                module: module.to_owned(),
                owner: Some(owner.clone()),
                parameters: type_parameters(&[&item.generics, &function.sig.generics]),
                signature: function.sig.clone(),
                block: Some(function.block.clone()),
                is_public,
            };
            // A function of a trait may be that of any type.
            let of_trait = of_trait.as_ref().map(|of_trait| format!("{of_trait}::{}", function.sig.ident));
            self.bodies.extend(of_trait.map(|name| Body { name, is_public: false, ..body.clone() }));
            self.bodies.push(body);
        }
    }

    /// Macros that make a public method of each name that they are given: what they make is taken for calling the driver.
    fn read_macro(&mut self, item: &ItemMacro) {
        let name = item.ident.as_ref().map_or_else(|| path_end(&item.mac.path), ToString::to_string);
        let tokens = item.mac.tokens.clone();
        if item.ident.is_some() {
            let text = tokens.to_string();
            self.types.implementations.extend(implemented(&tokens).into_iter().map(|of_trait| (of_trait, None)));
            self.methods.insert(name.clone(), methods_of(&tokens));
            if let Some((_, after)) = text.split_once("impl").filter(|_| text.contains("pub fn $")) {
                let after = after.trim_start().strip_prefix('<').and_then(|after| after.split_once('>'));
                let owner = after.map_or("", |(_, owner)| owner).trim_start();
                let end = owner.find(|letter: char| !letter.is_alphanumeric()).unwrap_or(owner.len());
                self.makers.insert(name, owner[..end].to_owned());
            }
        } else if let Some(owner) = self.makers.get(&name).cloned() {
            for method in names_of_entries(tokens) {
                self.add(format!("{owner}::{method}"), true, (BTreeSet::new(), true), 1);
            }
        } else if name == "argument_as" {
            // A list of generic parameters, and then the type that becomes an argument.
            let owner = tokens.into_iter().find(|token| matches!(token, TokenTree::Ident(_)));
            let name = format!("{}::bind", owner.expect("the macro names a type"));
            self.add(name, true, (BTreeSet::new(), true), 1);
        }
    }

    /// A static of each thread, by its type within a `LocalKey`.
    fn read_thread_local(&mut self, item: &ItemMacro) {
        let header = |input: ParseStream<'_>| {
            input.call(Attribute::parse_outer)?;
            input.parse::<Visibility>()?;
            input.parse::<Token![static]>()?;
            let name: Ident = input.parse()?;
            input.parse::<Token![:]>()?;
            let of: Type = input.parse()?;
            input.parse::<TokenStream>()?;
            Ok((name, of))
        };
        if let Ok((name, of)) = header.parse2(item.mac.tokens.clone()) {
            self.types.add_static(name.to_string(), Some(KnownType::around("LocalKey", KnownType::of(&of, None))));
        }
    }

    fn add(
        &mut self,
        name: String,
        is_public: bool,
        (callees, calls_driver): (BTreeSet<Callee>, bool),
        parameters: usize,
    ) {
        let function = self.functions.entry(name).or_default();
        function.is_public |= is_public;
        function.calls_driver |= calls_driver;
        function.callees.extend(callees);
        function.parameters.insert(parameters);
    }
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
