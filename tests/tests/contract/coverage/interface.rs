//! Parses the public functions of a crate from its source, and finds those that may call the
//! driver.
//!
//! Every driver call can fail. A function that may call the driver therefore returns a `Result` or
//! a `Pending`, lists the calls after `CUDA:` in its documentation, or uses `call!` in its body.

mod platform;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::visit::Visit;
use syn::{
    Attribute, Block, File, ImplItem, ImplItemFn, Item, ItemEnum, ItemFn, ItemImpl, ItemMacro,
    ItemMod, ItemStruct, ItemTrait, ItemUse, Signature, TraitItem, Type, UseTree, Visibility,
};

use self::platform::is_absent;

/// The macros that generate public functions: those that `visit_item_macro` and `visit_item_impl`
/// expand, and those whose functions never call the driver (`slice_owner`).
const MAKERS: [&str; 4] = ["attributes", "forward", "slice_owner", "upkeep_of_inner"];

/// The public functions of some crates.
#[derive(Default)]
pub(super) struct Interface {
    /// Every public function as `Type::function` or `module::function`, with the reason why it may
    /// call the driver.
    pub(super) functions: BTreeMap<String, Option<&'static str>>,
    /// The public traits of the crates, each with its functions.
    traits: BTreeMap<String, BTreeMap<String, Option<&'static str>>>,
    /// The public types of the crates.
    types: BTreeSet<String>,
    /// Exported names that are hidden from the documentation.
    hidden: BTreeSet<String>,
    /// The module that is being parsed.
    module: String,
}

/// Collects the types, traits and hidden names, which must be complete before the functions are
/// collected.
struct Names<'a>(&'a mut Interface);

impl Interface {
    /// Parses the crates in `folders`.
    pub(super) fn from_crates(folders: &[&Path]) -> Self {
        let files: Vec<_> = folders
            .iter()
            .flat_map(|folder| present_files(&folder.join("src")))
            .collect();
        Self::from_files(&files)
    }

    fn from_files(files: &[(String, File)]) -> Self {
        let mut interface = Self::default();
        files
            .iter()
            .for_each(|(_, file)| Names(&mut interface).visit_file(file));
        for (module, file) in files {
            interface.module.clone_from(module);
            interface.visit_file(file);
        }
        interface
    }

    /// Parses a text as the module `text`.
    pub(super) fn from_text(text: &str) -> Self {
        let file = syn::parse_file(text).unwrap_or_else(|error| panic!("{error}"));
        Self::from_files(&[("text".to_owned(), file)])
    }

    fn add(&mut self, owner: &str, name: &str, reason: Option<&'static str>) {
        if !self.hidden.contains(owner) && !self.hidden.contains(name) {
            let before = self
                .functions
                .entry(format!("{owner}::{name}"))
                .or_default();
            *before = before.or(reason);
        }
    }
}

impl<'ast> Visit<'ast> for Names<'_> {
    fn visit_item_trait(&mut self, item: &'ast ItemTrait) {
        if !is_public(&item.vis) || is_hidden(&item.attrs) {
            return;
        }
        let functions = item.items.iter().filter_map(|item| match item {
            TraitItem::Fn(function) => {
                let reason = reason(&function.attrs, &function.sig, function.default.as_ref());
                Some((function.sig.ident.to_string(), reason))
            }
            _ => None,
        });
        self.0
            .traits
            .insert(item.ident.to_string(), functions.collect());
    }

    fn visit_item_struct(&mut self, item: &'ast ItemStruct) {
        self.0
            .types
            .extend(is_public(&item.vis).then(|| item.ident.to_string()));
    }

    fn visit_item_enum(&mut self, item: &'ast ItemEnum) {
        self.0
            .types
            .extend(is_public(&item.vis).then(|| item.ident.to_string()));
    }

    fn visit_item_macro(&mut self, item: &'ast ItemMacro) {
        if item
            .mac
            .path
            .segments
            .last()
            .is_some_and(|segment| segment.ident == "shared_handle")
        {
            self.0.types.extend(
                idents(item.mac.tokens.clone()).filter(|name| name.starts_with(char::is_uppercase)),
            );
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if is_public(&item.vis) && is_hidden(&item.attrs) {
            export(&item.tree, &mut self.0.hidden);
        }
    }
}

impl<'ast> Visit<'ast> for Interface {
    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if !is_for_tests(&module.attrs) {
            syn::visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        if is_public(&function.vis) && !is_hidden(&function.attrs) && !is_absent(&function.attrs) {
            let reason = reason(&function.attrs, &function.sig, Some(&function.block));
            self.add(
                &self.module.clone(),
                &function.sig.ident.to_string(),
                reason,
            );
        }
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        let owner = type_name(&item.self_ty)
            .filter(|name| self.types.contains(name) && !is_absent(&item.attrs));
        let Some(owner) = owner else { return };
        let of_trait = item.trait_.as_ref().and_then(|path| path.0.segments.last());
        let of_trait = of_trait.map(|segment| self.traits.get(&segment.ident.to_string()).cloned());
        for item in &item.items {
            match (item, &of_trait) {
                (ImplItem::Fn(function), None) if is_public(&function.vis) => {
                    self.add_method(&owner, function);
                }
                (ImplItem::Fn(function), Some(Some(_))) => self.add_method(&owner, function),
                (ImplItem::Macro(_), Some(Some(functions))) => {
                    functions
                        .iter()
                        .for_each(|(name, reason)| self.add(&owner, name, *reason));
                }
                _ => {}
            }
        }
    }

