//! Algorithms: three ways to compute a product, of which the library recommends those with the given workspace.

use std::ffi::{c_int, c_void};

use curium_blas::sys::lt::Api;
use curium_blas::sys::{
    cublasComputeType_t, cublasLtHandle_t, cublasLtMatmulAlgo_t,
    cublasLtMatmulAlgoConfigAttributes_t as Configuration, cublasLtMatmulDesc_t,
    cublasLtMatmulHeuristicResult_t, cublasLtMatmulPreference_t,
    cublasLtMatmulPreferenceAttributes_t as Limit, cublasLtMatrixLayout_t, cublasStatus_t,
    cudaDataType_t,
};

use super::descriptor::{self, Kind};
use super::handle::expect_live;
use super::problem::Problem;
use super::{INVALID, Result, UNSUPPORTED, code, write};

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

/// The least inner size that is split.
const LEAST_SPLIT: usize = 32;

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

    pub(super) fn of(raw: cublasLtMatmulAlgo_t) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|algorithm| algorithm.to_raw().data == raw.data)
            .ok_or(INVALID)
    }

    fn of_number(number: c_int) -> Result<Self> {
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
        self != Self::SplitInner || problem.sizes.2 >= LEAST_SPLIT
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
    found: *mut c_int,
) -> cublasStatus_t {
    let search = || -> Result {
        expect_live(handle)?;
        let problem = Problem::new(operation, [a, b, c, d])?;
        let limit = descriptor::look_up(Kind::Limits, limits)?;
        let limit: u64 = limit
            .get(Limit::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES.0)
            .unwrap_or(0);
        let requested = usize::try_from(requested)
            .ok()
            .filter(|requested| *requested > 0)
            .ok_or(INVALID)?;
        let fits = |algorithm: &Algorithm| {
            algorithm.supports(&problem) && algorithm.workspace(&problem) as u64 <= limit
        };
        let mut count = 0;
        for algorithm in Algorithm::ALL.into_iter().filter(fits).take(requested) {
            // SAFETY: the caller passes as many places as it requests.
            let place = unsafe { results.add(count) };
            // SAFETY: as above.
            unsafe { write(place, algorithm.result(&problem)) }?;
            count += 1;
        }
        // SAFETY: the caller passes a place for the number.
        unsafe { write(found, count as c_int) }?;
        if count == 0 { Err(UNSUPPORTED) } else { Ok(()) }
    };
    code(search())
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
    let check = || -> Result {
        expect_live(handle)?;
        let problem = Problem::new(operation, [a, b, c, d])?;
        // SAFETY: the caller passes an algorithm.
        let algorithm = Algorithm::of(unsafe { read(algorithm) }?)?;
        if !algorithm.supports(&problem) {
            return Err(UNSUPPORTED);
        }
        // SAFETY: the caller passes a place for the result.
        unsafe { write(result, algorithm.result(&problem)) }
    };
    code(check())
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
    found: *mut c_int,
) -> cublasStatus_t {
    let list = || -> Result {
        expect_live(handle)?;
        let requested = usize::try_from(requested).map_err(|_| INVALID)?;
        let mut count = 0;
        for algorithm in Algorithm::ALL.into_iter().take(requested) {
            // SAFETY: the caller passes as many places as it requests.
            let place = unsafe { numbers.add(count) };
            // SAFETY: as above.
            unsafe { write(place, algorithm.number() as c_int) }?;
            count += 1;
        }
        // SAFETY: the caller passes a place for the number.
        unsafe { write(found, count as c_int) }
    };
    code(list())
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
    let found = expect_live(handle).and_then(|()| Algorithm::of_number(number));
    // SAFETY: the caller passes a place for the algorithm.
    code(found.and_then(|found| unsafe { write(algorithm, found.to_raw()) }))
}

unsafe extern "C" fn get_configuration(
    algorithm: *const cublasLtMatmulAlgo_t,
    attribute: Configuration,
    place: *mut c_void,
    bytes: usize,
    written: *mut usize,
) -> cublasStatus_t {
    let get = || -> Result {
        // SAFETY: the caller passes an algorithm.
        let algorithm = Algorithm::of(unsafe { read(algorithm) }?)?;
        let value: u32 = match attribute {
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
            // SAFETY: the caller passes a place for the size.
            unsafe { write(written, size_of::<u32>()) }?;
        }
        // SAFETY: the caller passes a place of at least this size.
        unsafe { write(place.cast(), value) }
    };
    code(get())
}

/// Adds the functions.
pub(super) fn add_to(api: &mut Api) {
    api.cublasLtMatmulAlgoGetHeuristic = Some(get_heuristic);
    api.cublasLtMatmulAlgoCheck = Some(check);
    api.cublasLtMatmulAlgoGetIds = Some(get_ids);
    api.cublasLtMatmulAlgoInit = Some(initialize);
    api.cublasLtMatmulAlgoConfigGetAttribute = Some(get_configuration);
}
