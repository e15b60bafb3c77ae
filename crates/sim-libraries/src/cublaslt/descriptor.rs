//! Descriptors: numbered sets of attributes.

use std::collections::{BTreeMap, HashMap};
use std::ffi::c_void;
use std::ptr;
use std::sync::LazyLock;

use bytemuck::AnyBitPattern;
use curium_sys::cublas::lt::Api;
use curium_sys::cublas::{
    cublasComputeType_t, cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t as Operation,
    cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t as Limit,
    cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t as Layout, cublasStatus_t,
    cudaDataType, cudaDataType_t,
};
use parking_lot::{Mutex, MutexGuard};

use super::{INVALID, Result, code, write};

/// The attributes of a descriptor, as bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Attributes {
    kind: Kind,
    values: BTreeMap<u32, Vec<u8>>,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Kind {
    #[default]
    Layout,
    Operation,
    Limits,
}

/// The live descriptors by their numbers, which are not reused.
#[derive(Default)]
struct Descriptors {
    live: HashMap<usize, Attributes>,
    last: usize,
}

static DESCRIPTORS: LazyLock<Mutex<Descriptors>> = LazyLock::new(Mutex::default);

/// Descriptors are multiples of this, as addresses would be.
const STEP: usize = 512;

fn descriptors() -> MutexGuard<'static, Descriptors> {
    DESCRIPTORS.lock()
}

impl Kind {
    /// Returns the size of an attribute in bytes; `None` if the library does not have it.
    fn size(self, attribute: u32) -> Option<usize> {
        match self {
            Self::Layout => match Layout(attribute) {
                Layout::CUBLASLT_MATRIX_LAYOUT_TYPE
                | Layout::CUBLASLT_MATRIX_LAYOUT_ORDER
                | Layout::CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT => Some(4),
                Layout::CUBLASLT_MATRIX_LAYOUT_ROWS
                | Layout::CUBLASLT_MATRIX_LAYOUT_COLS
                | Layout::CUBLASLT_MATRIX_LAYOUT_LD
                | Layout::CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET => Some(8),
                _ => None,
            },
            Self::Operation => operation_attribute_size(Operation(attribute)),
            Self::Limits => match Limit(attribute) {
                Limit::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES => Some(8),
                Limit::CUBLASLT_MATMUL_PREF_SEARCH_MODE
                | Limit::CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK
                | Limit::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES
                | Limit::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES
                | Limit::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES
                | Limit::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES => Some(4),
                _ => None,
            },
        }
    }
}

fn operation_attribute_size(attribute: Operation) -> Option<usize> {
    match attribute {
        Operation::CUBLASLT_MATMUL_DESC_COMPUTE_TYPE
        | Operation::CUBLASLT_MATMUL_DESC_SCALE_TYPE
        | Operation::CUBLASLT_MATMUL_DESC_POINTER_MODE
        | Operation::CUBLASLT_MATMUL_DESC_TRANSA
        | Operation::CUBLASLT_MATMUL_DESC_TRANSB
        | Operation::CUBLASLT_MATMUL_DESC_TRANSC
        | Operation::CUBLASLT_MATMUL_DESC_EPILOGUE
        | Operation::CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE
        | Operation::CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE => Some(4),
        Operation::CUBLASLT_MATMUL_DESC_FAST_ACCUM => Some(1),
        Operation::CUBLASLT_MATMUL_DESC_BIAS_POINTER
        | Operation::CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE
        | Operation::CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER
        | Operation::CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD
        | Operation::CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE
        | Operation::CUBLASLT_MATMUL_DESC_A_SCALE_POINTER
        | Operation::CUBLASLT_MATMUL_DESC_B_SCALE_POINTER
        | Operation::CUBLASLT_MATMUL_DESC_C_SCALE_POINTER
        | Operation::CUBLASLT_MATMUL_DESC_D_SCALE_POINTER
        | Operation::CUBLASLT_MATMUL_DESC_AMAX_D_POINTER => Some(8),
        _ => None,
    }
}

