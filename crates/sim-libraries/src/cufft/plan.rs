//! Plans: their layouts, streams and workspaces.

use std::collections::HashMap;
use std::ffi::{c_int, c_longlong, c_void};
use std::sync::{Arc, LazyLock};

use curium_sys::cufft::{
    Api, cudaDataType, cudaStream_t, cufftHandle, cufftResult, libraryPropertyType_t,
};
use parking_lot::Mutex;

use super::layout::Side;
use super::{Result, code};
use crate::own_memory::OwnMemory;

/// The version that the library reports.
const VERSION: [c_int; 3] = [12, 0, 0];

/// The kind of a transform.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Form {
    ComplexToComplex,
    RealToComplex,
    ComplexToReal,
}

/// The precision of a transform.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Precision {
    Half,
    Single,
    Double,
}

/// The most bytes of one side of a transform: more than any device has.
pub(super) const MAX_BYTES: usize = 1 << 40;

/// The number of bytes of the workspace that a transform writes.
const WRITTEN_BYTES: usize = 256;

/// A transform that a plan was made for.
#[derive(Clone, Debug)]
pub(super) struct Transform {
    pub(super) form: Form,
    pub(super) precision: Precision,
    pub(super) lengths: Vec<usize>,
    pub(super) input: Side,
    pub(super) output: Side,
}

/// A plan.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    /// The address of the stream's handle.
    pub(super) stream: usize,
    /// The address of the caller's workspace.
    workspace: usize,
    allocates: bool,
    /// The workspace of the plan itself, if it allocates one.
    own_workspace: Option<Arc<OwnMemory>>,
    pub(super) transform: Option<Transform>,
}

/// The live plans by their numbers, which are not reused.
#[derive(Default)]
struct Plans {
    live: HashMap<cufftHandle, Plan>,
    last: cufftHandle,
}

static PLANS: LazyLock<Mutex<Plans>> = LazyLock::new(Mutex::default);

impl Precision {
    /// Returns the size of a real number in bytes.
    fn bytes(self) -> usize {
        match self {
            Self::Half => 2,
            Self::Single => 4,
            Self::Double => 8,
        }
    }
}

impl Plan {
    /// Returns `true` if the plan allocates its workspace or the caller has set one.
    pub(super) fn has_workspace(&self) -> bool {
        self.allocates || self.workspace != 0
    }

    /// Returns the address and the size of the part of the workspace that a transform writes.
    pub(super) fn written_workspace(&self) -> Option<(u64, usize)> {
        let transform = self.transform.as_ref()?;
        if self.workspace == 0 {
            return self.own_workspace.as_ref().map(|memory| memory.range());
        }
        Some((
            self.workspace as u64,
            transform.workspace_bytes().min(WRITTEN_BYTES),
        ))
    }
}

impl Transform {
    /// Returns the size of the workspace: that of the complex side.
    pub(super) fn workspace_bytes(&self) -> usize {
        (self.input.len() * self.input.bytes).max(self.output.len() * self.output.bytes)
    }
}

/// Calls `operation` with a plan.
pub(super) fn with<T>(
    handle: cufftHandle,
    operation: impl FnOnce(&mut Plan) -> Result<T>,
) -> Result<T> {
    let mut plans = PLANS.lock();
    operation(
        plans
            .live
            .get_mut(&handle)
            .ok_or(cufftResult::CUFFT_INVALID_PLAN)?,
    )
}

/// Returns the form and the precision of a transform between these types.
fn types(input: cudaDataType, output: cudaDataType) -> Result<(Form, Precision)> {
    match (input, output) {
        (cudaDataType::CUDA_C_16F, cudaDataType::CUDA_C_16F) => {
            Ok((Form::ComplexToComplex, Precision::Half))
        }
        (cudaDataType::CUDA_R_16F, cudaDataType::CUDA_C_16F) => {
            Ok((Form::RealToComplex, Precision::Half))
        }
        (cudaDataType::CUDA_C_16F, cudaDataType::CUDA_R_16F) => {
            Ok((Form::ComplexToReal, Precision::Half))
        }
        (cudaDataType::CUDA_C_32F, cudaDataType::CUDA_C_32F) => {
            Ok((Form::ComplexToComplex, Precision::Single))
        }
        (cudaDataType::CUDA_R_32F, cudaDataType::CUDA_C_32F) => {
            Ok((Form::RealToComplex, Precision::Single))
        }
        (cudaDataType::CUDA_C_32F, cudaDataType::CUDA_R_32F) => {
            Ok((Form::ComplexToReal, Precision::Single))
        }
        (cudaDataType::CUDA_C_64F, cudaDataType::CUDA_C_64F) => {
            Ok((Form::ComplexToComplex, Precision::Double))
        }
        (cudaDataType::CUDA_R_64F, cudaDataType::CUDA_C_64F) => {
            Ok((Form::RealToComplex, Precision::Double))
        }
        (cudaDataType::CUDA_C_64F, cudaDataType::CUDA_R_64F) => {
            Ok((Form::ComplexToReal, Precision::Double))
        }
        _ => Err(cufftResult::CUFFT_INVALID_TYPE),
    }
}

