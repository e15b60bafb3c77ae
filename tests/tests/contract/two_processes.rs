//! Memory, pools and events shared by two processes, on two devices if there are two: the first
//! process uses the first device, and the second process the last.
#![cfg(all(target_os = "linux", not(miri)))]

use std::os::fd::AsFd;

use curium_driver::AsRawStream as _;
use curium_driver::sys::CUdeviceptr;
use curium_driver::{Context, Event, EventFlags, MemoryHandleTypes, Stream, call};
use curium_interop::IpcEventHandle;
use curium_interop::{IpcMemory, IpcMemoryHandle};
use curium_memory::virtual_memory::{AddressRange, Granularity, PhysicalMemory, PhysicalOptions};
use curium_memory::{
    Mapping, MemoryAccess, MemoryPool, PoolMemory, PoolOptions, PoolPointerHandle, Resource,
    SyncAlloc,
};
use curium_sim::Config;
use curium_tests::{
    Gate, Peer, TestDriver, TestResult, in_two_processes, on_driver, on_simulator, uses_cuda,
};

/// The size of the shared memory in bytes.
const BYTES: usize = 1 << 20;

/// Runs the two halves of a test in two processes, each with its own driver.
fn with_drivers(
    first: impl FnOnce(&TestDriver, &Context, &mut Peer) -> TestResult,
    second: impl FnOnce(&TestDriver, &Context, &mut Peer) -> TestResult,
) -> TestResult {
    in_two_processes(
        |peer| on_two_devices(|driver| first(driver, &driver.context(), peer)),
        |peer| {
            on_two_devices(|driver| {
                let devices = driver.driver().devices()?;
                let last = devices.last().ok_or("no device")?;
                second(driver, &last.primary_context()?, peer)
            })
        },
    )
}

fn on_two_devices(test: impl FnOnce(&TestDriver) -> TestResult) -> TestResult {
    if uses_cuda() {
        on_driver(test)
    } else {
        on_simulator(Config::new().with_devices(2), |driver, _| test(driver))
    }
}

fn stream(context: &Context) -> TestResult<Stream> {
    Ok(context.stream()?)
}

/// Enqueues a fill of shared memory on a stream.
fn fill(stream: &Stream, address: CUdeviceptr, value: u8) -> TestResult {
    // SAFETY: the memory has these bytes in every test, and lives until the stream is synchronized.
    unsafe {
        call!(
            stream.driver(),
            cuMemsetD8Async(address, value, BYTES, stream.as_raw())
        )
    }?;
    Ok(())
}

/// Asserts that all bytes of shared memory have one value, in stream order.
#[track_caller]
fn expect(stream: &Stream, address: CUdeviceptr, value: u8) -> TestResult {
    let mut bytes = vec![0_u8; BYTES];
    let target = bytes.as_mut_ptr().cast();
    // SAFETY: both sides have these bytes, and the stream is synchronized.
    unsafe {
        call!(
            stream.driver(),
            cuMemcpyDtoHAsync_v2(target, address, BYTES, stream.as_raw())
        )
    }?;
    stream.synchronize()?;
    assert!(
        bytes.iter().all(|byte| *byte == value),
        "{:?}… are not all {value}",
        &bytes[..8]
    );
    Ok(())
}

/// Allocates memory in the first process, and sends its IPC handle to the second.
fn allocate_shared(stream: &Stream, peer: &mut Peer) -> TestResult<CUdeviceptr> {
    let pointer = SyncAlloc.allocate(stream, BYTES, 256)?;
    let name = IpcMemoryHandle::of(stream.context(), pointer)?;
    peer.send(&name.to_bytes());
    Ok(pointer.as_raw())
}

fn free(stream: &Stream, address: CUdeviceptr) -> TestResult {
    // SAFETY: the memory was allocated from this resource with this size and alignment, and the
    // other process has closed it.
    unsafe {
        SyncAlloc.deallocate(
            stream,
            curium_driver::DevicePointer::from_raw(address),
            BYTES,
            256,
        )
    }?;
    Ok(())
}

#[test]
fn both_processes_write_memory() -> TestResult {
    fn first(_: &TestDriver, context: &Context, peer: &mut Peer) -> TestResult {
        let stream = stream(context)?;
        let address = allocate_shared(&stream, peer)?;
        fill(&stream, address, 4)?;
        stream.synchronize()?;
        peer.meet();
        // The other process reads and writes between the two meetings.
        peer.meet();
        expect(&stream, address, 9)?;
        free(&stream, address)?;
        Ok(())
    }

    fn second(_: &TestDriver, context: &Context, peer: &mut Peer) -> TestResult {
        let stream = stream(context)?;
        let name = IpcMemoryHandle::from_bytes(peer.receive());
        peer.meet();
        let memory = IpcMemory::open(context, name)?;
        let address = memory.as_pointer().as_raw();
        expect(&stream, address, 4)?;
        fill(&stream, address, 9)?;
        stream.synchronize()?;
        memory.close()?;
        peer.meet();
        Ok(())
    }

    with_drivers(first, second)
}

