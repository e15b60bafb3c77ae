//! Device memory that a handle of a library keeps is a `LibraryMemory`, whose accesses are tracked,
//! and not a buffer whose accesses could be forgotten.

use quote::ToTokens as _;
use syn::visit::Visit;
use syn::{ItemMod, ItemStruct};

use crate::sources::{Result, is_test, sources_with};

/// The crates that bind libraries.
const CRATES: [&str; 4] = ["blas", "fft", "nccl", "rand"];

/// The structs that may contain buffers: the crate, the struct, and the reason.
const BUFFERS: &[(&str, &str, &str)] = &[(
    "blas",
    "Scratch",
    "the operands of the measured products, which are bound as operands",
)];

/// The struct of each crate that executes operations with a handle. It contains a `LibraryMemory`.
const OWNERS: &[(&str, &str)] = &[("blas", "Blas"), ("fft", "Plan"), ("rand", "Device")];

/// Collects the structs with fields of a type.
struct Structs {
    type_name: &'static str,
    names: Vec<String>,
}

impl<'ast> Visit<'ast> for Structs {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !is_test(&item.attrs) {
            syn::visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_struct(&mut self, item: &'ast ItemStruct) {
        let contains = item.fields.iter().any(|field| {
            let tokens = field.ty.to_token_stream().to_string();
            tokens
                .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
                .any(|word| word == self.type_name)
        });
        if contains {
            self.names.push(item.ident.to_string());
        }
    }
}

/// Returns the structs of the crates that contain a field of a type.
fn structs_with(type_name: &'static str) -> Result<Vec<(String, String)>> {
    let mut owners = Vec::new();
    for source in sources_with(type_name)? {
        if !CRATES.contains(&source.krate.as_str()) {
            continue;
        }
        let mut structs = Structs {
            type_name,
            names: Vec::new(),
        };
        structs.visit_file(&source.syntax);
        let names = structs.names.into_iter();
        owners.extend(names.map(|name| (source.krate.clone(), name)));
    }
    owners.sort();
    Ok(owners)
}

#[test]
fn handles_keep_device_memory() -> Result {
    let mut with_buffers = structs_with("DeviceBuffer")?;
    with_buffers.retain(|(krate, name)| {
        !BUFFERS
            .iter()
            .any(|(of_crate, of_name, _)| krate == of_crate && name == of_name)
    });
    assert!(
        with_buffers.is_empty(),
        "{with_buffers:?} contain buffers; a handle keeps its memory as a `LibraryMemory`"
    );
    let owners = structs_with("LibraryMemory")?;
    let expected: Vec<_> = OWNERS
        .iter()
        .map(|(krate, name)| ((*krate).to_owned(), (*name).to_owned()))
        .collect();
    assert_eq!(owners, expected);
    Ok(())
}
