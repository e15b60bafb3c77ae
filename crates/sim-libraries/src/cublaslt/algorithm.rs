//! Algorithms: three ways to compute a product, of which the library recommends those with the
//! given workspace.

use std::ffi::{c_int, c_void};

use curium_sys::cublas::lt::Api;
use curium_sys::cublas::{
    cublasComputeType_t, cublasLtHandle_t, cublasLtMatmulAlgo_t,
    cublasLtMatmulAlgoConfigAttributes_t as Configuration, cublasLtMatmulDesc_t,
    cublasLtMatmulHeuristicResult_t, cublasLtMatmulPreference_t,
    cublasLtMatmulPreferenceAttributes_t as Limit, cublasLtMatrixLayout_t, cublasStatus_t,
    cudaDataType_t,
};

use super::descriptor::{self, Kind};
use super::handle::check_live;
use super::problem::Problem;
use super::{INVALID, Result, UNSUPPORTED, entry, write};

/// A way to compute a product.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Algorithm {
    /// One product in blocks.
    Blocked,
    /// Two products of half the inner size, whose sums are kept in the workspace.
    SplitInner,
    /// One element after the other.
    Elementwise,
}

/// The first word of an algorithm, with its number in the low half.
const MAGIC: u64 = 0x4c54_414c << 32;

/// The minimum inner size that is split.
const MIN_SPLIT: usize = 32;

impl Algorithm {
    const ALL: [Self; 3] = [Self::SplitInner, Self::Blocked, Self::Elementwise];

    fn number(self) -> u32 {
        match self {
            Self::Blocked => 10,
            Self::SplitInner => 21,
            Self::Elementwise => 5,
        }
    }

    fn to_raw(self) -> cublasLtMatmulAlgo_t {
        let mut raw = cublasLtMatmulAlgo_t::default();
        raw.data[0] = MAGIC | u64::from(self.number());
        raw
    }

    pub(super) fn from_raw(raw: cublasLtMatmulAlgo_t) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|algorithm| algorithm.to_raw().data == raw.data)
            .ok_or(INVALID)
    }

    fn from_number(number: c_int) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|algorithm| i64::from(algorithm.number()) == i64::from(number))
            .ok_or(INVALID)
    }

    /// Returns the number of bytes of workspace.
    pub(super) fn workspace(self, problem: &Problem) -> usize {
        let (m, n, _) = problem.sizes;
        if self == Self::SplitInner {
            (m * n * 8 * problem.count).next_multiple_of(256)
        } else {
            0
        }
    }

    fn supports(self, problem: &Problem) -> bool {
        self != Self::SplitInner || problem.sizes.2 >= MIN_SPLIT
    }

    fn result(self, problem: &Problem) -> cublasLtMatmulHeuristicResult_t {
        cublasLtMatmulHeuristicResult_t {
            algo: self.to_raw(),
            workspaceSize: self.workspace(problem),
            state: cublasStatus_t::CUBLAS_STATUS_SUCCESS,
            wavesCount: 1.0,
            reserved: [0; 4],
        }
    }
}

unsafe extern "C" fn get_heuristic(
    handle: cublasLtHandle_t,
    operation: cublasLtMatmulDesc_t,
    a: cublasLtMatrixLayout_t,
    b: cublasLtMatrixLayout_t,
    c: cublasLtMatrixLayout_t,
    d: cublasLtMatrixLayout_t,
    limits: cublasLtMatmulPreference_t,
    requested: c_int,
    results: *mut cublasLtMatmulHeuristicResult_t,
    returned: *mut c_int,
) -> cublasStatus_t {
    entry(|| {
        check_live(handle)?;
        let problem = Problem::new(operation, [a, b, c, d])?;
        let limit = descriptor::look_up(Kind::Limits, limits)?;
        let limit: u64 = limit
            .get(Limit::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES.0)
            .unwrap_or(0);
        let requested = usize::try_from(requested)
            .ok()
            .filter(|requested| *requested > 0)
            .ok_or(INVALID)?;
        let algorithms = Algorithm::ALL.into_iter().filter(|algorithm| {
            algorithm.supports(&problem) && algorithm.workspace(&problem) as u64 <= limit
        });
        let mut count = 0;
        for algorithm in algorithms.take(requested) {
            // SAFETY: by the contract of the C function, `results` has `requested` elements.
            unsafe { write(results.wrapping_add(count), algorithm.result(&problem)) }?;
            count += 1;
        }
        // SAFETY: by the contract of the C function, `returned` is null or valid for writes.
        unsafe { write(returned, count as c_int) }?;
        if count == 0 { Err(UNSUPPORTED) } else { Ok(()) }
    })
}

