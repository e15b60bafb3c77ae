//! The description of a product.

mod check;
mod serialize;

use std::fmt;

pub(super) use self::serialize::Reader;
use super::epilogue::{Access, AuxiliaryContent, BiasLength};
use super::role::{ByRole, Requirement, Role};
use super::typed_layout::{StoredMatrix, TypedLayout};
use super::{Compute, ElementType, Epilogue};

/// The description of a product: `d` = epilogue(`alpha` · `a` · `b` + `beta` · `c`).
///
/// The layouts determine the shapes. For a transposed factor, pass the result of
/// [`MatrixLayout::transposed`](crate::MatrixLayout::transposed). Without [`Matmul::with_c`], `c`
/// is the previous content of `d`.
///
/// ```
/// use curium_blas::MatrixLayout;
/// use curium_blas::lt::{Compute, Epilogue, Matmul, TypedLayout};
///
/// // The output of a layer: 32 samples of 64 numbers to 128.
/// let input = TypedLayout::new::<f32>(MatrixLayout::row_major(32, 64));
/// let weights = TypedLayout::new::<f32>(MatrixLayout::row_major(128, 64).transposed());
/// let output = TypedLayout::new::<f32>(MatrixLayout::row_major(32, 128));
/// let layer = Matmul::new(input, weights, output).with_compute(Compute::Tf32).with_epilogue(Epilogue::GeluAuxiliaryBias);
/// assert_eq!((layer.bias_len(), layer.auxiliary_len()), (128, 32 * 128));
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Matmul {
    a: TypedLayout,
    b: TypedLayout,
    c: Option<TypedLayout>,
    d: TypedLayout,
    batch_count: usize,
    compute: Compute,
    has_device_factors: bool,
    epilogue: Epilogue,
    bias: Option<ElementType>,
    auxiliary_leading_dimension: Option<usize>,
    scales: Scales,
    is_accumulated_fast: bool,
    alignment: usize,
}

bitflags::bitflags! {
    /// The scalars in device memory that a product of 8-bit floats reads and writes.
    #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
    pub struct Scales: u32 {
        /// A factor of `a`.
        const A = 1;
        /// A factor of `b`.
        const B = 2;
        /// A factor of `c`.
        const C = 4;
        /// A factor of the result, applied before it is rounded to 8 bits.
        const D = 8;
        /// Stores the maximum of the absolute values of the result, before its factor is applied.
        const AMAX_D = 16;
    }
}

/// A product as cuBLASLt computes it: all matrices by columns, and the result not transposed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Problem {
    pub(super) a: StoredMatrix,
    pub(super) b: StoredMatrix,
    pub(super) c: StoredMatrix,
    pub(super) d: StoredMatrix,
    pub(super) epilogue: Epilogue,
    /// `true` if the factors are exchanged.
    pub(super) is_transposed: bool,
}

impl Matmul {
    /// Describes the product of `a` and `b` as `d`, with sums of `f64` for `f64`, of `i32` for
    /// `i8`, and of `f32` for other types.
    #[must_use]
    pub const fn new(a: TypedLayout, b: TypedLayout, d: TypedLayout) -> Self {
        Self {
            a,
            b,
            c: None,
            d,
            batch_count: 1,
            compute: Compute::for_factor(a.element),
            has_device_factors: false,
            epilogue: Epilogue::None,
            bias: None,
            auxiliary_leading_dimension: None,
            scales: Scales::empty(),
            is_accumulated_fast: false,
            alignment: DEFAULT_ALIGNMENT,
        }
    }

    /// Adds `beta` · `c` for a matrix other than `d`, with the shape and the order of `d`.
    #[must_use]
    pub const fn with_c(mut self, c: TypedLayout) -> Self {
        self.c = Some(c);
        self
    }

    /// Sets the arithmetic.
    #[must_use]
    pub const fn with_compute(mut self, compute: Compute) -> Self {
        self.compute = compute;
        self
    }

    /// Sets the number of products. The strides of the layouts are the distances between the
    /// matrices. All products have the same bias.
    #[must_use]
    pub const fn with_batches(mut self, count: usize) -> Self {
        self.batch_count = count;
        self
    }

    /// Sets the epilogue.
    #[must_use]
    pub const fn with_epilogue(mut self, epilogue: Epilogue) -> Self {
        self.epilogue = epilogue;
        self
    }

    /// Sets the type of the bias. By default it is that of the result, and `bf16` if that has 8
    /// bits.
    #[must_use]
    pub const fn with_bias_type(mut self, element: ElementType) -> Self {
        self.bias = Some(element);
        self
    }

    /// Sets the distance of the columns of the auxiliary memory: in bits for a mask, otherwise in
    /// elements. It must be a multiple of 128 bits or 8 elements. The default is the length of a
    /// column of the result, rounded up to such a multiple.
    #[must_use]
    pub const fn with_auxiliary_leading_dimension(mut self, leading_dimension: usize) -> Self {
        self.auxiliary_leading_dimension = Some(leading_dimension);
        self
    }

