//! Memory of a host NUMA node: pinned buffers, mappings, pools, and the location of managed memory.

#[cfg(target_os = "linux")]
use curium_driver::Function;
use curium_driver::{DeviceAttribute, DevicePointer, Result, call};
use curium_memory::virtual_memory::{AddressRange, Granularity, PhysicalMemory, PhysicalOptions};
use curium_memory::{
    DeviceBuffer, MemoryAccess, MemoryAdvice, MemoryLocation, MemoryPool, PinnedBuffer,
    PoolOptions, Resource, UnifiedBuffer,
};
#[cfg(target_os = "linux")]
use curium_sim::{Config, Fault};
#[cfg(target_os = "linux")]
use curium_sys::CUresult;
#[cfg(target_os = "linux")]
use curium_tests::on_simulator;
use curium_tests::{TestDriver, on_driver};

/// Runs a test with the NUMA node closest to the device, if the device supports memory there.
fn on_node(can: DeviceAttribute<bool>, test: impl Fn(&TestDriver, u32)) {
    on_driver(|driver| {
        let device = driver.device();
        let node = device
            .attribute(DeviceAttribute::HOST_NUMA_ID)
            .expect("a device has this attribute");
        let can = device.attribute(can).expect("a device has this attribute");
        match node.filter(|_| can) {
            Some(node) => test(driver, node),
            // Systems without files in memory cannot show memory of a node to the host at addresses of the device.
            None => assert!(
                driver.simulator().is_none() || cfg!(not(target_os = "linux")),
                "the simulator has a node"
            ),
        }
    });
}

fn location(node: u32) -> MemoryLocation {
    MemoryLocation::HostNuma(node.try_into().expect("nodes are few"))
}

/// Fills bytes on the device and waits.
fn fill(test: &TestDriver, pointer: DevicePointer<u8>, value: u8, bytes: usize) -> Result<()> {
    let stream = test.stream();
    // SAFETY: the memory is live with this size, and the stream is synchronized before the memory is freed.
    unsafe {
        call!(
            test.driver(),
            cuMemsetD8Async(pointer.as_raw(), value, bytes, stream.as_raw())
        )
    }?;
    stream.synchronize()
}

#[test]
fn pinned_buffer_of_a_node_is_copied_from_and_to_like_any_other() {
    on_node(
        DeviceAttribute::HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
        |test, node| {
            let (context, stream) = (test.context(), test.stream());
            let mut pinned = PinnedBuffer::<u32>::zeroed_on_node(&context, 3000, node)
                .expect("the node has memory");
            assert_eq!(pinned[..], [0; 3000]);
            pinned[2999] = 7;
            let buffer = DeviceBuffer::from_slice(&stream, &pinned).expect("memory suffices");
            pinned.fill(1);
            buffer
                .copy_to_slice(&mut pinned)
                .expect("the lengths are equal");
            assert_eq!((pinned[0], pinned[2999]), (0, 7));
            pinned.close().expect("nothing uses the memory");
        },
    );
}

#[test]
fn pinned_buffer_of_a_node_that_there_is_not_is_an_error_that_names_it() {
    on_driver(|test| {
        for node in [4095, u32::MAX] {
            let error = PinnedBuffer::<u32>::zeroed_on_node(&test.context(), 1, node)
                .expect_err("there is no such node");
            assert!(
                error.to_string().contains(&format!("NUMA node {node}")),
                "{error}"
            );
        }
    });
}

#[cfg(target_os = "linux")]
#[test]
fn pinned_buffer_of_a_node_whose_memory_cannot_be_unmapped_is_given_back() {
    on_simulator(Config::new(), |test, simulator| {
        let pinned = PinnedBuffer::<u8>::zeroed_on_node(&test.context(), 10, 0)
            .expect("the node has memory");
        simulator
            .inject(Fault::on(Function::cuMemUnmap).returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM));
        let (pinned, error) = pinned
            .close()
            .expect_err("the injected fault occurs")
            .into_parts();
        assert_eq!(error.function(), Some(Function::cuMemUnmap));
        assert_eq!(pinned[..], [0; 10]);
        test.assert_calls(Function::cuMemUnmap, 1, || drop(pinned));
    });
}

