//! Memory of a type of other crates is converted to a view once: such a type may return another view at each call, so
//! that the length of one and the address of another do not belong together.

use syn::visit::Visit;
use syn::{
    Block, ExprMethodCall, ExprPath, FnArg, GenericParam, Generics, ImplItemFn, ItemFn, ItemImpl,
    ItemMod, Pat, PatIdent, Signature, Stmt, Type, TypeParamBound,
};

use crate::sources::{Result, is_test, sources};

/// The functions that convert memory to a view.
const CONVERSIONS: [&str; 2] = ["as_device_slice", "as_device_slice_mut"];

/// The traits of these functions.
const TRAITS: [&str; 2] = ["AsDeviceSlice", "AsDeviceSliceMut"];

/// Collects the functions that may convert memory twice.
#[derive(Default)]
struct Finder {
    /// The number of functions with a parameter of a generic type of memory.
    functions: usize,
    /// The number of conversions in implementations that are generic over the type of memory.
    conversions: usize,
    violations: Vec<String>,
}

fn is_memory(bounds: impl IntoIterator<Item = impl std::borrow::Borrow<TypeParamBound>>) -> bool {
    bounds.into_iter().any(|bound| match bound.borrow() {
        TypeParamBound::Trait(bound) => bound
            .path
            .segments
            .last()
            .is_some_and(|segment| TRAITS.iter().any(|name| segment.ident == name)),
        _ => false,
    })
}

/// Returns the type parameters that are bounded by one of the traits.
fn memory_parameters(generics: &Generics) -> Vec<String> {
    let mut names = Vec::new();
    for parameter in &generics.params {
        if let GenericParam::Type(parameter) = parameter
            && is_memory(&parameter.bounds)
        {
            names.push(parameter.ident.to_string());
        }
    }
    for predicate in generics
        .where_clause
        .iter()
        .flat_map(|clause| &clause.predicates)
    {
        if let syn::WherePredicate::Type(predicate) = predicate
            && is_memory(&predicate.bounds)
            && let Some(name) = type_name(&predicate.bounded_ty)
        {
            names.push(name);
        }
    }
    names
}

fn type_name(ty: &Type) -> Option<String> {
    match ty {
        Type::Path(path) => path.path.get_ident().map(ToString::to_string),
        _ => None,
    }
}

/// Returns `true` for `impl AsDeviceSlice`, for one of the type parameters, and for references to them.
fn is_memory_type(ty: &Type, parameters: &[String]) -> bool {
    match ty {
        Type::Reference(reference) => is_memory_type(&reference.elem, parameters),
        Type::ImplTrait(bounds) => is_memory(&bounds.bounds),
        ty => type_name(ty).is_some_and(|name| parameters.contains(&name)),
    }
}

/// Counts the uses of a variable.
struct Uses<'a> {
    name: &'a str,
    count: usize,
}

impl<'ast> Visit<'ast> for Uses<'_> {
    fn visit_expr_path(&mut self, path: &'ast ExprPath) {
        self.count += usize::from(path.path.is_ident(self.name));
    }
}

/// Finds out if a pattern declares a variable.
struct Declares<'a> {
    name: &'a str,
    is_declared: bool,
}

impl<'ast> Visit<'ast> for Declares<'_> {
    fn visit_pat_ident(&mut self, pattern: &'ast PatIdent) {
        self.is_declared |= pattern.ident == self.name;
    }
}

/// Returns the number of uses of a parameter, until another variable takes its name.
fn uses(block: &Block, name: &str) -> usize {
    let mut uses = Uses { name, count: 0 };
    for statement in &block.stmts {
        uses.visit_stmt(statement);
        if let Stmt::Local(local) = statement {
            let mut declares = Declares {
                name,
                is_declared: false,
            };
            declares.visit_pat(&local.pat);
            if declares.is_declared {
                break;
            }
        }
    }
    uses.count
}

/// Counts the conversions.
#[derive(Default)]
struct Conversions(usize);

impl<'ast> Visit<'ast> for Conversions {
    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        self.0 += usize::from(CONVERSIONS.iter().any(|name| call.method == name));
        syn::visit::visit_expr_method_call(self, call);
    }
}

impl Finder {
    fn function(&mut self, signature: &Signature, block: &Block) {
        let parameters = memory_parameters(&signature.generics);
        for input in &signature.inputs {
            let FnArg::Typed(argument) = input else {
                continue;
            };
            let Pat::Ident(pattern) = &*argument.pat else {
                continue;
            };
            if !is_memory_type(&argument.ty, &parameters) {
                continue;
            }
            self.functions += 1;
            let name = pattern.ident.to_string();
            let count = uses(block, &name);
            if count > 1 {
                self.violations.push(format!(
                    "{} uses {name} {count} times; convert it to a view first",
                    signature.ident
                ));
            }
        }
    }

    /// Checks a file, in whose generic implementations the memory is converted once at most.
    fn file(&mut self, syntax: &syn::File) {
        self.conversions = 0;
        self.visit_file(syntax);
        if self.conversions > 1 {
            self.violations.push(format!(
                "implementations for a generic type of memory convert it {} times; keep the view",
                self.conversions
            ));
        }
    }
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !is_test(&item.attrs) {
            syn::visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        self.function(&item.sig, &item.block);
        syn::visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.function(&item.sig, &item.block);
        syn::visit::visit_impl_item_fn(self, item);
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        if !memory_parameters(&item.generics).is_empty() {
            let mut conversions = Conversions::default();
            conversions.visit_item_impl(item);
            self.conversions += conversions.0;
        }
        syn::visit::visit_item_impl(self, item);
    }
}

#[test]
fn memory_becomes_one_view() -> Result {
    let mut functions = 0;
    let mut violations = Vec::new();
    for source in sources()? {
        let mut finder = Finder::default();
        finder.file(&source.syntax);
        functions += finder.functions;
        for violation in finder.violations {
            violations.push(format!("{}: {violation}", source.path));
        }
    }
    assert!(functions > 60, "only {functions} functions were found");
    assert!(violations.is_empty(), "{violations:#?}");
    Ok(())
}

#[test]
fn second_conversions_are_found() -> Result {
    let cases = [
        (
            "fn f(a: &impl AsDeviceSlice) { let a = a.as_device_slice(); g(a.len(), a) }",
            0,
        ),
        (
            "fn f(a: &impl AsDeviceSlice) { g(a.as_device_slice().len(), a.as_device_slice()) }",
            1,
        ),
        (
            "fn f<M: AsDeviceSliceMut>(a: &mut M) { check(a); write(a) }",
            1,
        ),
        (
            "fn f<M>(a: &mut M) where M: AsDeviceSliceMut { check(a); write(a) }",
            1,
        ),
        ("fn f(a: &DeviceBuffer<u8>) { check(a); read(a) }", 0),
        (
            "impl<M: AsDeviceSliceMut> Output for M {
                fn count(&self) -> usize { self.as_device_slice().len() }
                fn write(&mut self) { write(self.as_device_slice_mut()) }
            }",
            1,
        ),
    ];
    for (text, expected) in cases {
        let mut finder = Finder::default();
        finder.file(&syn::parse_file(text)?);
        assert_eq!(finder.violations.len(), expected, "{text}");
    }
    Ok(())
}
