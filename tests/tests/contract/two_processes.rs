//! Memory, pools and events shared by two processes, on two devices if there are two: the first process uses the first
//! device, and the second process the last.
#![cfg(all(target_os = "linux", not(miri)))]

use std::os::fd::AsFd;

use curium_driver::sys::CUdeviceptr;
use curium_driver::{Context, Event, EventFlags, IpcEventHandle, MemoryHandleTypes, Stream, call};
use curium_memory::virtual_memory::{AddressRange, Granularity, PhysicalMemory, PhysicalOptions};
use curium_memory::{
    IpcMemory, IpcMemoryHandle, Mapping, MemoryAccess, MemoryPool, PoolMemory, PoolOptions,
    PoolPointerHandle, Resource, SyncAlloc,
};
use curium_sim::Config;
use curium_tests::{Gate, Peer, TestDriver, in_two_processes, on_driver, on_simulator, uses_cuda};

/// The size of the shared memory in bytes.
const BYTES: usize = 1 << 20;

/// Runs the two halves of a test in two processes, each with its own driver.
fn with_drivers(
    name: &str,
    first: impl FnOnce(&TestDriver, &Context, &mut Peer),
    second: impl FnOnce(&TestDriver, &Context, &mut Peer),
) {
    let on_first = |peer: &mut Peer| {
        on_two_devices(|driver| first(driver, &driver.context(), peer));
    };
    let on_last = |peer: &mut Peer| {
        on_two_devices(|driver| {
            let devices = driver.driver().devices().expect("there are devices");
            let last = devices.last().expect("there is a device");
            second(
                driver,
                &last
                    .primary_context()
                    .expect("the device has a primary context"),
                peer,
            );
        });
    };
    in_two_processes(name, on_first, on_last);
}

fn on_two_devices(test: impl FnOnce(&TestDriver)) {
    if uses_cuda() {
        on_driver(test);
    } else {
        on_simulator(Config::new().with_devices(2), |driver, _| test(driver));
    }
}

fn stream(context: &Context) -> Stream {
    context.stream().expect("a stream can be created")
}

/// Enqueues a fill of shared memory on a stream.
fn fill(stream: &Stream, address: CUdeviceptr, value: u8) {
    // SAFETY: the memory has these bytes in every test, and lives until the stream is synchronized.
    unsafe {
        call!(
            stream.driver(),
            cuMemsetD8Async(address, value, BYTES, stream.as_raw())
        )
    }
    .expect("the memory can be filled");
}

/// Asserts that all bytes of shared memory have one value, in stream order.
#[track_caller]
fn expect(stream: &Stream, address: CUdeviceptr, value: u8) {
    let mut bytes = vec![0_u8; BYTES];
    let target = bytes.as_mut_ptr().cast();
    // SAFETY: both sides have these bytes, and the stream is synchronized.
    unsafe {
        call!(
            stream.driver(),
            cuMemcpyDtoHAsync_v2(target, address, BYTES, stream.as_raw())
        )
    }
    .expect("the memory can be read");
    stream.synchronize().expect("the stream works");
    assert!(
        bytes.iter().all(|byte| *byte == value),
        "{:?}… are not all {value}",
        &bytes[..8]
    );
}

/// Allocates memory in the first process, and sends its IPC handle to the second.
fn plain(stream: &Stream, peer: &mut Peer) -> CUdeviceptr {
    let pointer = SyncAlloc
        .allocate(stream, BYTES, 256)
        .expect("memory suffices");
    let name = IpcMemoryHandle::of(stream.context(), pointer).expect("the memory has a name");
    peer.send(&name.to_bytes());
    pointer.as_raw()
}

fn free(stream: &Stream, address: CUdeviceptr) {
    // SAFETY: the memory was allocated from this resource with this size and alignment, and the other process has
    // closed it.
    unsafe {
        SyncAlloc.deallocate(
            stream,
            curium_driver::DevicePointer::from_raw(address),
            BYTES,
            256,
        )
    }
    .expect("the memory can be freed");
}

