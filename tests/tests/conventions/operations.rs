//! Operation names: the error of a function names this function.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::PathBuf;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{
    Attribute, ImplItemFn, ItemFn, ItemImpl, ItemMod, ItemTrait, Lit, LitStr, Macro, TraitItemFn,
    Type, Visibility,
};

use super::sources::{is_test, parse_crates};

/// The crates whose errors name operations.
const PACKAGES: [&str; 9] = [
    "blas",
    "diagnostics",
    "driver",
    "fft",
    "interop",
    "memory",
    "nccl",
    "nvrtc",
    "rand",
];

/// Names of other operations than the function that they stand in: the function, the name, and the
/// reason.
const OTHER_OPERATIONS: [(&str, &str, &str); 5] = [
    (
        "ArgumentList::check",
        "Kernel::launch",
        "a launch checks its arguments",
    ),
    (
        "Connecting::poll",
        "Communicator::connect",
        "the future completes this operation",
    ),
    (
        "Finalizing::poll",
        "Communicator::start_finalize",
        "the future completes this operation",
    ),
    (
        "HostFunction::operation",
        "Stream::launch_host_function",
        "the future completes this operation",
    ),
    (
        "Join::operation",
        "Completion::join",
        "the future completes this operation",
    ),
];

/// A string literal with the form of an operation name, and the function around it.
struct Literal {
    package: String,
    name: String,
    function: Option<Function>,
    path: PathBuf,
}

#[derive(Clone)]
struct Function {
    name: String,
    is_public: bool,
}

#[derive(Default)]
struct Operations {
    package: String,
    path: PathBuf,
    implementing: Option<String>,
    is_trait_implementation: bool,
    function: Option<Function>,
    literals: Vec<Literal>,
    /// The functions of each type, and those without a type under the empty name.
    functions: BTreeMap<String, BTreeSet<String>>,
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|character| character.is_ascii_alphanumeric() || character == '_')
}

/// Returns `true` for `Type::function` and `module::function`.
fn is_operation(text: &str) -> bool {
    let Some((owner, function)) = text.split_once("::") else {
        return false;
    };
    is_name(owner)
        && is_name(function)
        && !owner.starts_with("curium")
        && function.starts_with(|first: char| first.is_ascii_lowercase())
}

impl Operations {
    fn add(&mut self, literal: &LitStr) {
        let name = literal.value();
        if is_operation(&name) {
            self.literals.push(Literal {
                package: self.package.clone(),
                name,
                function: self.function.clone(),
                path: self.path.clone(),
            });
        }
    }

    /// Collects the literals of a macro, and its identifiers, which may be those of functions of
    /// any type.
    fn add_tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match &token {
                TokenTree::Group(group) => self.add_tokens(group.stream()),
                TokenTree::Literal(literal) => {
                    if let Lit::Str(literal) = Lit::new(literal.clone()) {
                        self.add(&literal);
                    }
                }
                // The name may also be an argument of the macro.
                TokenTree::Ident(name) => self.declare("", &name.to_string()),
                TokenTree::Punct(_) => {}
            }
        }
    }

    fn declare(&mut self, owner: &str, function: &str) {
        self.functions
            .entry(owner.to_owned())
            .or_default()
            .insert(function.to_owned());
    }

    /// Visits a function whose errors are to name `owner::name`.
    fn enter(&mut self, name: &str, is_public: bool, visit: impl FnOnce(&mut Self)) {
        let owner = self.implementing.clone().unwrap_or_default();
        if is_public {
            self.declare(&owner, name);
        }
        let function = Function {
            name: format!("{owner}::{name}"),
            is_public,
        };
        let outer = self.function.replace(function);
        visit(self);
        self.function = outer;
    }

    /// Returns `true` if there is a public function `name`.
    fn has(&self, name: &str) -> bool {
        let Some((owner, function)) = name.split_once("::") else {
            return false;
        };
        let by_macro = self
            .functions
            .get("")
            .is_some_and(|functions| functions.contains(function));
        match self.functions.get(owner) {
            Some(functions) => functions.contains(function) || function == "drop" || by_macro,
            None => by_macro,
        }
    }
}

