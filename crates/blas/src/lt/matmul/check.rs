//! The checks of a description before the library gets it.

use curium_driver::ComputeCapability;

use super::{
    ElementType, INPUT_GRANULARITY, MASK_GRANULARITY, Matmul, Problem, Scales, StoredMatrix,
    TypedLayout,
};
use crate::error::{Result, ShapeError};
use crate::lt::Epilogue;
use crate::lt::epilogue::AuxiliaryContent;
use crate::stored::Stored;

const OPERATION: &str = "MatmulPlan::new";

impl Matmul {
    /// Checks the description for a device.
    pub(in crate::lt) fn check(&self, capability: ComputeCapability) -> Result<()> {
        self.check_types(capability)?;
        self.check_shapes()?;
        self.check_batches()?;
        self.check_auxiliary()?;
        if !self.alignment.is_power_of_two() {
            return Err(refused(format!(
                "the alignment is not a power of two ({} bytes)",
                self.alignment
            )));
        }
        let problem = self.problem();
        if self.a.element.is_fp8() {
            check_fp8(&problem, capability)?;
        }
        if self.a.element == ElementType::I8 {
            self.check_i8(&problem)?;
        }
        Ok(())
    }

    fn check_types(&self, capability: ComputeCapability) -> Result<()> {
        let a = self.a.element;
        let b = self.b.element;
        let c = self.c_type();
        let d = self.d.element;
        if !self.compute.supports(a, b, c, d) {
            let problem = format!(
                "unsupported by cuBLASLt (a is {a}, b is {b}, c is {c}, d is {d}, computed in {})",
                self.compute
            );
            return Err(refused(problem));
        }
        let needed = if a.is_fp8() { (8, 9) } else { (0, 0) };
        if (capability.major, capability.minor) < needed {
            let problem = format!(
                "unsupported by the device ({a} needs compute capability 8.9, this is {capability})"
            );
            return Err(refused(problem));
        }
        if self.has_device_factors && d.is_fp8() && self.c.is_none() {
            return Err(refused(format!(
                "factors in device memory require a separate c (d is {d})"
            )));
        }
        if !self.scales.is_empty() && !a.is_fp8() {
            return Err(refused(format!(
                "scales require factors of 8-bit floats (a is {a})"
            )));
        }
        let of_result = self.scales.intersection(Scales::D | Scales::AMAX_D);
        if !of_result.is_empty() && !d.is_fp8() {
            return Err(refused(format!(
                "{of_result:?} requires a result of 8-bit floats (d is {d})"
            )));
        }
        if self.scales.contains(Scales::C) && !self.c_type().is_fp8() {
            return Err(refused(format!(
                "a scale of c requires an addend of 8-bit floats (c is {c})"
            )));
        }
        Ok(())
    }

    fn check_shapes(&self) -> Result<()> {
        for (name, matrix) in self.matrices() {
            if matrix
                .layout
                .span()
                .is_none_or(|span| i64::try_from(span).is_err())
            {
                return Err(refused(format!(
                    "invalid layout of {name} ({})",
                    matrix.layout
                )));
            }
            let least = Stored::new(matrix.layout).length;
            if matrix.layout.leading_dimension() < least {
                return Err(refused(format!(
                    "leading dimension of {name} too small ({}); it is at least {least}",
                    matrix.layout
                )));
            }
        }
        let (m, k) = self.a.shape();
        let (inner, n) = self.b.shape();
        if k != inner
            || self.d.shape() != (m, n)
            || self.c.is_some_and(|c| c.shape() != self.d.shape())
        {
            return Err(refused(format!("the shapes do not agree ({self})")));
        }
        if self
            .c
            .is_some_and(|c| c.layout.order() != self.d.layout.order())
        {
            return Err(refused(format!("c and d have different orders ({self})")));
        }
        if k == 0 && !self.is_empty() {
            return Err(refused(format!("the factors are empty ({self})")));
        }
        Ok(())
    }

    fn check_batches(&self) -> Result<()> {
        if i32::try_from(self.batch_count).is_err() {
            return Err(refused(format!("too many products ({})", self.batch_count)));
        }
        let stored = Stored::new(self.d.layout);
        let stride = self.d.stride;
        if self.batch_count > 1
            && stored.span() > stride
            && !interleave(stored, stride, self.batch_count)
        {
            let span = stored.span();
            return Err(refused(format!(
                "the results overlap (stride {stride}, each has {span} elements)"
            )));
        }
        for (name, matrix) in self.matrices() {
            let last = matrix
                .stride
                .checked_mul(self.batch_count.saturating_sub(1));
            let end = last.and_then(|last| last.checked_add(Stored::new(matrix.layout).span()));
            if end.is_none_or(|end| i64::try_from(end).is_err()) {
                return Err(refused(format!(
                    "the batch of {name} is too large (stride {})",
                    matrix.stride
                )));
            }
        }
        Ok(())
    }