    /// Passes `alpha` and `beta` in device memory, where the operation reads them when it runs.
    #[must_use]
    pub const fn with_device_factors(mut self) -> Self {
        self.has_device_factors = true;
        self
    }

    /// Sets the scales of a product of 8-bit floats.
    #[must_use]
    pub const fn with_scales(mut self, scales: Scales) -> Self {
        self.scales = scales;
        self
    }

    /// Allows or forbids summing products of 8-bit floats with less precision, which is faster.
    #[must_use]
    pub const fn with_fast_accumulation(mut self, is_fast: bool) -> Self {
        self.is_accumulated_fast = is_fast;
        self
    }

    /// Sets the alignment of the address of each matrix in bytes: 256 by default, as buffers
    /// guarantee. Parts of buffers may have a smaller alignment, for which there are fewer
    /// algorithms.
    #[must_use]
    pub const fn with_alignment(mut self, bytes: usize) -> Self {
        self.alignment = bytes;
        self
    }

    /// Returns the layout of `a`.
    #[must_use]
    pub const fn a(&self) -> TypedLayout {
        self.a
    }

    /// Returns the layout of `b`.
    #[must_use]
    pub const fn b(&self) -> TypedLayout {
        self.b
    }

    /// Returns the layout of `c`; `None` if it is the previous content of `d`.
    #[must_use]
    pub const fn c(&self) -> Option<TypedLayout> {
        self.c
    }

    /// Returns the layout of `d`.
    #[must_use]
    pub const fn d(&self) -> TypedLayout {
        self.d
    }

    /// Returns the epilogue.
    #[must_use]
    pub const fn epilogue(&self) -> Epilogue {
        self.epilogue
    }

    /// Returns the arithmetic.
    #[must_use]
    pub const fn compute(&self) -> Compute {
        self.compute
    }

    /// Returns the number of products.
    #[must_use]
    pub const fn batch_count(&self) -> usize {
        self.batch_count
    }

    /// Returns the type of `alpha` and `beta`.
    #[must_use]
    pub const fn scale_type(&self) -> ElementType {
        self.compute.scale(self.d.element)
    }

    /// Returns the number of elements of the bias or of its gradient; 0 if the epilogue has none.
    #[must_use]
    pub fn bias_len(&self) -> usize {
        self.bias().map_or(0, |(_, _, len)| len)
    }

    /// Returns the type of the bias or of its gradient.
    #[must_use]
    pub const fn bias_type(&self) -> ElementType {
        match self.bias {
            Some(element) => element,
            None if self.d.element.is_fp8()
                || self.a.element.is_fp8() && matches!(self.d.element, ElementType::F32) =>
            {
                ElementType::Bf16
            }
            None => self.d.element,
        }
    }

    /// Returns the length of the auxiliary memory: in bytes for a mask, otherwise in elements of
    /// the type of the result; 0 if the epilogue has none.
    #[must_use]
    pub fn auxiliary_len(&self) -> usize {
        self.auxiliary().map_or(0, |requirement| requirement.len())
    }

    pub(super) const fn c_type(&self) -> ElementType {
        match self.c {
            Some(c) => c.element,
            None if self.d.element.is_fp8() => self.bias_type(),
            None => self.d.element,
        }
    }

    /// Returns `true` if `c` is the previous content of `d`.
    pub(super) const fn adds_to_d(&self) -> bool {
        self.c.is_none() && !self.d.element.is_fp8()
    }

    pub(super) const fn has_device_factors(&self) -> bool {
        self.has_device_factors
    }

    pub(super) const fn is_accumulated_fast(&self) -> bool {
        self.is_accumulated_fast
    }

    pub(super) const fn alignment(&self) -> usize {
        self.alignment
    }

    /// Returns `true` if the result has no element.
    pub(super) fn is_empty(&self) -> bool {
        self.batch_count == 0 || self.d.stored().stored.is_empty()
    }

    /// Returns the product of matrices by columns whose result is not transposed.
    pub(super) fn problem(&self) -> Problem {
        let a = self.a.stored();
        let b = self.b.stored();
        let d = self.d.stored();
        let c = self.c.map_or(
            StoredMatrix {
                element: self.c_type(),
                ..d
            },
            TypedLayout::stored,
        );
        if !d.stored.is_transposed {
            return Problem {
                a,
                b,
                c,
                d,
                epilogue: self.epilogue,
                is_transposed: false,
            };
        }
        let [a, b, c, d] = [a, b, c, d].map(StoredMatrix::transposed);
        Problem {
            a: b,
            b: a,
            c,
            d,
            epilogue: self.epilogue.transposed(),
            is_transposed: true,
        }
    }

