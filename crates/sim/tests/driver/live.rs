//! Live objects with their origins, and failed calls.

use crate::TestResult;
use std::ffi::c_void;
use std::ptr;

use curium_sim::{Config, LiveObject, Simulator};
use curium_sys::{CUdeviceptr, CUevent, CUgraph, CUresult, Function};

use crate::ptx::POKE;
use crate::support::{Fixture, cu, get, handle, ok};

/// Returns the live objects, except for the fixture's context.
fn remaining(simulator: &Simulator) -> Vec<LiveObject> {
    let mut objects = simulator.live_objects();
    assert_eq!(
        objects.len() as u64,
        simulator.live_handles().total(),
        "{objects:?}"
    );
    objects.retain(|object| object.kind != "context");
    objects
}

#[test]
fn live_objects_have_an_origin() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    let context = fixture.context.addr();
    let stream = fixture.stream(0);
    let memory = fixture.alloc(100);
    let ordered: CUdeviceptr = get!(api, cuMemAllocAsync(_, 200, stream));
    let event: CUevent = handle!(api, cuEventCreate(_, 0));
    let graph: CUgraph = handle!(api, cuGraphCreate(_, 0));
    let module = handle!(api, cuModuleLoadData(_, POKE.as_ptr().cast()));
    let pinned: *mut c_void = handle!(api, cuMemHostAlloc(_, 300, 0));
    let texts: Vec<String> = remaining(&fixture.simulator)
        .iter()
        .map(ToString::to_string)
        .collect();
    let stream_number = stream.addr();
    let event_number = event.addr();
    let expected = [
        format!("stream {stream_number:#x} in context {context:#x}, made by cuStreamCreate"),
        format!(
            "device allocation of 100 bytes at {memory:#x} in context {context:#x}, made by cuMemAlloc_v2"
        ),
        format!(
            "device allocation of 200 bytes at {ordered:#x} in context {context:#x}, made by cuMemAllocAsync \
             on stream {stream_number:#x}"
        ),
        format!("event {event_number:#x} in context {context:#x}, made by cuEventCreate"),
        format!("graph {:#x}, made by cuGraphCreate", graph.addr()),
        format!(
            "module {:#x} in context {context:#x}, made by cuModuleLoadData",
            module.addr()
        ),
        format!(
            "host allocation of 300 bytes at {:#x} in context {context:#x}, made by cuMemHostAlloc",
            pinned.addr()
        ),
    ];
    assert_eq!(texts, expected);
    let summary = fixture.simulator.summary().to_string();
    assert!(
        expected
            .iter()
            .all(|line| summary.contains(&format!("\nleft {line}\n"))),
        "{summary}"
    );
    ok!(api, cuMemFreeAsync(ordered, stream));
    ok!(api, cuStreamSynchronize(stream));
    ok!(api, cuStreamDestroy_v2(stream));
    ok!(api, cuMemFree_v2(memory));
    ok!(api, cuEventDestroy_v2(event));
    ok!(api, cuGraphDestroy(graph));
    ok!(api, cuModuleUnload(module));
    ok!(api, cuMemFreeHost(pinned));
    assert!(remaining(&fixture.simulator).is_empty());
}

#[test]
fn live_virtual_memory_is_named() {
    if cfg!(not(target_os = "linux")) {
        return;
    }
    let fixture = Fixture::new();
    let address: CUdeviceptr = get!(fixture.api, cuMemAddressReserve(_, 2 << 20, 0, 0, 0));
    let texts: Vec<String> = remaining(&fixture.simulator)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        texts,
        [format!(
            "address range of 2097152 bytes at {address:#x}, made by cuMemAddressReserve"
        )]
    );
    ok!(fixture.api, cuMemAddressFree(address, 2 << 20));
    assert!(remaining(&fixture.simulator).is_empty());
}

#[inline(never)]
fn leak_stream(fixture: &Fixture) {
    fixture.stream(0);
}

#[test]
fn backtraces_on_request() {
    let fixture = Fixture::with(Config::new().with_backtraces(true));
    leak_stream(&fixture);
    let objects = remaining(&fixture.simulator);
    let [stream] = &objects[..] else {
        panic!("a stream is remaining: {objects:?}")
    };
    assert_eq!(
        (stream.kind, stream.made_by),
        ("stream", Some(Function::cuStreamCreate))
    );
    let text = stream.to_string();
    assert!(
        text.contains("\n    from ") && text.contains("leak_stream"),
        "{text}"
    );
    assert!(
        !text.contains("curium_sim::"),
        "frames of the simulator are of no use: {text}"
    );
    let fixture = Fixture::new();
    leak_stream(&fixture);
    assert!(
        remaining(&fixture.simulator)
            .iter()
            .all(|object| object.backtrace.is_none())
    );
}

/// A primary context originates from the call that revived it.
#[test]
fn primary_context_origin() -> TestResult {
    let simulator = Simulator::new(Config::new())?;
    let api = simulator.api();
    ok!(api, cuInit(0));
    let mut numbers = Vec::new();
    for _ in 0..2 {
        let context: curium_sys::CUcontext = handle!(api, cuDevicePrimaryCtxRetain(_, 0));
        let objects = simulator.live_objects();
        assert_eq!(
            objects[0].to_string(),
            format!(
                "context {:#x}, made by cuDevicePrimaryCtxRetain",
                context.addr()
            )
        );
        numbers.push(simulator.live_objects().len());
        ok!(api, cuDevicePrimaryCtxRelease_v2(0));
        assert!(simulator.live_objects().is_empty());
    }
    assert_eq!(numbers, [1, 1]);
    Ok(())
}

/// Failing calls are counted by function and code.
#[test]
fn failing_calls_are_counted() {
    let fixture = Fixture::new();
    for _ in 0..2 {
        assert_eq!(
            cu!(fixture.api, cuMemFree_v2(12)),
            CUresult::CUDA_ERROR_INVALID_VALUE
        );
    }
    assert_eq!(
        cu!(fixture.api, cuStreamDestroy_v2(ptr::null_mut())),
        CUresult::CUDA_ERROR_INVALID_HANDLE
    );
    let summary = fixture.simulator.summary();
    assert_eq!(summary.failures.len(), 2, "{:?}", summary.failures);
    let text = summary.to_string();
    assert!(
        text.contains("\nfailed cuMemFree_v2 with CUDA_ERROR_INVALID_VALUE: 2\n"),
        "{text}"
    );
    assert!(
        text.contains("\nfailed cuStreamDestroy_v2 with CUDA_ERROR_INVALID_HANDLE: 1\n"),
        "{text}"
    );
}