#[test]
fn memory_is_written_by_both_processes() {
    let first = |_: &TestDriver, context: &Context, peer: &mut Peer| {
        let stream = stream(context);
        let address = plain(&stream, peer);
        fill(&stream, address, 4);
        stream.synchronize().expect("the stream works");
        peer.meet();
        peer.meet();
        expect(&stream, address, 9);
        free(&stream, address);
    };
    let second = |_: &TestDriver, context: &Context, peer: &mut Peer| {
        let stream = stream(context);
        let name = IpcMemoryHandle::from_bytes(peer.receive());
        peer.meet();
        let memory = IpcMemory::open(context, name).expect("the memory can be opened");
        let address = memory.as_pointer().as_raw();
        expect(&stream, address, 4);
        fill(&stream, address, 9);
        stream.synchronize().expect("the stream works");
        memory.close().expect("the memory can be closed");
        peer.meet();
    };
    with_drivers(
        "two_processes::memory_is_written_by_both_processes",
        first,
        second,
    );
}

#[test]
fn stream_waits_for_another_process() {
    let first = |_: &TestDriver, context: &Context, peer: &mut Peer| {
        let stream = stream(context);
        let address = plain(&stream, peer);
        fill(&stream, address, 1);
        stream.synchronize().expect("the stream works");
        let flags = EventFlags::INTERPROCESS | EventFlags::DISABLE_TIMING;
        let event = Event::new(context, flags).expect("events can be shared");
        peer.send(&event.ipc_handle().expect("the event has a name").to_bytes());
        let gate = Gate::on(&stream);
        fill(&stream, address, 2);
        event.record(&stream).expect("the event can be recorded");
        peer.meet();
        // The other process has enqueued its work after the event.
        peer.meet();
        gate.open();
        stream.synchronize().expect("the stream works");
        peer.meet();
        free(&stream, address);
    };
    let second = |_: &TestDriver, context: &Context, peer: &mut Peer| {
        let stream = stream(context);
        let memory = IpcMemory::open(context, IpcMemoryHandle::from_bytes(peer.receive()))
            .expect("it can be opened");
        let event = Event::open_ipc(context, IpcEventHandle::from_bytes(peer.receive()))
            .expect("it can be opened");
        peer.meet();
        assert!(
            !event.is_finished().expect("the event can be queried"),
            "the other process blocks its stream"
        );
        stream.wait_event(&event).expect("the stream can wait");
        let mut seen =
            curium_memory::DeviceBuffer::<u8>::zeroed(&stream, BYTES).expect("memory suffices");
        let to = seen.as_slice_mut().as_pointer().as_raw();
        let from = memory.as_pointer().as_raw();
        // SAFETY: both sides have these bytes and live until the stream is synchronized.
        unsafe {
            call!(
                stream.driver(),
                cuMemcpyAsync(to, from, BYTES, stream.as_raw())
            )
        }
        .expect("it can be copied");
        assert!(
            !stream.is_finished().expect("the stream can be queried"),
            "the stream waits for the event"
        );
        peer.meet();
        event.synchronize().expect("the event occurs");
        assert!(event.is_finished().expect("the event can be queried"));
        assert!(
            seen.to_vec()
                .expect("the buffer can be read")
                .iter()
                .all(|byte| *byte == 2)
        );
        drop(memory);
        peer.meet();
    };
    with_drivers(
        "two_processes::stream_waits_for_another_process",
        first,
        second,
    );
}

