//! Virtual memory: reserved addresses, physical memory, and mappings.

#[cfg(target_os = "linux")]
use std::os::fd::AsFd;

#[cfg(target_os = "linux")]
use curium_driver::AsRawStream as _;
use curium_driver::{Driver, MemoryHandleTypes};
use curium_driver::{Error, Function, Result, call};
use curium_memory::virtual_memory::{
    AddressRange, Granularity, PhysicalMemory, PhysicalOptions, ReserveOptions,
};
use curium_memory::{Mapping, MemoryAccess, MemoryLocation};
use curium_sim::{Config, Fault, Simulator};
use curium_sys::CUresult;
use curium_tests::{
    TestDriver, TestResult, driver_test, on_simulator, shared_handle_types, simulator_test,
};

const INVALID: Option<CUresult> = Some(CUresult::CUDA_ERROR_INVALID_VALUE);

fn granularity(test: &TestDriver) -> TestResult<usize> {
    let options = PhysicalOptions::new(&test.device());
    Ok(options.granularity(test.driver(), Granularity::Minimum)?)
}

/// Returns a mapping that is accessible to the device.
fn mapped(test: &TestDriver, bytes: usize) -> TestResult<Mapping> {
    let range = AddressRange::reserve(test.driver(), bytes)?;
    let memory = PhysicalMemory::new(&test.device(), bytes)?;
    let mapping = range.map(0, &memory)?;
    mapping.set_access(&test.device(), MemoryAccess::ReadWrite)?;
    Ok(mapping)
}

/// Fills a mapping and waits.
fn fill(test: &TestDriver, mapping: &Mapping, value: u8) -> Result<()> {
    let stream = test.stream();
    let address = mapping.as_pointer().as_raw();
    let bytes = mapping.byte_len();
    // SAFETY: the mapping is live with this size, and the stream is synchronized before it ends.
    unsafe {
        call!(
            test.driver(),
            cuMemsetD8Async(address, value, bytes, stream.as_raw())
        )
    }?;
    stream.synchronize()
}

/// Returns the bytes starting at `offset`.
fn read(test: &TestDriver, mapping: &Mapping, offset: usize, bytes: usize) -> TestResult<Vec<u8>> {
    let mut values = vec![0_u8; bytes];
    let stream = test.stream();
    assert!(offset + bytes <= mapping.byte_len());
    let address = mapping.as_pointer().wrapping_add(offset).as_raw();
    let target = values.as_mut_ptr().cast();
    // SAFETY: both sides have these bytes, and the stream is synchronized.
    unsafe {
        call!(
            test.driver(),
            cuMemcpyDtoHAsync_v2(target, address, bytes, stream.as_raw())
        )
    }?;
    stream.synchronize()?;
    Ok(values)
}

/// Mapped memory is used at its address and outlives the other handles.
#[driver_test]
fn mapped_memory_outlives_its_handles(test: &TestDriver) -> TestResult {
    let bytes = 2 * granularity(test)?;
    let mapping = mapped(test, bytes)?;
    assert_eq!(
        (mapping.byte_len(), mapping.memory().byte_len()),
        (bytes, bytes)
    );
    fill(test, &mapping, 7)?;
    assert_eq!(read(test, &mapping, bytes - 3, 3)?, [7; 3]);
    Ok(())
}

#[driver_test]
fn driver_returns_memory_options(test: &TestDriver) -> TestResult {
    let device = test.device();
    let options = PhysicalOptions::new(&device).with_handle_types(shared_handle_types());
    let memory = PhysicalMemory::with_options(test.driver(), granularity(test)?, &options)?;
    let told = memory.options()?;
    assert_eq!(
        (told.location, told.handle_types),
        (MemoryLocation::from(&device), options.handle_types)
    );
    memory.close()?;
    Ok(())
}

