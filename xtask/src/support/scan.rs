//! Finds the driver functions that the sources call, and their callers.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

use super::sources::Source;
use crate::bindings::split_suffix;

/// An item that calls a function of the driver.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Wrapping {
    /// The item, such as `Stream::synchronize`.
    pub(crate) item: String,
    /// The file that contains it.
    pub(crate) path: String,
}

/// Returns the functions among `names` that `sources` call, each with its wrappings.
///
/// A function is wrapped where it is called. Its wrappings are the public items whose documentation
/// names the function after `CUDA:`: those with its name as an alias, or else all of them, or else
/// the items that contain the calls.
pub(crate) fn wrapped(
    sources: &[Source],
    names: &BTreeSet<String>,
) -> Result<BTreeMap<String, Vec<Wrapping>>> {
    let mut scan = Scan {
        names,
        path: "",
        scope: Vec::new(),
        called: BTreeMap::new(),
        documented: BTreeMap::new(),
        aliased: BTreeMap::new(),
    };
    for source in sources {
        scan.path = &source.path;
        scan.visit_file(&source.file);
    }
    let Scan {
        called,
        mut documented,
        mut aliased,
        ..
    } = scan;
    let wrappings = called.into_iter().map(|(name, callers)| {
        let public = aliased.remove(&name).or_else(|| documented.remove(&name));
        let wrappings = public.unwrap_or(callers);
        (name, wrappings.into_iter().collect())
    });
    Ok(wrappings.collect())
}

/// Returns the functions that the simulator implements: the inherent methods of its calls under
/// their C names, and those that macros make.
pub(crate) fn simulated(sources: &[Source]) -> Result<BTreeSet<String>> {
    let items = sources.iter().flat_map(|source| &source.file.items);
    let methods = items.filter_map(|item| match item {
        syn::Item::Impl(block) if block.trait_.is_none() && type_name(&block.self_ty) == "Call" => {
            Some(&block.items)
        }
        _ => None,
    });
    let names = methods.flatten().filter_map(|item| match item {
        syn::ImplItem::Fn(method) => Some(method.sig.ident.to_string()),
        _ => None,
    });
    let items = sources.iter().flat_map(|source| &source.file.items);
    let macros = items.filter_map(|item| match item {
        // A macro invocation: a definition has a name.
        syn::Item::Macro(used) if used.ident.is_none() => Some(used.mac.tokens.clone()),
        _ => None,
    });
    let generated = macros.flatten().filter_map(|token| match token {
        TokenTree::Ident(name) => Some(name.to_string()),
        _ => None,
    });
    Ok(names
        .chain(generated)
        .filter(|name| is_c_name(name))
        .collect())
}

struct Scan<'a> {
    names: &'a BTreeSet<String>,
    path: &'a str,
    /// The names of the enclosing type and functions.
    scope: Vec<String>,
    called: BTreeMap<String, BTreeSet<Wrapping>>,
    documented: BTreeMap<String, BTreeSet<Wrapping>>,
    /// The documented items that also have the function's name as an alias.
    aliased: BTreeMap<String, BTreeSet<Wrapping>>,
}