/// A pool is imported by its descriptor and its memory by name.
#[test]
fn pool_is_imported_by_its_descriptor() {
    let first = |driver: &TestDriver, context: &Context, peer: &mut Peer| {
        let stream = stream(context);
        let shared = MemoryHandleTypes::POSIX_FILE_DESCRIPTOR;
        let options = PoolOptions::new(context.device()).with_handle_types(shared);
        let pool =
            MemoryPool::with_options(driver.driver(), &options).expect("there are such pools");
        let pointer = pool.allocate(&stream, BYTES, 256).expect("memory suffices");
        fill(&stream, pointer.as_raw(), 6);
        stream.synchronize().expect("the stream works");
        peer.send_descriptor(pool.export_fd().expect("the pool can be shared").as_fd());
        peer.send(
            &pool
                .export_pointer(pointer)
                .expect("the memory has a name")
                .to_bytes(),
        );
        peer.meet();
        expect(&stream, pointer.as_raw(), 7);
        // SAFETY: the memory was allocated from this pool with this size and alignment, and the other process has
        // closed it.
        unsafe { pool.deallocate(&stream, pointer, BYTES, 256) }.expect("the memory can be freed");
        stream.synchronize().expect("the stream works");
    };
    let second = |driver: &TestDriver, context: &Context, peer: &mut Peer| {
        let stream = stream(context);
        let descriptor = peer.receive_descriptor();
        let pool = MemoryPool::import_fd(driver.driver(), descriptor.as_fd())
            .expect("the allocation is from a pool");
        pool.set_access(context.device(), MemoryAccess::ReadWrite)
            .expect("the device has access to the pool");
        let name = PoolPointerHandle::from_bytes(peer.receive());
        let memory = pool
            .import_pointer(name)
            .expect("the memory is from this pool");
        let address = memory.as_pointer().as_raw();
        expect(&stream, address, 6);
        fill(&stream, address, 7);
        stream.synchronize().expect("the stream works");
        PoolMemory::close(memory).expect("the memory can be closed");
        peer.meet();
    };
    with_drivers(
        "two_processes::pool_is_imported_by_its_descriptor",
        first,
        second,
    );
}

/// Maps memory for the device of a context.
fn map(context: &Context, memory: &PhysicalMemory) -> Mapping {
    let range =
        AddressRange::reserve(context.driver(), memory.byte_len()).expect("there are addresses");
    let mapping = range.map(0, memory).expect("the range is free");
    mapping
        .set_access(context.device(), MemoryAccess::ReadWrite)
        .expect("the device has access to the memory");
    mapping
}

#[test]
fn physical_memory_is_mapped_in_both_processes() {
    let first = |driver: &TestDriver, context: &Context, peer: &mut Peer| {
        let stream = stream(context);
        let shared = MemoryHandleTypes::POSIX_FILE_DESCRIPTOR;
        let options = PhysicalOptions::new(context.device()).with_handle_types(shared);
        let bytes = options
            .granularity(driver.driver(), Granularity::Minimum)
            .expect("there is a granularity");
        let bytes = bytes.max(BYTES);
        let memory = PhysicalMemory::with_options(driver.driver(), bytes, &options)
            .expect("memory suffices");
        let mapping = map(context, &memory);
        fill(&stream, mapping.as_pointer().as_raw(), 3);
        stream.synchronize().expect("the stream works");
        peer.send_descriptor(
            memory
                .export_fd()
                .expect("the memory can be shared")
                .as_fd(),
        );
        peer.send(&(bytes as u64).to_le_bytes());
        drop(memory);
        peer.meet();
        expect(&stream, mapping.as_pointer().as_raw(), 5);
    };
    let second = |driver: &TestDriver, context: &Context, peer: &mut Peer| {
        let stream = stream(context);
        let descriptor = peer.receive_descriptor();
        let bytes = usize::try_from(u64::from_le_bytes(peer.receive())).expect("the size fits");
        let memory = PhysicalMemory::import_fd(driver.driver(), descriptor.as_fd(), bytes)
            .expect("it is a descriptor of memory");
        let mapping = map(context, &memory);
        expect(&stream, mapping.as_pointer().as_raw(), 3);
        fill(&stream, mapping.as_pointer().as_raw(), 5);
        stream.synchronize().expect("the stream works");
        peer.meet();
    };
    with_drivers(
        "two_processes::physical_memory_is_mapped_in_both_processes",
        first,
        second,
    );
}
