//! [`ExternalMemory`] on hardware: a driver imports the file descriptors of its own physical memory as opaque ones.

use curium_driver::{MemoryHandleTypes, call};
use curium_memory::MemoryAccess;
use curium_memory::external::{ExternalMemory, ExternalMemoryKind};
use curium_memory::virtual_memory::{AddressRange, Granularity, PhysicalMemory, PhysicalOptions};
use curium_tests::{on_driver, uses_cuda};

#[test]
fn imported_memory_is_the_memory_of_its_descriptor_and_outlives_it() {
    if !uses_cuda() {
        return;
    }
    on_driver(|test| {
        let (driver, device, stream) = (test.driver(), test.device(), test.stream());
        let options = PhysicalOptions::new(&device)
            .with_handle_types(MemoryHandleTypes::POSIX_FILE_DESCRIPTOR);
        let bytes = options
            .granularity(driver, Granularity::Minimum)
            .expect("the device has a granularity");
        let memory =
            PhysicalMemory::with_options(driver, bytes, &options).expect("memory suffices");
        let descriptor = memory.export_fd().expect("the memory can be shared");
        let imported = ExternalMemory::import_fd(
            &test.context(),
            descriptor,
            ExternalMemoryKind::Opaque,
            bytes as u64,
            false,
        );
        let imported = imported.expect("it is a descriptor of memory");
        let buffer = imported
            .map(4, bytes as u64 - 4)
            .expect("the memory has these bytes");
        let (imported, error) = imported
            .close()
            .expect_err("a buffer is in it")
            .into_parts();
        assert!(error.to_string().contains("still in use"), "{error}");

        let range = AddressRange::reserve(driver, bytes).expect("there are addresses");
        let mapping = range.map(0, &memory).expect("the range is free");
        mapping
            .set_access(&device, MemoryAccess::ReadWrite)
            .expect("a device may use its own memory");
        let mut seen = [0_u8; 8];
        for (address, value, count) in [
            (mapping.as_pointer(), 3, bytes),
            (buffer.as_pointer(), 9, bytes - 4),
        ] {
            // SAFETY: the memory has these bytes, and the stream is synchronized before the memory is freed.
            unsafe {
                call!(
                    driver,
                    cuMemsetD8Async(address.as_raw(), value, count, stream.as_raw())
                )
            }
            .expect("the memory can be filled");
        }
        let (target, address) = (seen.as_mut_ptr().cast(), mapping.as_pointer().as_raw());
        // SAFETY: both sides have eight bytes, and the stream is synchronized.
        unsafe {
            call!(
                driver,
                cuMemcpyDtoHAsync_v2(target, address, 8, stream.as_raw())
            )
        }
        .expect("it can be read");
        stream.synchronize().expect("the stream works");
        assert_eq!(seen, [3, 3, 3, 3, 9, 9, 9, 9]);
        buffer.close().expect("nothing uses it");
        imported.close().expect("the pool is empty");
    });
}
