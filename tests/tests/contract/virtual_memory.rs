//! Virtual memory: reserved addresses, physical memory, and mappings.

#[cfg(target_os = "linux")]
use std::os::fd::AsFd;

#[cfg(target_os = "linux")]
use curium_driver::{Driver, MemoryHandleTypes};
use curium_driver::{Error, Function, Result, call};
use curium_memory::virtual_memory::{
    AddressRange, Granularity, PhysicalMemory, PhysicalOptions, ReserveOptions,
};
use curium_memory::{Mapping, MemoryAccess, MemoryLocation};
use curium_sim::{Config, Fault};
use curium_sys::CUresult;
use curium_tests::{TestDriver, on_driver, on_simulator, shared_handle_types};

const INVALID: Option<CUresult> = Some(CUresult::CUDA_ERROR_INVALID_VALUE);

fn granularity(test: &TestDriver) -> usize {
    let options = PhysicalOptions::new(&test.device());
    options
        .granularity(test.driver(), Granularity::Minimum)
        .expect("the device has a granularity")
}

/// Returns a mapping that is accessible to the device.
fn mapped(test: &TestDriver, bytes: usize) -> Mapping {
    let range = AddressRange::reserve(test.driver(), bytes).expect("there are addresses");
    let memory = PhysicalMemory::new(&test.device(), bytes).expect("memory suffices");
    let mapping = range.map(0, &memory).expect("the range is free");
    mapping
        .set_access(&test.device(), MemoryAccess::ReadWrite)
        .expect("a device may use its own memory");
    mapping
}

/// Fills a mapping and waits.
fn fill(test: &TestDriver, mapping: &Mapping, value: u8) -> Result<()> {
    let stream = test.stream();
    let (address, bytes) = (mapping.as_pointer().as_raw(), mapping.byte_len());
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
fn read(test: &TestDriver, mapping: &Mapping, offset: usize, bytes: usize) -> Vec<u8> {
    let (mut values, stream) = (vec![0_u8; bytes], test.stream());
    assert!(offset + bytes <= mapping.byte_len());
    let (address, target) = (
        mapping.as_pointer().wrapping_add(offset).as_raw(),
        values.as_mut_ptr().cast(),
    );
    // SAFETY: both sides have these bytes, and the stream is synchronized.
    unsafe {
        call!(
            test.driver(),
            cuMemcpyDtoHAsync_v2(target, address, bytes, stream.as_raw())
        )
    }
    .expect("the memory can be read");
    stream.synchronize().expect("the stream works");
    values
}

#[test]
fn mapped_memory_is_used_at_its_address_and_outlives_the_other_handles() {
    on_driver(|test| {
        let bytes = 2 * granularity(test);
        let mapping = mapped(test, bytes);
        assert_eq!(
            (mapping.byte_len(), mapping.memory().byte_len()),
            (bytes, bytes)
        );
        fill(test, &mapping, 7).expect("the memory can be filled");
        assert_eq!(read(test, &mapping, bytes - 3, 3), [7; 3]);
    });
}

#[test]
fn options_of_memory_are_returned_by_the_driver() {
    on_driver(|test| {
        let device = test.device();
        let options = PhysicalOptions::new(&device).with_handle_types(shared_handle_types());
        let memory = PhysicalMemory::with_options(test.driver(), granularity(test), &options)
            .expect("memory suffices");
        let told = memory.options().expect("the memory has options");
        assert_eq!(
            (told.location, told.handle_types),
            (MemoryLocation::from(&device), options.handle_types)
        );
        memory.close().expect("the memory has no other owner");
    });
}

#[test]
fn access_is_none_until_it_is_granted() {
    on_driver(|test| {
        let (device, bytes) = (test.device(), granularity(test));
        let range = AddressRange::reserve(test.driver(), bytes).expect("there are addresses");
        let memory = PhysicalMemory::new(&device, bytes).expect("memory suffices");
        let mapping = range.map(0, &memory).expect("the range is free");
        assert_eq!(
            mapping.access(&device).expect("the device exists"),
            MemoryAccess::None
        );
        assert_eq!(
            fill(test, &mapping, 1)
                .expect_err("no device has access")
                .code(),
            INVALID
        );
        mapping
            .set_access(&device, MemoryAccess::ReadWrite)
            .expect("a device may use its own memory");
        assert_eq!(
            mapping.access(&device).expect("the device exists"),
            MemoryAccess::ReadWrite
        );
        fill(test, &mapping, 1).expect("the device has access now");
        let error = mapping.set_accesses(&[]).expect_err("no location");
        assert!(matches!(error, Error::Argument(_)), "{error}");
    });
}

#[test]
fn one_memory_at_two_addresses_holds_the_same_bytes() {
    on_driver(|test| {
        let bytes = granularity(test);
        let first = mapped(test, bytes);
        let range = AddressRange::reserve(test.driver(), bytes).expect("there are addresses");
        let second = range.map(0, first.memory()).expect("the range is free");
        second
            .set_access(&test.device(), MemoryAccess::ReadWrite)
            .expect("a device may use its own memory");
        fill(test, &first, 9).expect("the memory can be filled");
        assert_eq!(read(test, &second, 0, 4), [9; 4]);
        let retained = first.retain_memory().expect("memory is mapped there");
        drop(first);
        assert_eq!(retained.byte_len(), bytes);
        assert_eq!(read(test, &second, 0, 4), [9; 4]);
    });
}

#[test]
fn range_keeps_its_alignment_and_refuses_what_does_not_fit() {
    on_driver(|test| {
        let (driver, bytes) = (test.driver(), granularity(test));
        let options = ReserveOptions::new().with_alignment(64 << 20);
        let range =
            AddressRange::reserve_with(driver, 2 * bytes, options).expect("there are addresses");
        assert!(
            range.as_pointer().as_raw().is_multiple_of(64 << 20),
            "{range:?}"
        );
        assert_eq!(range.byte_len(), 2 * bytes);
        let memory = PhysicalMemory::new(&test.device(), 2 * bytes).expect("memory suffices");
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
    });
}

#[test]
fn size_that_is_not_a_multiple_is_an_error_with_the_granularity() {
    on_driver(|test| {
        let granularity = granularity(test);
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
    });
}

#[test]
fn addresses_are_mapped_once_and_again_when_they_are_free() {
    on_driver(|test| {
        let bytes = granularity(test);
        let range = AddressRange::reserve(test.driver(), bytes).expect("there are addresses");
        let memory = PhysicalMemory::new(&test.device(), bytes).expect("memory suffices");
        let mapping = range.map(0, &memory).expect("the range is free");
        let error = range.map(0, &memory).expect_err("the range is taken");
        assert_eq!(
            (error.code(), error.function()),
            (INVALID, Some(Function::cuMemMap))
        );
        mapping.close().expect("the mapping can be removed");
        range.map(0, &memory).expect("the range is free again");
    });
}

#[test]
fn close_unmaps_the_remaining_memory() {
    on_driver(|test| {
        let bytes = granularity(test);
        let range = AddressRange::reserve(test.driver(), bytes).expect("there are addresses");
        let memory = PhysicalMemory::new(&test.device(), bytes).expect("memory suffices");
        let mapping = range.map(0, &memory).expect("the range is free");
        let (range, error) = range.close().expect_err("something is mapped").into_parts();
        assert!(error.to_string().contains("1 mappings"), "{error}");
        let (memory, error) = memory
            .close()
            .expect_err("the memory is mapped")
            .into_parts();
        assert!(error.to_string().contains("1 other owners"), "{error}");
        drop(mapping);
        test.assert_calls(Function::cuMemAddressFree, 1, || {
            range.close().expect("nothing is mapped");
        });
        test.assert_calls(Function::cuMemRelease, 1, || {
            memory.close().expect("the memory has no other owner");
        });
    });
}

#[test]
fn mapping_that_the_driver_does_not_end_is_given_back() {
    on_simulator(Config::new(), |test, simulator| {
        let mapping = mapped(test, granularity(test));
        simulator
            .inject(Fault::on(Function::cuMemUnmap).returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM));
        let (mapping, error) = mapping
            .close()
            .expect_err("the injected fault occurs")
            .into_parts();
        assert_eq!(error.function(), Some(Function::cuMemUnmap));
        fill(test, &mapping, 3).expect("the mapping still exists");
    });
}

