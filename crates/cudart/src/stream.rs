//! Streams, and graphs captured from them.

use std::ffi::{c_int, c_uint, c_void};

use curium_sys::{
    CUevent, CUgraph, CUgraphEdgeData, CUgraphExec, CUgraphNode, CUhostFn, CUstream,
    CUstreamAttrID, CUstreamAttrValue, CUstreamCallback, CUstreamCaptureMode,
    CUstreamCaptureStatus,
};

use crate::memory::address;
use crate::properties::MAJOR;
use crate::state::enter;
use crate::{cu, forward, forward_without_context, runtime};

forward! {
    unsafe fn cudaStreamCreate(stream: *mut CUstream) = cuStreamCreate(stream, 0);

    unsafe fn cudaStreamCreateWithFlags(stream: *mut CUstream, flags: c_uint)
        = cuStreamCreate(stream, flags);

    unsafe fn cudaStreamCreateWithPriority(stream: *mut CUstream, flags: c_uint, priority: c_int)
        = cuStreamCreateWithPriority(stream, flags, priority);

    unsafe fn cudaStreamDestroy(stream: CUstream) = cuStreamDestroy_v2(stream);

    [cudaStreamSynchronize_ptsz(stream)]
    unsafe fn cudaStreamSynchronize(stream: CUstream) = cuStreamSynchronize(stream);

    [cudaStreamQuery_ptsz(stream)]
    unsafe fn cudaStreamQuery(stream: CUstream) = cuStreamQuery(stream);

    [cudaStreamWaitEvent_ptsz(stream)]
    unsafe fn cudaStreamWaitEvent(stream: CUstream, event: CUevent, flags: c_uint)
        = cuStreamWaitEvent(stream, event, flags);

    [cudaStreamGetPriority_ptsz(stream)]
    unsafe fn cudaStreamGetPriority(stream: CUstream, priority: *mut c_int)
        = cuStreamGetPriority(stream, priority);

    [cudaStreamGetFlags_ptsz(stream)]
    unsafe fn cudaStreamGetFlags(stream: CUstream, flags: *mut c_uint)
        = cuStreamGetFlags(stream, flags);

    [cudaStreamGetId_ptsz(stream)]
    unsafe fn cudaStreamGetId(stream: CUstream, id: *mut u64) = cuStreamGetId(stream, id);

    [cudaStreamAddCallback_ptsz(stream)]
    unsafe fn cudaStreamAddCallback(
        stream: CUstream,
        callback: CUstreamCallback,
        data: *mut c_void,
        flags: c_uint,
    ) = cuStreamAddCallback(stream, callback, data, flags);

    [cudaLaunchHostFunc_ptsz(stream)]
    unsafe fn cudaLaunchHostFunc(stream: CUstream, function: CUhostFn, data: *mut c_void)
        = cuLaunchHostFunc(stream, function, data);

    [cudaStreamBeginCapture_ptsz(stream)]
    unsafe fn cudaStreamBeginCapture(stream: CUstream, mode: c_uint)
        = cuStreamBeginCapture_v2(stream, CUstreamCaptureMode(mode));

    [cudaStreamEndCapture_ptsz(stream)]
    unsafe fn cudaStreamEndCapture(stream: CUstream, graph: *mut CUgraph)
        = cuStreamEndCapture(stream, graph);

    [cudaStreamIsCapturing_ptsz(stream)]
    unsafe fn cudaStreamIsCapturing(stream: CUstream, status: *mut CUstreamCaptureStatus)
        = cuStreamIsCapturing(stream, status);

    unsafe fn cudaThreadExchangeStreamCaptureMode(mode: *mut CUstreamCaptureMode)
        = cuThreadExchangeStreamCaptureMode(mode);

    [cudaGraphUpload_ptsz(stream)]
    unsafe fn cudaGraphUpload(executable: CUgraphExec, stream: CUstream)
        = cuGraphUpload(executable, stream);

    unsafe fn cudaGraphCreate(graph: *mut CUgraph, flags: c_uint) = cuGraphCreate(graph, flags);

    // Up to CUDA 11, output pointers for a node and a log follow the graph; later versions have
    // flags there.
    unsafe fn cudaGraphInstantiate(executable: *mut CUgraphExec, graph: CUgraph, flags: u64)
        = cuGraphInstantiateWithFlags(executable, graph, if MAJOR <= 11 { 0 } else { flags });

    unsafe fn cudaGraphInstantiateWithFlags(
        executable: *mut CUgraphExec,
        graph: CUgraph,
        flags: u64,
    ) = cuGraphInstantiateWithFlags(executable, graph, flags);

    [cudaGraphLaunch_ptsz(stream)]
    unsafe fn cudaGraphLaunch(executable: CUgraphExec, stream: CUstream)
        = cuGraphLaunch(executable, stream);

    unsafe fn cudaGraphExecDestroy(executable: CUgraphExec) = cuGraphExecDestroy(executable);

    unsafe fn cudaGraphDestroy(graph: CUgraph) = cuGraphDestroy(graph);

    [cudaStreamCopyAttributes_ptsz(to, from)]
    unsafe fn cudaStreamCopyAttributes(to: CUstream, from: CUstream)
        = cuStreamCopyAttributes(to, from);

    [cudaStreamGetAttribute_ptsz(stream)]
    unsafe fn cudaStreamGetAttribute(
        stream: CUstream,
        attribute: CUstreamAttrID,
        value: *mut CUstreamAttrValue,
    ) = cuStreamGetAttribute(stream, attribute, value);

    [cudaStreamSetAttribute_ptsz(stream)]
    unsafe fn cudaStreamSetAttribute(
        stream: CUstream,
        attribute: CUstreamAttrID,
        param: *const CUstreamAttrValue,
    ) = cuStreamSetAttribute(stream, attribute, param);

    [cudaStreamGetDevice_ptsz(stream)]
    unsafe fn cudaStreamGetDevice(stream: CUstream, device: *mut c_int)
        = cuStreamGetDevice(stream, device);

    [cudaStreamAttachMemAsync_ptsz(stream)]
    unsafe fn cudaStreamAttachMemAsync(
        stream: CUstream,
        memory: *mut c_void,
        length: usize,
        flags: c_uint,
    ) = cuStreamAttachMemAsync(stream, address(memory), length, flags);

    [cudaLaunchHostFunc_v2_ptsz(stream)]
    unsafe fn cudaLaunchHostFunc_v2(
        stream: CUstream,
        function: CUhostFn,
        data: *mut c_void,
        mode: c_uint,
    ) = cuLaunchHostFunc_v2(stream, function, data, mode);

    [cudaStreamGetCaptureInfo_v2_ptsz(stream)]
    unsafe fn cudaStreamGetCaptureInfo_v2(
        stream: CUstream,
        status: *mut CUstreamCaptureStatus,
        id: *mut u64,
        graph: *mut CUgraph,
        dependencies: *mut *const CUgraphNode,
        count: *mut usize,
    ) = cuStreamGetCaptureInfo_v2(stream, status, id, graph, dependencies, count);

    [cudaStreamGetCaptureInfo_v3_ptsz(stream)]
    unsafe fn cudaStreamGetCaptureInfo_v3(
        stream: CUstream,
        status: *mut CUstreamCaptureStatus,
        id: *mut u64,
        graph: *mut CUgraph,
        dependencies: *mut *const CUgraphNode,
        edges: *mut *const CUgraphEdgeData,
        count: *mut usize,
    ) = cuStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, edges, count);

    [cudaStreamUpdateCaptureDependencies_v2_ptsz(stream)]
    unsafe fn cudaStreamUpdateCaptureDependencies_v2(
        stream: CUstream,
        dependencies: *mut CUgraphNode,
        edges: *const CUgraphEdgeData,
        count: usize,
        flags: c_uint,
    ) = cuStreamUpdateCaptureDependencies_v2(stream, dependencies, edges, count, flags);
}