#[driver_test]
fn access_is_none_until_it_is_granted(test: &TestDriver) -> TestResult {
    let device = test.device();
    let bytes = granularity(test)?;
    let range = AddressRange::reserve(test.driver(), bytes)?;
    let memory = PhysicalMemory::new(&device, bytes)?;
    let mapping = range.map(0, &memory)?;
    assert_eq!(mapping.access(&device)?, MemoryAccess::None);
    assert_eq!(
        fill(test, &mapping, 1)
            .expect_err("no device has access")
            .code(),
        INVALID
    );
    mapping.set_access(&device, MemoryAccess::ReadWrite)?;
    assert_eq!(mapping.access(&device)?, MemoryAccess::ReadWrite);
    fill(test, &mapping, 1)?;
    let error = mapping.set_accesses(&[]).expect_err("no location");
    assert!(matches!(error, Error::Argument(_)), "{error}");
    Ok(())
}

#[driver_test]
fn one_memory_at_two_addresses_holds_the_same_bytes(test: &TestDriver) -> TestResult {
    let bytes = granularity(test)?;
    let first = mapped(test, bytes)?;
    let range = AddressRange::reserve(test.driver(), bytes)?;
    let second = range.map(0, first.memory())?;
    second.set_access(&test.device(), MemoryAccess::ReadWrite)?;
    fill(test, &first, 9)?;
    assert_eq!(read(test, &second, 0, 4)?, [9; 4]);
    let retained = first.retain_memory()?;
    drop(first);
    assert_eq!(retained.byte_len(), bytes);
    assert_eq!(read(test, &second, 0, 4)?, [9; 4]);
    Ok(())
}

/// A range keeps its alignment and refuses what does not fit.
#[driver_test]
fn range_is_aligned_and_bounds_checked(test: &TestDriver) -> TestResult {
    let driver = test.driver();
    let bytes = granularity(test)?;
    let options = ReserveOptions::new().with_alignment(64 << 20);
    let range = AddressRange::reserve_with(driver, 2 * bytes, options)?;
    assert!(
        range.as_pointer().as_raw().is_multiple_of(64 << 20),
        "{range:?}"
    );
    assert_eq!(range.byte_len(), 2 * bytes);
    let memory = PhysicalMemory::new(&test.device(), 2 * bytes)?;
    for offset in [1, bytes, 2 * bytes, usize::MAX] {
        let error = range
            .map(offset, &memory)
            .expect_err("the memory does not fit");
        assert!(matches!(error, Error::Argument(_)), "{error}");
        assert!(
            error
                .to_string()
                .contains(&format!("{} bytes at offset {offset}", 2 * bytes)),
            "{error}"
        );
    }
    for (error, part) in [
        (
            AddressRange::reserve(driver, 0).expect_err("no bytes"),
            "zero length",
        ),
        (
            AddressRange::reserve_with(driver, bytes, ReserveOptions::new().with_alignment(3))
                .expect_err("not 3"),
            "alignment is not a power of two (3)",
        ),
        (
            PhysicalMemory::new(&test.device(), 0).expect_err("no bytes"),
            "zero length",
        ),
    ] {
        assert!(
            matches!(error, Error::Argument(_)) && error.to_string().contains(part),
            "{error}"
        );
    }
    Ok(())
}

/// A size that is not a multiple is an error with the granularity.
#[driver_test]
fn misaligned_size_reports_the_granularity(test: &TestDriver) -> TestResult {
    let granularity = granularity(test)?;
    let error = PhysicalMemory::new(&test.device(), granularity + 1).expect_err("an odd size");
    assert_eq!(
        (error.code(), error.function()),
        (INVALID, Some(Function::cuMemCreate))
    );
    let text = error.to_string();
    assert!(
        text.contains(&format!("{} bytes of device 0", granularity + 1)),
        "{text}"
    );
    assert!(
        text.contains(&format!(
            "multiple of the granularity of {granularity} bytes"
        )),
        "{text}"
    );
    Ok(())
}

/// Addresses are mapped once and again when they are free.
#[driver_test]
fn addresses_are_mapped_once_at_a_time(test: &TestDriver) -> TestResult {
    let bytes = granularity(test)?;
    let range = AddressRange::reserve(test.driver(), bytes)?;
    let memory = PhysicalMemory::new(&test.device(), bytes)?;
    let mapping = range.map(0, &memory)?;
    let error = range.map(0, &memory).expect_err("the range is taken");
    assert_eq!(
        (error.code(), error.function()),
        (INVALID, Some(Function::cuMemMap))
    );
    mapping.close()?;
    range.map(0, &memory)?;
    Ok(())
}

