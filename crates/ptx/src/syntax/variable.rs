//! Variables, parameters and their initial values.

use curium_format::ptx::Linkage;

use super::error::Span;
use super::modifier::Space;
use super::name::Name;
use super::operand::{Integer, Symbol};
use super::scalar::ScalarType;

/// A variable of a module or function, or a parameter.
#[derive(Clone, PartialEq, Debug)]
pub struct Variable {
    /// The name. Variables in different scopes of a function may share it.
    pub name: Name,
    /// The state space.
    pub(crate) space: Space,
    /// The type of an element.
    pub(crate) scalar: ScalarType,
    /// The number of scalars of an element: 1, 2, 4 or 8.
    pub(crate) vector: u8,
    /// The alignment in bytes, a power of two: explicit, or otherwise natural.
    pub(crate) align: u64,
    /// The extents of an array, outermost first; empty for a single element. An unsized array `[]`
    /// has extent 0, or the number of its initial values.
    pub(crate) dimensions: Vec<u64>,
    /// The size in bytes; 0 for an unsized array.
    pub size: u64,
    /// `true` if the array was declared `[]` without initial values. Linking or the launch then
    /// determines its size.
    pub(crate) is_unsized: bool,
    /// The initial values by offset. Other bytes are zero.
    pub(crate) initial: Vec<InitialValue>,
    /// The settings of a `.samplerref` or `.texref`, such as (`filter_mode`, `nearest`).
    pub(crate) settings: Vec<(Name, Name)>,
    /// The linkage.
    pub linkage: Linkage,
    /// `.attribute(.managed)`: host and device share it.
    pub(crate) is_managed: bool,
    /// The `.ptr` attribute of a kernel parameter.
    pub(crate) pointer: Option<PointerAttribute>,
    /// Its position.
    pub(crate) span: Span,
}

impl Variable {
    /// Returns `true` if the variable is in shared memory. Another module need not define an
    /// external one.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.space == Space::Shared
    }
}

/// The `.ptr` attribute of a kernel parameter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct PointerAttribute {
    /// The space of the target; generic if absent.
    pub(crate) space: Option<Space>,
    /// The alignment of the target, in bytes.
    pub(crate) align: u64,
}

/// One scalar of an initial value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct InitialValue {
    /// The offset of the scalar in the variable, in bytes.
    pub(crate) offset: u64,
    /// The value, with the width of [`Variable::scalar`].
    pub(crate) value: Constant,
}

/// A constant in an initializer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Constant {
    /// An integer. The variable's type takes the low bits.
    Integer(Integer),
    /// The bits of an f32.
    Single(u32),
    /// The bits of an f64, which is rounded for a variable of type f32 or f16.
    Double(u64),
    /// An address.
    Address {
        /// The symbol.
        symbol: Symbol,
        /// The offset in bytes.
        offset: i64,
        /// `true` for `generic(symbol)`, `false` for an address in the symbol's own space.
        generic: bool,
        /// With `0xFF00(symbol)`: the mask of bits, which are then shifted down to bit 0.
        mask: Option<u64>,
    },
}
