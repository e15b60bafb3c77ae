//! Deallocation of every kind of memory: during a capture of other code, at the second attempt, and as a counted leak if
//! every attempt fails.

use std::any::Any;
use std::sync::Arc;
use std::thread;

use curium_driver::{Function, Graph, Stream, call};
use curium_memory::{
    Array, ArrayFlags, ArrayShape, BorrowedBuffer, DeviceBuffer, DeviceVec, Managed, MappedBuffer,
    MipmappedArray, Pinned, PinnedBuffer, PinnedFlags, PitchedBuffer, RegisterFlags, Registered,
    Surface, SyncAlloc, Texture, TextureOptions, UnifiedBuffer, copy,
};
use curium_sim::Fault;
use curium_sys::{CUstreamCaptureMode, CUstreamCaptureStatus};
use curium_tests::{Gate, on_driver, uses_cuda};

use super::{CODE, leaking, stream};

/// Memory of every kind that is freed by a synchronous call, with its name and size in bytes.
fn one_of_every_kind(stream: &Stream) -> Vec<(&'static str, u64, Box<dyn Any + Send>)> {
    let (context, shape) = (stream.context(), ArrayShape::new_2d(16, 16));
    let pinned =
        PinnedBuffer::<u8>::zeroed(context, 4096, PinnedFlags::empty()).expect("memory suffices");
    let mapped = MappedBuffer::<u8>::zeroed(stream, 4096).expect("memory suffices");
    let unified = UnifiedBuffer::<u8>::zeroed(stream, 4096).expect("memory suffices");
    let pitched = PitchedBuffer::<u8>::zeroed(stream, 64, 4).expect("memory suffices");
    let pitched_bytes = 4 * pitched.pitch_bytes() as u64;
    let array = Array::<f32>::new(stream, shape, ArrayFlags::empty()).expect("memory suffices");
    let levels =
        MipmappedArray::<f32>::new(stream, shape, 3, ArrayFlags::empty()).expect("memory suffices");
    let mut vector = DeviceVec::<u8>::with_max_len(stream, 8 << 20).expect("there are addresses");
    vector
        .extend_from_slice(&[1; 100])
        .expect("memory suffices");
    let vector_bytes = vector.capacity() as u64;
    let sync = DeviceBuffer::<u8, _>::zeroed_in(stream, 4096, SyncAlloc).expect("memory suffices");
    let managed = DeviceBuffer::<u8, _>::zeroed_in(stream, 4096, Managed).expect("memory suffices");
    let host = DeviceBuffer::<u8, _>::zeroed_in(stream, 4096, Pinned).expect("memory suffices");
    let owner = DeviceBuffer::<u8, _>::zeroed_in(stream, 4096, SyncAlloc).expect("memory suffices");
    // SAFETY: the owner has this memory until it is dropped, and is not used otherwise.
    let borrowed = unsafe { BorrowedBuffer::<u8, _>::new(stream, owner.as_pointer(), 4096, owner) };
    vec![
        (
            "BorrowedBuffer",
            4096,
            Box::new(borrowed.expect("the memory is aligned")),
        ),
        ("PinnedBuffer", 4096, Box::new(pinned)),
        ("MappedBuffer", 4096, Box::new(mapped)),
        ("UnifiedBuffer", 4096, Box::new(unified)),
        ("PitchedBuffer", pitched_bytes, Box::new(pitched)),
        ("Array", 1024, Box::new(array)),
        ("MipmappedArray", 1024 + 256 + 64, Box::new(levels)),
        ("DeviceVec", vector_bytes, Box::new(vector)),
        ("SyncAlloc", 4096, Box::new(sync)),
        ("Managed", 4096, Box::new(managed)),
        ("Pinned", 4096, Box::new(host)),
    ]
}

/// Handles of every kind that a failing destruction leaves to a second attempt, with their names.
fn handles(stream: &Stream) -> Vec<(&'static str, Box<dyn Any + Send>)> {
    let shape = ArrayShape::new_2d(16, 16);
    let array = Array::<f32>::new(stream, shape, ArrayFlags::SURFACE).expect("memory suffices");
    let array = Arc::new(array);
    let texture =
        Texture::from_array(&array, &TextureOptions::new()).expect("the array can be read");
    let surface = Surface::new(&array).expect("the array can be written");
    let slice: &'static mut [u8] = Box::leak(Box::new([0; 4096]));
    // SAFETY: the slice lives until the process exits.
    let registered = unsafe { Registered::new(stream.context(), slice, RegisterFlags::empty()) };
    let registered = registered.expect("the slice is not registered");
    vec![
        ("Texture", Box::new(texture)),
        ("Surface", Box::new(surface)),
        ("Registered", Box::new(registered)),
    ]
}

#[test]
fn handles_are_destroyed_by_a_second_attempt() {
    let reports = leaking(|driver, simulator| {
        for (name, handle) in handles(&stream(driver)) {
            let ends = [
                Function::cuTexObjectDestroy,
                Function::cuSurfObjectDestroy,
                Function::cuMemHostUnregister,
            ];
            ends.into_iter()
                .for_each(|function| simulator.inject(Fault::on(function).returns(CODE)));
            let calls = || {
                ends.map(|function| simulator.calls(function))
                    .iter()
                    .sum::<u64>()
            };
            let before = calls();
            drop(handle);
            assert_eq!(calls() - before, 2, "{name}");
            simulator.clear_faults();
        }
    });
    assert_eq!(
        reports.len(),
        usize::from(!uses_cuda()),
        "only the first error of the registration: {reports:?}"
    );
}