#[driver_test]
fn close_unmaps_the_remaining_memory(test: &TestDriver) -> TestResult {
    let bytes = granularity(test)?;
    let range = AddressRange::reserve(test.driver(), bytes)?;
    let memory = PhysicalMemory::new(&test.device(), bytes)?;
    let mapping = range.map(0, &memory)?;
    let (range, error) = range.close().expect_err("something is mapped").into_parts();
    assert!(error.to_string().contains("1 mappings"), "{error}");
    let (memory, error) = memory
        .close()
        .expect_err("the memory is mapped")
        .into_parts();
    assert!(error.to_string().contains("1 other owners"), "{error}");
    drop(mapping);
    test.assert_calls(Function::cuMemAddressFree, 1, || -> TestResult<_> {
        range.close()?;
        Ok(())
    })?;
    test.assert_calls(Function::cuMemRelease, 1, || -> TestResult<_> {
        memory.close()?;
        Ok(())
    })?;
    Ok(())
}

#[simulator_test]
fn mapping_that_the_driver_does_not_end_is_given_back(
    test: &TestDriver,
    simulator: &Simulator,
) -> TestResult {
    let mapping = mapped(test, granularity(test)?)?;
    simulator
        .inject(Fault::on(Function::cuMemUnmap).returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM));
    let (mapping, error) = mapping
        .close()
        .expect_err("the injected fault occurs")
        .into_parts();
    assert_eq!(error.function(), Some(Function::cuMemUnmap));
    fill(test, &mapping, 3)?;
    Ok(())
}

#[cfg(target_os = "linux")]
#[driver_test]
fn exported_memory_is_the_same_where_it_is_imported(test: &TestDriver) -> TestResult {
    let driver = test.driver();
    let device = test.device();
    let bytes = granularity(test)?;
    let options =
        PhysicalOptions::new(&device).with_handle_types(MemoryHandleTypes::POSIX_FILE_DESCRIPTOR);
    let memory = PhysicalMemory::with_options(driver, bytes, &options)?;
    let descriptor = memory.export_fd()?;
    let imported = PhysicalMemory::import_fd(driver, descriptor.as_fd(), bytes)?;
    drop(descriptor);
    let map = |driver: &Driver, memory: &PhysicalMemory| -> TestResult<_> {
        let range = AddressRange::reserve(driver, bytes)?;
        let mapping = range.map(0, memory)?;
        mapping.set_access(&device, MemoryAccess::ReadWrite)?;
        Ok(mapping)
    };
    let first = map(driver, &memory)?;
    let second = map(driver, &imported)?;
    fill(test, &first, 5)?;
    assert_eq!(read(test, &second, bytes - 1, 1)?, [5]);
    Ok(())
}

/// Memory that was not made to be shared is not exported.
#[cfg(target_os = "linux")]
#[driver_test]
fn unshared_memory_is_not_exported(test: &TestDriver) -> TestResult {
    let memory = PhysicalMemory::new(&test.device(), granularity(test)?)?;
    let error = memory
        .export_fd()
        .expect_err("the memory belongs to this process");
    assert_eq!(
        error.function(),
        Some(Function::cuMemExportToShareableHandle)
    );
    Ok(())
}

#[simulator_test]
fn drivers_do_not_share_memory(test: &TestDriver, _: &Simulator) -> TestResult {
    on_simulator(Config::new(), |other, _| -> TestResult {
        let bytes = granularity(test)?;
        let range = AddressRange::reserve(test.driver(), bytes)?;
        let memory = PhysicalMemory::new(&other.device(), bytes)?;
        let error = range
            .map(0, &memory)
            .expect_err("the memory belongs to another driver");
        assert!(matches!(error, Error::Argument(_)), "{error}");
        Ok(())
    })?;
    Ok(())
}

pub(crate) mod operations {
    #[cfg(target_os = "linux")]
    use std::os::fd::AsFd;