/// Reads the lengths of an array.
///
/// # Safety
///
/// `lengths` is valid for reads of `rank` numbers.
unsafe fn read(lengths: *const c_longlong, rank: usize) -> Result<Vec<usize>> {
    // SAFETY: the caller guarantees the numbers.
    let lengths = unsafe { std::slice::from_raw_parts(lengths, rank) };
    lengths
        .iter()
        .map(|length| usize::try_from(*length).ok().filter(|length| *length > 0))
        .collect::<Option<_>>()
        .ok_or(cufftResult::CUFFT_INVALID_SIZE)
}

/// The layout of one side as C passes it.
#[derive(Clone, Copy)]
struct RawLayout {
    embedding: *const c_longlong,
    stride: c_longlong,
    distance: c_longlong,
}

/// Reads the layout of one side. Without lengths of an array, its elements follow each other.
///
/// # Safety
///
/// `layout.embedding` is null or valid for reads of as many numbers as there are lengths.
unsafe fn side(
    lengths: Vec<usize>,
    bytes: usize,
    layout: RawLayout,
    batches: usize,
) -> Result<Side> {
    if layout.embedding.is_null() {
        let embedding = lengths.clone();
        let distance = lengths
            .iter()
            .try_fold(1_usize, |product, length| product.checked_mul(*length))
            .ok_or(cufftResult::CUFFT_INVALID_SIZE)?;
        return Ok(Side {
            lengths,
            embedding,
            stride: 1,
            distance,
            batches,
            bytes,
        });
    }
    // SAFETY: the caller guarantees the numbers.
    let embedding = unsafe { read(layout.embedding, lengths.len()) }?;
    let stride = usize::try_from(layout.stride).map_err(|_| cufftResult::CUFFT_INVALID_VALUE)?;
    let distance =
        usize::try_from(layout.distance).map_err(|_| cufftResult::CUFFT_INVALID_VALUE)?;
    Ok(Side {
        lengths,
        embedding,
        stride,
        distance,
        batches,
        bytes,
    })
}

/// Adds a plan, and returns its handle.
pub(super) fn insert(allocates: bool) -> cufftHandle {
    let mut plans = PLANS.lock();
    plans.last += 1;
    let number = plans.last;
    let plan = Plan {
        allocates,
        ..Plan::default()
    };
    plans.live.insert(number, plan);
    number
}

/// Removes a plan.
pub(super) fn remove(handle: cufftHandle) -> Result {
    let removed = PLANS.lock().live.remove(&handle);
    removed.map(drop).ok_or(cufftResult::CUFFT_INVALID_PLAN)
}

unsafe extern "C" fn create(handle: *mut cufftHandle) -> cufftResult {
    // SAFETY: by the contract of the C function, `handle` is valid for writes.
    unsafe { handle.write(insert(true)) };
    cufftResult::CUFFT_SUCCESS
}

unsafe extern "C" fn destroy(handle: cufftHandle) -> cufftResult {
    code(remove(handle))
}

unsafe extern "C" fn get_property(
    property: libraryPropertyType_t,
    value: *mut c_int,
) -> cufftResult {
    let Some(number) = VERSION.get(property.0 as usize) else {
        return cufftResult::CUFFT_INVALID_VALUE;
    };
    // SAFETY: by the contract of the C function, `value` is valid for writes.
    unsafe { value.write(*number) };
    cufftResult::CUFFT_SUCCESS
}

unsafe extern "C" fn get_version(version: *mut c_int) -> cufftResult {
    // SAFETY: by the contract of the C function, `version` is valid for writes.
    unsafe { version.write(VERSION[0] * 1000 + VERSION[1] * 100 + VERSION[2]) };
    cufftResult::CUFFT_SUCCESS
}

unsafe extern "C" fn set_auto_allocation(handle: cufftHandle, allocates: c_int) -> cufftResult {
    code(with(handle, |plan| {
        plan.allocates = allocates != 0;
        Ok(())
    }))
}

unsafe extern "C" fn set_stream(handle: cufftHandle, stream: cudaStream_t) -> cufftResult {
    code(with(handle, |plan| {
        plan.stream = stream.addr();
        Ok(())
    }))
}

unsafe extern "C" fn set_work_area(handle: cufftHandle, workspace: *mut c_void) -> cufftResult {
    code(with(handle, |plan| {
        plan.workspace = workspace.addr();
        Ok(())
    }))
}

