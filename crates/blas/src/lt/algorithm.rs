//! The algorithms of cuBLASLt for a product.

use std::fmt;

use super::descriptor::{Descriptors, Limits};
use super::{BlasLt, Matmul};
use crate::error::{Error, Result};
use crate::sys::{
    cublasLtMatmulAlgo_t, cublasLtMatmulAlgoConfigAttributes_t as Configuration,
    cublasLtMatmulHeuristicResult_t, cublasStatus_t,
};
use curium_sys::library_call as call;

/// An algorithm of cuBLASLt with its configuration, for one product and one version of the library.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct Algorithm {
    pub(super) raw: [u64; 8],
    pub(super) workspace_bytes: usize,
    id: u32,
}

impl Algorithm {
    /// Returns the library's number of the algorithm.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Returns the number of bytes of workspace that the algorithm requires.
    #[must_use]
    pub fn workspace_bytes(&self) -> usize {
        self.workspace_bytes
    }

    /// Returns a pointer to the algorithm as the library stores it: its type has this array as its
    /// only field.
    #[inline]
    pub(super) fn as_raw(&self) -> *const cublasLtMatmulAlgo_t {
        (&raw const self.raw).cast()
    }

    fn new(lt: &BlasLt, result: &cublasLtMatmulHeuristicResult_t) -> Self {
        let mut id = 0_u32;
        let mut written = 0;
        let attribute = Configuration::CUBLASLT_ALGO_CONFIG_ID;
        let value = (&raw mut id).cast();
        let api = lt.library().api();
        // The number is for reports; without it, the algorithm works.
        // SAFETY: both outputs are valid for writes, and the algorithm is one of the library.
        let _ = unsafe {
            call!(
                api,
                cublasLtMatmulAlgoConfigGetAttribute(
                    &raw const result.algo,
                    attribute,
                    value,
                    4,
                    &raw mut written
                )
            )
        };
        Self {
            raw: result.algo.data,
            workspace_bytes: result.workspaceSize,
            id,
        }
    }

    /// Returns at most `count` algorithms, the one first that the library expects to be the
    /// fastest.
    pub(super) fn search(
        lt: &BlasLt,
        matmul: &Matmul,
        descriptors: &Descriptors,
        workspace_limit: usize,
        count: usize,
    ) -> Result<Vec<Self>> {
        let limits = Limits::new(lt.library(), workspace_limit, matmul.alignment())?;
        let mut results = vec![cublasLtMatmulHeuristicResult_t::default(); count];
        let mut result_count = 0;
        let Descriptors {
            operation,
            a,
            b,
            c,
            d,
            ..
        } = descriptors;
        let searched = lt.entered(|api, raw| {
            // SAFETY: the descriptors are live, and `results` is valid for writes of `count`
            // elements.
            unsafe {
                call!(
                    api,
                    cublasLtMatmulAlgoGetHeuristic(
                        raw,
                        operation.raw(),
                        a.raw(),
                        b.raw(),
                        c.raw(),
                        d.raw(),
                        limits.raw(),
                        count as i32,
                        results.as_mut_ptr(),
                        &raw mut result_count,
                    )
                )
            }
        });
        match searched {
            Err(Error::Call(error))
                if error.code == cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED =>
            {
                return Ok(Vec::new());
            }
            other => other?,
        }
        results.truncate(usize::try_from(result_count).unwrap_or_default());
        Ok(results
            .iter()
            .filter(|result| {
                result.state == cublasStatus_t::CUBLAS_STATUS_SUCCESS
                    && result.workspaceSize <= workspace_limit
            })
            .map(|result| Self::new(lt, result))
            .collect())
    }

    /// Checks an algorithm of an earlier search, and returns it with the workspace that it
    /// requires; `None` if the library or the device does not support it.
    ///
    /// # Safety
    ///
    /// `raw` is an algorithm of this version of the library.
    pub(super) unsafe fn check(
        lt: &BlasLt,
        descriptors: &Descriptors,
        raw: [u64; 8],
    ) -> Result<Option<Self>> {
        let algorithm = cublasLtMatmulAlgo_t { data: raw };
        let mut result = cublasLtMatmulHeuristicResult_t::default();
        let Descriptors {
            operation,
            a,
            b,
            c,
            d,
            ..
        } = descriptors;
        let checked = lt.entered(|api, handle| {
            // SAFETY: the descriptors are live, the caller guarantees the algorithm, and the result
            // is valid for writes.
            unsafe {
                call!(
                    api,
                    cublasLtMatmulAlgoCheck(
                        handle,
                        operation.raw(),
                        a.raw(),
                        b.raw(),
                        c.raw(),
                        d.raw(),
                        &raw const algorithm,
                        &raw mut result,
                    )
                )
            }
        });
        match checked {
            Err(Error::Call(_)) => return Ok(None),
            other => other?,
        }
        // The check may leave the algorithm of the result empty.
        result.algo = algorithm;
        let is_supported = result.state == cublasStatus_t::CUBLAS_STATUS_SUCCESS;
        Ok(is_supported.then(|| Self::new(lt, &result)))
    }
}

impl fmt::Debug for Algorithm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "Algorithm({}, workspace of {} bytes)",
            self.id, self.workspace_bytes
        )
    }
}