    use curium_driver::Result;
    use curium_memory::virtual_memory::{
        FabricHandle, Granularity, PhysicalOptions, ReserveOptions,
    };
    use curium_memory::{AddressRange, Mapping, MemoryAccess, MemoryLocation, PhysicalMemory};
    use curium_tests::shared_handle_types;

    use crate::operations::{Fixture, Operation, Operations, boxed, made};

    const OPERATIONS: &[Operation] = &[
        ("PhysicalOptions::granularity", |fixture| {
            made(granularity(fixture)?)
        }),
        ("AddressRange::reserve", |fixture| {
            made(AddressRange::reserve(
                &fixture.driver,
                granularity(fixture)?,
            )?)
        }),
        ("AddressRange::map", |fixture| made(map(fixture)?)),
        ("AddressRange::close", |fixture| {
            let range = AddressRange::reserve(&fixture.driver, granularity(fixture)?)?;
            range.close().map_err(|returned| returned.error).map(boxed)
        }),
        ("PhysicalMemory::new", |fixture| made(memory(fixture)?)),
        ("PhysicalMemory::options", |fixture| {
            made(memory(fixture)?.options()?)
        }),
        #[cfg(target_os = "linux")]
        ("PhysicalMemory::export_fd", |fixture| {
            made(memory(fixture)?.export_fd()?)
        }),
        #[cfg(target_os = "linux")]
        ("PhysicalMemory::import_fd", |fixture| {
            let memory = memory(fixture)?;
            let descriptor = memory.export_fd()?;
            made(PhysicalMemory::import_fd(
                &fixture.driver,
                descriptor.as_fd(),
                memory.byte_len(),
            )?)
        }),
        ("PhysicalMemory::close", |fixture| {
            memory(fixture)?
                .close()
                .map_err(|returned| returned.error)
                .map(boxed)
        }),
        ("Mapping::set_access", |fixture| {
            made(map(fixture)?.set_access(&fixture.device, MemoryAccess::ReadWrite)?)
        }),
        ("Mapping::access", |fixture| {
            made(map(fixture)?.access(&fixture.device)?)
        }),
        ("Mapping::retain_memory", |fixture| {
            made(map(fixture)?.retain_memory()?)
        }),
        ("Mapping::close", |fixture| {
            let memory = memory(fixture)?;
            let range = AddressRange::reserve(&fixture.driver, memory.byte_len())?;
            range.map(0, &memory)?.close()?;
            made((range, memory))
        }),
        ("AddressRange::reserve_with", |fixture| {
            made(AddressRange::reserve_with(
                &fixture.driver,
                granularity(fixture)?,
                ReserveOptions::new(),
            )?)
        }),
        ("PhysicalMemory::with_options", |fixture| {
            made(memory(fixture)?)
        }),
        ("Mapping::set_accesses", |fixture| {
            let mapping = map(fixture)?;
            let location = MemoryLocation::from(&fixture.device);
            made(mapping.set_accesses(&[(location, MemoryAccess::ReadWrite)])?)
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }

    const SOLITARY: &[Operation] = &[
        ("PhysicalMemory::export_fabric", |fixture| {
            made(memory(fixture)?.export_fabric()?)
        }),
        ("PhysicalMemory::import_fabric", |fixture| {
            let handle = FabricHandle::from_bytes([1; 64]);
            made(PhysicalMemory::import_fabric(
                &fixture.driver,
                handle,
                granularity(fixture)?,
            )?)
        }),
    ];

    inventory::submit! { Operations::Solitary(SOLITARY) }

    pub(crate) fn map(fixture: &Fixture) -> Result<Mapping> {
        let memory = memory(fixture)?;
        AddressRange::reserve(&fixture.driver, memory.byte_len())?.map(0, &memory)
    }

    fn granularity(fixture: &Fixture) -> Result<usize> {
        options(fixture).granularity(&fixture.driver, Granularity::Minimum)
    }

    fn memory(fixture: &Fixture) -> Result<PhysicalMemory> {
        PhysicalMemory::with_options(&fixture.driver, granularity(fixture)?, &options(fixture))
    }

    fn options(fixture: &Fixture) -> PhysicalOptions {
        PhysicalOptions::new(&fixture.device).with_handle_types(shared_handle_types())
    }
}