pub(super) unsafe extern "C" fn make_plan(
    handle: cufftHandle,
    rank: c_int,
    lengths: *mut c_longlong,
    input_embedding: *mut c_longlong,
    input_stride: c_longlong,
    input_distance: c_longlong,
    input_type: cudaDataType,
    output_embedding: *mut c_longlong,
    output_stride: c_longlong,
    output_distance: c_longlong,
    output_type: cudaDataType,
    batches: c_longlong,
    bytes: *mut usize,
    _execution_type: cudaDataType,
) -> cufftResult {
    code(with(handle, |plan| {
        let (form, precision) = types(input_type, output_type)?;
        if !(1..=3).contains(&rank) || plan.transform.is_some() {
            return Err(cufftResult::CUFFT_INVALID_VALUE);
        }
        // SAFETY: by the contract of the C function, `lengths` has `rank` elements.
        let lengths = unsafe { read(lengths, rank as usize) }?;
        if precision == Precision::Half && !lengths.iter().all(|length| length.is_power_of_two()) {
            return Err(cufftResult::CUFFT_INVALID_SIZE);
        }
        let batches = usize::try_from(batches).ok().filter(|batches| *batches > 0);
        let batches = batches.ok_or(cufftResult::CUFFT_INVALID_SIZE)?;
        let real = precision.bytes();
        let complex = 2 * precision.bytes();
        let mut half = lengths.clone();
        if let Some(last) = half.last_mut() {
            *last = *last / 2 + 1;
        }
        let sides = match form {
            Form::ComplexToComplex => [(lengths.clone(), complex), (lengths.clone(), complex)],
            Form::RealToComplex => [(lengths.clone(), real), (half, complex)],
            Form::ComplexToReal => [(half, complex), (lengths.clone(), real)],
        };
        let [(input, input_bytes), (output, output_bytes)] = sides;
        let layout = RawLayout {
            embedding: input_embedding.cast_const(),
            stride: input_stride,
            distance: input_distance,
        };
        // SAFETY: by the contract of the C function, the embedding is null or has `rank` elements.
        let input = unsafe { side(input, input_bytes, layout, batches) }?;
        let layout = RawLayout {
            embedding: output_embedding.cast_const(),
            stride: output_stride,
            distance: output_distance,
        };
        // SAFETY: by the contract of the C function, the embedding is null or has `rank` elements.
        let output = unsafe { side(output, output_bytes, layout, batches) }?;
        if !input.is_addressable() || !output.is_addressable() {
            return Err(cufftResult::CUFFT_INVALID_SIZE);
        }
        let transform = Transform {
            form,
            precision,
            lengths,
            input,
            output,
        };
        // SAFETY: by the contract of the C function, `bytes` is valid for writes.
        unsafe { bytes.write(transform.workspace_bytes()) };
        if plan.allocates {
            if transform.workspace_bytes() > MAX_BYTES {
                return Err(cufftResult::CUFFT_ALLOC_FAILED);
            }
            plan.own_workspace = OwnMemory::new(WRITTEN_BYTES).map(Arc::new);
        }
        plan.transform = Some(transform);
        Ok(())
    }))
}

unsafe extern "C" fn get_size(handle: cufftHandle, bytes: *mut usize) -> cufftResult {
    code(with(handle, |plan| {
        let transform = plan
            .transform
            .as_ref()
            .ok_or(cufftResult::CUFFT_INVALID_PLAN)?;
        // SAFETY: by the contract of the C function, `bytes` is valid for writes.
        unsafe { bytes.write(transform.workspace_bytes()) };
        Ok(())
    }))
}

/// Adds the functions on plans.
pub(super) fn add_to(api: &mut Api) {
    api.cufftCreate = Some(create);
    api.cufftDestroy = Some(destroy);
    api.cufftGetProperty = Some(get_property);
    api.cufftGetVersion = Some(get_version);
    api.cufftSetAutoAllocation = Some(set_auto_allocation);
    api.cufftSetStream = Some(set_stream);
    api.cufftSetWorkArea = Some(set_work_area);
    api.cufftXtMakePlanMany = Some(make_plan);
    api.cufftGetSize = Some(get_size);
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;

    /// Plans a transform of complex numbers.
    fn plan(lengths: &mut [c_longlong], batches: c_longlong) -> cufftResult {
        let handle = insert(true);
        let mut bytes = 0;
        // SAFETY: the lengths and the size are valid, and there are no embeddings.
        let code = unsafe {
            make_plan(
                handle,
                lengths.len() as c_int,
                lengths.as_mut_ptr(),
                ptr::null_mut(),
                1,
                0,
                cudaDataType::CUDA_C_32F,
                ptr::null_mut(),
                1,
                0,
                cudaDataType::CUDA_C_32F,
                batches,
                &raw mut bytes,
                cudaDataType::CUDA_C_32F,
            )
        };
        assert_eq!(remove(handle), Ok(()));
        code
    }

    #[test]
    fn sizes_beyond_any_device_are_refused() {
        let overflow = cufftResult::CUFFT_INVALID_SIZE;
        assert_eq!(plan(&mut [1 << 62], 1), overflow);
        assert_eq!(plan(&mut [1 << 31, 1 << 31], 1), overflow);
        assert_eq!(plan(&mut [1 << 20; 3], 1 << 20), overflow);
        let too_large = cufftResult::CUFFT_ALLOC_FAILED;
        assert_eq!(plan(&mut [1 << 38], 1), too_large);
        assert_eq!(plan(&mut [1 << 19, 1 << 19], 1), too_large);
        assert_eq!(plan(&mut [1 << 10], 1 << 28), too_large);
        assert_eq!(plan(&mut [1 << 10], 4), cufftResult::CUFFT_SUCCESS);
    }
}
