//! What an item of a source says of itself: its visibility, its attributes, its parameters, and what a macro stands for.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};
use syn::parse::{ParseStream, Parser as _};
use syn::{Attribute, FnArg, Generics, ImplItem, Item, Meta, Signature, Type, Visibility, WherePredicate};

use super::known_type::bounds;
use super::source::Parameters;

pub(super) fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

pub(super) fn public_name(item: &Item) -> Option<String> {
    match item {
        Item::Struct(item) if is_public(&item.vis) => Some(item.ident.to_string()),
        Item::Enum(item) if is_public(&item.vis) => Some(item.ident.to_string()),
        Item::Trait(item) if is_public(&item.vis) => Some(item.ident.to_string()),
        Item::Fn(item) if is_public(&item.vis) => Some(item.sig.ident.to_string()),
        _ => None,
    }
}

pub(super) fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        matches!(&attribute.meta, Meta::List(list) if list.path.is_ident("doc") && list.tokens.to_string() == "hidden")
    })
}

pub(super) fn is_derived(attributes: &[Attribute], name: &str) -> bool {
    let is_name = |token: TokenTree| matches!(token, TokenTree::Ident(own) if own == name);
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("derive") => list.tokens.clone().into_iter().any(is_name),
        _ => false,
    })
}

pub(super) fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        matches!(&attribute.meta, Meta::List(list) if list.path.is_ident("cfg") && list.tokens.to_string() == "test")
    })
}

pub(super) fn type_name(of: &Type) -> Option<String> {
    match of {
        Type::Path(path) => Some(path_end(&path.path)),
        Type::Reference(reference) => type_name(&reference.elem),
        _ => None,
    }
}

pub(super) fn path_end(path: &syn::Path) -> String {
    path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default()
}

/// The traits that a macro implements: what is named in front of `for`.
pub(super) fn implemented(tokens: &TokenStream) -> BTreeSet<String> {
    let mut traits = BTreeSet::new();
    let mut last = None;
    for token in tokens.clone() {
        match token {
            TokenTree::Group(group) => traits.extend(implemented(&group.stream())),
            TokenTree::Ident(name) if name == "for" => traits.extend(last.take()),
            TokenTree::Ident(name) if name.to_string().starts_with(char::is_uppercase) => last = Some(name.to_string()),
            _ => {}
        }
    }
    traits
}

/// The methods that a macro stands for: what is behind `() =>`, if it is methods.
pub(super) fn methods_of(rules: &TokenStream) -> Vec<ImplItem> {
    let rules: Vec<TokenTree> = rules.clone().into_iter().collect();
    let [TokenTree::Group(parameters), _, _, TokenTree::Group(body), ..] = rules.as_slice() else { return vec![] };
    let methods = |input: ParseStream<'_>| {
        let mut methods = vec![];
        while !input.is_empty() {
            methods.push(input.parse()?);
        }
        Ok(methods)
    };
    if parameters.stream().is_empty() { methods.parse2(body.stream()).unwrap_or_default() } else { vec![] }
}

/// The names that begin the entries of a list: `#[…] name: …;`.
pub(super) fn names_of_entries(tokens: TokenStream) -> Vec<String> {
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

/// What `generics` declare, one behind the other.
pub(super) fn type_parameters(generics: &[&Generics]) -> Parameters {
    let mut parameters = Parameters::new();
    for parameter in generics.iter().flat_map(|generics| generics.type_params()) {
        parameters.entry(parameter.ident.to_string()).or_default().extend(bounds(&parameter.bounds));
    }
    for clause in generics.iter().filter_map(|generics| generics.where_clause.as_ref()) {
        for predicate in &clause.predicates {
            if let WherePredicate::Type(bound) = predicate
                && let Some(name) = type_name(&bound.bounded_ty)
            {
                parameters.entry(name).and_modify(|traits| traits.extend(bounds(&bound.bounds)));
            }
        }
    }
    parameters
}

/// How many arguments a function takes beside `self`.
pub(super) fn parameters(signature: &Signature) -> usize {
    signature.inputs.iter().filter(|input| !matches!(input, FnArg::Receiver(_))).count()
}
