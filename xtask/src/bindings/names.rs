//! `Debug` of the open newtypes: the name of the value, or its number if it has no name.

use std::collections::{BTreeMap, HashSet};

use anyhow::Result;
use quote::ToTokens as _;

/// Replaces the derived `Debug` of every enum in `file` by one that writes the names of its enumerators, through
/// `write_enumerator` of `curium-sys`.
pub(super) fn implement(file: &mut syn::File) -> Result<()> {
    let names = enumerators(file);
    let aliases = aliases(file);
    let mut items = Vec::with_capacity(file.items.len());
    for mut item in std::mem::take(&mut file.items) {
        let debug = match &mut item {
            syn::Item::Struct(open) if is_open_newtype(open) => {
                remove_debug(open)?;
                let name = open.ident.to_string();
                let shown = aliases.get(&name).unwrap_or(&name);
                Some(render(
                    &open.ident,
                    shown,
                    names.get(&name).map(Vec::as_slice).unwrap_or_default(),
                ))
            }
            _ => None,
        };
        items.push(item);
        items.extend(debug);
    }
    file.items = items;
    Ok(())
}

/// Returns the first enumerator of each value, by type.
fn enumerators(file: &syn::File) -> BTreeMap<String, Vec<syn::Ident>> {
    let mut names: BTreeMap<String, Vec<syn::Ident>> = BTreeMap::new();
    for item in &file.items {
        let syn::Item::Impl(block) = item else {
            continue;
        };
        if block.trait_.is_some() {
            continue;
        }
        let mut values = HashSet::new();
        let constants = block.items.iter().filter_map(|item| match item {
            syn::ImplItem::Const(constant) => Some(constant),
            _ => None,
        });
        let first =
            constants.filter(|constant| values.insert(constant.expr.to_token_stream().to_string()));
        let ty = block.self_ty.to_token_stream().to_string();
        names
            .entry(ty)
            .or_default()
            .extend(first.map(|constant| constant.ident.clone()));
    }
    names
}

/// Returns the name under which each type is exported: `CUresult` of `cudaError_enum`.
fn aliases(file: &syn::File) -> BTreeMap<String, String> {
    let mut aliases = BTreeMap::new();
    for item in &file.items {
        if let syn::Item::Use(import) = item
            && let syn::UseTree::Path(path) = &import.tree
            && let syn::UseTree::Rename(rename) = &*path.tree
        {
            aliases
                .entry(rename.ident.to_string())
                .or_insert(rename.rename.to_string());
        }
    }
    aliases
}

fn is_open_newtype(item: &syn::ItemStruct) -> bool {
    matches!(&item.fields, syn::Fields::Unnamed(fields) if fields.unnamed.len() == 1)
}

fn remove_debug(item: &mut syn::ItemStruct) -> Result<()> {
    for attribute in &mut item.attrs {
        if attribute.path().is_ident("derive") {
            let mut traits = Vec::new();
            attribute.parse_nested_meta(|meta| {
                if !meta.path.is_ident("Debug") {
                    traits.push(meta.path);
                }
                Ok(())
            })?;
            *attribute = syn::parse_quote!(#[derive(#(#traits),*)]);
        }
    }
    Ok(())
}

/// The names are data, and one function searches those of every type: a `match` in each type would be code, which
/// takes time to compile.
fn render(ty: &syn::Ident, shown: &str, names: &[syn::Ident]) -> syn::Item {
    let texts = names.iter().map(syn::Ident::to_string);
    syn::parse_quote! {
        impl ::core::fmt::Debug for #ty {
            fn fmt(&self, formatter: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                crate::write_enumerator(formatter, #shown, self.0.into(), &[#((Self::#names.0 as i64, #texts)),*])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enums_write_first_names() {
        let mut file: syn::File = syn::parse_quote! {
            impl tag_enum { pub const A: tag_enum = tag_enum(1); pub const B: tag_enum = tag_enum(1); pub const C: tag_enum = tag_enum(2); }
            #[repr(transparent)]
            #[derive(Debug, Copy, Clone)]
            pub struct tag_enum(pub u32);
            pub use self::tag_enum as CUtag;
            #[derive(Debug)]
            pub struct record { field: u32 }
        };
        implement(&mut file).expect("the file has the form of bindgen's output");
        let text = prettyplease::unparse(&file);
        assert!(
            text.contains("(Self::A.0 as i64, \"A\"), (Self::C.0 as i64, \"C\")"),
            "{text}"
        );
        assert!(!text.contains("Self::B"), "{text}");
        assert!(
            text.contains("crate::write_enumerator(") && text.contains("\"CUtag\","),
            "{text}"
        );
        assert!(
            text.contains("#[derive(Copy, Clone)]") && text.contains("#[derive(Debug)]"),
            "{text}"
        );
    }
}
