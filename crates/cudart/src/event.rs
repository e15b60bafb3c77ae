//! Events.

use std::ffi::c_uint;

use curium_sys::{CUevent, CUstream};

use crate::state::enter;
use crate::{cu, runtime};

runtime! {
    fn cudaEventCreate(place: *mut CUevent) {
        enter()?;
        cu!(cuEventCreate(place, 0))
    }

    fn cudaEventCreateWithFlags(place: *mut CUevent, flags: c_uint) {
        enter()?;
        cu!(cuEventCreate(place, flags))
    }

    fn cudaEventRecord(event: CUevent, stream: CUstream) {
        enter()?;
        cu!(cuEventRecord(event, stream))
    }

    fn cudaEventRecordWithFlags(event: CUevent, stream: CUstream, flags: c_uint) {
        enter()?;
        cu!(cuEventRecordWithFlags(event, stream, flags))
    }

    fn cudaEventQuery(event: CUevent) {
        enter()?;
        cu!(cuEventQuery(event))
    }

    fn cudaEventSynchronize(event: CUevent) {
        enter()?;
        cu!(cuEventSynchronize(event))
    }

    fn cudaEventElapsedTime(milliseconds: *mut f32, start: CUevent, end: CUevent) {
        enter()?;
        cu!(cuEventElapsedTime(milliseconds, start, end))
    }

    fn cudaEventDestroy(event: CUevent) {
        enter()?;
        cu!(cuEventDestroy_v2(event))
    }
}