impl Scan<'_> {
    /// Calls `visit` within the scope of the item called `name`.
    fn within(&mut self, name: String, visit: impl FnOnce(&mut Self)) {
        self.scope.push(name);
        visit(self);
        self.scope.pop();
    }

    fn current_item(&self) -> Wrapping {
        // At most a type and a function of it: deeper nesting does not make an item.
        let item = self
            .scope
            .iter()
            .take(2)
            .cloned()
            .collect::<Vec<_>>()
            .join("::");
        Wrapping {
            item,
            path: self.path.to_owned(),
        }
    }

    fn call(&mut self, name: &str) {
        if self.names.contains(name) {
            let item = self.current_item();
            self.called.entry(name.to_owned()).or_default().insert(item);
        }
    }

    /// Records the functions that the documentation of a public item lists as its calls.
    fn document(&mut self, visibility: &syn::Visibility, attributes: &[syn::Attribute]) {
        if !matches!(visibility, syn::Visibility::Public(_)) {
            return;
        }
        let aliases = aliases(attributes);
        for name in named_functions(&documentation(attributes)) {
            let item = self.current_item();
            if aliases
                .iter()
                .any(|alias| *alias == name || alias == split_suffix(&name).0)
            {
                self.aliased
                    .entry(name.clone())
                    .or_default()
                    .insert(item.clone());
            }
            self.documented.entry(name).or_default().insert(item);
        }
    }

    /// Finds `call!(…, name(…))` among the tokens of a macro.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut before = [None, None];
        for token in tokens {
            if let TokenTree::Group(group) = &token {
                if before == [Some("call".to_owned()), Some("!".to_owned())] {
                    self.call_arguments(group.stream());
                }
                self.tokens(group.stream());
            }
            before = [before[1].take(), Some(token.to_string())];
        }
    }

    /// The function named in the second argument of `call!`.
    fn call_arguments(&mut self, tokens: TokenStream) {
        let mut tokens = tokens
            .into_iter()
            .skip_while(|token| token.to_string() != ",")
            .skip(1);
        if let Some(TokenTree::Ident(name)) = tokens.next() {
            self.call(&name.to_string());
        }
    }
}

impl<'ast> Visit<'ast> for Scan<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_test(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_impl(&mut self, block: &'ast syn::ItemImpl) {
        self.within(type_name(&block.self_ty), |scan| {
            visit::visit_item_impl(scan, block);
        });
    }

    fn visit_impl_item_fn(&mut self, method: &'ast syn::ImplItemFn) {
        self.within(method.sig.ident.to_string(), |scan| {
            scan.document(&method.vis, &method.attrs);
            visit::visit_impl_item_fn(scan, method);
        });
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.within(function.sig.ident.to_string(), |scan| {
            scan.document(&function.vis, &function.attrs);
            visit::visit_item_fn(scan, function);
        });
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        if call.path.is_ident("call") {
            self.call_arguments(call.tokens.clone());
        }
        self.tokens(call.tokens.clone());
    }

    fn visit_expr_field(&mut self, field: &'ast syn::ExprField) {
        if let syn::Member::Named(name) = &field.member {
            self.call(&name.to_string());
        }
        visit::visit_expr_field(self, field);
    }
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<syn::Ident>()
                .is_ok_and(|what| what == "test")
    })
}

fn is_c_name(name: &str) -> bool {
    name.strip_prefix("cu")
        .is_some_and(|name| name.starts_with(char::is_uppercase))
}

fn type_name(ty: &syn::Type) -> String {
    match ty {
        syn::Type::Path(path) => path
            .path
            .segments
            .last()
            .map(|name| name.ident.to_string())
            .unwrap_or_default(),
        syn::Type::Reference(reference) => type_name(&reference.elem),
        _ => String::new(),
    }
}

/// Returns the text of the documentation comments.
fn documentation(attributes: &[syn::Attribute]) -> String {
    let lines = attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("doc"))
        .filter_map(|attribute| {
            let syn::Meta::NameValue(pair) = &attribute.meta else {
                return None;
            };
            let syn::Expr::Lit(syn::ExprLit {
                lit: syn::Lit::Str(text),
                ..
            }) = &pair.value
            else {
                return None;
            };
            Some(text.value())
        });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the names in `#[doc(alias = "…")]`.
fn aliases(attributes: &[syn::Attribute]) -> Vec<String> {
    let lists = attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("doc"));
    let pairs = lists.filter_map(|attribute| attribute.parse_args::<syn::MetaNameValue>().ok());
    let values = pairs
        .filter(|pair| pair.path.is_ident("alias"))
        .filter_map(|pair| match pair.value {
            syn::Expr::Lit(syn::ExprLit {
                lit: syn::Lit::Str(text),
                ..
            }) => Some(text.value()),
            _ => None,
        });
    values.collect()
}

