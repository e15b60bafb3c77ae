//! The macros of Curium: kernels in Rust, inline PTX, and structs that are passed to kernels by
//! value.
//!
//! `curium-kernel` and `curium` re-export them with examples.

mod by_value;
mod kernel;
mod ptx;

use proc_macro::TokenStream;
use syn::{DeriveInput, Error, ItemFn, parse_macro_input, parse_quote};

/// Implements `ByValue` for a struct with the layout of the corresponding struct in CUDA C++. The
/// requirements are checked at compile time:
///
/// - The struct is `repr(C)` or `repr(transparent)`. It has fields, and no type parameters or
///   lifetimes.
/// - Each field implements `ByValue`: a scalar, an array of scalars, a device pointer, or another
///   such struct.
/// - The struct has no padding, because padding bytes have no value. Declare a field in place of
///   padding, in both languages.
///
/// An attribute macro that changes the fields must stand above the derive: attributes below it run
/// after the checks.
///
/// The struct must also be `Copy`. The trait is looked up in the crate `curium`;
/// `#[by_value(crate = curium_driver)]` names another crate.
///
/// ```
/// # // The crates that this would use depend on this one.
/// # mod curium_driver {
/// #     pub unsafe trait ByValue: Copy {
/// #         const SIZE_OF_FIELDS: usize = size_of::<Self>();
/// #         const SIZE: usize = size_of::<Self>();
/// #     }
/// #     unsafe impl ByValue for u32 {}
/// #     unsafe impl ByValue for f32 {}
/// # }
/// # use curium_macros::ByValue;
/// #[derive(Clone, Copy, ByValue)]
/// #[by_value(crate = curium_driver)]
/// #[repr(C)]
/// struct Viewport {
///     width: u32,
///     height: u32,
///     scale: f32,
/// }
/// ```
#[proc_macro_derive(ByValue, attributes(by_value))]
pub fn by_value(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    by_value::expand(&input, parse_quote!(::curium::driver))
        .unwrap_or_else(Error::into_compile_error)
        .into()
}

/// Implements `curium_kernel::ByValue` and, on the host, the trait of the macro
/// [`ByValue`](macro@ByValue). `curium-kernel` re-exports this macro under the name `ByValue`.
#[doc(hidden)]
#[proc_macro_derive(KernelByValue, attributes(by_value))]
pub fn kernel_by_value(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    by_value::expand_for_kernels(&input)
        .unwrap_or_else(Error::into_compile_error)
        .into()
}

/// Declares a kernel. See the documentation of [`curium-kernel`](https://docs.rs/curium-kernel).
///
/// The first parameter is a `Thread` (code of each thread), a `Block` (code of a block of threads),
/// a `Grid` (code of a cooperative grid) or a `Cluster` (code of a cluster of blocks). On the host,
/// the macro also declares a struct with the name of the function, whose method `launch` launches
/// the kernel.
#[proc_macro_attribute]
pub fn kernel(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let function = parse_macro_input!(item as ItemFn);
    kernel::expand(&attribute.into(), &function)
        .unwrap_or_else(|error| kernel::with_error(&function, &error))
        .into()
}

/// Expands to inline PTX. See the documentation of
/// [`curium-kernel`](https://docs.rs/curium-kernel).
///
/// `{0}`, `{1}`, … are the operands: first the outputs, then the inputs. A brace is written as `{{`
/// or `}}`. An operand is `out(class) place`, `inout(class) place` or `in(class) value`, where the
/// register class is `h`, `r`, `l`, `f` or `d`: 16, 32 or 64 bits, `f32` or `f64`. `f[4]` is an
/// array of four registers, whose operand is the vector `{…}` of them. The option `pure` after the
/// operands states that the result depends on the operands only, and `target(89)` that the
/// instruction needs compute capability 8.9: the compiler of kernels refuses older targets.
#[proc_macro]
pub fn ptx(input: TokenStream) -> TokenStream {
    let instruction = parse_macro_input!(input as ptx::Instruction);
    ptx::expand(&instruction)
        .unwrap_or_else(Error::into_compile_error)
        .into()
}
