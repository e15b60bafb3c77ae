//! The types of elements.

use bytemuck::Pod;

use crate::sys::ncclDataType_t;

/// A type of elements that NCCL transfers and reduces: integers of 8, 32 and 64 bits, `f32` and
/// `f64`, with the feature `half` `f16` and `bf16`, and with the feature `float8` `F8E4M3` and
/// `F8E5M2`, which NCCL has since 2.24.
pub trait Element: Pod + Send + Sync + private::Sealed {
    #[doc(hidden)]
    const TYPE: ncclDataType_t;
}

mod private {
    pub trait Sealed {}
}

macro_rules! element {
    ($($(#[$attribute:meta])* $ty:ty: $name:ident,)*) => {
        $(
            $(#[$attribute])*
            impl private::Sealed for $ty {}

            $(#[$attribute])*
            impl Element for $ty {
                const TYPE: ncclDataType_t = ncclDataType_t::$name;
            }
        )*

        /// Returns the name of a type without its path.
        pub(crate) fn type_name(element: ncclDataType_t) -> &'static str {
            let path = match element {
                $(
                    $(#[$attribute])*
                    ncclDataType_t::$name => stringify!($ty),
                )*
                _ => "elements",
            };
            path.rsplit("::").next().unwrap_or(path)
        }
    };
}

element! {
    i8: ncclInt8,
    u8: ncclUint8,
    i32: ncclInt32,
    u32: ncclUint32,
    i64: ncclInt64,
    u64: ncclUint64,
    f32: ncclFloat32,
    f64: ncclFloat64,
    #[cfg(feature = "half")]
    half::f16: ncclFloat16,
    #[cfg(feature = "half")]
    half::bf16: ncclBfloat16,
    #[cfg(feature = "float8")]
    float8::F8E4M3: ncclFloat8e4m3,
    #[cfg(feature = "float8")]
    float8::F8E5M2: ncclFloat8e5m2,
}
