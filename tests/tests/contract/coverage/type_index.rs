//! What the sources of the crates say of types.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use syn::{FnArg, PathArguments, ReturnType, Signature, Type, TypeParamBound};

use super::foreign;
use super::known_type::{KnownType, PARAMETER};
use super::source::{Body, Parameters};

/// The types of the crates, and the types of their fields, statics and results.
#[derive(Default)]
pub(super) struct TypeIndex {
    /// The structs and enums of the crates.
    pub(super) own: BTreeSet<String>,
    pub(super) traits: BTreeSet<String>,
    /// Other names for types: what is behind them is not known.
    pub(super) aliases: BTreeSet<String>,
    /// The methods of the crates' traits, each with its traits.
    pub(super) of_traits: BTreeMap<String, BTreeSet<String>>,
    /// The crates' traits with the types that have them: none where that is not told.
    pub(super) implementations: BTreeSet<(String, Option<String>)>,
    /// The names of all functions of the crates.
    pub(super) names: BTreeSet<String>,
    /// The types of statics.
    statics: BTreeMap<String, Option<KnownType>>,
    /// The types of fields, by the name of the struct and that of the field.
    fields: BTreeMap<(String, String), Option<KnownType>>,
    /// What functions give to the closure that they take.
    inputs: BTreeMap<String, Option<KnownType>>,
    /// What functions return, by `Type::function` or `module::function`.
    results: BTreeMap<String, Option<KnownType>>,
}

impl TypeIndex {
    pub(super) fn add_field(&mut self, owner: &str, field: String, written: &Type, parameters: &Parameters) {
        let known = KnownType::of(written, Some(owner)).map(|known| known.without(parameters));
        merge(self.fields.entry((owner.to_owned(), field)), known);
    }

    pub(super) fn add_static(&mut self, name: String, known: Option<KnownType>) {
        merge(self.statics.entry(name), known);
    }

    /// The traits of the crates that give `method` to types of others.
    pub(super) fn traits_of_foreign<'a>(&'a self, method: &str) -> impl Iterator<Item = String> + use<'a> {
        let traits = self.of_traits.get(method).into_iter().flatten();
        traits
            .filter(|name| {
                let mut of = self.implementations.iter().filter(move |(of_trait, _)| of_trait == *name);
                of.any(|(_, owner)| owner.as_ref().is_none_or(|owner| !self.own.contains(owner)))
            })
            .cloned()
    }

    /// Those of `traits` that are the crates' own.
    pub(super) fn own_traits<'a>(&'a self, traits: &'a [String]) -> impl Iterator<Item = String> + use<'a> {
        traits.iter().filter(|name| self.traits.contains(*name)).cloned()
    }

    pub(super) fn of_static(&self, name: &str) -> Option<KnownType> {
        self.statics.get(name).cloned().flatten()
    }

    pub(super) fn add_result(&mut self, function: &Body) {
        let known = match &function.signature.output {
            ReturnType::Default => Some(KnownType::named("tuple")),
            ReturnType::Type(_, written) => KnownType::of(written, function.owner.as_deref()),
        };
        let known = known.map(|known| known.without(&function.parameters));
        let input = closure_input(&function.signature, function.owner.as_deref());
        let input = input.filter(|known| !function.parameters.contains_key(&known.name));
        merge(self.inputs.entry(function.name.clone()), input);
        self.names.insert(function.signature.ident.to_string());
        merge(self.results.entry(function.name.clone()), known);
    }

    pub(super) fn field(&self, owner: &KnownType, field: &str) -> Option<KnownType> {
        self.fields.get(&(owner.name.clone(), field.to_owned())).cloned().flatten()?.with(owner)
    }

    /// What a function of no type returns, or one of a type whose parameters are not known.
    pub(super) fn result(&self, function: &str) -> Option<KnownType> {
        self.results.get(function).cloned().flatten()?.with(&KnownType::named(PARAMETER))
    }

    /// What a method of `owner` returns.
    pub(super) fn method_result(&self, owner: &KnownType, method: &str) -> Option<KnownType> {
        self.results.get(&format!("{}::{method}", owner.name)).cloned().flatten()?.with(owner)
    }

    /// What a function of the crates gives to the closure that it takes.
    pub(super) fn closure_input_of(&self, function: &str) -> Option<KnownType> {
        self.inputs.get(function).cloned().flatten()
    }

    /// What `method` gives of a value of which nothing is known.
    pub(super) fn any_result(&self, method: &str) -> Option<KnownType> {
        let is_foreign = foreign::PLAIN.contains(&method) && !self.names.contains(method);
        is_foreign.then(|| KnownType::around(method, None))
    }

    /// Whether `name` is that of a type, and neither of the crates' own nor one that stands for others.
    pub(super) fn is_foreign(&self, name: &str) -> bool {
        let lists = [&self.own, &self.traits, &self.aliases];
        name != "Self" && name != PARAMETER && lists.iter().all(|list| !list.contains(name))
    }
}

/// What the only closure among the parameters of a function is given, written as `impl FnOnce(T)`.
fn closure_input(signature: &Signature, owner: Option<&str>) -> Option<KnownType> {
    let written = signature.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(input) => Some(&*input.ty),
        FnArg::Receiver(_) => None,
    });
    let closures = written.filter_map(|written| match written {
        Type::ImplTrait(of_traits) => of_traits.bounds.first(),
        _ => None,
    });
    let inputs: Vec<_> = closures
        .filter_map(|bound| match bound {
            TypeParamBound::Trait(bound) => match &bound.path.segments.last()?.arguments {
                PathArguments::Parenthesized(arguments) => Some(arguments),
                _ => None,
            },
            _ => None,
        })
        .collect();
    let [arguments] = inputs.as_slice() else { return None };
    KnownType::of(&arguments.inputs.first()?.ty, owner)
}

/// Two that have one name make a type unknown unless it is the same.
fn merge<K: Ord>(entry: Entry<'_, K, Option<KnownType>>, known: Option<KnownType>) {
    entry
        .and_modify(|before| {
            if *before != known {
                *before = None;
            }
        })
        .or_insert(known);
}