    /// Returns the access, the type and the length of the bias.
    fn bias(&self) -> Option<(Access, ElementType, usize)> {
        let Problem { d, epilogue, .. } = self.problem();
        let (access, length) = epilogue.bias()?;
        let len = if length == BiasLength::PerRow {
            d.stored.length
        } else {
            d.stored.count
        };
        // Gradients of a batch follow each other.
        let count = if access == Access::Write {
            self.batch_count
        } else {
            1
        };
        Some((access, self.bias_type(), len.saturating_mul(count)))
    }

    /// Returns the number of elements of the bias from one product of a batch to the next: 0 for a
    /// bias that all share.
    pub(super) fn bias_stride(&self) -> usize {
        match self.bias() {
            Some((Access::Write, _, len)) if self.batch_count > 1 => len / self.batch_count,
            _ => 0,
        }
    }

    /// Returns the distance of the columns of the auxiliary memory.
    pub(super) fn auxiliary_leading_dimension(&self) -> usize {
        let length = self.problem().d.stored.length;
        let granularity = match self.epilogue.auxiliary() {
            Some((_, AuxiliaryContent::Mask)) => MASK_GRANULARITY,
            _ => INPUT_GRANULARITY,
        };
        let default = length
            .checked_next_multiple_of(granularity)
            .unwrap_or(usize::MAX);
        self.auxiliary_leading_dimension.unwrap_or(default)
    }

    /// Returns the number of elements of auxiliary memory from one product of a batch to the next.
    pub(super) fn auxiliary_stride(&self) -> usize {
        self.auxiliary_leading_dimension()
            .saturating_mul(self.problem().d.stored.count)
    }

    fn auxiliary(&self) -> Option<Requirement> {
        let (access, kind) = self.epilogue.auxiliary()?;
        let elements = self.auxiliary_stride().saturating_mul(self.batch_count);
        let (element, len) = match kind {
            AuxiliaryContent::Mask => (ElementType::U8, elements / 8),
            AuxiliaryContent::Input => (self.d.element, elements),
        };
        Some(Requirement::new(element, len, access, ALIGNMENT))
    }

    /// Returns the memory that the product requires, but for the workspace. The layouts are
    /// checked.
    pub(super) fn requirements(&self) -> ByRole<Option<Requirement>> {
        let mut all = ByRole([None; Role::ALL.len()]);
        all[Role::A] = Some(self.matrix_requirement(self.a, Access::Read));
        all[Role::B] = Some(self.matrix_requirement(self.b, Access::Read));
        all[Role::C] = self.c.map(|c| self.matrix_requirement(c, Access::Read));
        all[Role::D] = Some(self.matrix_requirement(self.d, Access::Write));
        if self.has_device_factors {
            all[Role::Alpha] = Some(Requirement::scalar(self.scale_type(), Access::Read));
            all[Role::Beta] = all[Role::Alpha];
        }
        all[Role::Bias] = self
            .bias()
            .map(|(access, element, len)| Requirement::new(element, len, access, ALIGNMENT));
        all[Role::Auxiliary] = self.auxiliary();
        for (scale, role, access) in [
            (Scales::A, Role::ScaleA, Access::Read),
            (Scales::B, Role::ScaleB, Access::Read),
            (Scales::C, Role::ScaleC, Access::Read),
            (Scales::D, Role::ScaleD, Access::Read),
            (Scales::AMAX_D, Role::AmaxD, Access::Write),
        ] {
            all[role] = self
                .scales
                .contains(scale)
                .then(|| Requirement::scalar(ElementType::F32, access));
        }
        all
    }

    /// Returns the memory that all matrices of a batch require.
    fn matrix_requirement(&self, matrix: TypedLayout, access: Access) -> Requirement {
        let last = matrix.stride * self.batch_count.saturating_sub(1);
        let len = last + matrix.stored().stored.span();
        Requirement::new(matrix.element, len, access, self.alignment)
    }
}

/// The alignment of buffers in bytes.
const DEFAULT_ALIGNMENT: usize = 256;
/// The alignment in bytes that cuBLASLt requires of biases and auxiliary memory.
const ALIGNMENT: usize = 16;
/// The number of bits that columns of a mask are multiples of.
const MASK_GRANULARITY: usize = 128;
/// The number of elements that columns of stored inputs are multiples of.
const INPUT_GRANULARITY: usize = 8;

impl fmt::Display for Matmul {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "a is {}, b is {}, d is {}",
            self.a, self.b, self.d
        )?;
        if let Some(c) = self.c {
            write!(formatter, ", c is {c}")?;
        }
        write!(formatter, "; computed in {}", self.compute)?;
        if self.batch_count != 1 {
            write!(formatter, ", {} products", self.batch_count)?;
        }
        if self.epilogue != Epilogue::None {
            write!(formatter, ", epilogue {:?}", self.epilogue)?;
        }
        Ok(())
    }
}