impl Attributes {
    /// Returns an attribute; `None` if it was not set.
    pub(super) fn get<T: AnyBitPattern>(&self, attribute: u32) -> Option<T> {
        bytemuck::try_pod_read_unaligned(self.values.get(&attribute)?).ok()
    }

    fn with(mut self, attribute: u32, value: &[u8]) -> Self {
        self.values.insert(attribute, value.to_vec());
        self
    }
}

/// Returns the attributes of a live descriptor.
pub(super) fn look_up<T>(kind: Kind, descriptor: *mut T) -> Result<Attributes> {
    descriptors()
        .live
        .get(&descriptor.addr())
        .filter(|attributes| attributes.kind == kind)
        .cloned()
        .ok_or(INVALID)
}

/// Creates a descriptor and writes its handle.
///
/// # Safety
///
/// `output` is null or valid for writes.
unsafe fn create<T>(output: *mut *mut T, attributes: Attributes) -> Result {
    let number = {
        let mut descriptors = descriptors();
        descriptors.last += STEP;
        let number = descriptors.last;
        descriptors.live.insert(number, attributes);
        number
    };
    // SAFETY: the caller guarantees the output.
    unsafe { write(output, ptr::without_provenance_mut(number)) }
}

fn destroy<T>(kind: Kind, descriptor: *mut T) -> Result {
    look_up(kind, descriptor)?;
    descriptors().live.remove(&descriptor.addr());
    Ok(())
}

/// Sets an attribute of a descriptor.
///
/// # Safety
///
/// `value` is null or valid for reads of `bytes` bytes.
unsafe fn set<T>(
    kind: Kind,
    descriptor: *mut T,
    attribute: u32,
    value: *const c_void,
    bytes: usize,
) -> Result {
    if value.is_null() || kind.size(attribute) != Some(bytes) {
        return Err(INVALID);
    }
    // SAFETY: the caller guarantees the value.
    let value = unsafe { std::slice::from_raw_parts(value.cast::<u8>(), bytes) }.to_vec();
    let mut descriptors = descriptors();
    let attributes = descriptors
        .live
        .get_mut(&descriptor.addr())
        .filter(|attributes| attributes.kind == kind)
        .ok_or(INVALID)?;
    attributes.values.insert(attribute, value);
    Ok(())
}

/// Writes an attribute of a descriptor.
///
/// # Safety
///
/// `output` is null or valid for writes of `bytes` bytes, and `written` is null or valid for
/// writes.
unsafe fn get<T>(
    kind: Kind,
    descriptor: *mut T,
    attribute: u32,
    output: *mut c_void,
    bytes: usize,
    written: *mut usize,
) -> Result {
    let size = kind.size(attribute).ok_or(INVALID)?;
    let value = look_up(kind, descriptor)?
        .values
        .get(&attribute)
        .cloned()
        .unwrap_or_else(|| vec![0; size]);
    if bytes == 0 {
        // SAFETY: the caller guarantees the output.
        return unsafe { write(written, size) };
    }
    if output.is_null() || bytes < size {
        return Err(INVALID);
    }
    // SAFETY: the caller guarantees the output, and the value has at most this size.
    unsafe {
        output
            .cast::<u8>()
            .copy_from_nonoverlapping(value.as_ptr(), value.len());
    };
    if written.is_null() {
        return Ok(());
    }
    // SAFETY: the caller guarantees the output.
    unsafe { write(written, size) }
}

unsafe extern "C" fn layout_create(
    descriptor: *mut cublasLtMatrixLayout_t,
    ty: cudaDataType,
    rows: u64,
    columns: u64,
    leading: i64,
) -> cublasStatus_t {
    let attributes = Attributes::default()
        .with(Layout::CUBLASLT_MATRIX_LAYOUT_TYPE.0, &ty.0.to_ne_bytes())
        .with(Layout::CUBLASLT_MATRIX_LAYOUT_ROWS.0, &rows.to_ne_bytes())
        .with(
            Layout::CUBLASLT_MATRIX_LAYOUT_COLS.0,
            &columns.to_ne_bytes(),
        )
        .with(Layout::CUBLASLT_MATRIX_LAYOUT_LD.0, &leading.to_ne_bytes());
    // SAFETY: by the contract of the C function, `descriptor` is null or valid for writes.
    code(unsafe { create(descriptor, attributes) })
}

