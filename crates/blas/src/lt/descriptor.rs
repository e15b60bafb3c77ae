//! The descriptors of cuBLASLt.

use std::ffi::c_void;
use std::{fmt, ptr};

use super::matmul::{Matmul, Problem};
use super::role::{ByRole, Role, Roles};
use super::typed_layout::StoredMatrix;
use super::{BlasLt, CuBlasLt};
use crate::error::Result;
use crate::stored::Stored;
use crate::sys::{
    cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t as Attribute, cublasLtMatmulPreference_t,
    cublasLtMatmulPreferenceAttributes_t as Preference, cublasLtMatrixLayout_t,
    cublasLtMatrixLayoutAttribute_t as LayoutAttribute, cublasLtPointerMode_t, cublasOperation_t,
};
use curium_sys::library_call as call;

/// Declares the owner of a descriptor.
macro_rules! descriptor {
    ($(#[$attribute:meta])* $name:ident: $raw:ty, $destroy:ident, $set:ident($of:ty)) => {
        $(#[$attribute])*
        pub(super) struct $name {
            raw: $raw,
            library: CuBlasLt,
        }

        // SAFETY: a descriptor is plain memory, which any thread may use.
        unsafe impl Send for $name {}
        // SAFETY: shared descriptors are only read.
        unsafe impl Sync for $name {}

        impl $name {
            #[inline]
            pub(super) fn raw(&self) -> $raw {
                self.raw
            }

            fn set<T: Copy>(&mut self, attribute: $of, value: T) -> Result<()> {
                // SAFETY: the descriptor is live and borrowed exclusively, and the value has the
                // type of the attribute.
                unsafe { call!(self.library.api(), $set(self.raw, attribute, (&raw const value).cast::<c_void>(), size_of::<T>())) }
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, concat!(stringify!($name), "({:p})"), self.raw)
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: the descriptor is live, and nothing else uses it. The function fails for
                // no live descriptor.
                let _ = unsafe { call!(self.library.api(), $destroy(self.raw)) };
            }
        }
    };
}

descriptor! {
    /// The layout of a matrix.
    Layout: cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy, cublasLtMatrixLayoutSetAttribute(LayoutAttribute)
}

descriptor! {
    /// The operation: transpositions, arithmetic, epilogue, and the pointers beside the matrices.
    Operation: cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy, cublasLtMatmulDescSetAttribute(Attribute)
}

descriptor! {
    /// The limits of a search for algorithms.
    Limits: cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy, cublasLtMatmulPreferenceSetAttribute(Preference)
}

/// The descriptors of a product.
#[derive(Debug)]
pub(super) struct Descriptors {
    pub(super) operation: Operation,
    pub(super) a: Layout,
    pub(super) b: Layout,
    pub(super) c: Layout,
    pub(super) d: Layout,
    /// The addresses in the operation.
    addresses: ByRole<u64>,
    /// The roles of these addresses.
    pub(super) addressed: Roles,
    /// `true` if the library's factors are the description's in the other order.
    pub(super) is_transposed: bool,
}

impl Layout {
    fn new(library: &CuBlasLt, matrix: StoredMatrix, batch_count: usize) -> Result<Self> {
        let StoredMatrix {
            element,
            stored,
            stride,
        } = matrix;
        let Stored {
            length,
            count,
            leading_dimension,
            ..
        } = stored;
        let mut raw = ptr::null_mut();
        let rows = length as u64;
        let columns = count as u64;
        let leading = leading_dimension as i64;
        // SAFETY: `raw` is valid for writes.
        unsafe {
            call!(
                library.api(),
                cublasLtMatrixLayoutCreate(&raw mut raw, element.to_raw(), rows, columns, leading)
            )
        }?;
        let mut layout = Self {
            raw,
            library: library.clone(),
        };
        if batch_count != 1 {
            layout.set(
                LayoutAttribute::CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                batch_count as i32,
            )?;
            layout.set(
                LayoutAttribute::CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                stride as i64,
            )?;
        }
        Ok(layout)
    }
}

impl Operation {
    fn new(library: &CuBlasLt, matmul: &Matmul, problem: &Problem) -> Result<Self> {
        let mut raw = ptr::null_mut();
        let compute = matmul.compute().to_raw();
        let scale = matmul.scale_type().to_raw();
        // SAFETY: `raw` is valid for writes.
        unsafe {
            call!(
                library.api(),
                cublasLtMatmulDescCreate(&raw mut raw, compute, scale)
            )
        }?;
        let mut operation = Self {
            raw,
            library: library.clone(),
        };
        operation.set(
            Attribute::CUBLASLT_MATMUL_DESC_TRANSA,
            transposition(problem.a.stored),
        )?;
        operation.set(
            Attribute::CUBLASLT_MATMUL_DESC_TRANSB,
            transposition(problem.b.stored),
        )?;
        if matmul.has_device_factors() {
            let mode = cublasLtPointerMode_t::CUBLASLT_POINTER_MODE_DEVICE;
            operation.set(Attribute::CUBLASLT_MATMUL_DESC_POINTER_MODE, mode)?;
        }
        if matmul.is_accumulated_fast() {
            operation.set(Attribute::CUBLASLT_MATMUL_DESC_FAST_ACCUM, 1_i8)?;
        }
        operation.set_epilogue(matmul, problem)?;
        Ok(operation)
    }

    fn set_epilogue(&mut self, matmul: &Matmul, problem: &Problem) -> Result<()> {
        self.set(
            Attribute::CUBLASLT_MATMUL_DESC_EPILOGUE,
            problem.epilogue.to_raw(),
        )?;
        if problem.epilogue.bias().is_some() {
            if matmul.bias_type() != matmul.d().element() {
                self.set(
                    Attribute::CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
                    matmul.bias_type().to_raw(),
                )?;
            }
            let stride = matmul.bias_stride();
            if stride != 0 {
                self.set(
                    Attribute::CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE,
                    stride as i64,
                )?;
            }
        }
        if problem.epilogue.auxiliary().is_some() {
            let leading = matmul.auxiliary_leading_dimension() as i64;
            self.set(Attribute::CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, leading)?;
            if matmul.batch_count() > 1 {
                let stride = matmul.auxiliary_stride() as i64;
                self.set(
                    Attribute::CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE,
                    stride,
                )?;
            }
        }
        Ok(())
    }
}

impl Limits {
    pub(super) fn new(library: &CuBlasLt, workspace: usize, alignment: usize) -> Result<Self> {
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` is valid for writes.
        unsafe { call!(library.api(), cublasLtMatmulPreferenceCreate(&raw mut raw)) }?;
        let mut limits = Self {
            raw,
            library: library.clone(),
        };
        limits.set(
            Preference::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
            workspace as u64,
        )?;
        let alignment = alignment.min(256) as u32;
        for attribute in [
            Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
            Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
            Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
            Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
        ] {
            limits.set(attribute, alignment)?;
        }
        Ok(limits)
    }
}

impl Descriptors {
    /// Creates the descriptors of a checked description.
    pub(super) fn new(lt: &BlasLt, matmul: &Matmul) -> Result<Self> {
        let library = lt.library();
        let problem = matmul.problem();
        let count = matmul.batch_count();
        let mut descriptors = Self {
            operation: Operation::new(library, matmul, &problem)?,
            a: Layout::new(library, problem.a, count)?,
            b: Layout::new(library, problem.b, count)?,
            c: Layout::new(library, problem.c, count)?,
            d: Layout::new(library, problem.d, count)?,
            addresses: ByRole([0; Role::ALL.len()]),
            addressed: Roles::default(),
            is_transposed: problem.is_transposed,
        };
        // The presence of these pointers, and their alignment, decide which algorithms there are.
        let requirements = matmul.requirements();
        for role in Role::ALL
            .into_iter()
            .filter(|role| requirements[*role].is_some())
        {
            descriptors.set_address(role, PLACEHOLDER)?;
        }
        Ok(descriptors)
    }

    /// Sets the address of memory beside the matrices.
    pub(super) fn set_address(&mut self, role: Role, address: u64) -> Result<()> {
        if self.addresses[role] == address {
            return Ok(());
        }
        let Some(attribute) = self.attribute(role) else {
            return Ok(());
        };
        self.operation.set(attribute, address)?;
        self.addresses[role] = address;
        self.addressed.insert(role);
        Ok(())
    }

    fn attribute(&self, role: Role) -> Option<Attribute> {
        match (role, self.is_transposed) {
            (Role::Bias, _) => Some(Attribute::CUBLASLT_MATMUL_DESC_BIAS_POINTER),
            (Role::Auxiliary, _) => Some(Attribute::CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER),
            (Role::ScaleA, false) | (Role::ScaleB, true) => {
                Some(Attribute::CUBLASLT_MATMUL_DESC_A_SCALE_POINTER)
            }
            (Role::ScaleB, false) | (Role::ScaleA, true) => {
                Some(Attribute::CUBLASLT_MATMUL_DESC_B_SCALE_POINTER)
            }
            (Role::ScaleC, _) => Some(Attribute::CUBLASLT_MATMUL_DESC_C_SCALE_POINTER),
            (Role::ScaleD, _) => Some(Attribute::CUBLASLT_MATMUL_DESC_D_SCALE_POINTER),
            (Role::AmaxD, _) => Some(Attribute::CUBLASLT_MATMUL_DESC_AMAX_D_POINTER),
            _ => None,
        }
    }
}

/// An address that no memory has, before the first operation sets one.
const PLACEHOLDER: u64 = 1 << 20;

fn transposition(stored: Stored) -> cublasOperation_t {
    if stored.is_transposed {
        cublasOperation_t::CUBLAS_OP_T
    } else {
        cublasOperation_t::CUBLAS_OP_N
    }
}
