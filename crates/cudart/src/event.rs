//! Events.

use std::ffi::c_uint;

use curium_sys::{CUevent, CUstream};

use crate::forward;

forward! {
    unsafe fn cudaEventCreate(event: *mut CUevent) = cuEventCreate(event, 0);

    unsafe fn cudaEventCreateWithFlags(event: *mut CUevent, flags: c_uint)
        = cuEventCreate(event, flags);

    [cudaEventRecord_ptsz(stream)]
    unsafe fn cudaEventRecord(event: CUevent, stream: CUstream) = cuEventRecord(event, stream);

    [cudaEventRecordWithFlags_ptsz(stream)]
    unsafe fn cudaEventRecordWithFlags(event: CUevent, stream: CUstream, flags: c_uint)
        = cuEventRecordWithFlags(event, stream, flags);

    unsafe fn cudaEventQuery(event: CUevent) = cuEventQuery(event);

    unsafe fn cudaEventSynchronize(event: CUevent) = cuEventSynchronize(event);

    unsafe fn cudaEventElapsedTime(milliseconds: *mut f32, start: CUevent, end: CUevent)
        = cuEventElapsedTime(milliseconds, start, end);

    unsafe fn cudaEventElapsedTime_v2(milliseconds: *mut f32, start: CUevent, end: CUevent)
        = cuEventElapsedTime(milliseconds, start, end);

    unsafe fn cudaEventDestroy(event: CUevent) = cuEventDestroy_v2(event);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{call, code, simulate};

    #[test]
    fn elapsed_time_requires_two_timed_events() {
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
