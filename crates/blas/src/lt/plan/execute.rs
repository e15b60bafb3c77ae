//! Enqueuing a planned product.

use std::ffi::c_void;

use curium_driver::Stream;
use curium_driver::hazard::Operation;

use super::MatmulPlan;
use crate::device_pointer;
use crate::error::{Result, ShapeError};
use crate::lt::descriptor::Descriptors;
use crate::lt::operands::Factors;
use crate::lt::role::Role;
use crate::lt::{ElementType, Operands};
use curium_sys::library_call as call;

const OPERATION: &str = "MatmulPlan::execute";

/// A factor with the bytes of its type.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Factor([u8; 8]);

impl Factor {
    const fn from_f32(value: f32) -> Self {
        let [a, b, c, d] = value.to_ne_bytes();
        Self([a, b, c, d, 0, 0, 0, 0])
    }
}

impl MatmulPlan {
    /// Enqueues the product on `stream`: `d` = epilogue(`alpha` · `a` · `b` + `beta` · `c`).
    ///
    /// CUDA: `cublasLtMatmul`; `cublasLtMatmulDescSetAttribute` for addresses that changed since
    /// the last product.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) if an operand is missing, superfluous, of another
    /// type, too small or not aligned; an error of the library.
    #[doc(alias = "cublasLtMatmul")]
    // As for `Blas::gemm`.
    #[inline(always)]
    pub fn execute(&mut self, stream: &Stream, mut operands: Operands<'_>) -> Result<()> {
        operands.check(OPERATION, &self.requirements, self.required)?;
        let mut stream_operation = self.begin(stream)?;
        let factors = self.factors(operands.factors)?;
        let Some((descriptors, algorithm)) = &mut self.prepared else {
            return Ok(());
        };
        for role in descriptors.addressed.iter() {
            descriptors.set_address(role, operands.address(role))?;
        }
        let (alpha, beta) = match self.matmul.has_device_factors() {
            true => (
                device_pointer(operands.address(Role::Alpha)).cast_const(),
                device_pointer(operands.address(Role::Beta)).cast_const(),
            ),
            false => (
                (&raw const factors.0).cast::<c_void>(),
                (&raw const factors.1).cast(),
            ),
        };
        let mut first = Role::A;
        let mut second = Role::B;
        if descriptors.is_transposed {
            std::mem::swap(&mut first, &mut second);
        }
        let c = if self.matmul.adds_to_d() {
            Role::D
        } else {
            Role::C
        };
        let a = operands.address(first);
        let b = operands.address(second);
        let c = operands.address(c);
        let d = operands.address(Role::D);
        let workspace = operands.address(Role::Workspace);
        let workspace_bytes = algorithm.workspace_bytes;
        let workspace = if workspace_bytes == 0 { 0 } else { workspace };
        let Descriptors {
            operation,
            a: a_layout,
            b: b_layout,
            c: c_layout,
            d: d_layout,
            ..
        } = descriptors;
        let lt = &self.lt;
        let _entered = lt.context().enter()?;
        lt.keep(&stream_operation);
        // SAFETY: `launched` follows the call.
        unsafe { operands.bind(self.required, &mut stream_operation) }?;
        // SAFETY: the descriptors are live, the operands have their sizes in live memory, and the
        // factors are where the mode requires.
        let called = unsafe {
            call!(
                lt.library().api(),
                cublasLtMatmul(
                    lt.as_raw(),
                    operation.raw(),
                    alpha,
                    device_pointer(a),
                    a_layout.raw(),
                    device_pointer(b),
                    b_layout.raw(),
                    beta,
                    device_pointer(c),
                    c_layout.raw(),
                    device_pointer(d),
                    d_layout.raw(),
                    algorithm.as_raw(),
                    device_pointer(workspace),
                    workspace_bytes,
                    stream_operation.raw_stream().cast(),
                )
            )
        };
        // A failure may come after some work was enqueued.
        // SAFETY: `bind` succeeded with this operation.
        unsafe { operands.launched(self.required, &mut stream_operation) };
        called
    }

    #[inline]
    fn begin<'a>(&self, stream: &'a Stream) -> Result<Operation<'a>> {
        if stream.context().as_raw() != self.lt.context().as_raw() {
            return Err(ShapeError::refused(
                OPERATION,
                "the stream belongs to another context than the plan",
            ));
        }
        Ok(stream.enqueue(OPERATION)?)
    }

    /// Converts the factors of the host to their type.
    #[inline]
    fn factors(&self, factors: Factors) -> Result<(Factor, Factor)> {
        let ty = self.matmul.scale_type();
        if factors == Factors::UNIT && ty == ElementType::F32 {
            return Ok((Factor::from_f32(1.0), Factor::from_f32(0.0)));
        }
        self.other_factors(factors, ty)
    }

    fn other_factors(&self, factors: Factors, ty: ElementType) -> Result<(Factor, Factor)> {
        let Factors { alpha, beta } = factors;
        if factors != Factors::UNIT && self.matmul.has_device_factors() {
            return Err(ShapeError::refused(
                OPERATION,
                "the plan takes its factors from device memory",
            ));
        }
        if beta != 0.0 && self.matmul.d().element().is_fp8() && self.matmul.c().is_none() {
            let problem =
                format!("beta is {beta}, and the plan has no c; add a c to the description");
            return Err(ShapeError::refused(OPERATION, problem));
        }
        Ok((factor(alpha, ty)?, factor(beta, ty)?))
    }
}

#[inline]
fn factor(value: f64, ty: ElementType) -> Result<Factor> {
    let mut bytes = [0; 8];
    match ty {
        ElementType::F64 => bytes = value.to_ne_bytes(),
        ElementType::I32 if f64::from(value as i32) == value => {
            bytes[..4].copy_from_slice(&(value as i32).to_ne_bytes());
        }
        ElementType::I32 => {
            return Err(ShapeError::refused(
                OPERATION,
                format!("the factor is not an i32 ({value})"),
            ));
        }
        _ => return Ok(Factor::from_f32(value as f32)),
    }
    Ok(Factor(bytes))
}