#[test]
fn stream_waits_for_a_process() -> TestResult {
    fn first(_: &TestDriver, context: &Context, peer: &mut Peer) -> TestResult {
        let stream = stream(context)?;
        let address = allocate_shared(&stream, peer)?;
        fill(&stream, address, 1)?;
        stream.synchronize()?;
        let flags = EventFlags::INTERPROCESS | EventFlags::DISABLE_TIMING;
        let event = Event::new(context, flags)?;
        peer.send(&IpcEventHandle::from_event(&event)?.to_bytes());
        let gate = Gate::on(&stream);
        fill(&stream, address, 2)?;
        event.record(&stream)?;
        peer.meet();
        // The other process has enqueued its work after the event.
        peer.meet();
        gate.open();
        stream.synchronize()?;
        peer.meet();
        free(&stream, address)?;
        Ok(())
    }

    fn second(_: &TestDriver, context: &Context, peer: &mut Peer) -> TestResult {
        let stream = stream(context)?;
        let memory = IpcMemory::open(context, IpcMemoryHandle::from_bytes(peer.receive()))?;
        let event = IpcEventHandle::from_bytes(peer.receive()).open(context)?;
        peer.meet();
        assert!(!event.is_finished()?, "the other process blocks its stream");
        stream.wait_event(&event)?;
        let copy = curium_memory::DeviceBuffer::<u8>::zeroed(&stream, BYTES)?;
        let to = copy.as_pointer().as_raw();
        let from = memory.as_pointer().as_raw();
        // SAFETY: both sides have these bytes and live until the stream is synchronized.
        unsafe {
            call!(
                stream.driver(),
                cuMemcpyAsync(to, from, BYTES, stream.as_raw())
            )
        }?;
        assert!(!stream.is_finished()?, "the stream waits for the event");
        peer.meet();
        event.synchronize()?;
        assert!(event.is_finished()?);
        assert!(copy.to_vec()?.iter().all(|byte| *byte == 2));
        drop(memory);
        peer.meet();
        Ok(())
    }

    with_drivers(first, second)
}

/// A pool is imported by its descriptor and its memory by name.
#[test]
fn pool_is_imported() -> TestResult {
    fn first(driver: &TestDriver, context: &Context, peer: &mut Peer) -> TestResult {
        let stream = stream(context)?;
        let shared = MemoryHandleTypes::POSIX_FILE_DESCRIPTOR;
        let options = PoolOptions::new(context.device()).with_handle_types(shared);
        let pool = MemoryPool::with_options(driver.driver(), &options)?;
        let pointer = pool.allocate(&stream, BYTES, 256)?;
        fill(&stream, pointer.as_raw(), 6)?;
        stream.synchronize()?;
        peer.send_descriptor(pool.export_fd()?.as_fd());
        peer.send(&pool.export_pointer(pointer)?.to_bytes());
        peer.meet();
        expect(&stream, pointer.as_raw(), 7)?;
        // SAFETY: the memory was allocated from this pool with this size and alignment, and the
        // other process has closed it.
        unsafe { pool.deallocate(&stream, pointer, BYTES, 256) }?;
        stream.synchronize()?;
        Ok(())
    }

    fn second(driver: &TestDriver, context: &Context, peer: &mut Peer) -> TestResult {
        let stream = stream(context)?;
        let descriptor = peer.receive_descriptor();
        let pool = MemoryPool::import_fd(driver.driver(), descriptor.as_fd())?;
        pool.set_access(context.device(), MemoryAccess::ReadWrite)?;
        let name = PoolPointerHandle::from_bytes(peer.receive());
        let memory = pool.import_pointer(name)?;
        let address = memory.as_pointer().as_raw();
        expect(&stream, address, 6)?;
        fill(&stream, address, 7)?;
        stream.synchronize()?;
        PoolMemory::close(memory)?;
        peer.meet();
        Ok(())
    }

    with_drivers(first, second)
}

/// Maps memory for the device of a context.
fn map(context: &Context, memory: &PhysicalMemory) -> TestResult<Mapping> {
    let range = AddressRange::reserve(context.driver(), memory.byte_len())?;
    let mapping = range.map(0, memory)?;
    mapping.set_access(context.device(), MemoryAccess::ReadWrite)?;
    Ok(mapping)
}

#[test]
fn both_processes_map_memory() -> TestResult {
    fn first(driver: &TestDriver, context: &Context, peer: &mut Peer) -> TestResult {
        let stream = stream(context)?;
        let shared = MemoryHandleTypes::POSIX_FILE_DESCRIPTOR;
        let options = PhysicalOptions::new(context.device()).with_handle_types(shared);
        let bytes = options.granularity(driver.driver(), Granularity::Minimum)?;
        let bytes = bytes.max(BYTES);
        let memory = PhysicalMemory::with_options(driver.driver(), bytes, &options)?;
        let mapping = map(context, &memory)?;
        fill(&stream, mapping.as_pointer().as_raw(), 3)?;
        stream.synchronize()?;
        peer.send_descriptor(memory.export_fd()?.as_fd());
        peer.send(&(bytes as u64).to_le_bytes());
        drop(memory);
        peer.meet();
        expect(&stream, mapping.as_pointer().as_raw(), 5)?;
        Ok(())
    }

    fn second(driver: &TestDriver, context: &Context, peer: &mut Peer) -> TestResult {
        let stream = stream(context)?;
        let descriptor = peer.receive_descriptor();
        let bytes = usize::try_from(u64::from_le_bytes(peer.receive()))?;
        let memory = PhysicalMemory::import_fd(driver.driver(), descriptor.as_fd(), bytes)?;
        let mapping = map(context, &memory)?;
        expect(&stream, mapping.as_pointer().as_raw(), 3)?;
        fill(&stream, mapping.as_pointer().as_raw(), 5)?;
        stream.synchronize()?;
        peer.meet();
        Ok(())
    }

    with_drivers(first, second)
}