#[cfg(target_os = "linux")]
#[test]
fn exported_memory_is_the_same_where_it_is_imported() {
    on_driver(|test| {
        let (driver, device, bytes) = (test.driver(), test.device(), granularity(test));
        let options = PhysicalOptions::new(&device)
            .with_handle_types(MemoryHandleTypes::POSIX_FILE_DESCRIPTOR);
        let memory =
            PhysicalMemory::with_options(driver, bytes, &options).expect("memory suffices");
        let descriptor = memory.export_fd().expect("the memory can be shared");
        let imported = PhysicalMemory::import_fd(driver, descriptor.as_fd(), bytes)
            .expect("it is a descriptor of memory");
        drop(descriptor);
        let map = |driver: &Driver, memory: &PhysicalMemory| {
            let range = AddressRange::reserve(driver, bytes).expect("there are addresses");
            let mapping = range.map(0, memory).expect("the range is free");
            mapping
                .set_access(&device, MemoryAccess::ReadWrite)
                .expect("a device may use its own memory");
            mapping
        };
        let (here, there) = (map(driver, &memory), map(driver, &imported));
        fill(test, &here, 5).expect("the memory can be filled");
        assert_eq!(read(test, &there, bytes - 1, 1), [5]);
    });
}

#[cfg(target_os = "linux")]
#[test]
fn memory_that_was_not_made_to_be_shared_is_not_exported() {
    on_driver(|test| {
        let memory =
            PhysicalMemory::new(&test.device(), granularity(test)).expect("memory suffices");
        let error = memory
            .export_fd()
            .expect_err("the memory belongs to this process");
        assert_eq!(
            error.function(),
            Some(Function::cuMemExportToShareableHandle)
        );
    });
}

#[test]
fn memory_of_two_drivers_does_not_mix() {
    on_simulator(Config::new(), |test, _| {
        on_simulator(Config::new(), |other, _| {
            let bytes = granularity(test);
            let range = AddressRange::reserve(test.driver(), bytes).expect("there are addresses");
            let memory = PhysicalMemory::new(&other.device(), bytes).expect("memory suffices");
            let error = range
                .map(0, &memory)
                .expect_err("the memory belongs to another driver");
            assert!(matches!(error, Error::Argument(_)), "{error}");
        });
    });
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

    use crate::operations::{Fixture, Operation, boxed, made};

    pub(crate) const OPERATIONS: &[Operation] = &[
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
            let (mapping, location) = (map(fixture)?, MemoryLocation::from(&fixture.device));
            made(mapping.set_accesses(&[(location, MemoryAccess::ReadWrite)])?)
        }),
    ];

    pub(crate) const SOLITARY: &[Operation] = &[
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