    fn visit_item_macro(&mut self, item: &'ast ItemMacro) {
        let tokens = item.mac.tokens.clone();
        if let Some(name) = &item.ident {
            let makes = ["pub fn", "pub unsafe fn"]
                .iter()
                .any(|head| tokens.to_string().contains(head));
            assert!(
                !makes || MAKERS.iter().any(|maker| name == maker),
                "`{name}!` makes public functions that are not read"
            );
        } else if ["slice_owner", "buffer_argument"]
            .iter()
            .any(|name| item.mac.path.is_ident(name))
        {
            let owner = tokens
                .into_iter()
                .find(|token| matches!(token, TokenTree::Ident(_)));
            self.add(
                &owner.expect("the macro names a type").to_string(),
                "bind",
                Some("it binds an argument"),
            );
        } else if item.mac.path.is_ident("attributes")
            && idents(tokens.clone()).any(|name| name.contains("_FUNC_ATTRIBUTE_"))
        {
            entry_names(tokens)
                .iter()
                .for_each(|name| self.add("Kernel", name, Some("it queries an attribute")));
        }
    }
}

impl Interface {
    fn add_method(&mut self, owner: &str, function: &ImplItemFn) {
        if !is_hidden(&function.attrs)
            && !is_for_tests(&function.attrs)
            && !is_absent(&function.attrs)
        {
            let reason = reason(&function.attrs, &function.sig, Some(&function.block));
            self.add(owner, &function.sig.ident.to_string(), reason);
        }
    }
}

/// Returns the reason why a function may call the driver, or `None`.
fn reason(
    attributes: &[Attribute],
    signature: &Signature,
    block: Option<&Block>,
) -> Option<&'static str> {
    let has = |tokens: TokenStream, text: &str| tokens.to_string().contains(text);
    if block.is_some_and(|block| has(block.to_token_stream(), "call !")) {
        Some("its body has `call!`")
    } else if attributes.iter().any(|attribute| {
        attribute.path().is_ident("doc") && has(attribute.to_token_stream(), "CUDA: ")
    }) {
        Some("its documentation has `CUDA:`")
    } else {
        let output = signature.output.to_token_stream();
        idents(output)
            .any(|name| name == "Result" || name == "Pending")
            .then_some(super::FALLIBLE)
    }
}

/// Returns the identifiers in `tokens`, including those in groups.
fn idents(tokens: TokenStream) -> impl Iterator<Item = String> {
    let names = tokens.into_iter().flat_map(|token| match token {
        TokenTree::Group(group) => idents(group.stream()).collect(),
        TokenTree::Ident(name) => vec![name.to_string()],
        _ => vec![],
    });
    names.collect::<Vec<_>>().into_iter()
}

/// Returns the names of the entries of a list `#[…] name: …;`.
fn entry_names(tokens: TokenStream) -> Vec<String> {
    let tokens: Vec<_> = tokens.into_iter().collect();
    let entries =
        tokens.split(|token| matches!(token, TokenTree::Punct(mark) if mark.as_char() == ';'));
    entries
        .filter_map(|entry: &[TokenTree]| {
            entry
                .iter()
                .find(|token| matches!(token, TokenTree::Ident(_)))
                .map(ToString::to_string)
        })
        .collect()
}

fn export(tree: &UseTree, names: &mut BTreeSet<String>) {
    match tree {
        UseTree::Path(path) => export(&path.tree, names),
        UseTree::Name(name) => drop(names.insert(name.ident.to_string())),
        UseTree::Rename(name) => drop(names.insert(name.ident.to_string())),
        UseTree::Group(group) => group.items.iter().for_each(|tree| export(tree, names)),
        UseTree::Glob(_) => {}
    }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes
        .iter()
        .any(|attribute| attribute.path().is_ident("doc") && names_only(attribute, "hidden"))
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes
        .iter()
        .any(|attribute| attribute.path().is_ident("cfg") && names_only(attribute, "test"))
}

/// Returns `true` if the only argument of `attribute` is `name`.
fn names_only(attribute: &Attribute, name: &str) -> bool {
    attribute
        .parse_args::<syn::Ident>()
        .is_ok_and(|argument| argument == name)
}

fn type_name(of: &Type) -> Option<String> {
    match of {
        Type::Path(path) => path
            .path
            .segments
            .last()
            .map(|segment| segment.ident.to_string()),
        Type::Reference(reference) => type_name(&reference.elem),
        _ => None,
    }
}

/// Returns the Rust files below `folder`, each with its module name, without modules that this
/// platform does not compile.
fn present_files(folder: &Path) -> Vec<(String, File)> {
    let files = files(folder);
    let modules = files
        .iter()
        .flat_map(|(_, _, file)| &file.items)
        .filter_map(|item| match item {
            Item::Mod(module) if module.content.is_none() && is_absent(&module.attrs) => {
                Some(module.ident.to_string())
            }
            _ => None,
        });
    let absent: BTreeSet<String> = modules.collect();
    let is_present = |path: &Path| {
        path.iter()
            .all(|part| !absent.contains(part.to_string_lossy().trim_end_matches(".rs")))
    };
    let present = files
        .into_iter()
        .filter(|(path, ..)| is_present(path.strip_prefix(folder).expect("the list contains it")));
    present.map(|(_, name, file)| (name, file)).collect()
}

/// Returns the Rust files below `folder`, each with its path and the name of its module.
fn files(folder: &Path) -> Vec<(PathBuf, String, File)> {
    let entries =
        std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.expect("failed to list the folder").path());
    let files = paths.flat_map(|path| match path.extension() {
        _ if path.is_dir() => files(&path),
        Some(extension) if extension == "rs" => {
            let text = std::fs::read_to_string(&path).expect("failed to read the file");
            let file = syn::parse_file(&text)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let module = path
                .file_stem()
                .expect("a file has a name")
                .to_string_lossy()
                .into_owned();
            vec![(path, module, file)]
        }
        _ => vec![],
    });
    files.collect()
}
