//! Error types: every public one answers the questions of [`CudaError`](curium_driver::CudaError).

use std::collections::BTreeSet;
use std::error::Error;

use syn::visit::{self, Visit};
use syn::{Attribute, Ident, ItemEnum, ItemImpl, ItemMod, ItemStruct, Meta, Type, Visibility};

use super::sources::{is_test, parse_crates};

/// Crates below the driver or beside it, whose errors are not of CUDA.
const CRATES_WITHOUT_DRIVER: [&str; 6] = [
    "cudart",
    "format",
    "kernel-build",
    "ptx",
    "sim",
    "sim-libraries",
];

/// Error types without the trait.
const EXEMPT: [(&str, &str); 1] = [(
    "Rejection",
    "is a part of `LoadError`, and no function returns it",
)];

#[derive(Default)]
struct ErrorTypes {
    /// Public types that implement `Error`.
    public: BTreeSet<String>,
    /// All public types.
    declared: BTreeSet<String>,
    /// Types that implement `Error`.
    errors: BTreeSet<String>,
    /// Types that implement `CudaError`.
    implementing: BTreeSet<String>,
}

impl ErrorTypes {
    fn declare(&mut self, visibility: &Visibility, name: &Ident, attributes: &[Attribute]) {
        if !matches!(visibility, Visibility::Public(_)) {
            return;
        }
        self.declared.insert(name.to_string());
        if attributes.iter().any(derives_error) {
            self.public.insert(name.to_string());
        }
    }
}

/// Returns `true` for `#[derive(…)]` with `thiserror`'s macro, under any of its names.
fn derives_error(attribute: &Attribute) -> bool {
    let Meta::List(list) = &attribute.meta else {
        return false;
    };
    list.path.is_ident("derive")
        && list.tokens.clone().into_iter().any(|token| {
            ["Error", "ThisError", "DeriveError"].contains(&token.to_string().as_str())
        })
}

impl<'ast> Visit<'ast> for ErrorTypes {
    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if !is_test(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_enum(&mut self, item: &'ast ItemEnum) {
        self.declare(&item.vis, &item.ident, &item.attrs);
    }

    fn visit_item_struct(&mut self, item: &'ast ItemStruct) {
        self.declare(&item.vis, &item.ident, &item.attrs);
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        let Some((implemented, _)) = &item.trait_ else {
            return;
        };
        let Some(name) = implemented.segments.last() else {
            return;
        };
        let Type::Path(ty) = &*item.self_ty else {
            return;
        };
        let Some(ty) = ty.path.segments.last() else {
            return;
        };
        if name.ident == "CudaError" {
            self.implementing.insert(ty.ident.to_string());
        } else if name.ident == "Error" {
            self.errors.insert(ty.ident.to_string());
        }
    }
}

/// The types are compared by crate; the driver implements the trait for the types of `curium-sys`.
#[test]
fn error_types_answer_questions() -> Result<(), Box<dyn Error>> {
    let sources = parse_crates(|package| !CRATES_WITHOUT_DRIVER.contains(&package))?;
    let packages: BTreeSet<&str> = sources
        .iter()
        .map(|source| source.package.as_str())
        .collect();
    let mut missing = Vec::new();
    let mut count = 0;
    for package in packages {
        let mut types = ErrorTypes::default();
        for source in &sources {
            if source.package == package {
                types.visit_file(&source.file);
            }
        }
        if package == "sys" {
            let mut driver = ErrorTypes::default();
            for source in &sources {
                if source.package == "driver" {
                    driver.visit_file(&source.file);
                }
            }
            types.implementing = driver.implementing;
        }
        let by_hand = types.errors.intersection(&types.declared).cloned();
        types.public.extend(by_hand);
        count += types.public.len();
        for ty in types.public.difference(&types.implementing) {
            if !EXEMPT.iter().any(|(exempt, _)| exempt == ty) {
                missing.push(format!("{package}: {ty}"));
            }
        }
    }
    assert!(count > 20, "only {count} error types were found");
    assert!(
        missing.is_empty(),
        "error types without `CudaError`: {missing:#?}"
    );
    Ok(())
}