impl<'ast> Visit<'ast> for Operations {
    fn visit_attribute(&mut self, _: &'ast Attribute) {}

    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if !is_test(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        let name = match &*item.self_ty {
            Type::Path(ty) => ty
                .path
                .segments
                .last()
                .map(|segment| segment.ident.to_string()),
            _ => None,
        };
        let outer = std::mem::replace(&mut self.implementing, name);
        let outer_trait =
            std::mem::replace(&mut self.is_trait_implementation, item.trait_.is_some());
        visit::visit_item_impl(self, item);
        self.implementing = outer;
        self.is_trait_implementation = outer_trait;
    }

    fn visit_item_trait(&mut self, item: &'ast ItemTrait) {
        let outer = self.implementing.replace(item.ident.to_string());
        visit::visit_item_trait(self, item);
        self.implementing = outer;
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        self.enter(&item.sig.ident.to_string(), true, |operations| {
            visit::visit_trait_item_fn(operations, item);
        });
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        let is_public = self.is_trait_implementation || matches!(item.vis, Visibility::Public(_));
        self.enter(&item.sig.ident.to_string(), is_public, |operations| {
            visit::visit_impl_item_fn(operations, item);
        });
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        if is_test(&item.attrs) {
            return;
        }
        let is_public = matches!(item.vis, Visibility::Public(_));
        self.enter(&item.sig.ident.to_string(), is_public, |operations| {
            visit::visit_item_fn(operations, item);
        });
    }

    fn visit_lit_str(&mut self, literal: &'ast LitStr) {
        self.add(literal);
    }

    fn visit_macro(&mut self, item: &'ast Macro) {
        self.add_tokens(item.tokens.clone());
    }
}

/// In a public function of a type, the name is that of the function. Elsewhere it is that of a
/// public function, which calls the code.
#[test]
fn errors_name_their_function() -> Result<(), Box<dyn Error>> {
    let mut operations = Operations::default();
    let mut public_types = BTreeSet::new();
    for source in parse_crates(|package| PACKAGES.contains(&package))? {
        operations.package.clone_from(&source.package);
        operations.path = source.path;
        operations.visit_file(&source.file);
        for item in &source.file.items {
            match item {
                syn::Item::Struct(item) if matches!(item.vis, Visibility::Public(_)) => {
                    public_types.insert((source.package.clone(), item.ident.to_string()));
                }
                syn::Item::Enum(item) if matches!(item.vis, Visibility::Public(_)) => {
                    public_types.insert((source.package.clone(), item.ident.to_string()));
                }
                _ => {}
            }
        }
    }
    let mut wrong = Vec::new();
    let mut used = BTreeSet::new();
    for literal in &operations.literals {
        let Literal {
            package,
            name,
            path,
            ..
        } = literal;
        let file = path.display();
        match &literal.function {
            Some(function) if function.name == *name => {}
            Some(function)
                if function.is_public
                    && is_method_on_public_type(package, function, &public_types) =>
            {
                let exception = OTHER_OPERATIONS
                    .iter()
                    .find(|(other, operation, _)| other == &function.name && operation == name);
                if let Some((function, operation, _)) = exception {
                    used.insert((function, operation));
                } else {
                    wrong.push(format!("{file}: `{name}` in `{}`", function.name));
                }
            }
            _ if operations.has(name) => {}
            _ => wrong.push(format!("{file}: there is no function `{name}`")),
        }
    }
    assert!(operations.literals.len() > 500, "the sources were not read");
    assert!(wrong.is_empty(), "{} names: {wrong:#?}", wrong.len());
    assert_eq!(used.len(), OTHER_OPERATIONS.len(), "unused exceptions");
    Ok(())
}

/// Returns `true` for a method on one of the `public_types`, each of which has the package before
/// its name.
fn is_method_on_public_type(
    package: &str,
    function: &Function,
    public_types: &BTreeSet<(String, String)>,
) -> bool {
    function
        .name
        .split_once("::")
        .is_some_and(|(owner, _)| public_types.contains(&(package.to_owned(), owner.to_owned())))
}