    fn check_auxiliary(&self) -> Result<()> {
        let Some((_, kind)) = self.epilogue.auxiliary() else {
            return Ok(());
        };
        let granularity = if kind == AuxiliaryContent::Mask {
            MASK_GRANULARITY
        } else {
            INPUT_GRANULARITY
        };
        let leading = self.auxiliary_leading_dimension();
        let length = self.problem().d.stored.length;
        if leading >= length && leading.is_multiple_of(granularity) {
            return Ok(());
        }
        let problem = format!(
            "the leading dimension of the auxiliary memory is {leading}; it is a multiple of {granularity} and at least {length}"
        );
        Err(refused(problem))
    }

    /// Checks the rules of cuBLASLt for 8-bit integers.
    fn check_i8(&self, problem: &Problem) -> Result<()> {
        if self.epilogue != Epilogue::None {
            return Err(refused(format!(
                "unsupported by cuBLASLt (i8 with the epilogue {:?})",
                self.epilogue
            )));
        }
        let m = problem.d.stored.length;
        let k = problem.a.stored.columns();
        let sizes = [
            ("number of consecutive elements of the result", m),
            ("inner dimension", k),
            ("leading dimension of a", self.a.layout.leading_dimension()),
            ("leading dimension of b", self.b.layout.leading_dimension()),
            ("leading dimension of d", self.d.layout.leading_dimension()),
        ];
        for (what, size) in sizes {
            if !size.is_multiple_of(4) {
                return Err(refused(format!(
                    "the {what} is {size}; for i8, it must be a multiple of 4"
                )));
            }
        }
        check_inner_contiguous(problem, "i8")
    }

    fn matrices(&self) -> impl Iterator<Item = (&'static str, TypedLayout)> {
        [
            ("a", Some(self.a)),
            ("b", Some(self.b)),
            ("c", self.c),
            ("d", Some(self.d)),
        ]
        .into_iter()
        .filter_map(|(name, matrix)| Some((name, matrix?)))
    }
}

/// Returns `true` if the matrices interleave: between two columns of the first matrix, each other
/// matrix has one column. Attention heads have this layout.
fn interleave(stored: Stored, stride: usize, count: usize) -> bool {
    let end = stride
        .checked_mul(count - 1)
        .and_then(|last| last.checked_add(stored.length));
    stride >= stored.length && end.is_some_and(|end| end <= stored.leading_dimension)
}

/// Checks the rules of cuBLASLt for 8-bit floats.
fn check_fp8(problem: &Problem, capability: ComputeCapability) -> Result<()> {
    let m = problem.d.stored.length;
    let k = problem.a.stored.columns();
    for (what, size) in [
        ("number of consecutive elements of the result", m),
        ("inner dimension", k),
    ] {
        if !size.is_multiple_of(16) {
            return Err(refused(format!(
                "the {what} is {size}; for 8-bit floats, it must be a multiple of 16"
            )));
        }
    }
    for StoredMatrix {
        element, stored, ..
    } in [problem.a, problem.b, problem.c, problem.d]
    {
        // The size of an element divides 16.
        if !stored
            .leading_dimension
            .is_multiple_of(16 / element.bytes())
        {
            let leading = stored.leading_dimension;
            return Err(refused(format!(
                "the leading dimension of {element} {stored} is {leading}; for 8-bit floats, it must be a multiple of 16 bytes"
            )));
        }
    }
    // Blackwell of data centers also multiplies other orders.
    if matches!(capability.major, 10 | 11) {
        Ok(())
    } else {
        check_inner_contiguous(problem, "8-bit floats")
    }
}

/// Checks that the elements of each factor that are multiplied with each other follow each other:
/// `a` by rows, `b` by columns.
fn check_inner_contiguous(problem: &Problem, what: &str) -> Result<()> {
    if problem.a.stored.is_transposed && !problem.b.stored.is_transposed {
        return Ok(());
    }
    Err(refused(format!(
        "unsupported by cuBLASLt ({what} in this order); store `a` by rows and `b` by columns"
    )))
}

fn refused(problem: impl Into<Box<str>>) -> crate::Error {
    ShapeError::refused(OPERATION, problem)
}
