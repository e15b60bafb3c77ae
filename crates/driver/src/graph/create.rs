//! The constructor.

use super::Graph;
use super::resource::ResourceSet;
use crate::{Context, Result, call};

impl Graph {
    /// Creates an empty graph whose work runs in `context`.
    ///
    /// CUDA: `cuGraphCreate`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuGraphCreate")]
    #[doc(alias = "cudaGraphCreate")]
    pub fn new(context: &Context) -> Result<Self> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: `raw` is valid for writes.
        unsafe { call!(context.driver(), cuGraphCreate(&raw mut raw, 0) creates raw) }?;
        Ok(Self::owning(context, raw, ResourceSet::default()))
    }
}
