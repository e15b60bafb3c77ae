//! Plans: their layouts, streams and workspaces.

use std::collections::HashMap;
use std::ffi::{c_int, c_longlong, c_void};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use curium_fft::sys::{
    Api, cudaDataType, cudaStream_t, cufftHandle, cufftResult, libraryPropertyType_t,
};

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
    /// Returns `true` if the workspace is there, or is not the caller's task.
    pub(super) fn has_workspace(&self) -> bool {
        self.allocates || self.workspace != 0
    }

    /// Returns the address and the size of the part of the workspace that a transform writes.
    pub(super) fn written_workspace(&self) -> Option<(u64, usize)> {
        let transform = self.transform.as_ref()?;
        if self.workspace == 0 {
            return self.own_workspace.as_ref().map(|memory| memory.run());
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
    let mut plans = PLANS.lock().unwrap_or_else(PoisonError::into_inner);
    operation(
        plans
            .live
            .get_mut(&handle)
            .ok_or(cufftResult::CUFFT_INVALID_PLAN)?,
    )
}

/// Returns the form and the precision of a transform between these types.
fn types(input: cudaDataType, output: cudaDataType) -> Result<(Form, Precision)> {
    let kind = |data: cudaDataType| match data {
        cudaDataType::CUDA_R_16F => Ok((false, Precision::Half)),
        cudaDataType::CUDA_C_16F => Ok((true, Precision::Half)),
        cudaDataType::CUDA_R_32F => Ok((false, Precision::Single)),
        cudaDataType::CUDA_C_32F => Ok((true, Precision::Single)),
        cudaDataType::CUDA_R_64F => Ok((false, Precision::Double)),
        cudaDataType::CUDA_C_64F => Ok((true, Precision::Double)),
        _ => Err(cufftResult::CUFFT_INVALID_TYPE),
    };
    match (kind(input)?, kind(output)?) {
        ((true, precision), (true, other)) if precision == other => {
            Ok((Form::ComplexToComplex, precision))
        }
        ((false, precision), (true, other)) if precision == other => {
            Ok((Form::RealToComplex, precision))
        }
        ((true, precision), (false, other)) if precision == other => {
            Ok((Form::ComplexToReal, precision))
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
    let positive = |length: &c_longlong| usize::try_from(*length).ok().filter(|length| *length > 0);
    lengths
        .iter()
        .map(positive)
        .collect::<Option<_>>()
        .ok_or(cufftResult::CUFFT_INVALID_SIZE)
}

/// Reads the layout of one side. Without lengths of an array, its elements follow each other.
///
/// # Safety
///
/// `embedding` is null or valid for reads of as many numbers as there are lengths.
unsafe fn side(
    lengths: Vec<usize>,
    bytes: usize,
    (embedding, stride, distance): (*const c_longlong, c_longlong, c_longlong),
    batches: usize,
) -> Result<Side> {
    if embedding.is_null() {
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
    let embedding = unsafe { read(embedding, lengths.len()) }?;
    let size =
        |size: c_longlong| usize::try_from(size).map_err(|_| cufftResult::CUFFT_INVALID_VALUE);
    Ok(Side {
        lengths,
        embedding,
        stride: size(stride)?,
        distance: size(distance)?,
        batches,
        bytes,
    })
}

unsafe extern "C" fn create(handle: *mut cufftHandle) -> cufftResult {
    let mut plans = PLANS.lock().unwrap_or_else(PoisonError::into_inner);
    plans.last += 1;
    let number = plans.last;
    plans.live.insert(
        number,
        Plan {
            allocates: true,
            ..Plan::default()
        },
    );
    // SAFETY: the caller passes a place for the plan.
    unsafe { handle.write(number) };
    cufftResult::CUFFT_SUCCESS
}

unsafe extern "C" fn destroy(handle: cufftHandle) -> cufftResult {
    let removed = PLANS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .live
        .remove(&handle);
    code(removed.map(drop).ok_or(cufftResult::CUFFT_INVALID_PLAN))
}

unsafe extern "C" fn get_property(
    property: libraryPropertyType_t,
    value: *mut c_int,
) -> cufftResult {
    let Some(number) = VERSION.get(property.0 as usize) else {
        return cufftResult::CUFFT_INVALID_VALUE;
    };
    // SAFETY: the caller passes a place for the value.
    unsafe { value.write(*number) };
    cufftResult::CUFFT_SUCCESS
}

unsafe extern "C" fn get_version(version: *mut c_int) -> cufftResult {
    // SAFETY: the caller passes a place for the version.
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

unsafe extern "C" fn make_plan(
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
        // SAFETY: the caller passes one length for each dimension.
        let lengths = unsafe { read(lengths, rank as usize) }?;
        if precision == Precision::Half && !lengths.iter().all(|length| length.is_power_of_two()) {
            return Err(cufftResult::CUFFT_INVALID_SIZE);
        }
        let batches = usize::try_from(batches).ok().filter(|batches| *batches > 0);
        let batches = batches.ok_or(cufftResult::CUFFT_INVALID_SIZE)?;
        let (real, complex) = (precision.bytes(), 2 * precision.bytes());
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
        let layout = (input_embedding.cast_const(), input_stride, input_distance);
        // SAFETY: the caller passes null or one length for each dimension.
        let input = unsafe { side(input, input_bytes, layout, batches) }?;
        let layout = (
            output_embedding.cast_const(),
            output_stride,
            output_distance,
        );
        // SAFETY: as above.
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
        // SAFETY: the caller passes a place for the size.
        unsafe { bytes.write(transform.workspace_bytes()) };
        if plan.allocates {
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
        // SAFETY: the caller passes a place for the size.
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
