//! The functions whose types of elements are those of a `cufftType`: plans of one to three
//! dimensions, the sizes of their workspaces, and their executions.

use std::ffi::{c_int, c_longlong, c_void};
use std::ptr;

use curium_sys::cufft::{
    Api, CUFFT_FORWARD, CUFFT_INVERSE, cudaDataType, cufftComplex, cufftDoubleComplex,
    cufftDoubleReal, cufftHandle, cufftReal, cufftResult, cufftType,
};

use super::execute::execute;
use super::plan::{self, Form, Precision};
use super::{Result, code};

/// The layout of one side of a transform. It is ignored unless both sides have an embedding.
struct Layout {
    embedding: Option<Vec<c_longlong>>,
    stride: c_longlong,
    distance: c_longlong,
}

/// A transform as C describes it.
struct Description {
    lengths: Vec<c_longlong>,
    input: Layout,
    output: Layout,
    types: cufftType,
    batches: c_longlong,
}

impl Layout {
    const PACKED: Self = Self {
        embedding: None,
        stride: 1,
        distance: 0,
    };

    fn embedding_pointer(&mut self) -> *mut c_longlong {
        self.embedding
            .as_mut()
            .map_or(ptr::null_mut(), Vec::as_mut_ptr)
    }
}

impl Description {
    /// Describes transforms whose elements follow each other.
    fn packed(lengths: &[c_int], types: cufftType, batches: c_int) -> Self {
        Self {
            lengths: lengths.iter().copied().map(c_longlong::from).collect(),
            input: Layout::PACKED,
            output: Layout::PACKED,
            types,
            batches: batches.into(),
        }
    }

    /// Makes the plan, and returns the size of its workspace in bytes.
    fn make(mut self, handle: cufftHandle) -> Result<usize> {
        let (input, output) = element_types(self.types)?;
        let rank = c_int::try_from(self.lengths.len()).map_err(|_| INVALID)?;
        if self.input.embedding.is_none() || self.output.embedding.is_none() {
            self.input.embedding = None;
            self.output.embedding = None;
        }
        let mut bytes = 0;
        // SAFETY: the vectors have one number for each dimension, and `bytes` is valid for writes.
        let result = unsafe {
            plan::make_plan(
                handle,
                rank,
                self.lengths.as_mut_ptr(),
                self.input.embedding_pointer(),
                self.input.stride,
                self.input.distance,
                input,
                self.output.embedding_pointer(),
                self.output.stride,
                self.output.distance,
                output,
                self.batches,
                &raw mut bytes,
                input,
            )
        };
        match result {
            cufftResult::CUFFT_SUCCESS => Ok(bytes),
            error => Err(error),
        }
    }

    /// Makes a plan of its own, without a workspace.
    fn make_temporary(self) -> Result<usize> {
        let handle = plan::insert(false);
        let bytes = self.make(handle);
        plan::remove(handle)?;
        bytes
    }

    /// Makes a plan of its own, and returns its handle.
    fn make_new(self) -> Result<cufftHandle> {
        let handle = plan::insert(true);
        match self.make(handle) {
            Ok(_) => Ok(handle),
            Err(error) => {
                plan::remove(handle)?;
                Err(error)
            }
        }
    }
}

const INVALID: cufftResult = cufftResult::CUFFT_INVALID_VALUE;

/// Returns the types of the input and of the output.
fn element_types(types: cufftType) -> Result<(cudaDataType, cudaDataType)> {
    use cudaDataType as Type;

    match types {
        cufftType::CUFFT_C2C => Ok((Type::CUDA_C_32F, Type::CUDA_C_32F)),
        cufftType::CUFFT_R2C => Ok((Type::CUDA_R_32F, Type::CUDA_C_32F)),
        cufftType::CUFFT_C2R => Ok((Type::CUDA_C_32F, Type::CUDA_R_32F)),
        cufftType::CUFFT_Z2Z => Ok((Type::CUDA_C_64F, Type::CUDA_C_64F)),
        cufftType::CUFFT_D2Z => Ok((Type::CUDA_R_64F, Type::CUDA_C_64F)),
        cufftType::CUFFT_Z2D => Ok((Type::CUDA_C_64F, Type::CUDA_R_64F)),
        _ => Err(cufftResult::CUFFT_INVALID_TYPE),
    }
}