#[test]
fn memory_is_freed_while_other_code_captures_in_the_global_mode_and_the_capture_stays_valid() {
    on_driver(|test| {
        let (stream, captured) = (test.stream(), test.stream());
        let memory = one_of_every_kind(&stream)
            .into_iter()
            .map(|(name, _, memory)| (name, memory));
        let memory: Vec<_> = memory.chain(handles(&stream)).collect();
        stream.synchronize().expect("the fills succeed");
        let (driver, raw) = (test.driver(), captured.as_raw());
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
        // SAFETY: the stream is live, and captures nothing.
        unsafe { call!(driver, cuStreamBeginCapture_v2(raw, mode)) }.expect("a capture can begin");
        thread::scope(|scope| {
            for (name, memory) in memory {
                let dropped = scope.spawn(move || drop(memory)).join();
                dropped.unwrap_or_else(|_| panic!("dropping a {name} panics"));
                let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
                // SAFETY: the stream is live, and `status` is valid for writes.
                unsafe { call!(driver, cuStreamIsCapturing(raw, &raw mut status)) }
                    .expect("a stream can be queried");
                assert_eq!(
                    status,
                    CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE,
                    "after a {name}"
                );
            }
        });
        let mut graph = std::ptr::null_mut();
        // SAFETY: the stream is live, and `graph` is valid for writes.
        unsafe { call!(driver, cuStreamEndCapture(raw, &raw mut graph)) }
            .expect("the capture is valid");
        // SAFETY: the graph is live, and is not used again.
        unsafe { call!(driver, cuGraphDestroy(graph)) }.expect("a graph can be destroyed");
    });
}

#[test]
fn memory_of_every_kind_whose_wait_or_free_fails_is_counted_and_reported_once() {
    let kinds = std::cell::Cell::new(0);
    leaking(|driver, _| kinds.set(one_of_every_kind(&stream(driver)).len()));
    for index in 0..kinds.get() {
        let reports = leaking(|driver, simulator| {
            let mut memory = one_of_every_kind(&stream(driver));
            let (name, bytes, memory) = memory.swap_remove(index);
            for function in [
                Function::cuStreamSynchronize,
                Function::cuStreamQuery,
                Function::cuMemFreeHost,
            ] {
                simulator.inject(Fault::on(function).always().returns(CODE));
            }
            drop(memory);
            simulator.clear_faults();
            let leaked = driver.leaked_memory();
            assert_eq!((leaked.allocations, leaked.bytes), (1, bytes), "{name}");
        });
        assert_eq!(reports.len(), 1, "{reports:?}");
    }
}

#[test]
fn memory_of_every_kind_is_freed_by_the_second_attempt() {
    let reports = leaking(|driver, simulator| {
        let stream = stream(driver);
        for (name, _, memory) in one_of_every_kind(&stream) {
            for function in [
                Function::cuStreamSynchronize,
                Function::cuStreamQuery,
                Function::cuMemFreeHost,
            ] {
                simulator.inject(Fault::on(function).returns(CODE));
            }
            drop(memory);
            simulator.clear_faults();
            assert_eq!(driver.leaked_memory().allocations, 0, "{name}");
        }
    });
    assert!(reports.is_empty(), "{reports:?}");
}

#[test]
fn pinned_memory_of_a_copy_that_cannot_be_waited_for_is_counted() {
    let reports = leaking(|driver, simulator| {
        let stream = stream(driver);
        let source = PinnedBuffer::<u8>::zeroed(stream.context(), 4096, PinnedFlags::empty())
            .expect("memory suffices");
        let mut target = DeviceBuffer::<u8>::zeroed(&stream, 4096).expect("memory suffices");
        let gate = Gate::on(&stream);
        let pending = copy::upload(&stream, source, &mut target).expect("the lengths are equal");
        simulator.inject(
            Fault::on(Function::cuEventSynchronize)
                .always()
                .returns(CODE),
        );
        drop(pending);
        simulator.clear_faults();
        assert_eq!(
            simulator.calls(Function::cuMemFreeHost),
            0,
            "the memory is in use"
        );
        assert_eq!(
            (
                driver.leaked_memory().allocations,
                driver.leaked_memory().bytes
            ),
            (1, 4096)
        );
        gate.open();
    });
    assert_eq!(reports.len(), usize::from(!uses_cuda()), "{reports:?}");
}

#[test]
fn memory_left_to_a_graph_whose_wait_fails_is_counted() {
    let reports = leaking(|driver, simulator| {
        let stream = stream(driver);
        let mut device =
            DeviceBuffer::<u8, _>::zeroed_in(&stream, 4096, SyncAlloc).expect("memory suffices");
        let mut unified = UnifiedBuffer::<u8>::zeroed(&stream, 8192).expect("memory suffices");
        let mut mapped = MappedBuffer::<u8>::zeroed(&stream, 16384).expect("memory suffices");
        let graph = Graph::capture(stream.context(), |scope| {
            device.as_slice_mut().fill_on(scope, 1)?;
            unified.as_slice_mut().fill_on(scope, 1)?;
            mapped.as_slice_mut().fill_on(scope, 1)
        });
        let graph = graph.expect("fills can be captured");
        drop((device, unified, mapped));
        assert_eq!(
            driver.leaked_memory().allocations,
            0,
            "the graph keeps them"
        );
        for function in [Function::cuStreamSynchronize, Function::cuStreamQuery] {
            simulator.inject(Fault::on(function).always().returns(CODE));
        }
        drop(graph);
        simulator.clear_faults();
        let leaked = driver.leaked_memory();
        assert_eq!((leaked.allocations, leaked.bytes), (3, 4096 + 8192 + 16384));
    });
    if !uses_cuda() {
        assert_eq!(reports.len(), 3, "{reports:?}");
    }
}
