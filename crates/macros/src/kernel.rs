//! `#[kernel]`: the entry point of a kernel on the device, and its launcher on the host.
//!
//! The macro does not interpret the types of parameters: traits of `curium-kernel` do, so that an
//! alias or another type of the same name has the meaning of the type. The macro reads a type's
//! spelling only to choose the *trait* that the type must implement: `StaticShared` for shared
//! memory, which is not an argument of a launch, `Scope` for the first parameter, and `Parameter`
//! for the others. No type implements two of them, so a wrong choice does not compile.
//!
//! Each type stands in the scope of the function, never in a nested module, where a name could mean
//! another type. Generated names have the hygiene of macros or begin with `__curium`.

use proc_macro2::{Delimiter, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens as _, format_ident, quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Attribute, Error, FnArg, ItemFn, Lifetime, Pat, Result, ReturnType, Safety, Type};

/// The types of static shared memory, as they are spelled.
const STATIC_SHARED: [&str; 3] = ["Shared", "Counters", "Scratch"];

/// The list of output types, for `&mut [T]` and results.
const OUTPUTS: &str = "`PerThread<T>` (an element for each thread), `PerThreadChunk<T, N>` (adjacent elements for each thread), \
    `PerBlock<T>` (an element for each block), `PerBlockRow<T>` (a row for each block), `PerBlockTile<T, ROWS, COLUMNS>` \
    (a tile for each block), `PerWarpTile<T, ROWS, COLUMNS>` (a tile for each warp) or `&[Atomic<T>]`";

/// A kernel, as declared.
struct Kernel<'a> {
    function: &'a ItemFn,
    /// The type of the first parameter.
    scope: &'a Type,
    /// The other parameters, in order.
    parameters: Vec<Parameter<'a>>,
}

/// A parameter after the first.
struct Parameter<'a> {
    name: &'a Ident,
    ty: &'a Type,
    /// `true` for static shared memory, which is not an argument of a launch.
    is_static_shared: bool,
}

