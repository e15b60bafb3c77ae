//! [`ExternalMemory`] on hardware: a driver imports the file descriptors of its own physical memory
//! as opaque ones.

use curium_driver::AsRawStream as _;
use curium_driver::{MemoryHandleTypes, call};
use curium_interop::external::{ExternalMemory, ExternalMemoryKind};
use curium_memory::MemoryAccess;
use curium_memory::virtual_memory::{AddressRange, Granularity, PhysicalMemory, PhysicalOptions};
use curium_tests::{TestResult, on_driver, skip, uses_cuda};

/// Imported memory is the memory of its descriptor and outlives it.
#[test]
fn memory_outlives_its_descriptor() -> TestResult {
    if !uses_cuda() {
        return skip("needs a GPU");
    }
    on_driver(|test| -> TestResult {
        let driver = test.driver();
        let device = test.device();
        let stream = test.stream();
        let options = PhysicalOptions::new(&device)
            .with_handle_types(MemoryHandleTypes::POSIX_FILE_DESCRIPTOR);
        let bytes = options.granularity(driver, Granularity::Minimum)?;
        let memory = PhysicalMemory::with_options(driver, bytes, &options)?;
        let descriptor = memory.export_fd()?;
        let imported = ExternalMemory::import_fd(
            &test.context(),
            descriptor,
            ExternalMemoryKind::Opaque,
            bytes as u64,
            false,
        )?;
        let buffer = imported.map(4, bytes as u64 - 4)?;
        let (imported, error) = imported
            .close()
            .expect_err("a buffer is in it")
            .into_parts();
        assert!(error.to_string().contains("still in use"), "{error}");

        let range = AddressRange::reserve(driver, bytes)?;
        let mapping = range.map(0, &memory)?;
        mapping.set_access(&device, MemoryAccess::ReadWrite)?;
        let mut seen = [0_u8; 8];
        for (address, value, count) in [
            (mapping.as_pointer(), 3, bytes),
            (buffer.as_pointer(), 9, bytes - 4),
        ] {
            // SAFETY: the memory has these bytes, and the stream is synchronized before the memory
            // is freed.
            unsafe {
                call!(
                    driver,
                    cuMemsetD8Async(address.as_raw(), value, count, stream.as_raw())
                )
            }?;
        }
        let target = seen.as_mut_ptr().cast();
        let address = mapping.as_pointer().as_raw();
        // SAFETY: both sides have eight bytes, and the stream is synchronized.
        unsafe {
            call!(
                driver,
                cuMemcpyDtoHAsync_v2(target, address, 8, stream.as_raw())
            )
        }?;
        stream.synchronize()?;
        assert_eq!(seen, [3, 3, 3, 3, 9, 9, 9, 9]);
        buffer.close()?;
        imported.close()?;
        Ok(())
    })?;
    Ok(())
}
