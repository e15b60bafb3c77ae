//! Describes the functions and types of the bindings, so that arguments can be made for every
//! function.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context as _, Result, bail};
use quote::ToTokens as _;
use syn::{Fields, ImplItem, Item, Type};

/// The folder of the bindings.
const BINDINGS: &str = "../../crates/sys/src/generated";

fn main() -> Result<()> {
    println!("cargo::rerun-if-changed={BINDINGS}");
    let mut output = String::new();
    write_functions(&mut output)?;
    write_types(&mut output)?;
    let folder = PathBuf::from(env::var_os("OUT_DIR").context("cargo names the folder")?);
    fs::write(folder.join("bindings.rs"), output)?;
    Ok(())
}

/// Writes the parameters of each function of the list.
fn write_functions(output: &mut String) -> Result<()> {
    let text = fs::read_to_string(Path::new(BINDINGS).join("functions.rs"))?;
    writeln!(output, "static SIGNATURES: &[Signature] = &[")?;
    for line in text.lines().map(str::trim) {
        let Some(declaration) = line.strip_prefix("fn ") else {
            continue;
        };
        let (declaration, _) = declaration
            .rsplit_once(" = ")
            .context("a declaration ends with a version")?;
        let declaration = format!("fn {};", declaration.replace('$', ""));
        let function: syn::TraitItemFn = syn::parse_str(&declaration)?;
        let name = &function.sig.ident;
        write!(
            output,
            "Signature {{ function: Function::{name}, parameters: &["
        )?;
        for input in &function.sig.inputs {
            let syn::FnArg::Typed(input) = input else {
                bail!("{name} has a receiver");
            };
            let parameter = input.pat.to_token_stream();
            let ty = describe(&input.ty)?;
            write!(output, "Parameter {{ name: \"{parameter}\", ty: {ty} }}, ")?;
        }
        writeln!(output, "] }},")?;
    }
    writeln!(output, "];")?;
    Ok(())
}

/// Writes the definition of each type.
fn write_types(output: &mut String) -> Result<()> {
    let text = fs::read_to_string(Path::new(BINDINGS).join("types.rs"))?;
    let file = syn::parse_file(&text)?;
    writeln!(output, "static DEFINITIONS: &[Definition] = &[")?;
    for item in &file.items {
        match item {
            Item::Type(alias) => {
                let shape = format!("Shape::Alias({})", describe(&alias.ty)?);
                write_definition(output, &alias.ident.to_string(), &shape)?;
            }
            Item::Struct(record) => {
                let name = record.ident.to_string();
                let shape = match &record.fields {
                    Fields::Unnamed(_) => enumeration(&name, &file),
                    fields if is_opaque(fields) => "Shape::Opaque".to_owned(),
                    fields => members(&name, fields.iter())?,
                };
                write_definition(output, &name, &shape)?;
            }
            Item::Union(record) => {
                let name = record.ident.to_string();
                let shape = members(&name, record.fields.named.iter())?;
                write_definition(output, &name, &shape)?;
            }
            Item::Use(other_name) => {
                if let Some((name, target)) = renamed(&other_name.tree) {
                    write_definition(
                        output,
                        &name,
                        &format!("Shape::Alias(Type::Named(\"{target}\"))"),
                    )?;
                }
            }
            _ => {}
        }
    }
    writeln!(output, "];")?;
    Ok(())
}

/// Returns the new and the old name of a type that is imported under another name.
fn renamed(tree: &syn::UseTree) -> Option<(String, String)> {
    match tree {
        syn::UseTree::Path(path) => renamed(&path.tree),
        syn::UseTree::Rename(rename) => Some((rename.rename.to_string(), rename.ident.to_string())),
        _ => None,
    }
}

fn write_definition(output: &mut String, name: &str, shape: &str) -> Result<()> {
    writeln!(
        output,
        "Definition {{ name: \"{name}\", size: size_of::<curium_sys::{name}>(), shape: {shape} }},"
    )?;
    Ok(())
}

/// Returns `true` for the types of handles, which C declares without members.
fn is_opaque(fields: &Fields) -> bool {
    fields
        .iter()
        .all(|field| field.ident.as_ref().is_some_and(|name| name == "_unused"))
}

/// Returns the description of an open newtype with its enumerators.
fn enumeration(name: &str, file: &syn::File) -> String {
    let mut shape = "Shape::Enumeration(&[".to_owned();
    for item in &file.items {
        let Item::Impl(block) = item else { continue };
        if block.trait_.is_some() || block.self_ty.to_token_stream().to_string() != name {
            continue;
        }
        for item in &block.items {
            if let ImplItem::Const(constant) = item {
                let enumerator = &constant.ident;
                shape +=
                    &format!("(\"{enumerator}\", curium_sys::{name}::{enumerator}.0 as u64), ");
            }
        }
    }
    shape + "])"
}

/// Returns the description of a struct or union.
fn members<'a>(name: &str, fields: impl Iterator<Item = &'a syn::Field>) -> Result<String> {
    let mut shape = "Shape::Record(&[".to_owned();
    for field in fields {
        let member = field.ident.as_ref().context("a field has a name")?;
        let ty = describe(&field.ty)?;
        shape += &format!(
            "Field {{ name: \"{member}\", offset: offset_of!(curium_sys::{name}, {member}), ty: {ty} }}, "
        );
    }
    Ok(shape + "])")
}

/// Returns the description of a type.
fn describe(ty: &Type) -> Result<String> {
    Ok(match ty {
        Type::Ptr(pointer) => format!(
            "Type::Pointer {{ target: &{}, constant: {} }}",
            describe(&pointer.elem)?,
            matches!(pointer.mutability, syn::PointerMutability::Const(_))
        ),
        Type::Array(array) => format!(
            "Type::Array {{ element: &{}, length: {} }}",
            describe(&array.elem)?,
            array.len.to_token_stream()
        ),
        Type::Path(path) => {
            let segment = path.path.segments.last().context("a path has a name")?;
            let name = segment.ident.to_string();
            match name.as_str() {
                "c_void" => "Type::Void".to_owned(),
                "f32" | "f64" | "c_float" | "c_double" => "Type::Float".to_owned(),
                "Option" => "Type::Callback".to_owned(),
                "c_char" => "Type::Character".to_owned(),
                name if name.starts_with("c_") => {
                    format!("Type::Integer {{ size: size_of::<core::ffi::{name}>() }}")
                }
                "u8" | "u16" | "u32" | "u64" | "usize" | "i8" | "i16" | "i32" | "i64" => {
                    format!("Type::Integer {{ size: size_of::<{name}>() }}")
                }
                name => format!("Type::Named(\"{name}\")"),
            }
        }
        other => bail!("unexpected type {}", other.to_token_stream()),
    })
}
