//! A trait that `unsafe` code trusts is an `unsafe trait`, or sealed: other crates cannot implement
//! it in safe code.
//!
//! No test can find out what `unsafe` code trusts. Therefore every public trait is `unsafe` or
//! sealed, or has a written reason.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::Visit;
use syn::{
    GenericParam, Generics, Item, ItemImpl, ItemMod, ItemTrait, ItemUse, TypeParamBound, UseTree,
    Visibility,
};

use crate::sources::{Result, is_test, sources_with};

/// The traits that safe code of other crates may implement: the crate, the trait, and the reason
/// why no `unsafe` code trusts it.
const OPEN: &[(&str, &str, &str)] = &[
    (
        "driver",
        "CallObserver",
        "a callback, which returns nothing that `unsafe` code uses",
    ),
    (
        "driver",
        "CudaError",
        "it answers questions about an error, and no `unsafe` code uses the answers",
    ),
    (
        "driver",
        "SemaphoreOwner",
        "a callback; the caller of the unsafe `GraphSemaphore::new` guarantees that the owner keeps the semaphore alive",
    ),
    (
        "kernel",
        "HostKernel",
        "only `unsafe` code makes a `Function` of a type, which is what launches it",
    ),
    ("kernel", "HostScope", "its supertrait `Scope` is unsafe"),
    (
        "kernel",
        "LoadWith",
        "a method with an implementation for slices; no code is generic over it",
    ),
    (
        "kernel",
        "StoreWith",
        "a method with an implementation for all types; no code is generic over it",
    ),
    (
        "kernel",
        "Table",
        "it has no items, and only tables are compared with tables",
    ),
    (
        "memory",
        "AnyBitPattern",
        "its supertrait is bytemuck's unsafe trait, and it is implemented for every type with that one",
    ),
    ("memory", "NoUninit", "as for `AnyBitPattern`"),
    ("memory", "Zeroable", "as for `AnyBitPattern`"),
    (
        "nccl",
        "DeviceMemory",
        "it is implemented for every type that dereferences to a `DeviceSlice`, which is dereferenced once",
    ),
    (
        "nccl",
        "Exchange",
        "it transfers bytes, and NCCL checks the identifier, the rank and the number of ranks; operations use those that NCCL accepted",
    ),
    (
        "ptx",
        "Runtime",
        "it returns addresses of device memory, which the executor looks up in `Memory`, an unsafe trait, at each access",
    ),
    (
        "ptx",
        "Watcher",
        "it observes accesses, and can only report a race",
    ),
    (
        "sys",
        "FromProvider",
        "it is implemented by handles, which receive the provider: an unsafe trait",
    ),
    (
        "sys",
        "LibraryStatus",
        "it classifies the codes of a library for messages",
    ),
];

/// A public trait.
#[derive(Debug)]
struct PublicTrait {
    name: String,
    is_unsafe: bool,
    /// The paths of the supertraits.
    supertraits: Vec<Vec<String>>,
}

/// The traits of a crate.
#[derive(Debug, Default)]
struct CrateTraits {
    public: Vec<PublicTrait>,
    /// The traits in private inline modules, each with its module: other crates cannot name them.
    unnameable: BTreeSet<(String, String)>,
    /// The traits in modules that are implemented for every type with some bounds, each with its
    /// module and these bounds.
    blanket: Vec<(String, String, Vec<String>)>,
    /// The paths of public re-exports.
    exports: Vec<Vec<String>>,
}

/// Collects the traits of a file.
struct Collector<'a> {
    traits: &'a mut CrateTraits,
    /// The innermost inline module, if it or an outer one is private.
    private_module: Option<String>,
}

impl Collector<'_> {
    /// Returns the name of a trait, and the module that the path names or that contains the path.
    fn module_and_name(&self, path: &syn::Path) -> Option<(String, String)> {
        let mut segments = path.segments.iter().rev();
        let name = segments.next()?.ident.to_string();
        let module = match segments.next() {
            Some(segment) => segment.ident.to_string(),
            None => self.private_module.clone()?,
        };
        Some((module, name))
    }
}

