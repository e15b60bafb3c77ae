//! Attributes that contradict each other.

use std::path::Path;
use std::{env, fs};

use curium_tests::uses_cuda;
use syn::visit::{Visit, visit_impl_item_fn, visit_item_fn};
use syn::{Attribute, ImplItemFn, ItemFn, Meta, Signature};

/// The functions of a file that are marked both as cold and for inlining.
#[derive(Default)]
struct Contradictions(Vec<String>);

impl Contradictions {
    fn check(&mut self, attributes: &[Attribute], signature: &Signature) {
        let is_cold = attributes
            .iter()
            .any(|attribute| attribute.path().is_ident("cold"));
        if is_cold && attributes.iter().any(is_inlined) {
            self.0.push(signature.ident.to_string());
        }
    }
}

/// Returns `true` for `#[inline]` and `#[inline(always)]`.
fn is_inlined(attribute: &Attribute) -> bool {
    let never =
        |meta: &Meta| matches!(meta, Meta::List(list) if list.tokens.to_string() == "never");
    attribute.path().is_ident("inline") && !never(&attribute.meta)
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
fn contradictions(folder: &Path) -> Vec<String> {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.expect("a folder can be read").path());
    let of_path = |path: std::path::PathBuf| match path.extension() {
        None if path.is_dir() => contradictions(&path),
        Some(extension) if extension == "rs" => {
            let text = fs::read_to_string(&path).expect("a source can be read");
            let mut found = Contradictions::default();
            found.visit_file(&syn::parse_file(&text).expect("a source is Rust"));
            found
                .0
                .into_iter()
                .map(|name| format!("{}: {name}", path.display()))
                .collect()
        }
        _ => Vec::new(),
    };
    paths.flat_map(of_path).collect()
}

#[test]
fn cold_functions_are_not_marked_for_inlining() {
    if uses_cuda() {
        return;
    }
    let root = env::var_os("CARGO_MANIFEST_DIR").expect("Cargo sets it");
    let crates = Path::new(&root)
        .parent()
        .expect("the package lies in the workspace")
        .join("crates");
    let found = contradictions(&crates);
    assert!(
        found.is_empty(),
        "marked with both `#[cold]` and `#[inline]`: {found:#?}"
    );
}

#[test]
fn contradicting_attributes_are_found() {
    let mut found = Contradictions::default();
    let source = "#[cold] #[inline] fn a() {} #[cold] #[inline(never)] fn b() {} impl X { #[inline] #[cold] fn c() {} }";
    found.visit_file(&syn::parse_file(source).expect("the source is Rust"));
    assert_eq!(found.0, ["a", "c"]);
}
