//! Events.

use std::ffi::c_uint;

use curium_sys::{CUevent, CUstream};

use crate::state::enter;
use crate::{cu, runtime};

runtime! {
    fn cudaEventCreate(place: *mut CUevent) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuEventCreate(place, 0)) }
    }

    fn cudaEventCreateWithFlags(place: *mut CUevent, flags: c_uint) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuEventCreate(place, flags)) }
    }

    fn cudaEventRecord(event: CUevent, stream: CUstream) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuEventRecord(event, stream)) }
    }

    fn cudaEventRecordWithFlags(event: CUevent, stream: CUstream, flags: c_uint) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuEventRecordWithFlags(event, stream, flags)) }
    }

    fn cudaEventQuery(event: CUevent) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuEventQuery(event)) }
    }

    fn cudaEventSynchronize(event: CUevent) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuEventSynchronize(event)) }
    }

    fn cudaEventElapsedTime(milliseconds: *mut f32, start: CUevent, end: CUevent) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuEventElapsedTime(milliseconds, start, end)) }
    }

    fn cudaEventDestroy(event: CUevent) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuEventDestroy_v2(event)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{call, code, simulate};

    #[test]
    fn time_between_two_events_is_measured_and_not_with_one_that_has_no_time() {
        let _turn = simulate();
        let [mut begin, mut end, mut untimed] = [CUevent::default(); 3];
        call!(cudaEventCreate(&raw mut begin));
        call!(cudaEventCreateWithFlags(&raw mut end, 0));
        call!(cudaEventCreateWithFlags(&raw mut untimed, 2));
        let mut time = -1.0;
        let stream = CUstream::default();
        assert_eq!(
            code!(cudaEventElapsedTime(&raw mut time, begin, end)),
            400,
            "neither is recorded"
        );
        call!(cudaEventRecord(begin, stream));
        call!(cudaEventRecordWithFlags(end, stream, 0));
        call!(cudaEventRecord(untimed, stream));
        call!(cudaEventSynchronize(end));
        call!(cudaEventQuery(end));
        call!(cudaEventElapsedTime(&raw mut time, begin, end));
        assert!(time >= 0.0, "{time}");
        assert_eq!(
            code!(cudaEventElapsedTime(&raw mut time, begin, untimed)),
            400
        );
        for event in [begin, end, untimed] {
            call!(cudaEventDestroy(event));
        }
    }
}