impl<'ast> Visit<'ast> for Collector<'_> {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if is_test(&item.attrs) || item.content.is_none() {
            return;
        }
        let is_private =
            !matches!(item.vis, Visibility::Public(_)) || self.private_module.is_some();
        let module = is_private.then(|| item.ident.to_string());
        let outer = std::mem::replace(&mut self.private_module, module);
        syn::visit::visit_item_mod(self, item);
        self.private_module = outer;
    }

    fn visit_item_trait(&mut self, item: &'ast ItemTrait) {
        if !matches!(item.vis, Visibility::Public(_)) {
            return;
        }
        let name = item.ident.to_string();
        if let Some(module) = &self.private_module {
            self.traits.unnameable.insert((module.clone(), name));
            return;
        }
        let bounds = item.supertraits.iter();
        self.traits.public.push(PublicTrait {
            name,
            is_unsafe: item.unsafety.is_some(),
            supertraits: bounds.filter_map(trait_path).collect(),
        });
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        if let (Some((path, _)), syn::Type::Path(implementor)) = (&item.trait_, &*item.self_ty)
            && let Some(name) = implementor.path.get_ident()
            && let Some(bounds) = parameter_bounds(&item.generics, name)
            && let Some((module, name)) = self.module_and_name(path)
        {
            self.traits.blanket.push((module, name, bounds));
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if matches!(item.vis, Visibility::Public(_)) {
            self.traits.exports.extend(use_paths(&item.tree));
        }
    }

    fn visit_item(&mut self, item: &'ast Item) {
        if let Item::Macro(item) = item {
            self.traits
                .public
                .extend(macro_traits(item.mac.tokens.clone()));
        }
        syn::visit::visit_item(self, item);
    }
}

/// Returns the names of the traits that bound a type parameter; `None` if there is no such
/// parameter.
fn parameter_bounds(generics: &Generics, name: &syn::Ident) -> Option<Vec<String>> {
    let parameter = generics
        .params
        .iter()
        .find_map(|parameter| match parameter {
            GenericParam::Type(parameter) if parameter.ident == *name => Some(parameter),
            _ => None,
        })?;
    let paths = parameter.bounds.iter().filter_map(trait_path);
    Some(paths.filter_map(|path| path.last().cloned()).collect())
}

fn trait_path(bound: &TypeParamBound) -> Option<Vec<String>> {
    let TypeParamBound::Trait(bound) = bound else {
        return None;
    };
    let segments = bound.path.segments.iter();
    Some(segments.map(|segment| segment.ident.to_string()).collect())
}

fn use_paths(tree: &UseTree) -> Vec<Vec<String>> {
    match tree {
        UseTree::Path(path) => {
            let mut paths = use_paths(&path.tree);
            for inner in &mut paths {
                inner.insert(0, path.ident.to_string());
            }
            paths
        }
        UseTree::Name(name) => vec![vec![name.ident.to_string()]],
        UseTree::Rename(rename) => vec![vec![rename.ident.to_string()]],
        UseTree::Glob(_) => vec![vec!["*".to_owned()]],
        UseTree::Group(group) => group.items.iter().flat_map(use_paths).collect(),
    }
}

/// Returns the public traits that the tokens of a macro declare. A trait whose name is a parameter
/// of the macro has the parameter's name.
fn macro_traits(tokens: TokenStream) -> Vec<PublicTrait> {
    let tokens: Vec<_> = tokens.into_iter().collect();
    let mut traits = Vec::new();
    for token in &tokens {
        if let TokenTree::Group(group) = token {
            traits.extend(macro_traits(group.stream()));
        }
    }
    let words: Vec<_> = tokens.iter().map(ToString::to_string).collect();
    for (index, word) in words.iter().enumerate() {
        let is_unsafe = index > 0 && words[index - 1] == "unsafe";
        let before = index.checked_sub(1 + usize::from(is_unsafe));
        if word != "trait" || before.is_none_or(|before| words[before] != "pub") {
            continue;
        }
        let header: Vec<_> = words[index + 1..]
            .iter()
            .take_while(|word| !word.starts_with('{'))
            .cloned()
            .collect();
        let mut names = header.iter().filter(|word| *word != "$");
        let Some(name) = names.next().cloned() else {
            continue;
        };
        let supertraits: Vec<_> = names.cloned().collect();
        let supertraits = supertraits.split(|word| word == "+").map(|bound| {
            let segments = bound.iter().filter(|word| *word != ":");
            segments.cloned().collect()
        });
        traits.push(PublicTrait {
            name,
            is_unsafe,
            supertraits: supertraits.collect(),
        });
    }
    traits
}

impl CrateTraits {
    fn add(&mut self, syntax: &syn::File) {
        let mut collector = Collector {
            traits: self,
            private_module: None,
        };
        collector.visit_file(syntax);
    }

