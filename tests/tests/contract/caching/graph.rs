//! Private pools: memory that graphs reuse at every launch.

use std::ptr;

use curium_driver::AsRawStream as _;
use curium_driver::{Stream, call};
use curium_memory::Resource;
use curium_sys::{CUgraph, CUstreamCaptureMode};
use curium_tests::{TestDriver, TestResult, driver_test};

use super::block::Block;
use super::caching;

const BYTES: usize = 3 << 20;

/// Returns the graph of the work that `work` enqueues on a stream, captured in the global mode.
pub(super) fn captured(stream: &Stream, work: impl FnOnce()) -> TestResult<CUgraph> {
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
    // SAFETY: the stream is live.
    unsafe {
        call!(
            stream.driver(),
            cuStreamBeginCapture_v2(stream.as_raw(), mode)
        )
    }?;
    work();
    let mut graph = ptr::null_mut();
    // SAFETY: the stream is live, and the address is valid for writes of a graph handle.
    unsafe {
        call!(
            stream.driver(),
            cuStreamEndCapture(stream.as_raw(), &raw mut graph)
        )
    }?;
    Ok(graph)
}

/// Enqueues a copy of the first bytes of one block to another on their stream.
fn copy(to: &Block<'_>, from: &Block<'_>) {
    let stream = from.stream;
    // SAFETY: both blocks have this many bytes and are used on this stream.
    unsafe {
        call!(
            stream.driver(),
            cuMemcpyDtoDAsync_v2(to.address(), from.address(), to.bytes, stream.as_raw())
        )
    }
    .expect("copy failed");
}

/// Memory freed by a graph is not reused while its pool exists.
#[driver_test]
fn graph_memory_is_not_reused_while_its_pool_exists(test: &TestDriver) -> TestResult {
    let resource = caching(test)?;
    let stream = test.stream();
    let pool = resource.private_pool()?;
    let result = Block::new(&pool, &stream, 4096);
    let mut address = 0;
    let graph = captured(&stream, || {
        let first = Block::new(&pool, &stream, BYTES);
        address = first.address();
        first.fill(1);
        drop(first);
        let second = Block::new(&pool, &stream, BYTES);
        assert_eq!(
            second.address(),
            address,
            "memory freed in a capture is reused in it"
        );
        second.fill(2);
        copy(&result, &second);
    })?;
    pool.trim(&stream, 0)?;
    let other = Block::new(&resource, &stream, BYTES);
    assert_ne!(other.address(), address);
    other.fill(9);
    let mut executable = ptr::null_mut();
    let instantiate = || {
        // SAFETY: the graph is live, the address is valid for writes of an executable graph handle,
        // and the context is current.
        unsafe {
            call!(
                stream.driver(),
                cuGraphInstantiateWithFlags(&raw mut executable, graph, 0)
            )
        }
    };
    let instantiated = stream.context().scoped(instantiate)?;
    instantiated?;
    for _ in 0..2 {
        result.fill(0);
        // SAFETY: the executable is live, and its memory belongs to the pool.
        unsafe { call!(stream.driver(), cuGraphLaunch(executable, stream.as_raw())) }?;
        assert!(result.holds(2));
    }
    assert!(other.holds(9));
    // SAFETY: the executable is live, and its launches are done.
    unsafe { call!(stream.driver(), cuGraphExecDestroy(executable)) }?;
    // SAFETY: the graph is live.
    unsafe { call!(stream.driver(), cuGraphDestroy(graph)) }?;
    Ok(())
}
