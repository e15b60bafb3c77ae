//! The pages of the main types in rustdoc: each opens with an example, and its methods with the
//! constructors.
//!
//! Rustdoc lists the methods of private modules first, in the order in which the modules are
//! declared.

use std::fs;
use std::path::{Path, PathBuf};

use curium_tests::{TestResult, skip, uses_cuda};
use syn::{Attribute, ImplItem, Item, ReturnType, Type, Visibility};

/// A type with a file of its name.
struct Page {
    /// The folder of the crate below `crates`.
    package: &'static str,
    file: &'static str,
    name: &'static str,
    has_constructors: bool,
}

const PAGES: &[Page] = &[
    page("driver", "event", "Event"),
    page("driver", "graph", "Graph"),
    page("driver", "module", "Module"),
    page("driver", "stream", "Stream"),
    page("memory", "device_buffer", "DeviceBuffer"),
    page("memory", "device_vec", "DeviceVec"),
    page("memory", "mapped_buffer", "MappedBuffer"),
    page("memory", "pinned_buffer", "PinnedBuffer"),
    page("memory", "unified_buffer", "UnifiedBuffer"),
    // Buffers dereference to it.
    Page {
        has_constructors: false,
        ..page("memory", "device_slice", "DeviceSlice")
    },
];

const fn page(package: &'static str, file: &'static str, name: &'static str) -> Page {
    Page {
        package,
        file,
        name,
        has_constructors: true,
    }
}

/// The main types have an example, and their first method is a constructor.
#[test]
fn pages_open_with_example_and_constructors() -> TestResult {
    if uses_cuda() {
        return skip("needs the sources");
    }
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    for page in PAGES {
        let source = crates.join(page.package).join("src");
        let path = source.join(page.file).with_extension("rs");
        let file = syn::parse_file(&fs::read_to_string(&path)?)?;
        let attributes = file.items.iter().find_map(|item| match item {
            Item::Struct(item) if item.ident == page.name => Some(&item.attrs),
            _ => None,
        });
        let attributes = attributes.ok_or_else(|| format!("{} has no {}", page.file, page.name))?;
        assert!(has_example(attributes), "{} has no example", page.name);
        let methods = methods(&path, page.name)?;
        let first = methods
            .first()
            .ok_or_else(|| format!("{} has no method", page.name))?;
        assert!(
            first.is_constructor || !page.has_constructors,
            "{} opens with `{}`: declare the module of its constructors first",
            page.name,
            first.name
        );
    }
    Ok(())
}

/// A public inherent method.
#[derive(Debug)]
struct Method {
    name: String,
    is_constructor: bool,
}

/// Returns the public methods of a type in the order of its page.
fn methods(path: &Path, name: &str) -> TestResult<Vec<Method>> {
    let file = syn::parse_file(&fs::read_to_string(path)?)?;
    let mut listed = Vec::new();
    for item in &file.items {
        if let Item::Mod(module) = item
            && module.content.is_none()
            && let Some(below) = file_of_module(path, &module.ident.to_string())
        {
            listed.extend(methods(&below, name)?);
        }
    }
    for item in &file.items {
        let Item::Impl(block) = item else { continue };
        let is_of_type = matches!(
            &*block.self_ty,
            Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == name)
        );
        if block.trait_.is_some() || !is_of_type {
            continue;
        }
        for method in &block.items {
            if let ImplItem::Fn(method) = method
                && matches!(method.vis, Visibility::Public(_))
            {
                listed.push(Method {
                    name: method.sig.ident.to_string(),
                    is_constructor: method.sig.receiver().is_none()
                        && returns_self(&method.sig.output),
                });
            }
        }
    }
    Ok(listed)
}

/// Returns the file of a module that `path` declares.
fn file_of_module(path: &Path, module: &str) -> Option<PathBuf> {
    let below = path.with_extension("").join(module).with_extension("rs");
    below.exists().then_some(below)
}

/// Returns `true` for `Self` and `Result<Self>`.
fn returns_self(output: &ReturnType) -> bool {
    let ReturnType::Type(_, output) = output else {
        return false;
    };
    let Type::Path(path) = &**output else {
        return false;
    };
    let Some(last) = path.path.segments.last() else {
        return false;
    };
    let syn::PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return last.ident == "Self";
    };
    last.ident == "Result"
        && matches!(
            arguments.args.first(),
            Some(syn::GenericArgument::Type(Type::Path(path))) if path.path.is_ident("Self")
        )
}

fn has_example(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("doc")
            && matches!(
                &attribute.meta,
                syn::Meta::NameValue(value) if matches!(
                    &value.value,
                    syn::Expr::Lit(text) if matches!(&text.lit, syn::Lit::Str(text) if text.value().contains("```"))
                )
            )
    })
}