unsafe extern "C" fn operation_create(
    descriptor: *mut cublasLtMatmulDesc_t,
    compute: cublasComputeType_t,
    scale: cudaDataType_t,
) -> cublasStatus_t {
    let attributes = Attributes {
        kind: Kind::Operation,
        values: BTreeMap::new(),
    }
    .with(
        Operation::CUBLASLT_MATMUL_DESC_COMPUTE_TYPE.0,
        &compute.0.to_ne_bytes(),
    )
    .with(
        Operation::CUBLASLT_MATMUL_DESC_SCALE_TYPE.0,
        &scale.0.to_ne_bytes(),
    );
    // SAFETY: by the contract of the C function, `descriptor` is null or valid for writes.
    code(unsafe { create(descriptor, attributes) })
}

unsafe extern "C" fn limits_create(descriptor: *mut cublasLtMatmulPreference_t) -> cublasStatus_t {
    let attributes = Attributes {
        kind: Kind::Limits,
        values: BTreeMap::new(),
    };
    // SAFETY: by the contract of the C function, `descriptor` is null or valid for writes.
    code(unsafe { create(descriptor, attributes) })
}

/// The functions of a kind of descriptors beside its creation.
macro_rules! functions {
    ($kind:ident($raw:ty, $attribute:ty): $destroy:ident $set:ident $get:ident) => {
        unsafe extern "C" fn $destroy(descriptor: $raw) -> cublasStatus_t {
            code(destroy(Kind::$kind, descriptor))
        }

        unsafe extern "C" fn $set(
            descriptor: $raw,
            attribute: $attribute,
            value: *const c_void,
            bytes: usize,
        ) -> cublasStatus_t {
            // SAFETY: by the contract of the C function, `value` is null or valid for reads of
            // `bytes` bytes.
            code(unsafe { set(Kind::$kind, descriptor, attribute.0, value, bytes) })
        }

        unsafe extern "C" fn $get(
            descriptor: $raw,
            attribute: $attribute,
            value: *mut c_void,
            bytes: usize,
            written: *mut usize,
        ) -> cublasStatus_t {
            // SAFETY: by the contract of the C function, `value` is null or valid for writes of
            // `bytes` bytes, and `written` is null or valid for writes.
            code(unsafe { get(Kind::$kind, descriptor, attribute.0, value, bytes, written) })
        }
    };
}

functions!(Layout(cublasLtMatrixLayout_t, Layout): layout_destroy layout_set layout_get);
functions!(Operation(cublasLtMatmulDesc_t, Operation): operation_destroy operation_set operation_get);
functions!(Limits(cublasLtMatmulPreference_t, Limit): limits_destroy limits_set limits_get);

/// Adds the functions.
pub(super) fn add_to(api: &mut Api) {
    api.cublasLtMatrixLayoutCreate = Some(layout_create);
    api.cublasLtMatrixLayoutDestroy = Some(layout_destroy);
    api.cublasLtMatrixLayoutSetAttribute = Some(layout_set);
    api.cublasLtMatrixLayoutGetAttribute = Some(layout_get);
    api.cublasLtMatmulDescCreate = Some(operation_create);
    api.cublasLtMatmulDescDestroy = Some(operation_destroy);
    api.cublasLtMatmulDescSetAttribute = Some(operation_set);
    api.cublasLtMatmulDescGetAttribute = Some(operation_get);
    api.cublasLtMatmulPreferenceCreate = Some(limits_create);
    api.cublasLtMatmulPreferenceDestroy = Some(limits_destroy);
    api.cublasLtMatmulPreferenceSetAttribute = Some(limits_set);
    api.cublasLtMatmulPreferenceGetAttribute = Some(limits_get);
}
