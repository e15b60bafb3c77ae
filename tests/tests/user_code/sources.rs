//! Rules that the sources of the libraries follow.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ImplItemFn, Item, ItemFn, Macro, Signature, Stmt};

/// The crates that call user code.
const LIBRARIES: [&str; 7] = ["blas", "driver", "fft", "memory", "nccl", "nvrtc", "rand"];

/// The macros of `tracing` that emit something.
const EMITTING: [&str; 15] = [
    "debug",
    "debug_span",
    "enabled",
    "error",
    "error_span",
    "event",
    "event_enabled",
    "info",
    "info_span",
    "span",
    "span_enabled",
    "trace",
    "trace_span",
    "warn",
    "warn_span",
];

/// The files that may name such a macro.
const EMITTERS: [&str; 2] = ["driver/src/base/call_spans.rs", "driver/src/extend.rs"];

/// The functions that contain the body of an `extern "C"` function.
const CONTAINING: [&str; 2] = ["contain_callback", "contain_host_callback"];

/// The `extern "C"` functions that are not contained, each with its reason.
const BARE: [(&str, &str); 5] = [
    (
        "on_exit",
        "stores a flag and sleeps; a subscriber would run while the process exits",
    ),
    (
        "in_child",
        "stores a flag; the child of a fork may not do more",
    ),
    ("export_table", "returns an address"),
    ("get_module", "writes to two addresses"),
    ("set_tool_version", "does nothing"),
];

/// A use of user code that is not contained.
#[derive(Debug, Eq, PartialEq)]
struct Violation {
    file: String,
    what: String,
}

struct Rules<'a> {
    file: &'a str,
    violations: Vec<Violation>,
}

impl Rules<'_> {
    fn violation(&mut self, what: String) {
        self.violations.push(Violation {
            file: self.file.to_owned(),
            what,
        });
    }

    fn check_function(&mut self, signature: &Signature, body: &[Stmt]) {
        let is_c = signature
            .abi
            .as_ref()
            .is_some_and(|abi| abi.name.as_ref().is_none_or(|name| name.value() == "C"));
        let name = signature.ident.to_string();
        if is_c && !is_contained(body) && !BARE.iter().any(|(bare, _)| *bare == name) {
            self.violation(format!("extern \"C\" fn {name}"));
        }
    }
}

/// Returns `true` if the body is one call of a containing function.
fn is_contained(body: &[Stmt]) -> bool {
    let [Stmt::Expr(Expr::Call(call), _)] = body else {
        return false;
    };
    let Expr::Path(function) = &*call.func else {
        return false;
    };
    function
        .path
        .segments
        .last()
        .is_some_and(|segment| CONTAINING.contains(&segment.ident.to_string().as_str()))
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg")
                && attribute
                    .meta
                    .require_list()
                    .is_ok_and(|list| list.tokens.to_string().contains("test"))
    })
}

impl<'a> Visit<'a> for Rules<'_> {
    fn visit_item(&mut self, item: &'a Item) {
        let attributes = match item {
            Item::Mod(item) => &item.attrs,
            Item::Fn(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !is_test(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'a ItemFn) {
        self.check_function(&item.sig, &item.block.stmts);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'a ImplItemFn) {
        self.check_function(&item.sig, &item.block.stmts);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_macro(&mut self, item: &'a Macro) {
        let name = item
            .path
            .segments
            .last()
            .map(|segment| segment.ident.to_string());
        if let Some(name) = name
            && EMITTING.contains(&name.as_str())
            && !EMITTERS.contains(&self.file)
        {
            self.violation(format!("{name}!"));
        }
        visit::visit_macro(self, item);
    }
}

fn violations(file: &str, text: &str) -> syn::Result<Vec<Violation>> {
    let mut rules = Rules {
        file,
        violations: Vec::new(),
    };
    rules.visit_file(&syn::parse_file(text)?);
    Ok(rules.violations)
}

/// Returns the Rust files below `folder`, without test modules and generated lists.
fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if path.is_dir() {
            if name != Some("generated") {
                rust_files(&path, files)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !matches!(name, Some("tests.rs" | "stub_api.rs"))
        {
            files.push(path);
        }
    }
    Ok(())
}

/// A subscriber may panic, and a panic must not unwind into C.
#[test]
fn user_code_is_contained() -> Result<(), Box<dyn std::error::Error>> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let mut all = Vec::new();
    for library in LIBRARIES {
        let mut files = Vec::new();
        rust_files(&crates.join(library).join("src"), &mut files)?;
        assert!(files.len() > 5, "{library} has no sources");
        for file in files {
            let name = file
                .strip_prefix(&crates)?
                .display()
                .to_string()
                .replace('\\', "/");
            all.extend(violations(&name, &fs::read_to_string(&file)?)?);
        }
    }
    assert!(all.is_empty(), "{all:#?}");
    Ok(())
}

/// The rules find what they are made for.
#[test]
fn uncontained_code_is_detected() -> syn::Result<()> {
    let text = r#"
        fn report() { tracing::error!("reported"); }
        extern "C" fn called() { work(); }
        unsafe extern "C" fn contained() { contain_callback("a test", (), || work()); }
        extern "C" fn on_exit() { work(); }
        #[cfg(test)]
        mod tests { extern "C" fn stub() { work(); } }
    "#;
    let violations = violations("driver/src/graph.rs", text)?;
    let what: Vec<&str> = violations
        .iter()
        .map(|violation| violation.what.as_str())
        .collect();
    assert_eq!(what, ["error!", "extern \"C\" fn called"]);
    Ok(())
}