/// Reads one number for each dimension; `None` if the pointer is null.
///
/// # Safety
///
/// The pointer is null or valid for reads of `rank` numbers.
unsafe fn read<T: Copy + Into<c_longlong>>(
    numbers: *const T,
    rank: c_int,
) -> Result<Option<Vec<c_longlong>>> {
    let rank = usize::try_from(rank).map_err(|_| INVALID)?;
    if numbers.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller guarantees the numbers.
    let numbers = unsafe { std::slice::from_raw_parts(numbers, rank) };
    Ok(Some(numbers.iter().copied().map(Into::into).collect()))
}

/// Writes a value that a function returns.
///
/// # Safety
///
/// `output` is null or valid for writes.
unsafe fn write<T>(output: *mut T, value: T) -> Result {
    if output.is_null() {
        return Err(INVALID);
    }
    // SAFETY: the caller guarantees that the output is valid for writes.
    unsafe { output.write(value) };
    Ok(())
}

/// Defines the functions on transforms of a shape that their parameters have.
macro_rules! functions {
    ($(($($parameter:ident: $ty:ty),*) => $description:expr;
        $plan:ident $make:ident $size:ident $estimate:ident;)*) => {
        $(
            #[allow(non_snake_case, reason = "this is C's name")]
            unsafe extern "C" fn $plan(handle: *mut cufftHandle, $($parameter: $ty),*) -> cufftResult {
                let created = $description.and_then(|description: Description| description.make_new());
                // SAFETY: by the contract of the C function, `handle` is null or valid for writes.
                code(created.and_then(|created| unsafe { write(handle, created) }))
            }

            #[allow(non_snake_case, reason = "this is C's name")]
            unsafe extern "C" fn $make(
                handle: cufftHandle,
                $($parameter: $ty,)*
                bytes: *mut usize,
            ) -> cufftResult {
                let size = $description.and_then(|description: Description| description.make(handle));
                // SAFETY: by the contract of the C function, `bytes` is null or valid for writes.
                code(size.and_then(|size| unsafe { write(bytes, size) }))
            }

            #[allow(non_snake_case, reason = "this is C's name")]
            unsafe extern "C" fn $size(
                handle: cufftHandle,
                $($parameter: $ty,)*
                bytes: *mut usize,
            ) -> cufftResult {
                let size = plan::with(handle, |_| Ok(()))
                    .and_then(|()| $description)
                    .and_then(|description: Description| description.make_temporary());
                // SAFETY: by the contract of the C function, `bytes` is null or valid for writes.
                code(size.and_then(|size| unsafe { write(bytes, size) }))
            }

            #[allow(non_snake_case, reason = "this is C's name")]
            unsafe extern "C" fn $estimate($($parameter: $ty,)* bytes: *mut usize) -> cufftResult {
                let size = $description.and_then(|description: Description| description.make_temporary());
                // SAFETY: by the contract of the C function, `bytes` is null or valid for writes.
                code(size.and_then(|size| unsafe { write(bytes, size) }))
            }
        )*

        /// Adds the functions on plans.
        fn add_plans_to(api: &mut Api) {
            $(
                api.$plan = Some($plan);
                api.$make = Some($make);
                api.$size = Some($size);
                api.$estimate = Some($estimate);
            )*
        }
    };
}

functions! {
    (nx: c_int, types: cufftType, batches: c_int) =>
        Ok(Description::packed(&[nx], types, batches));
        cufftPlan1d cufftMakePlan1d cufftGetSize1d cufftEstimate1d;
    (nx: c_int, ny: c_int, types: cufftType) =>
        Ok(Description::packed(&[nx, ny], types, 1));
        cufftPlan2d cufftMakePlan2d cufftGetSize2d cufftEstimate2d;
    (nx: c_int, ny: c_int, nz: c_int, types: cufftType) =>
        Ok(Description::packed(&[nx, ny, nz], types, 1));
        cufftPlan3d cufftMakePlan3d cufftGetSize3d cufftEstimate3d;
    (rank: c_int, lengths: *mut c_int, input_embedding: *mut c_int, input_stride: c_int, input_distance: c_int,
        output_embedding: *mut c_int, output_stride: c_int, output_distance: c_int, types: cufftType, batches: c_int) =>
        // SAFETY: by the contract of the C function, the arrays are null or have `rank` numbers.
        unsafe {
            many(
                rank, lengths, input_embedding, input_stride, input_distance, output_embedding, output_stride,
                output_distance, types, batches,
            )
        };
        cufftPlanMany cufftMakePlanMany cufftGetSizeMany cufftEstimateMany;
}

