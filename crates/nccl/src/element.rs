//! The types of elements.

use bytemuck::Pod;

use crate::sys::ncclDataType_t;

/// A type of elements that NCCL transfers and reduces: integers of 8, 32 and 64 bits, `f32` and `f64`, and with the feature `half`
/// `f16` and `bf16`.
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
}