#[test]
fn memory_of_a_node_is_mapped_for_the_host_and_the_device() {
    on_node(
        DeviceAttribute::HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
        |test, node| {
            let options = PhysicalOptions::new(location(node));
            let bytes = options
                .granularity(test.driver(), Granularity::Minimum)
                .expect("there is a granularity");
            let memory = PhysicalMemory::with_options(test.driver(), bytes, &options)
                .expect("the node has memory");
            assert_eq!(
                memory.options().expect("the driver records it").location,
                location(node)
            );
            let range = AddressRange::reserve(test.driver(), bytes).expect("there are addresses");
            let mapping = range.map(0, &memory).expect("the range is free");
            let users = [location(node), MemoryLocation::from(&test.device())];
            mapping
                .set_accesses(&users.map(|user| (user, MemoryAccess::ReadWrite)))
                .expect("both reach the node");
            fill(test, mapping.as_pointer(), 6, bytes).expect("the device may use it");
            let last: *const u8 = std::ptr::with_exposed_provenance(
                mapping.as_pointer().as_raw() as usize + bytes - 1,
            );
            // SAFETY: the host may read the mapping, which ends after this byte, and the device has completed its work on
            // it.
            assert_eq!(unsafe { last.read() }, 6);
        },
    );
}

#[test]
fn pool_of_a_node_gives_memory_that_the_host_and_the_device_use() {
    on_node(
        DeviceAttribute::HOST_NUMA_MEMORY_POOLS_SUPPORTED,
        |test, node| {
            let options = PoolOptions::new(location(node));
            let pool =
                MemoryPool::with_options(test.driver(), &options).expect("there are such pools");
            pool.set_access(&test.device(), MemoryAccess::ReadWrite)
                .expect("the device has access to the memory of the node");
            let stream = test.stream();
            let pointer = pool
                .allocate(&stream, 4096, 256)
                .expect("the node has memory");
            stream.synchronize().expect("the stream works");
            fill(test, pointer, 5, 4096).expect("the device may use it");
            let bytes: *const [u8; 4096] =
                std::ptr::with_exposed_provenance(pointer.as_raw() as usize);
            // SAFETY: the memory has these bytes at the host's address too, and the device has finished with it.
            assert_eq!(unsafe { bytes.read() }, [5; 4096]);
            // SAFETY: the memory was allocated from this pool with this size and alignment, and is not in use.
            unsafe { pool.deallocate(&stream, pointer, 4096, 256) }
                .expect("the memory can be freed");
            stream.synchronize().expect("the stream works");
        },
    );
}

#[test]
fn pool_of_a_node_that_there_is_not_is_an_error_that_names_it() {
    on_driver(|test| {
        let options = PoolOptions::new(MemoryLocation::HostNuma(4095));
        let error =
            MemoryPool::with_options(test.driver(), &options).expect_err("there is no such node");
        assert!(error.to_string().contains("NUMA node 4095"), "{error}");
    });
}

#[test]
fn managed_memory_is_prefetched_to_a_numa_node_and_prefers_it() {
    on_node(DeviceAttribute::CONCURRENT_MANAGED_ACCESS, |test, node| {
        let stream = test.stream();
        let buffer = UnifiedBuffer::<u8>::zeroed(&stream, 64 << 10).expect("memory suffices");
        buffer
            .advise(.., MemoryAdvice::PreferredLocation(location(node)))
            .expect("it can be advised");
        buffer
            .prefetch(&stream, .., location(node))
            .expect("it can be prefetched");
        stream.synchronize().expect("the stream works");
        let attributes = buffer.range_attributes(..).expect("the range exists");
        // Drivers accept the advice, but some of CUDA 13.0 do not report the node afterwards; none reported another
        // location.
        for told in [
            attributes.preferred_location,
            attributes.last_prefetch_location,
        ] {
            assert!(told.is_none_or(|told| told == location(node)), "{told:?}");
        }
        buffer
            .prefetch(&stream, .., MemoryLocation::HostNumaCurrent)
            .expect("this thread is on a node");
        assert_eq!(
            buffer.host_view().expect("nothing writes")[..],
            vec![0; 64 << 10]
        );
        let error = buffer
            .prefetch(&stream, .., MemoryLocation::HostNuma(4095))
            .expect_err("there is no such node");
        assert!(error.to_string().contains("NUMA node 4095"), "{error}");
    });
}
