//! Streams, and graphs captured from them.

use std::ffi::{c_int, c_uint, c_void};

use curium_sys::{
    CUevent, CUgraph, CUgraphExec, CUgraphNode, CUhostFn, CUstream, CUstreamCallback,
    CUstreamCaptureMode, CUstreamCaptureStatus,
};

use crate::properties::MAJOR;
use crate::state::enter;
use crate::{cu, runtime};

runtime! {
    fn cudaStreamCreate(place: *mut CUstream) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuStreamCreate(place, 0)) }
    }

    fn cudaStreamCreateWithFlags(place: *mut CUstream, flags: c_uint) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuStreamCreate(place, flags)) }
    }

    fn cudaStreamCreateWithPriority(place: *mut CUstream, flags: c_uint, priority: c_int) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuStreamCreateWithPriority(place, flags, priority)) }
    }

    fn cudaStreamDestroy(stream: CUstream) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuStreamDestroy_v2(stream)) }
    }

    fn cudaStreamSynchronize(stream: CUstream) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuStreamSynchronize(stream)) }
    }

    fn cudaStreamQuery(stream: CUstream) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuStreamQuery(stream)) }
    }

    fn cudaStreamWaitEvent(stream: CUstream, event: CUevent, flags: c_uint) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuStreamWaitEvent(stream, event, flags)) }
    }

    fn cudaStreamGetPriority(stream: CUstream, priority: *mut c_int) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuStreamGetPriority(stream, priority)) }
    }

    fn cudaStreamGetFlags(stream: CUstream, flags: *mut c_uint) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuStreamGetFlags(stream, flags)) }
    }

    fn cudaStreamGetId(stream: CUstream, id: *mut u64) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuStreamGetId(stream, id)) }
    }

    fn cudaStreamAddCallback(stream: CUstream, callback: CUstreamCallback, data: *mut c_void, flags: c_uint) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuStreamAddCallback(stream, callback, data, flags)) }
    }

    fn cudaLaunchHostFunc(stream: CUstream, function: CUhostFn, data: *mut c_void) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuLaunchHostFunc(stream, function, data)) }
    }

    fn cudaStreamBeginCapture(stream: CUstream, mode: c_uint) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuStreamBeginCapture_v2(stream, CUstreamCaptureMode(mode))) }
    }

    fn cudaStreamEndCapture(stream: CUstream, graph: *mut CUgraph) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuStreamEndCapture(stream, graph)) }
    }

    fn cudaStreamIsCapturing(stream: CUstream, status: *mut CUstreamCaptureStatus) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuStreamIsCapturing(stream, status)) }
    }

    fn cudaThreadExchangeStreamCaptureMode(mode: *mut CUstreamCaptureMode) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuThreadExchangeStreamCaptureMode(mode)) }
    }

    fn cudaGraphGetNodes(graph: CUgraph, nodes: *mut CUgraphNode, count: *mut usize) {
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuGraphGetNodes(graph, nodes, count)) }
    }

    fn cudaGraphUpload(executable: CUgraphExec, stream: CUstream) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuGraphUpload(executable, stream)) }
    }

    fn cudaGraphCreate(graph: *mut CUgraph, flags: c_uint) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuGraphCreate(graph, flags)) }
    }

    // Up to CUDA 11, output pointers for a node and a log follow the graph; later versions have flags there.
    fn cudaGraphInstantiate(place: *mut CUgraphExec, graph: CUgraph, flags: u64) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuGraphInstantiateWithFlags(place, graph, if MAJOR <= 11 { 0 } else { flags })) }
    }

    fn cudaGraphInstantiateWithFlags(place: *mut CUgraphExec, graph: CUgraph, flags: u64) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuGraphInstantiateWithFlags(place, graph, flags)) }
    }

    fn cudaGraphLaunch(executable: CUgraphExec, stream: CUstream) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuGraphLaunch(executable, stream)) }
    }

    fn cudaGraphExecDestroy(executable: CUgraphExec) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuGraphExecDestroy(executable)) }
    }

    fn cudaGraphDestroy(graph: CUgraph) {
        enter()?;
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuGraphDestroy(graph)) }
    }
}

#[cfg(test)]
mod tests {
    use std::ptr;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::tests::{call, code, simulate};

    extern "C" fn count(counter: *mut c_void) {
        // SAFETY: the tests pass a counter.
        unsafe { &*counter.cast::<AtomicU32>() }.fetch_add(1, Ordering::Relaxed);
    }

    #[test]
    fn stream_reports_its_flags_priority_and_id() {
        let _turn = simulate();
        let (mut stream, mut flags, mut priority, mut ids) =
            (CUstream::default(), 9, 9, [0_u64; 2]);
        call!(cudaStreamCreateWithPriority(&raw mut stream, 1, -1));
        call!(cudaStreamGetFlags(stream, &raw mut flags));
        call!(cudaStreamGetPriority(stream, &raw mut priority));
        call!(cudaStreamGetId(stream, &raw mut ids[0]));
        assert_eq!((flags, priority), (1, -1));
        call!(cudaStreamSynchronize(stream));
        call!(cudaStreamQuery(stream));
        call!(cudaStreamDestroy(stream));
        assert_ne!(code!(cudaStreamQuery(stream)), 0, "it is destroyed");
    }

    #[test]
    fn captured_host_function_runs_with_each_launch_of_its_graph() {
        let _turn = simulate();
        let counter = AtomicU32::new(0);
        let data = (&raw const counter).cast_mut().cast();
        let (mut stream, mut graph, mut executable) = (
            CUstream::default(),
            CUgraph::default(),
            CUgraphExec::default(),
        );
        call!(cudaStreamCreate(&raw mut stream));
        call!(cudaStreamBeginCapture(stream, 0));
        let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        call!(cudaStreamIsCapturing(stream, &raw mut status));
        assert_eq!(
            status,
            CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE
        );
        call!(cudaLaunchHostFunc(stream, Some(count), data));
        call!(cudaStreamEndCapture(stream, &raw mut graph));
        let mut nodes = 0;
        call!(cudaGraphGetNodes(graph, ptr::null_mut(), &raw mut nodes));
        call!(cudaGraphInstantiateWithFlags(&raw mut executable, graph, 0));
        for _ in 0..3 {
            call!(cudaGraphLaunch(executable, stream));
        }
        call!(cudaStreamSynchronize(stream));
        assert_eq!((nodes, counter.load(Ordering::Relaxed)), (1, 3));
        call!(cudaGraphExecDestroy(executable));
        call!(cudaGraphDestroy(graph));
        call!(cudaStreamDestroy(stream));
    }
}