/// Describes transforms with the layouts of C.
///
/// # Safety
///
/// The pointers are null or valid for reads of `rank` numbers.
#[expect(
    clippy::too_many_arguments,
    reason = "these are the parameters of the C functions"
)]
unsafe fn many<T: Copy + Into<c_longlong>>(
    rank: c_int,
    lengths: *const T,
    input_embedding: *const T,
    input_stride: T,
    input_distance: T,
    output_embedding: *const T,
    output_stride: T,
    output_distance: T,
    types: cufftType,
    batches: T,
) -> Result<Description> {
    Ok(Description {
        // SAFETY: the caller guarantees the numbers.
        lengths: unsafe { read(lengths, rank) }?.ok_or(INVALID)?,
        input: Layout {
            // SAFETY: the caller guarantees the numbers.
            embedding: unsafe { read(input_embedding, rank) }?,
            stride: input_stride.into(),
            distance: input_distance.into(),
        },
        output: Layout {
            // SAFETY: the caller guarantees the numbers.
            embedding: unsafe { read(output_embedding, rank) }?,
            stride: output_stride.into(),
            distance: output_distance.into(),
        },
        types,
        batches: batches.into(),
    })
}

unsafe extern "C" fn make_plan_many_64(
    handle: cufftHandle,
    rank: c_int,
    lengths: *mut c_longlong,
    input_embedding: *mut c_longlong,
    input_stride: c_longlong,
    input_distance: c_longlong,
    output_embedding: *mut c_longlong,
    output_stride: c_longlong,
    output_distance: c_longlong,
    types: cufftType,
    batches: c_longlong,
    bytes: *mut usize,
) -> cufftResult {
    // SAFETY: by the contract of the C function, the arrays are null or have `rank` numbers.
    let description = unsafe {
        many(
            rank,
            lengths,
            input_embedding,
            input_stride,
            input_distance,
            output_embedding,
            output_stride,
            output_distance,
            types,
            batches,
        )
    };
    let size = description.and_then(|description| description.make(handle));
    // SAFETY: by the contract of the C function, `bytes` is null or valid for writes.
    code(size.and_then(|size| unsafe { write(bytes, size) }))
}

/// Executes a plan if it has this form and this precision.
///
/// # Safety
///
/// As for the C function.
unsafe fn execute_typed(
    handle: cufftHandle,
    form: Form,
    precision: Precision,
    input: *mut c_void,
    output: *mut c_void,
    direction: c_int,
) -> cufftResult {
    let is_planned = plan::with(handle, |plan| {
        let transform = plan.transform.as_ref();
        let transform = transform.ok_or(cufftResult::CUFFT_INVALID_PLAN)?;
        Ok(transform.form == form && transform.precision == precision)
    });
    match is_planned {
        // SAFETY: the caller upholds the contract of the C function.
        Ok(true) => unsafe { execute(handle, input, output, direction) },
        Ok(false) => INVALID,
        Err(error) => error,
    }
}

macro_rules! executions {
    ($($name:ident($input:ty, $output:ty$(, $direction:ident)?): $form:ident, $precision:ident, $default:expr;)*) => {
        $(
            #[allow(non_snake_case, reason = "this is C's name")]
            unsafe extern "C" fn $name(
                handle: cufftHandle,
                input: *mut $input,
                output: *mut $output,
                $($direction: c_int,)?
            ) -> cufftResult {
                let direction = [$($direction)?].first().copied().unwrap_or($default);
                // SAFETY: the caller upholds the contract of the C function.
                unsafe {
                    execute_typed(
                        handle, Form::$form, Precision::$precision, input.cast(), output.cast(), direction,
                    )
                }
            }
        )*

        /// Adds the functions that execute plans.
        fn add_executions_to(api: &mut Api) {
            $(api.$name = Some($name);)*
        }
    };
}

executions! {
    cufftExecC2C(cufftComplex, cufftComplex, direction): ComplexToComplex, Single, CUFFT_FORWARD;
    cufftExecR2C(cufftReal, cufftComplex): RealToComplex, Single, CUFFT_FORWARD;
    cufftExecC2R(cufftComplex, cufftReal): ComplexToReal, Single, CUFFT_INVERSE as c_int;
    cufftExecZ2Z(cufftDoubleComplex, cufftDoubleComplex, direction): ComplexToComplex, Double, CUFFT_FORWARD;
    cufftExecD2Z(cufftDoubleReal, cufftDoubleComplex): RealToComplex, Double, CUFFT_FORWARD;
    cufftExecZ2D(cufftDoubleComplex, cufftDoubleReal): ComplexToReal, Double, CUFFT_INVERSE as c_int;
}

/// Adds the functions.
pub(super) fn add_to(api: &mut Api) {
    add_plans_to(api);
    add_executions_to(api);
    api.cufftMakePlanMany64 = Some(make_plan_many_64);
}
