//! `#[derive(ByValue)]`, for structs that are passed to kernels by value.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens as _, quote, quote_spanned};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned as _;
use syn::{Data, DataStruct, DeriveInput, Error, Meta, Path, Result, Token, Type, parse_quote};

/// Returns the `impl` for `item` of the trait in `default_crate`, and the checks of its guarantees.
///
/// The tokens of the fields occur only within the `impl`, which adds no name but `Self` to the
/// scope. Each type therefore resolves as in the struct. The code uses no name but the path of the
/// trait, because other names, even `::core`, can have another meaning in the caller's crate.
pub(crate) fn expand(item: &DeriveInput, default_crate: Path) -> Result<TokenStream> {
    let path = trait_crate(item, default_crate)?;
    implementation_with(item, &path, &TokenStream::new())
}

/// Returns the `impl` of `curium_kernel::ByValue`, and on the host also that of the driver's trait,
/// so that the struct can be passed to kernels of either kind.
///
/// The second `impl` is a macro's of `curium-kernel`, to which no `unsafe` is passed: the attribute
/// can name a module with another macro.
pub(crate) fn expand_for_kernels(item: &DeriveInput) -> Result<TokenStream> {
    let name = &item.ident;
    let path = trait_crate(item, parse_quote!(::curium_kernel))?;
    let form = fields(item)?.into_iter().fold(quote!(0_u64), |form, field| {
        quote!((#form ^ <#field as #path::ByValue>::FORM).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(5))
    });
    let implementation = implementation_with(item, &path, &quote!(const FORM: u64 = #form;))?;
    Ok(quote! {
        #implementation
        #path::__driver_by_value! { #name }
    })
}

/// Returns the `impl` of the trait `ByValue` of a crate with further constants.
fn implementation_with(
    item: &DeriveInput,
    path: &Path,
    constants: &TokenStream,
) -> Result<TokenStream> {
    let name = &item.ident;
    let fields = fields(item)?;
    let sizes = fields.iter().map(|field| {
        // The span makes the compiler report a field that is not `ByValue` at the field, like an
        // error in a macro expansion.
        let span = Span::call_site().located_at(field.span());
        let path = placed(path, span);
        quote_spanned!(span=> <#field as #path::ByValue>::SIZE)
    });
    let bounds = &item.generics.where_clause;
    Ok(quote! {
        // SAFETY: the struct has the layout of C without padding, and each field is `ByValue`,
        // which the constants check.
        #[automatically_derived]
        unsafe impl #path::ByValue for #name #bounds {
            const SIZE_OF_FIELDS: usize = 0 #(+ #sizes)*;
            #constants
        }
        // Fails if there is padding. An associated constant is evaluated only where it is used.
        const _: usize = <#name as #path::ByValue>::SIZE;
    })
}

/// Returns the tokens of `path`, which errors locate at `span`. They resolve as before.
fn placed(path: &Path, span: Span) -> TokenStream {
    let token = |mut token: TokenTree| {
        token.set_span(token.span().located_at(span));
        token
    };
    path.to_token_stream().into_iter().map(token).collect()
}

/// Returns the types of the fields of `item`.
fn fields(item: &DeriveInput) -> Result<Vec<&Type>> {
    let name = &item.ident;
    let (fields, keyword) = match &item.data {
        Data::Struct(DataStruct { fields, .. }) => (fields, None),
        Data::Enum(data) => (&syn::Fields::Unit, Some(("an enum", data.enum_token.span))),
        Data::Union(data) => (&syn::Fields::Unit, Some(("a union", data.union_token.span))),
    };
    if let Some((keyword, span)) = keyword {
        return Err(Error::new(
            span,
            format!("only a struct can be passed to a kernel by value, not {keyword}"),
        ));
    }
    if !has_layout_of_c(item)? {
        let advice = "needs #[repr(C)], so that its layout is that of the struct in CUDA C++";
        return Err(Error::new_spanned(name, format!("`{name}` {advice}")));
    }
    if !item.generics.params.is_empty() {
        let problem =
            format!("`{name}` has generic parameters, and a kernel parameter has one type");
        return Err(Error::new_spanned(&item.generics, problem));
    }
    if fields.is_empty() {
        let problem = format!("`{name}` has no fields: its size is 1 in CUDA C++ and 0 in Rust");
        return Err(Error::new_spanned(name, problem));
    }
    Ok(fields.iter().map(|field| &field.ty).collect())
}

/// Returns `true` if `item` is `repr(C)` or `repr(transparent)`, in any combination with other
/// representations.
fn has_layout_of_c(item: &DeriveInput) -> Result<bool> {
    let mut is_c = false;
    for attribute in item
        .attrs
        .iter()
        .filter(|attribute| attribute.path().is_ident("repr"))
    {
        let list = attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)?;
        is_c |= list
            .iter()
            .any(|meta| meta.path().is_ident("C") || meta.path().is_ident("transparent"));
    }
    Ok(is_c)
}

/// Returns the path of the crate with the trait: `default_crate`, unless the attribute names
/// another.
fn trait_crate(item: &DeriveInput, default_crate: Path) -> Result<Path> {
    let mut driver = default_crate;
    for attribute in item
        .attrs
        .iter()
        .filter(|attribute| attribute.path().is_ident("by_value"))
    {
        let misspelled = || Error::new_spanned(attribute, "expected `#[by_value(crate = path)]`");
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("crate") {
                return Err(misspelled());
            }
            driver = meta.value()?.parse()?;
            Ok(())
        })?;
    }
    Ok(driver)
}
