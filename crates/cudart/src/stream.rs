//! Streams, and graphs captured from them.

use std::ffi::{c_int, c_uint, c_void};

use curium_sys::{
    CUevent, CUgraph, CUgraphExec, CUgraphNode, CUhostFn, CUstream, CUstreamCallback, CUstreamCaptureMode,
    CUstreamCaptureStatus,
};

use crate::properties::MAJOR;
use crate::state::enter;
use crate::{cu, runtime};

runtime! {
    fn cudaStreamCreate(place: *mut CUstream) {
        enter()?;
        cu!(cuStreamCreate(place, 0))
    }

    fn cudaStreamCreateWithFlags(place: *mut CUstream, flags: c_uint) {
        enter()?;
        cu!(cuStreamCreate(place, flags))
    }

    fn cudaStreamCreateWithPriority(place: *mut CUstream, flags: c_uint, priority: c_int) {
        enter()?;
        cu!(cuStreamCreateWithPriority(place, flags, priority))
    }

    fn cudaStreamDestroy(stream: CUstream) {
        enter()?;
        cu!(cuStreamDestroy_v2(stream))
    }

    fn cudaStreamSynchronize(stream: CUstream) {
        enter()?;
        cu!(cuStreamSynchronize(stream))
    }

    fn cudaStreamQuery(stream: CUstream) {
        enter()?;
        cu!(cuStreamQuery(stream))
    }

    fn cudaStreamWaitEvent(stream: CUstream, event: CUevent, flags: c_uint) {
        enter()?;
        cu!(cuStreamWaitEvent(stream, event, flags))
    }

    fn cudaStreamGetPriority(stream: CUstream, priority: *mut c_int) {
        enter()?;
        cu!(cuStreamGetPriority(stream, priority))
    }

    fn cudaStreamGetFlags(stream: CUstream, flags: *mut c_uint) {
        enter()?;
        cu!(cuStreamGetFlags(stream, flags))
    }

    fn cudaStreamGetId(stream: CUstream, id: *mut u64) {
        enter()?;
        cu!(cuStreamGetId(stream, id))
    }

    fn cudaStreamAddCallback(stream: CUstream, callback: CUstreamCallback, data: *mut c_void, flags: c_uint) {
        enter()?;
        cu!(cuStreamAddCallback(stream, callback, data, flags))
    }

    fn cudaLaunchHostFunc(stream: CUstream, function: CUhostFn, data: *mut c_void) {
        enter()?;
        cu!(cuLaunchHostFunc(stream, function, data))
    }

    fn cudaStreamBeginCapture(stream: CUstream, mode: c_uint) {
        enter()?;
        cu!(cuStreamBeginCapture_v2(stream, CUstreamCaptureMode(mode)))
    }

    fn cudaStreamEndCapture(stream: CUstream, graph: *mut CUgraph) {
        enter()?;
        cu!(cuStreamEndCapture(stream, graph))
    }

    fn cudaStreamIsCapturing(stream: CUstream, status: *mut CUstreamCaptureStatus) {
        enter()?;
        cu!(cuStreamIsCapturing(stream, status))
    }

    fn cudaThreadExchangeStreamCaptureMode(mode: *mut CUstreamCaptureMode) {
        enter()?;
        cu!(cuThreadExchangeStreamCaptureMode(mode))
    }

    fn cudaGraphGetNodes(graph: CUgraph, nodes: *mut CUgraphNode, count: *mut usize) {
        cu!(cuGraphGetNodes(graph, nodes, count))
    }

    fn cudaGraphUpload(executable: CUgraphExec, stream: CUstream) {
        enter()?;
        cu!(cuGraphUpload(executable, stream))
    }

    fn cudaGraphCreate(graph: *mut CUgraph, flags: c_uint) {
        enter()?;
        cu!(cuGraphCreate(graph, flags))
    }

    // Up to CUDA 11, output pointers for a node and a log follow the graph; later versions have flags there.
    fn cudaGraphInstantiate(place: *mut CUgraphExec, graph: CUgraph, flags: u64) {
        enter()?;
        cu!(cuGraphInstantiateWithFlags(place, graph, if MAJOR <= 11 { 0 } else { flags }))
    }

    fn cudaGraphInstantiateWithFlags(place: *mut CUgraphExec, graph: CUgraph, flags: u64) {
        enter()?;
        cu!(cuGraphInstantiateWithFlags(place, graph, flags))
    }

    fn cudaGraphLaunch(executable: CUgraphExec, stream: CUstream) {
        enter()?;
        cu!(cuGraphLaunch(executable, stream))
    }

    fn cudaGraphExecDestroy(executable: CUgraphExec) {
        enter()?;
        cu!(cuGraphExecDestroy(executable))
    }

    fn cudaGraphDestroy(graph: CUgraph) {
        enter()?;
        cu!(cuGraphDestroy(graph))
    }
}
