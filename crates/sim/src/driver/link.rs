//! Links: several PTX texts become one image.

use curium_sys::{CUlinkState_st, CUresult};

use crate::argument::Pointer;
use crate::driver::state::State;
use crate::handle::Id;
use crate::link::Link;
use crate::result::Result;

impl State {
    /// Returns a live link that is not complete yet.
    pub(crate) fn link(&mut self, raw: Pointer<CUlinkState_st>) -> Result<&mut Link> {
        let link = self
            .links
            .get_mut(Id::from(raw))
            .ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)?;
        if link.image.is_some() {
            Err(CUresult::CUDA_ERROR_INVALID_VALUE)
        } else {
            Ok(link)
        }
    }
}