/// Returns the functions in backticks after `CUDA:`, up to the end of the paragraph.
fn named_functions(documentation: &str) -> Vec<String> {
    let named = documentation.split("CUDA: ").skip(1);
    let paragraphs = named.filter_map(|name| name.split("\n\n").next());
    let words = paragraphs.flat_map(|paragraph| paragraph.split('`').skip(1).step_by(2));
    words
        .filter(|word| is_c_name(word))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(text: &str) -> BTreeMap<String, Vec<Wrapping>> {
        let sources = [Source {
            path: "stream.rs".to_owned(),
            file: syn::parse_file(text).expect("syntax error"),
        }];
        let names = ["cuOne", "cuTwo", "cuTwo_v2", "cuThree"]
            .map(str::to_owned)
            .into();
        wrapped(&sources, &names).expect("scan failed")
    }

    fn items(found: &BTreeMap<String, Vec<Wrapping>>, name: &str) -> Vec<String> {
        found
            .get(name)
            .into_iter()
            .flatten()
            .map(|wrapping| wrapping.item.clone())
            .collect()
    }

    #[test]
    fn calls_are_found_in_macros_and_closures() {
        // The block of this source is parsed, never run: SAFETY does not apply.
        let calls = scan(
            "impl Stream { fn wait(&self) { unsafe { call!(self.driver(), cuOne(a, b)) } } } \
             fn free() { assert!(enter(|d| call!(d, cuTwo()))); } fn table(api: &Api) { api.cuThree; }",
        );
        assert_eq!(items(&calls, "cuOne"), ["Stream::wait"]);
        assert_eq!(items(&calls, "cuTwo"), ["free"]);
        assert_eq!(items(&calls, "cuThree"), ["table"]);
    }

    /// A public item that documents the function stands for the private function that calls it.
    #[test]
    fn public_item_represents_the_private_caller() {
        let calls = scan(
            "impl Stream { /// Ends it.\n///\n/// CUDA: `cuOne`, since 12.0.\n pub fn close(self) { self.end() } \
             fn end(&self) { call!(d, cuOne()) } }",
        );
        assert_eq!(items(&calls, "cuOne"), ["Stream::close"]);
    }

    /// Items with the function's name as an alias come before other callers.
    #[test]
    fn aliased_items_come_first() {
        let calls = scan(
            "/// CUDA: `cuTwo_v2`.\n#[doc(alias = \"cuTwo\")]\npub fn two() { call!(d, cuTwo_v2()) } \
             /// CUDA: `cuOne`, `cuTwo_v2`.\n#[doc(alias = \"cuOne\")]\npub fn both() { call!(d, cuOne()); two() }",
        );
        assert_eq!(items(&calls, "cuTwo_v2"), ["two"]);
        assert_eq!(items(&calls, "cuOne"), ["both"]);
    }

    #[test]
    fn documented_function_is_not_wrapped() {
        let calls = scan(
            "/// CUDA: `cuOne`.\npub fn one() {} #[cfg(test)] mod tests { fn two() { call!(d, cuTwo()) } }",
        );
        assert!(calls.is_empty(), "{calls:?}");
    }

    #[test]
    fn simulated_functions_include_those_of_macros() {
        let text = "impl Call<'_> { fn cuOne(&self) {} fn other(&self) {} } impl Unsupported for Call<'_> { fn cuTwo(&self) {} } \
             macro_rules! make { ($name:ident) => { impl Call<'_> { fn cuThree(&self) {} } } } make! { cuFour }";
        let file = syn::parse_file(text).expect("syntax error");
        let functions = simulated(&[Source {
            path: String::new(),
            file,
        }])
        .expect("scan failed");
        assert_eq!(
            functions.into_iter().collect::<Vec<_>>(),
            ["cuFour", "cuOne"]
        );
    }
}
