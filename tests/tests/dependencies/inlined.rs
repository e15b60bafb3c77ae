//! Attributes that contradict each other.

use std::path::Path;
use std::{env, fs};

use curium_tests::{TestResult, skip, uses_cuda};
use syn::visit::{Visit, visit_impl_item_fn, visit_item_fn};
use syn::{Attribute, ImplItemFn, ItemFn, Meta, Signature};

/// The functions of a file that are marked both as cold and for inlining.
#[derive(Default)]
struct Contradictions {
    functions: Vec<String>,
}

impl Contradictions {
    fn check(&mut self, attributes: &[Attribute], signature: &Signature) {
        let is_cold = attributes
            .iter()
            .any(|attribute| attribute.path().is_ident("cold"));
        if is_cold && attributes.iter().any(is_inlined) {
            self.functions.push(signature.ident.to_string());
        }
    }
}

/// Returns `true` for `#[inline]` and `#[inline(always)]`.
fn is_inlined(attribute: &Attribute) -> bool {
    let is_never =
        matches!(&attribute.meta, Meta::List(list) if list.tokens.to_string() == "never");
    attribute.path().is_ident("inline") && !is_never
}

impl<'ast> Visit<'ast> for Contradictions {
    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        self.check(&function.attrs, &function.sig);
        visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        self.check(&function.attrs, &function.sig);
        visit_impl_item_fn(self, function);
    }
}

/// Returns the contradictions in the Rust files of a folder, each with its file.
fn contradictions(folder: &Path) -> TestResult<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            names.extend(contradictions(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path)?;
            if !text.contains("#[cold]") {
                continue;
            }
            let mut visitor = Contradictions::default();
            visitor.visit_file(&syn::parse_file(&text)?);
            for name in visitor.functions {
                names.push(format!("{}: {name}", path.display()));
            }
        }
    }
    Ok(names)
}

#[test]
fn cold_functions_are_not_inlined() -> TestResult {
    if uses_cuda() {
        return skip("needs the sources");
    }
    let root = env::var_os("CARGO_MANIFEST_DIR").ok_or("`CARGO_MANIFEST_DIR` is not set")?;
    let crates = Path::new(&root)
        .parent()
        .ok_or("no parent folder")?
        .join("crates");
    let names = contradictions(&crates)?;
    assert!(
        names.is_empty(),
        "marked with both `#[cold]` and `#[inline]`: {names:#?}"
    );
    Ok(())
}

#[test]
fn contradictions_are_detected() -> TestResult {
    let mut visitor = Contradictions::default();
    let source = "#[cold] #[inline] fn a() {} #[cold] #[inline(never)] fn b() {} impl X { #[inline] #[cold] fn c() {} }";
    visitor.visit_file(&syn::parse_file(source)?);
    assert_eq!(visitor.functions, ["a", "c"]);
    Ok(())
}