    /// Returns the public traits that are neither `unsafe` nor sealed.
    fn open(&self) -> BTreeSet<&str> {
        let mut sealed: BTreeSet<&str> = BTreeSet::new();
        loop {
            let count = sealed.len();
            for item in &self.public {
                let is_sealed = item.supertraits.iter().any(|path| match &path[..] {
                    [.., module, name] if self.is_seal(module, name, &sealed) => true,
                    [.., name] => sealed.contains(name.as_str()),
                    [] => false,
                });
                if is_sealed {
                    sealed.insert(&item.name);
                }
            }
            if sealed.len() == count {
                break;
            }
        }
        let names = self.public.iter().filter(|item| !item.is_unsafe);
        names
            .map(|item| item.name.as_str())
            .filter(|name| !sealed.contains(name))
            .collect()
    }

    /// Returns `true` for a trait that other crates can neither name nor get by an implementation
    /// for every type.
    fn is_seal(&self, module: &str, name: &str, sealed: &BTreeSet<&str>) -> bool {
        let is_exported = self.exports.iter().any(|path| {
            path.windows(2)
                .any(|pair| pair[0] == module && (pair[1] == name || pair[1] == "*"))
        });
        let item = (module.to_owned(), name.to_owned());
        let is_implemented_outside = self.blanket.iter().any(|(of_module, of_name, bounds)| {
            (of_module.as_str(), of_name.as_str()) == (module, name)
                && !bounds.iter().any(|bound| sealed.contains(bound.as_str()))
        });
        self.unnameable.contains(&item) && !is_exported && !is_implemented_outside
    }
}

/// Every public trait of the libraries is `unsafe`, sealed, or in the table.
#[test]
fn public_traits_are_sealed() -> Result {
    let mut crates: BTreeMap<String, CrateTraits> = BTreeMap::new();
    for source in sources_with("")? {
        crates.entry(source.krate).or_default().add(&source.syntax);
    }
    let count: usize = crates.values().map(|traits| traits.public.len()).sum();
    assert!(count > 40, "only {count} traits were found");
    let open: BTreeSet<_> = crates
        .iter()
        .flat_map(|(krate, traits)| {
            let names = traits.open().into_iter();
            names.map(move |name| (krate.as_str(), name))
        })
        .collect();
    let justified: BTreeSet<_> = OPEN
        .iter()
        .map(|(krate, name, _)| (*krate, *name))
        .collect();
    let unjustified: Vec<_> = open.difference(&justified).collect();
    assert!(
        unjustified.is_empty(),
        "safe code of other crates can implement these traits: {unjustified:?}; make them unsafe or sealed, or give the reason in OPEN"
    );
    let stale: Vec<_> = justified.difference(&open).collect();
    assert!(stale.is_empty(), "remove from OPEN: {stale:?}");
    Ok(())
}

#[test]
fn open_traits_are_found() -> Result {
    let cases = [
        ("pub trait Open {}", vec!["Open"]),
        ("pub unsafe trait Trusted {}", vec![]),
        ("pub(crate) trait Internal {}", vec![]),
        (
            "mod sealed { pub trait Sealed {} } pub trait Closed: sealed::Sealed {}",
            vec![],
        ),
        (
            "pub mod sealed { pub trait Sealed {} } pub trait A: sealed::Sealed {}",
            vec!["A", "Sealed"],
        ),
        (
            "mod sealed { pub trait Sealed {} } pub use sealed::Sealed; pub trait A: sealed::Sealed {}",
            vec!["A"],
        ),
        (
            "mod sealed { pub trait Sealed {} } impl<T> sealed::Sealed for T {} pub trait A: sealed::Sealed {}",
            vec!["A"],
        ),
        (
            "mod sealed { pub trait S {} pub trait F {} } pub trait A: sealed::S {} impl<T: A> sealed::F for T {} pub trait B: sealed::F {}",
            vec![],
        ),
        (
            "mod sealed { pub trait F {} } pub trait A {} impl<T: A> sealed::F for T {} pub trait B: sealed::F {}",
            vec!["A", "B"],
        ),
        (
            "mod sealed { pub trait Sealed {} } pub trait A: sealed::Sealed {} pub trait B: Copy + A {}",
            vec![],
        ),
        (
            "macro_rules! declare { ($name:ident) => { pub trait $name {} } }",
            vec!["name"],
        ),
        (
            "mod sealed { pub trait Sealed {} } macro_rules! m { ($n:ident) => { pub trait $n: sealed::Sealed {} } }",
            vec![],
        ),
    ];
    for (text, expected) in cases {
        let mut traits = CrateTraits::default();
        traits.add(&syn::parse_file(text)?);
        let open: Vec<_> = traits.open().into_iter().collect();
        assert_eq!(open, expected, "{text}");
    }
    Ok(())
}