/// Returns the function, the entry point and the launcher.
pub(crate) fn expand(attribute: &TokenStream, function: &ItemFn) -> Result<TokenStream> {
    if !attribute.is_empty() {
        return Err(Error::new(attribute.span(), "`#[kernel]` has no arguments"));
    }
    let kernel = parse(function)?;
    let function = on_device_only(function);
    let device = entry(&kernel);
    let check = host_check(&kernel);
    let host = launcher(&kernel);
    Ok(quote! { #function #device #check #host })
}

/// Returns the function with an error, so that names that refer to it are not reported as well.
pub(crate) fn with_error(function: &ItemFn, error: &Error) -> TokenStream {
    let error = error.to_compile_error();
    let name = &function.sig.ident;
    let vis = &function.vis;
    quote! {
        #error
        #[allow(dead_code)]
        #vis fn #name() {}
    }
}

/// Checks the signature.
fn parse(function: &ItemFn) -> Result<Kernel<'_>> {
    let signature = &function.sig;
    if let Safety::Unsafe(token) = &signature.safety {
        return Err(Error::new_spanned(
            token,
            "a kernel is a safe function: put `unsafe` blocks into its body",
        ));
    }
    for (token, problem) in [
        (
            signature.constness.map(|token| token.span),
            "a kernel is not `const`",
        ),
        (
            signature.asyncness.map(|token| token.span),
            "a kernel is not `async`: a launch returns before the kernel has run",
        ),
        (
            signature.abi.as_ref().map(|abi| abi.extern_token.span),
            "a kernel has no `extern`: the macro chooses the ABI",
        ),
        (
            signature
                .variadic
                .as_ref()
                .map(|variadic| variadic.dots.spans[0]),
            "a kernel is not variadic",
        ),
    ] {
        if let Some(span) = token {
            return Err(Error::new(span, problem));
        }
    }
    if let Some(parameter) = signature.generics.params.first() {
        let problem = match parameter {
            syn::GenericParam::Lifetime(_) => "a kernel declares no lifetimes: leave them out",
            _ => {
                "a kernel is not generic: write a generic function, and a kernel for each instance that calls it"
            }
        };
        return Err(Error::new_spanned(parameter, problem));
    }
    if let Some(clause) = &signature.generics.where_clause {
        return Err(Error::new_spanned(
            clause,
            "a kernel has no `where` clause, because it is not generic",
        ));
    }
    if let ReturnType::Type(_, ty) = &signature.output {
        return Err(Error::new_spanned(
            ty,
            format!("a kernel returns nothing: write results to {OUTPUTS}"),
        ));
    }
    let mut inputs = Vec::new();
    for input in &signature.inputs {
        inputs.push(named_input(input)?);
    }
    let Some(((_, scope), rest)) = inputs.split_first() else {
        let problem = "the first parameter is `Thread` (code of each thread) or `Block<X, Y, Z>` (code of a block of threads)";
        return Err(Error::new_spanned(&signature.ident, problem));
    };
    let mut parameters = Vec::new();
    for (name, ty) in rest {
        check_type(ty)?;
        parameters.push(Parameter {
            name,
            ty,
            is_static_shared: is_static_shared(ty),
        });
    }
    Ok(Kernel {
        function,
        scope,
        parameters,
    })
}

/// Returns the name and the type of a parameter.
fn named_input(input: &FnArg) -> Result<(&Ident, &Type)> {
    let FnArg::Typed(input) = input else {
        return Err(Error::new_spanned(
            input,
            "a kernel is a free function, not a method",
        ));
    };
    if let Some(attribute) = input.attrs.first() {
        return Err(Error::new_spanned(
            attribute,
            "a parameter of a kernel has no attributes",
        ));
    }
    match &*input.pat {
        Pat::Ident(pattern) if pattern.by_ref.is_none() && pattern.subpat.is_none() => {
            Ok((&pattern.ident, &input.ty))
        }
        other => Err(Error::new_spanned(
            other,
            "a parameter of a kernel is a name, optionally with `mut`",
        )),
    }
}

/// Explains the types that cannot be parameters, before the compiler reports that they lack a
/// trait.
fn check_type(ty: &Type) -> Result<()> {
    match ty {
        Type::Reference(reference) if reference.mutability.is_some() => Err(Error::new_spanned(
            ty,
            format!("every thread of the grid would have this `&mut`: use {OUTPUTS}"),
        )),
        Type::Reference(reference) if reference.lifetime.is_some() => Err(Error::new_spanned(
            &reference.lifetime,
            "a parameter is borrowed for the launch: leave the lifetime out",
        )),
        Type::ImplTrait(_) => Err(Error::new_spanned(
            ty,
            "a kernel is not generic: write a generic function, and a kernel for each instance that calls it",
        )),
        Type::Infer(_) => Err(Error::new_spanned(
            ty,
            "a parameter of a kernel has an explicit type",
        )),
        _ => Ok(()),
    }
}

fn is_static_shared(ty: &Type) -> bool {
    let Type::Path(path) = ty else { return false };
    let Some(segment) = path.path.segments.last() else {
        return false;
    };
    STATIC_SHARED.iter().any(|name| segment.ident == name)
}

/// Returns the function, which is dead code on the host.
fn on_device_only(function: &ItemFn) -> TokenStream {
    let has_expect = function
        .attrs
        .iter()
        .any(|attribute| attribute.path().is_ident("inline"));
    let inline =
        (!has_expect).then(|| quote!(#[cfg_attr(target_arch = "nvptx64", inline(always))]));
    quote! {
        #inline
        #[cfg_attr(not(target_arch = "nvptx64"), allow(dead_code))]
        #[allow(unreachable_pub, clippy::too_many_arguments, clippy::needless_pass_by_value)]
        #function
    }
}

/// Returns the entry point and the table for the compiler of kernels.
fn entry(kernel: &Kernel<'_>) -> TokenStream {
    let name = &kernel.function.sig.ident;
    let text = unraw(name);
    let configuration = configuration(kernel.function);
    let scope = kernel.scope;
    let entry_name = format!("curium.kernel.{text}");
    let table_name = format!("curium.meta.{text}");
    let table = table(kernel);
    let table_type = table_type(kernel);
    let launch = Ident::new("launch", Span::mixed_site());
    let entry = format_ident!("__curium_entry_{}", text);

    let mut words = Vec::new();
    let mut statics = Vec::new();
    let mut arguments = Vec::new();
    for (index, parameter) in kernel.parameters.iter().enumerate() {
        let ty = parameter.ty;
        if parameter.is_static_shared {
            let memory = format_ident!("__CURIUM_SHARED_{}", index);
            statics.push(quote! {
                #[unsafe(link_section = ".curium.shared")]
                static #memory: ::curium_kernel::__private::SharedStatic<<#ty as ::curium_kernel::__private::StaticShared>::Storage> =
                    ::curium_kernel::__private::SharedStatic::UNINIT;
            });
            arguments.push(quote! {
                // SAFETY: this is the only use of the static, which the compiler of kernels places
                // in shared memory.
                unsafe { <#ty as ::curium_kernel::__private::StaticShared>::from_static(&#launch, &#memory) }
            });
            continue;
        }
        let [first, second, third] = ["a", "b", "c"]
            .map(|word| format_ident!("p{}{}", index, word, span = Span::mixed_site()));
        words.push(quote! {
            #first: <#ty as ::curium_kernel::__private::Parameter>::First,
            #second: <#ty as ::curium_kernel::__private::Parameter>::Second,
            #third: <#ty as ::curium_kernel::__private::Parameter>::Third
        });
        arguments.push(quote! {
            // SAFETY: the launcher passes these words for the parameter.
            unsafe { <#ty as ::curium_kernel::__private::Parameter>::from_words(&#launch, #first, #second, #third) }
        });
    }
    quote! {
        #(#configuration)*
        #[cfg(target_arch = "nvptx64")]
        const _: () = {
            #[used]
            #[unsafe(export_name = #table_name)]
            #[unsafe(link_section = ".curium.kernel")]
            static __CURIUM_TABLE: #table_type = #table;

            #[unsafe(export_name = #entry_name)]
            #[allow(improper_ctypes_definitions, clippy::too_many_arguments)]
            unsafe extern "C" fn #entry(#(#words),*) {
                #(#statics)*
                // SAFETY: this is the entry point of a kernel.
                let #launch = unsafe { ::curium_kernel::__private::Launch::new() };
                #name(
                    // SAFETY: the scope is created once in each thread.
                    unsafe { <#scope as ::curium_kernel::__private::Scope>::enter(&#launch) },
                    #(#arguments),*
                )
            }
        };
    }
}

/// Returns code that reports errors in the types of parameters when the host is compiled, and not
/// only in the entry point.
fn host_check(kernel: &Kernel<'_>) -> TokenStream {
    let configuration = configuration(kernel.function);
    let table = table(kernel);
    let table_type = table_type(kernel);
    let checks = kernel
        .parameters
        .iter()
        .filter(|parameter| parameter.is_static_shared)
        .map(|parameter| {
            let ty = parameter.ty;
            quote_spanned!(span_at(ty)=> let _ = <#ty as ::curium_kernel::__private::StaticShared>::from_static;)
        });
    quote! {
        #(#configuration)*
        #[cfg(not(target_arch = "nvptx64"))]
        const _: () = {
            const _: #table_type = #table;
            #[allow(dead_code)]
            fn __curium_check_shared() {
                #(#checks)*
            }
        };
    }
}

/// Returns the number of the kernel's parameters that a launch passes.
fn parameter_count(kernel: &Kernel<'_>) -> usize {
    kernel
        .parameters
        .iter()
        .filter(|parameter| !parameter.is_static_shared)
        .count()
}

fn table_type(kernel: &Kernel<'_>) -> TokenStream {
    let count = parameter_count(kernel);
    quote!(::curium_kernel::__private::KernelTable<#count>)
}

/// Returns the expression of the kernel's table. Host and device evaluate the same expression, and
/// the host compares the values.
fn table(kernel: &Kernel<'_>) -> TokenStream {
    let scope = with_lifetime(kernel.scope);
    let hash = token_hash(kernel.function);
    let high = (hash >> 32) as u32;
    let low = hash as u32;
    let descriptions = kernel
        .parameters
        .iter()
        .filter(|parameter| !parameter.is_static_shared)
        .map(|parameter| {
            let ty = with_lifetime(parameter.ty);
            let span = span_at(parameter.ty);
            quote_spanned!(span=> <#ty as ::curium_kernel::__private::Parameter>::DESCRIPTION)
        });
    quote! {
        ::curium_kernel::__private::KernelTable::new::<#scope>([#low, #high], [#(#descriptions),*])
    }
}

/// Returns the struct that launches the kernel.
fn launcher(kernel: &Kernel<'_>) -> TokenStream {
    let function = kernel.function;
    let name = &function.sig.ident;
    let text = unraw(name);
    let vis = &function.vis;
    let configuration = configuration(function);
    let documentation = function
        .attrs
        .iter()
        .filter(|attribute| attribute.path().is_ident("doc"));
    let scope = with_lifetime(kernel.scope);
    let table = table(kernel);
    let table_type = table_type(kernel);
    let operation = format!("{text}::launch");
    let note = format!("The kernel `{text}`, loaded on a device.");

    let passed: Vec<&Parameter<'_>> = kernel
        .parameters
        .iter()
        .filter(|parameter| !parameter.is_static_shared)
        .collect();
    let names: Vec<&Ident> = passed.iter().map(|parameter| parameter.name).collect();
    let types: Vec<Type> = passed
        .iter()
        .map(|parameter| with_lifetime(parameter.ty))
        .collect();
    let arguments: Vec<TokenStream> = names
        .iter()
        .zip(&types)
        .map(|(name, ty)| quote_spanned!(span_at(ty)=> #name: impl ::curium_kernel::host::Argument<#ty>))
        .collect();
    let grid_type =
        quote_spanned!(span_at(&scope)=> <#scope as ::curium_kernel::__private::HostScope>::Grid);
    let texts: Vec<String> = names.iter().map(|name| unraw(name)).collect();
    let stream = Ident::new("stream", Span::mixed_site());
    let grid = Ident::new("grid", Span::mixed_site());
    let attributes = Ident::new("attributes", Span::mixed_site());
    let call = Ident::new("call", Span::mixed_site());
    let context = Ident::new("context", Span::mixed_site());
    let shared_bytes = Ident::new("shared_bytes", Span::mixed_site());
    quote! {
        ::curium_kernel::__host! {
            #(#configuration)*
            #(#documentation)*
            #[doc = ""]
            #[doc = #note]
            #[allow(non_camel_case_types, unreachable_pub)]
            #[derive(::core::clone::Clone, ::core::fmt::Debug)]
            #vis struct #name {
                __function: ::curium_kernel::host::Function<Self>,
            }

            #(#configuration)*
            impl ::curium_kernel::__private::HostKernel for #name {
                type Table = #table_type;
                const TABLE: Self::Table = #table;

                fn __from_function(function: ::curium_kernel::host::Function<Self>) -> Self {
                    Self { __function: function }
                }
            }

            #(#configuration)*
            #[allow(unreachable_pub, clippy::too_many_arguments)]
            impl #name {
                /// Launches the kernel on the stream, and returns without waiting for it to run.
                ///
                /// # Errors
                ///
                /// An argument error if an argument has the wrong size or the grid the wrong
                /// dimensions; otherwise the errors of `curium::driver::Kernel::launch`. Errors of
                /// the kernel itself are reported by a later call.
                #vis fn launch(
                    &self,
                    #stream: &::curium_kernel::host::Stream,
                    #grid: impl ::core::convert::Into<#grid_type>,
                    #(#arguments),*
                ) -> ::curium_kernel::host::Result<()> {
                    let #call = ::curium_kernel::__private::Call::new(#operation, &[#(#texts),*]);
                    let #grid = ::core::convert::Into::into(#grid);
                    // SAFETY: these are the types of the kernel's parameters.
                    unsafe {
                        ::curium_kernel::__private::launch::<#scope, (#(#types,)*), _, _>(
                            &self.__function, &#call, #stream, #grid, (#(#names,)*),
                        )
                    }
                }

                /// Returns the driver's kernel: its attributes, its occupancy, and `unsafe`
                /// launches.
                #[must_use]
                #vis fn kernel(&self) -> &::curium_kernel::host::Kernel<::curium_kernel::host::Untyped> {
                    self.__function.kernel()
                }

                /// Returns the number of blocks that fill the device, with this number of bytes of
                /// dynamic shared memory in each: a grid for a kernel with grid-stride loops.
                ///
                /// CUDA: `cuOccupancyMaxActiveBlocksPerMultiprocessor`, or
                /// `cuOccupancyMaxActiveClusters` for a kernel of clusters.
                ///
                /// # Errors
                ///
                /// As for `curium::driver::Kernel::max_active_blocks`.
                #vis fn suggested_blocks(
                    &self,
                    #context: &::curium_kernel::host::Context,
                    #shared_bytes: ::core::primitive::usize,
                ) -> ::curium_kernel::host::Result<::core::primitive::u32> {
                    self.__function.suggested_blocks::<#scope>(#context, #shared_bytes)
                }

                /// Launches the kernel like `launch`, with launch attributes such as a priority or
                /// a cluster size.
                ///
                /// # Errors
                ///
                /// As for `launch`, and an argument error for attributes that let the kernel run
                /// concurrently with work that uses its arguments.
                #vis fn launch_with(
                    &self,
                    #stream: &::curium_kernel::host::Stream,
                    #grid: impl ::core::convert::Into<#grid_type>,
                    #attributes: &::curium_kernel::host::LaunchAttributes<'_>,
                    #(#arguments),*
                ) -> ::curium_kernel::host::Result<()> {
                    let #call = ::curium_kernel::__private::Call::new(#operation, &[#(#texts),*]).with_attributes(#attributes);
                    let #grid = ::core::convert::Into::into(#grid);
                    // SAFETY: these are the types of the kernel's parameters.
                    unsafe {
                        ::curium_kernel::__private::launch::<#scope, (#(#types,)*), _, _>(
                            &self.__function, &#call, #stream, #grid, (#(#names,)*),
                        )
                    }
                }
            }
        }
    }
}

/// Returns the span of generated tokens that errors locate at a type. Names resolve as in the
/// macro, and lints ignore the tokens.
fn span_at(ty: &Type) -> Span {
    Span::call_site().located_at(ty.span())
}

/// Returns the type of a parameter with a lifetime, which bounds require. The launcher ignores
/// which one it is.
fn with_lifetime(ty: &Type) -> Type {
    let mut ty = ty.clone();
    if let Type::Reference(reference) = &mut ty {
        reference.lifetime = Some(Lifetime::new("'static", Span::call_site()));
    }
    ty
}

/// Returns the attributes that decide whether the function exists.
fn configuration(function: &ItemFn) -> Vec<&Attribute> {
    function
        .attrs
        .iter()
        .filter(|attribute| attribute.path().is_ident("cfg"))
        .collect()
}

/// Returns the name without `r#`.
fn unraw(name: &Ident) -> String {
    let text = name.to_string();
    text.strip_prefix("r#").map(str::to_owned).unwrap_or(text)
}

/// Returns the FNV-1a hash of the function's tokens. It depends on the tokens only, and not on how
/// a version of the compiler prints them.
fn token_hash(function: &ItemFn) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    hash_tokens(function.sig.to_token_stream(), &mut hash);
    hash_tokens(function.block.to_token_stream(), &mut hash);
    hash
}

fn hash_tokens(tokens: TokenStream, hash: &mut u64) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                hash_text(open, hash);
                hash_tokens(group.stream(), hash);
                hash_text(close, hash);
            }
            TokenTree::Ident(ident) => hash_text(&ident.to_string(), hash),
            TokenTree::Punct(punct) => hash_text(&punct.as_char().to_string(), hash),
            TokenTree::Literal(literal) => hash_text(&literal.to_string(), hash),
        }
    }
}

fn hash_text(text: &str, hash: &mut u64) {
    // A zero separates the tokens.
    for byte in text.bytes().chain([0]) {
        *hash = (*hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
}