unsafe extern "C" fn check(
    handle: cublasLtHandle_t,
    operation: cublasLtMatmulDesc_t,
    a: cublasLtMatrixLayout_t,
    b: cublasLtMatrixLayout_t,
    c: cublasLtMatrixLayout_t,
    d: cublasLtMatrixLayout_t,
    algorithm: *const cublasLtMatmulAlgo_t,
    result: *mut cublasLtMatmulHeuristicResult_t,
) -> cublasStatus_t {
    entry(|| {
        check_live(handle)?;
        let problem = Problem::new(operation, [a, b, c, d])?;
        // SAFETY: by the contract of the C function, `algorithm` is null or valid for reads.
        let algorithm = Algorithm::from_raw(unsafe { read(algorithm) }?)?;
        if !algorithm.supports(&problem) {
            return Err(UNSUPPORTED);
        }
        // SAFETY: by the contract of the C function, `result` is null or valid for writes.
        unsafe { write(result, algorithm.result(&problem)) }
    })
}

/// Reads an algorithm.
///
/// # Safety
///
/// `algorithm` is null or valid for reads.
pub(super) unsafe fn read(algorithm: *const cublasLtMatmulAlgo_t) -> Result<cublasLtMatmulAlgo_t> {
    // SAFETY: the caller guarantees the algorithm.
    unsafe { algorithm.as_ref() }.copied().ok_or(INVALID)
}

unsafe extern "C" fn get_ids(
    handle: cublasLtHandle_t,
    _compute: cublasComputeType_t,
    _scale: cudaDataType_t,
    _a: cudaDataType_t,
    _b: cudaDataType_t,
    _c: cudaDataType_t,
    _d: cudaDataType_t,
    requested: c_int,
    numbers: *mut c_int,
    returned: *mut c_int,
) -> cublasStatus_t {
    entry(|| {
        check_live(handle)?;
        let requested = usize::try_from(requested).map_err(|_| INVALID)?;
        let mut count = 0;
        for algorithm in Algorithm::ALL.into_iter().take(requested) {
            // SAFETY: by the contract of the C function, `numbers` has `requested` elements.
            unsafe { write(numbers.wrapping_add(count), algorithm.number() as c_int) }?;
            count += 1;
        }
        // SAFETY: by the contract of the C function, `returned` is null or valid for writes.
        unsafe { write(returned, count as c_int) }
    })
}

unsafe extern "C" fn initialize(
    handle: cublasLtHandle_t,
    _compute: cublasComputeType_t,
    _scale: cudaDataType_t,
    _a: cudaDataType_t,
    _b: cudaDataType_t,
    _c: cudaDataType_t,
    _d: cudaDataType_t,
    number: c_int,
    algorithm: *mut cublasLtMatmulAlgo_t,
) -> cublasStatus_t {
    entry(|| {
        check_live(handle)?;
        let raw = Algorithm::from_number(number)?.to_raw();
        // SAFETY: by the contract of the C function, `algorithm` is null or valid for writes.
        unsafe { write(algorithm, raw) }
    })
}

unsafe extern "C" fn get_configuration(
    algorithm: *const cublasLtMatmulAlgo_t,
    attribute: Configuration,
    value: *mut c_void,
    bytes: usize,
    written: *mut usize,
) -> cublasStatus_t {
    entry(|| {
        // SAFETY: by the contract of the C function, `algorithm` is null or valid for reads.
        let algorithm = Algorithm::from_raw(unsafe { read(algorithm) }?)?;
        let number: u32 = match attribute {
            Configuration::CUBLASLT_ALGO_CONFIG_ID => algorithm.number(),
            Configuration::CUBLASLT_ALGO_CONFIG_SPLITK_NUM => {
                1 + u32::from(algorithm == Algorithm::SplitInner)
            }
            _ => return Err(UNSUPPORTED),
        };
        if bytes < size_of::<u32>() {
            return Err(INVALID);
        }
        if !written.is_null() {
            // SAFETY: by the contract of the C function, `written` is null or valid for writes.
            unsafe { write(written, size_of::<u32>()) }?;
        }
        // SAFETY: by the contract of the C function, `value` is null or valid for writes of `bytes`
        // bytes.
        unsafe { write(value.cast(), number) }
    })
}

/// Adds the functions.
pub(super) fn add_to(api: &mut Api) {
    api.cublasLtMatmulAlgoGetHeuristic = Some(get_heuristic);
    api.cublasLtMatmulAlgoCheck = Some(check);
    api.cublasLtMatmulAlgoGetIds = Some(get_ids);
    api.cublasLtMatmulAlgoInit = Some(initialize);
    api.cublasLtMatmulAlgoConfigGetAttribute = Some(get_configuration);
}
