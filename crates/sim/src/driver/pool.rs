//! Memory pools and stream-ordered allocation.

pub(crate) mod sharing;

use curium_sys::{CUmemPoolHandle_st, CUresult};

use crate::argument::Pointer;
use crate::driver::Driver;
use crate::handle::Id;
use crate::memory::Pool;
use crate::result::Result;

impl Driver {
    pub(crate) fn pool(&self, raw: Pointer<CUmemPoolHandle_st>) -> Result<Id<Pool>> {
        let id = Id::from(raw);
        let is_live = self
            .memory()
            .read()
            .pools
            .get(id)
            .is_some_and(|pool| !pool.is_retired);
        if is_live {
            Ok(id)
        } else {
            Err(CUresult::CUDA_ERROR_INVALID_VALUE)
        }
    }
}