runtime! {
    // Before CUDA 13, the status is followed by the identifier alone.
    [cudaStreamGetCaptureInfo_ptsz(stream)]
    fn cudaStreamGetCaptureInfo(
        stream: CUstream,
        status: *mut CUstreamCaptureStatus,
        id: *mut u64,
        graph: *mut CUgraph,
        dependencies: *mut *const CUgraphNode,
        edges: *mut *const CUgraphEdgeData,
        count: *mut usize,
    ) {
        enter()?;
        if MAJOR <= 12 {
            // SAFETY: the caller of the runtime function guarantees the arguments.
            return unsafe { cu!(cuStreamGetCaptureInfo(stream, status, id)) };
        }
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, edges, count)) }
    }

    // Since CUDA 13, the data of the edges precede their count.
    [cudaStreamUpdateCaptureDependencies_ptsz(stream)]
    fn cudaStreamUpdateCaptureDependencies(
        stream: CUstream,
        dependencies: *mut CUgraphNode,
        first: usize,
        second: usize,
        third: c_uint,
    ) {
        enter()?;
        if MAJOR <= 12 {
            let flags = second as c_uint;
            // SAFETY: the caller of the runtime function guarantees the arguments.
            return unsafe { cu!(cuStreamUpdateCaptureDependencies(stream, dependencies, first, flags)) };
        }
        let edges = std::ptr::with_exposed_provenance(first);
        // SAFETY: the caller of the runtime function guarantees the arguments.
        unsafe { cu!(cuStreamUpdateCaptureDependencies_v2(stream, dependencies, edges, second, third)) }
    }
}

forward_without_context! {
    unsafe fn cudaGraphGetNodes(graph: CUgraph, nodes: *mut CUgraphNode, count: *mut usize)
        = cuGraphGetNodes(graph, nodes, count);
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
        let mut stream = CUstream::default();
        let mut flags = 9;
        let mut priority = 9;
        let mut ids = [0_u64; 2];
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
    fn captured_host_function_runs_with_each_launch() {
        let _turn = simulate();
        let counter = AtomicU32::new(0);
        let data = (&raw const counter).cast_mut().cast();
        let mut stream = CUstream::default();
        let mut graph = CUgraph::default();
        let mut executable = CUgraphExec::default();
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
