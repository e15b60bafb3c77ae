//! Deallocation of every kind of memory: during a capture of other code, at the second attempt, and
//! as a counted leak if every attempt fails.

use std::any::Any;
use std::sync::Arc;
use std::thread;

use curium_driver::AsRawStream as _;
use curium_driver::{Function, Graph, Stream, call};
use curium_memory::{
    Array, ArrayFlags, ArrayShape, BorrowedBuffer, DeviceBuffer, DeviceVec, Managed, MappedBuffer,
    MipmappedArray, Pinned, PinnedBuffer, PinnedFlags, PitchedBuffer, RegisterFlags, Registered,
    Surface, SyncAlloc, Texture, TextureOptions, UnifiedBuffer, copy,
};
use curium_sim::Fault;
use curium_sys::{CUstreamCaptureMode, CUstreamCaptureStatus};
use curium_tests::{Gate, TestDriver, TestResult, driver_test, uses_cuda};

use super::{CODE, leaking, stream};

/// Memory, with its name and size in bytes.
type NamedMemory = (&'static str, u64, Box<dyn Any + Send>);

/// Memory of every kind that is freed by a synchronous call.
fn every_kind(stream: &Stream) -> TestResult<Vec<NamedMemory>> {
    let context = stream.context();
    let shape = ArrayShape::new_2d(16, 16);
    let pinned = PinnedBuffer::<u8>::zeroed(context, 4096, PinnedFlags::empty())?;
    let mapped = MappedBuffer::<u8>::zeroed(stream, 4096)?;
    let unified = UnifiedBuffer::<u8>::zeroed(stream, 4096)?;
    let pitched = PitchedBuffer::<u8>::zeroed(stream, 64, 4)?;
    let pitched_bytes = 4 * pitched.pitch_bytes() as u64;
    let array = Array::<f32>::new(stream, shape, ArrayFlags::empty())?;
    let levels = MipmappedArray::<f32>::new(stream, shape, 3, ArrayFlags::empty())?;
    let mut vector = DeviceVec::<u8>::with_max_len(stream, 8 << 20)?;
    vector.extend_from_slice(&[1; 100])?;
    let vector_bytes = vector.capacity() as u64;
    let sync = DeviceBuffer::<u8, _>::zeroed_in(stream, 4096, SyncAlloc)?;
    let managed = DeviceBuffer::<u8, _>::zeroed_in(stream, 4096, Managed)?;
    let host = DeviceBuffer::<u8, _>::zeroed_in(stream, 4096, Pinned)?;
    let owner = DeviceBuffer::<u8, _>::zeroed_in(stream, 4096, SyncAlloc)?;
    // SAFETY: the owner has this memory until it is dropped, and is not used otherwise.
    let borrowed = unsafe { BorrowedBuffer::<u8, _>::new(stream, owner.as_pointer(), 4096, owner) };
    Ok(vec![
        ("BorrowedBuffer", 4096, Box::new(borrowed?)),
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
    ])
}

/// Handles of every kind that a failing destruction leaves to a second attempt, with their names.
fn handles(stream: &Stream) -> TestResult<Vec<(&'static str, Box<dyn Any + Send>)>> {
    let shape = ArrayShape::new_2d(16, 16);
    let array = Array::<f32>::new(stream, shape, ArrayFlags::SURFACE)?;
    let array = Arc::new(array);
    let texture = Texture::from_array(&array, &TextureOptions::new())?;
    let surface = Surface::new(&array)?;
    let slice: &'static mut [u8] = Box::leak(Box::new([0; 4096]));
    // SAFETY: the slice lives until the process exits.
    let registered = unsafe { Registered::new(stream.context(), slice, RegisterFlags::empty()) }?;
    Ok(vec![
        ("Texture", Box::new(texture)),
        ("Surface", Box::new(surface)),
        ("Registered", Box::new(registered)),
    ])
}

#[test]
fn second_attempt_destroys_handles() -> TestResult {
    let reports = leaking(|driver, simulator| -> TestResult {
        for (name, handle) in handles(&stream(driver)?)? {
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
        Ok(())
    })?;
    assert_eq!(
        reports.len(),
        usize::from(!uses_cuda()),
        "only the first error of the registration: {reports:?}"
    );
    Ok(())
}

/// Memory is freed while other code captures in the global mode and the capture stays valid.
#[driver_test]
fn free_keeps_foreign_global_captures_valid(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let captured = test.stream();
    let memory = every_kind(&stream)?
        .into_iter()
        .map(|(name, _, memory)| (name, memory));
    let memory: Vec<_> = memory.chain(handles(&stream)?).collect();
    stream.synchronize()?;
    let driver = test.driver();
    let raw = captured.as_raw();
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
    // SAFETY: the stream is live, and captures nothing.
    unsafe { call!(driver, cuStreamBeginCapture_v2(raw, mode)) }?;
    thread::scope(|scope| -> TestResult<_> {
        for (name, memory) in memory {
            let dropped = scope.spawn(move || drop(memory)).join();
            dropped.unwrap_or_else(|_| panic!("dropping a {name} panics"));
            let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
            // SAFETY: the stream is live, and `status` is valid for writes.
            unsafe { call!(driver, cuStreamIsCapturing(raw, &raw mut status)) }?;
            assert_eq!(
                status,
                CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE,
                "after a {name}"
            );
        }
        Ok(())
    })?;
    let mut graph = std::ptr::null_mut();
    // SAFETY: the stream is live, and `graph` is valid for writes.
    unsafe { call!(driver, cuStreamEndCapture(raw, &raw mut graph)) }?;
    // SAFETY: the graph is live, and is not used again.
    unsafe { call!(driver, cuGraphDestroy(graph)) }?;
    Ok(())
}

/// Memory of every kind whose wait or free fails is counted and reported once.
#[test]
fn failed_frees_are_counted() -> TestResult {
    let kinds = std::cell::Cell::new(0);
    leaking(|driver, _| {
        kinds.set(every_kind(&stream(driver)?)?.len());
        Ok(())
    })?;
    for index in 0..kinds.get() {
        let reports = leaking(|driver, simulator| -> TestResult {
            let mut memory = every_kind(&stream(driver)?)?;
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
            Ok(())
        })?;
        assert_eq!(reports.len(), 1, "{reports:?}");
    }
    Ok(())
}

/// Memory of every kind is freed by the second attempt.
#[test]
fn second_attempt_frees_all() -> TestResult {
    let reports = leaking(|driver, simulator| -> TestResult {
        let stream = stream(driver)?;
        for (name, _, memory) in every_kind(&stream)? {
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
        Ok(())
    })?;
    assert!(reports.is_empty(), "{reports:?}");
    Ok(())
}

/// Pinned memory of a copy that cannot be waited for is counted.
#[test]
fn pinned_copy_is_counted() -> TestResult {
    let reports = leaking(|driver, simulator| -> TestResult {
        let stream = stream(driver)?;
        let source = PinnedBuffer::<u8>::zeroed(stream.context(), 4096, PinnedFlags::empty())?;
        let mut target = DeviceBuffer::<u8>::zeroed(&stream, 4096)?;
        let gate = Gate::on(&stream);
        let pending = copy::upload(&stream, source, &mut target)?;
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
        Ok(())
    })?;
    assert_eq!(reports.len(), usize::from(!uses_cuda()), "{reports:?}");
    Ok(())
}

#[test]
fn unwaitable_graph_is_counted() -> TestResult {
    let reports = leaking(|driver, simulator| -> TestResult {
        let stream = stream(driver)?;
        let mut device = DeviceBuffer::<u8, _>::zeroed_in(&stream, 4096, SyncAlloc)?;
        let mut unified = UnifiedBuffer::<u8>::zeroed(&stream, 8192)?;
        let mut mapped = MappedBuffer::<u8>::zeroed(&stream, 16384)?;
        let graph = Graph::capture(stream.context(), |scope| {
            device.on_mut(scope).fill(1)?;
            unified.on_mut(scope).fill(1)?;
            mapped.on_mut(scope).fill(1)
        })?;
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
        Ok(())
    })?;
    if !uses_cuda() {
        assert_eq!(reports.len(), 3, "{reports:?}");
    }
    Ok(())
}
