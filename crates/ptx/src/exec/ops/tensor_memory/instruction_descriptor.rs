//! The instruction descriptor of `tcgen05.mma`: the extents and formats of the matrices.

use crate::exec::matrix::Element;
use crate::exec::operands::tensor_memory::TensorKind;
use crate::exec::operands::warpgroup::SharedFactor;

/// A decoded instruction descriptor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InstructionDescriptor {
    /// The number of rows of A.
    pub(crate) rows: u32,
    /// The number of columns of B.
    pub(crate) columns: u32,
    /// The number of columns of A.
    pub(crate) inner: u32,
    pub(crate) result: Element,
    pub(crate) left: SharedFactor,
    pub(crate) right: SharedFactor,
    /// `true` if integers saturate.
    pub(crate) saturates: bool,
}

impl InstructionDescriptor {
    /// Decodes the bits of a descriptor, or returns the reason why the product does not exist.
    pub(crate) fn decode(bits: u32, kind: TensorKind) -> Result<Self, &'static str> {
        const RESERVED: u32 = 1 << 6 | 1 << 23 | 1 << 29;
        if bits & RESERVED != 0 {
            return Err("tcgen05.mma: the instruction descriptor sets reserved bits");
        }
        if bits & 7 != 0 {
            return Err("tcgen05.mma: the instruction descriptor of a sparse product requires .sp");
        }
        if bits >> 30 != 0 {
            return Err("tcgen05.mma: the instruction descriptor sets a shift, which requires .ws");
        }
        let left = SharedFactor {
            element: factor(kind, bits >> 7 & 7)?,
            is_negative: is_set(bits, 13),
            is_transposed: is_set(bits, 15),
        };
        let right = SharedFactor {
            element: factor(kind, bits >> 10 & 7)?,
            is_negative: is_set(bits, 14),
            is_transposed: is_set(bits, 16),
        };
        let saturates = is_set(bits, 3);
        let is_integer = kind == TensorKind::I8;
        if is_integer && (left.is_negative || right.is_negative) {
            return Err("tcgen05.mma: integers cannot be negated");
        }
        if saturates && !is_integer {
            return Err("tcgen05.mma: only integers saturate");
        }
        let descriptor = Self {
            rows: (bits >> 24 & 0x1f) * 16,
            columns: (bits >> 17 & 0x3f) * 8,
            // A row of A has 32 bytes.
            inner: 256 / left.element.bits(),
            result: result(kind, bits >> 4 & 3)?,
            left,
            right,
            saturates,
        };
        let has_bf16 = [left, right]
            .iter()
            .any(|factor| factor.element == Element::Bf16);
        if has_bf16 && descriptor.result == Element::F16 {
            return Err("tcgen05.mma: products of bf16 have results in f32");
        }
        descriptor.check_extents(is_integer)?;
        Ok(descriptor)
    }

    fn check_extents(&self, is_integer: bool) -> Result<(), &'static str> {
        if !matches!(self.rows, 64 | 128) {
            return Err("tcgen05.mma: M of the instruction descriptor is not 64 or 128");
        }
        let multiple = if is_integer && self.columns > 32 {
            16
        } else {
            8
        };
        let is_valid =
            (multiple..=256).contains(&self.columns) && self.columns.is_multiple_of(multiple);
        if is_valid {
            Ok(())
        } else {
            Err("tcgen05.mma: no product with M and N of the instruction descriptor")
        }
    }
}

fn is_set(bits: u32, bit: u32) -> bool {
    bits >> bit & 1 == 1
}

fn factor(kind: TensorKind, format: u32) -> Result<Element, &'static str> {
    match (kind, format) {
        (TensorKind::F16, 0) => Ok(Element::F16),
        (TensorKind::F16, 1) => Ok(Element::Bf16),
        (TensorKind::Tf32, 2) => Ok(Element::Tf32),
        (TensorKind::F8f6f4, 0) => Ok(Element::E4m3),
        (TensorKind::F8f6f4, 1) => Ok(Element::E5m2),
        (TensorKind::F8f6f4, 3..=5) => {
            Err("tcgen05.mma: factors in e2m3, e3m2 and e2m1 are not supported")
        }
        (TensorKind::I8, 0) => Ok(Element::U8),
        (TensorKind::I8, 1) => Ok(Element::S8),
        _ => Err("tcgen05.mma: the kind has no such format of A or B"),
    }
}

fn result(kind: TensorKind, format: u32) -> Result<Element, &'static str> {
    match (kind, format) {
        (TensorKind::F16 | TensorKind::F8f6f4, 0) => Ok(Element::F16),
        (TensorKind::F16 | TensorKind::F8f6f4 | TensorKind::Tf32, 1) => Ok(Element::F32),
        (TensorKind::I8, 2) => Ok(Element::S32),
        _ => Err("tcgen05.mma: the kind has no such format of D"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_decoded() -> Result<(), &'static str> {
        // M 128, N 256, B transposed, A negated, bf16 times f16 in f32.
        let bits = 8 << 24 | 32 << 17 | 1 << 16 | 1 << 13 | 1 << 7 | 1 << 4;
        let descriptor = InstructionDescriptor::decode(bits, TensorKind::F16)?;
        assert_eq!((descriptor.rows, descriptor.columns), (128, 256));
        assert_eq!(descriptor.inner, 16);
        assert_eq!(descriptor.left.element, Element::Bf16);
        assert_eq!(descriptor.right.element, Element::F16);
        assert!(descriptor.left.is_negative && !descriptor.left.is_transposed);
        assert!(!descriptor.right.is_negative && descriptor.right.is_transposed);
        assert_eq!(descriptor.result, Element::F32);
        Ok(())
    }

    #[test]
    fn invalid_descriptors_are_refused() {
        let valid = 8 << 24 | 32 << 17 | 1 << 4;
        for (bits, kind, part) in [
            (valid | 1 << 23, TensorKind::F16, "reserved"),
            (valid | 1 << 2, TensorKind::F16, ".sp"),
            (valid | 1 << 30, TensorKind::F16, ".ws"),
            (valid | 2 << 7, TensorKind::F16, "format of A or B"),
            (valid | 5 << 7, TensorKind::F8f6f4, "e2m1"),
            (valid ^ 3 << 4, TensorKind::F16, "format of D"),
            (valid | 1 << 3, TensorKind::F16, "saturate"),
            (4 << 24 | 1 << 4, TensorKind::F16, "M and N"),
            (2 << 24 | 1 << 17 | 1 << 4, TensorKind::F16, "M of"),
            (8 << 24 | 33 << 17 | 1 << 4, TensorKind::F16, "M and N"),
            (valid & !(1 << 4) | 1 << 7, TensorKind::F16, "bf16"),
            (4 << 24 | 5 << 17 | 2 << 4, TensorKind::I8, "M and N"),
        ] {
            let reason = InstructionDescriptor::decode(bits, kind).err();
            assert!(
                reason.is_some_and(|reason| reason.contains(part)),
                "{bits:#x} {kind:?}: {reason:?}"
            );
        }
    }
}
