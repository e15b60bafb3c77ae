//! Pointer attributes: the kind of memory at an address, and the ways to share it.

use curium_driver::{DevicePointer, MemoryHandleTypes};
use curium_memory::virtual_memory::{AddressRange, Granularity, PhysicalMemory, PhysicalOptions};
use curium_memory::{
    DeviceBuffer, DeviceSlice, MemoryAccess, MemoryType, PinnedBuffer, PinnedFlags, PointerInfo,
    PointerSharing, SyncAlloc, UnifiedBuffer, address_range,
};
use curium_sim::Config;
use curium_sys::CudaVersion;
use curium_tests::{TestDriver, TestResult, driver_test, on_simulator, shared_handle_types};

#[driver_test]
fn pointer_info_reports_the_ways_to_share_its_memory(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let driver = test.driver();
    let device = test.device();
    let about = |pointer| -> TestResult<_> {
        let sharing = PointerSharing::of(&test.context(), pointer)?;
        Ok(sharing.ok_or("unknown pointer")?)
    };
    let plain = DeviceBuffer::<u8, _>::zeroed_in(&stream, 100, SyncAlloc)?;
    let of_plain = about(plain.as_pointer())?;
    assert_eq!(
        (of_plain.access, of_plain.handle_types),
        (MemoryAccess::ReadWrite, MemoryHandleTypes::empty())
    );
    assert!(of_plain.is_ipc_capable || cfg!(not(target_os = "linux")));
    let mapping = of_plain.mapping.ok_or("no mapping reported")?;
    assert!(
        mapping.contains(&plain.as_pointer().as_raw())
            && mapping.end >= plain.as_pointer().as_raw() + 100
    );
    let pooled = DeviceBuffer::<u8>::zeroed(&stream, 100)?;
    let of_pooled = about(pooled.as_pointer())?;
    assert!(
        !of_pooled.is_ipc_capable && !of_pooled.is_gpu_direct_rdma_capable,
        "{of_pooled:?}"
    );
    assert_ne!(of_pooled.block_id, of_plain.block_id);

    let kind = shared_handle_types();
    let options = PhysicalOptions::new(&device).with_handle_types(kind);
    let bytes = options.granularity(driver, Granularity::Minimum)?;
    let memory = PhysicalMemory::with_options(driver, bytes, &options)?;
    let mapping = AddressRange::reserve(driver, bytes).and_then(|range| range.map(0, &memory))?;
    let of_mapping = about(mapping.as_pointer())?;
    assert_eq!(
        (of_mapping.access, of_mapping.handle_types),
        (MemoryAccess::None, kind)
    );
    for access in [MemoryAccess::Read, MemoryAccess::ReadWrite] {
        mapping.set_access(&device, access)?;
        assert_eq!(about(mapping.as_pointer())?.access, access);
    }
    let ordinary = Box::new(1_u8);
    let unknown = DevicePointer::<u8>::from_raw((&raw const *ordinary).expose_provenance() as u64);
    assert_eq!(PointerSharing::of(&test.context(), unknown)?, None);
    Ok(())
}

/// Sharing that an older driver does not report is none.
#[test]
fn unreported_sharing_is_none() -> TestResult {
    for (version, has_mappings, has_engine) in [
        ((11, 8), false, false),
        ((12, 0), true, false),
        ((12, 8), true, true),
    ] {
        let version = CudaVersion::new(version.0, version.1);
        on_simulator(
            Config::new().with_driver_version(version),
            |test, _| -> TestResult {
                let buffer = DeviceBuffer::<u8>::zeroed(&test.stream(), 100)?;
                let sharing = PointerSharing::of(&test.context(), buffer.as_pointer())?;
                let sharing = sharing.ok_or("unknown pointer")?;
                let told = (
                    sharing.mapping.is_some(),
                    sharing.block_id.is_some(),
                    sharing.is_hw_decompress_capable.is_some(),
                );
                assert_eq!(told, (has_mappings, has_mappings, has_engine), "{version}");
                Ok(())
            },
        )?;
    }
    Ok(())
}

#[driver_test]
fn pointer_information_distinguishes_memory_kinds(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let driver = test.driver();
    let about = |pointer| -> TestResult<_> {
        Ok(PointerInfo::of(driver, pointer)?.ok_or("unknown pointer")?)
    };
    let pooled = DeviceBuffer::<u8>::zeroed(&stream, 100)?;
    let info = about(pooled.as_pointer())?;
    assert_eq!(
        (info.kind, info.is_pooled, info.is_managed),
        (MemoryType::Device, true, false)
    );
    assert_eq!(
        (info.host_address, info.device),
        (None, test.device().as_raw())
    );
    let plain = DeviceBuffer::<u8, _>::zeroed_in(&stream, 100, SyncAlloc)?;
    let start = plain.as_pointer().as_raw();
    let info = about(plain.as_pointer().wrapping_add(50))?;
    assert_eq!(
        (info.range.clone(), info.is_pooled),
        (start..start + 100, false)
    );
    assert_ne!(info.buffer_id, about(pooled.as_pointer())?.buffer_id);
    let range = address_range(&test.context(), plain.as_pointer().wrapping_add(99))?;
    assert_eq!(range, Some(start..start + 100));
    let unified = UnifiedBuffer::<u8>::zeroed(&stream, 100)?;
    assert!(about(unified.as_pointer())?.is_managed);
    let pinned = PinnedBuffer::<u8>::zeroed(&test.context(), 100, PinnedFlags::empty())?;
    let address = pinned.as_ptr().expose_provenance() as u64;
    let info = about(DevicePointer::from_raw(address))?;
    assert_eq!(
        (info.kind, info.host_address),
        (MemoryType::Host, Some(address))
    );
    let ordinary = Box::new(1_u8);
    let address = (&raw const *ordinary).expose_provenance() as u64;
    let unknown = DevicePointer::<u8>::from_raw(address);
    assert_eq!(PointerInfo::of(driver, unknown)?, None);
    assert_eq!(address_range(&test.context(), unknown)?, None);
    let view: &DeviceSlice<u8> = &unified;
    assert_eq!(view.as_pointer(), unified.as_pointer());
    Ok(())
}

pub(crate) mod operations {
    use curium_driver::DevicePointer;
    use curium_memory::{PointerInfo, PointerSharing, address_range, set_sync_memops};

    use crate::operations::{Operation, Operations, made};

    const OPERATIONS: &[Operation] = &[
        ("PointerInfo::of", |fixture| {
            made(PointerInfo::of(
                &fixture.driver,
                fixture.buffer.as_pointer(),
            )?)
        }),
        ("PointerSharing::of", |fixture| {
            made(PointerSharing::of(
                &fixture.context,
                fixture.buffer.as_pointer(),
            )?)
        }),
        ("pointer_info::address_range", |fixture| {
            made(address_range(
                &fixture.context,
                fixture.buffer.as_pointer(),
            )?)
        }),
        ("pointer_info::set_sync_memops", |fixture| {
            made(set_sync_memops(
                &fixture.driver,
                fixture.rows.as_pointer(),
                false,
            )?)
        }),
        ("pointer_info::address_range, of nothing", |fixture| {
            made(address_range(
                &fixture.context,
                DevicePointer::<u8>::from_raw(8),
            )?)
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }
}
