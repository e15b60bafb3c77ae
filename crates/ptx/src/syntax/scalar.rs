//! The scalar types of PTX.

/// The class of a [`ScalarType`]: the interpretation of its bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum ScalarClass {
    /// Untyped bits, `.b32`.
    Bits,
    /// Unsigned integers, `.u32`, including packed ones.
    Unsigned,
    /// Signed integers, `.s32`, including packed ones.
    Signed,
    /// Binary floating point, including packed and alternate formats.
    Float,
    /// Predicates.
    Predicate,
    /// Textures, samplers and surfaces.
    Opaque,
}

macro_rules! scalar_types {
    ($($variant:ident $text:literal $bits:literal $class:ident,)*) => {
        /// A type that an instruction, register or variable can have.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[non_exhaustive]
        pub(crate) enum ScalarType {
            $(#[doc = concat!("`.", $text, "`")] $variant,)*
        }

        impl ScalarType {
            /// Every type.
            pub(super) const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Returns the type as written, without its dot.
            #[must_use]
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// Returns the width in bits; 1 for a predicate.
            #[must_use]
            pub(crate) const fn bits(self) -> u32 {
                match self { $(Self::$variant => $bits,)* }
            }

            /// Returns the class.
            #[must_use]
            pub(crate) const fn class(self) -> ScalarClass {
                match self { $(Self::$variant => ScalarClass::$class,)* }
            }
        }
    };
}

scalar_types! {
    Pred "pred" 1 Predicate,
    B1 "b1" 1 Bits,
    B8 "b8" 8 Bits,
    B16 "b16" 16 Bits,
    B32 "b32" 32 Bits,
    B64 "b64" 64 Bits,
    B128 "b128" 128 Bits,
    B1024 "b1024" 1024 Bits,
    U2 "u2" 2 Unsigned,
    U4 "u4" 4 Unsigned,
    U8 "u8" 8 Unsigned,
    U16 "u16" 16 Unsigned,
    U32 "u32" 32 Unsigned,
    U64 "u64" 64 Unsigned,
    S2 "s2" 2 Signed,
    S4 "s4" 4 Signed,
    S8 "s8" 8 Signed,
    S16 "s16" 16 Signed,
    S32 "s32" 32 Signed,
    S64 "s64" 64 Signed,
    U8x4 "u8x4" 32 Unsigned,
    S8x4 "s8x4" 32 Signed,
    U16x2 "u16x2" 32 Unsigned,
    S16x2 "s16x2" 32 Signed,
    F16 "f16" 16 Float,
    F16x2 "f16x2" 32 Float,
    Bf16 "bf16" 16 Float,
    Bf16x2 "bf16x2" 32 Float,
    Tf32 "tf32" 32 Float,
    F32 "f32" 32 Float,
    F32x2 "f32x2" 64 Float,
    F64 "f64" 64 Float,
    E4m3 "e4m3" 8 Float,
    E5m2 "e5m2" 8 Float,
    E3m2 "e3m2" 6 Float,
    E2m3 "e2m3" 6 Float,
    E2m1 "e2m1" 4 Float,
    E4m3x2 "e4m3x2" 16 Float,
    E5m2x2 "e5m2x2" 16 Float,
    E3m2x2 "e3m2x2" 16 Float,
    E2m3x2 "e2m3x2" 16 Float,
    E2m1x2 "e2m1x2" 8 Float,
    E4m3x4 "e4m3x4" 32 Float,
    E5m2x4 "e5m2x4" 32 Float,
    E3m2x4 "e3m2x4" 32 Float,
    E2m3x4 "e2m3x4" 32 Float,
    E2m1x4 "e2m1x4" 16 Float,
    Ue4m3 "ue4m3" 8 Float,
    Ue8m0 "ue8m0" 8 Float,
    Ue8m0x2 "ue8m0x2" 16 Float,
    S2f6x2 "s2f6x2" 16 Float,
    TextureReference "texref" 64 Opaque,
    SamplerReference "samplerref" 64 Opaque,
    SurfaceReference "surfref" 64 Opaque,
}

impl ScalarType {
    /// Returns the type spelled `text`, without its dot.
    #[must_use]
    pub(crate) fn from_name(text: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|scalar| scalar.name() == text)
    }

    /// Returns the size in bytes of a variable of this type. Types below one byte take one byte.
    #[must_use]
    pub(crate) const fn bytes(self) -> u64 {
        self.bits().div_ceil(8) as u64
    }

    /// Returns `true` if this is an integer or untyped-bits type.
    #[must_use]
    pub(crate) const fn is_integer_like(self) -> bool {
        matches!(
            self.class(),
            ScalarClass::Bits | ScalarClass::Unsigned | ScalarClass::Signed
        )
    }
}
