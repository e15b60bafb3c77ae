//! Pointer attributes: the kind of memory at an address, and the ways to share it.

use curium_driver::{DevicePointer, MemoryHandleTypes};
use curium_memory::virtual_memory::{AddressRange, Granularity, PhysicalMemory, PhysicalOptions};
use curium_memory::{
    DeviceBuffer, DeviceSlice, MemoryAccess, MemoryType, PinnedBuffer, PinnedFlags, PointerInfo,
    PointerSharing, SyncAlloc, UnifiedBuffer, address_range,
};
use curium_sim::Config;
use curium_sys::CudaVersion;
use curium_tests::{on_driver, on_simulator, shared_handle_types};

#[test]
fn pointer_info_reports_the_ways_to_share_its_memory() {
    on_driver(|test| {
        let (stream, driver, device) = (test.stream(), test.driver(), test.device());
        let about = |pointer| {
            let sharing = PointerSharing::of(&test.context(), pointer).expect("it can be queried");
            sharing.expect("it is known")
        };
        let plain =
            DeviceBuffer::<u8, _>::zeroed_in(&stream, 100, SyncAlloc).expect("memory suffices");
        let of_plain = about(plain.as_pointer());
        assert_eq!(
            (of_plain.access, of_plain.handle_types),
            (MemoryAccess::ReadWrite, MemoryHandleTypes::empty())
        );
        assert!(of_plain.is_ipc_capable || cfg!(not(target_os = "linux")));
        let mapping = of_plain.mapping.expect("the driver is new enough");
        assert!(
            mapping.contains(&plain.as_pointer().as_raw())
                && mapping.end >= plain.as_pointer().as_raw() + 100
        );
        let pooled = DeviceBuffer::<u8>::zeroed(&stream, 100).expect("memory suffices");
        let of_pooled = about(pooled.as_pointer());
        assert!(
            !of_pooled.is_ipc_capable && !of_pooled.is_gpu_direct_rdma_capable,
            "{of_pooled:?}"
        );
        assert_ne!(of_pooled.block_id, of_plain.block_id);

        let kind = shared_handle_types();
        let options = PhysicalOptions::new(&device).with_handle_types(kind);
        let bytes = options
            .granularity(driver, Granularity::Minimum)
            .expect("the device has a granularity");
        let memory =
            PhysicalMemory::with_options(driver, bytes, &options).expect("memory suffices");
        let mapping = AddressRange::reserve(driver, bytes)
            .and_then(|range| range.map(0, &memory))
            .expect("it fits");
        let of_mapping = about(mapping.as_pointer());
        assert_eq!(
            (of_mapping.access, of_mapping.handle_types),
            (MemoryAccess::None, kind)
        );
        for access in [MemoryAccess::Read, MemoryAccess::ReadWrite] {
            mapping
                .set_access(&device, access)
                .expect("a device may use its own memory");
            assert_eq!(about(mapping.as_pointer()).access, access);
        }
        let ordinary = Box::new(1_u8);
        let unknown =
            DevicePointer::<u8>::from_raw((&raw const *ordinary).expose_provenance() as u64);
        assert_eq!(
            PointerSharing::of(&test.context(), unknown).expect("it can be queried"),
            None
        );
    });
}

#[test]
fn sharing_that_an_older_driver_does_not_report_is_none() {
    for (version, has_mappings, has_engine) in [
        ((11, 8), false, false),
        ((12, 0), true, false),
        ((12, 8), true, true),
    ] {
        let version = CudaVersion::new(version.0, version.1);
        on_simulator(Config::new().with_driver_version(version), |test, _| {
            let buffer = DeviceBuffer::<u8>::zeroed(&test.stream(), 100).expect("memory suffices");
            let sharing = PointerSharing::of(&test.context(), buffer.as_pointer())
                .expect("it can be queried");
            let sharing = sharing.expect("it is known");
            let told = (
                sharing.mapping.is_some(),
                sharing.block_id.is_some(),
                sharing.is_hw_decompress_capable.is_some(),
            );
            assert_eq!(told, (has_mappings, has_mappings, has_engine), "{version}");
        });
    }
}

#[test]
fn pointer_information_distinguishes_kinds_of_memory() {
    on_driver(|test| {
        let (stream, driver) = (test.stream(), test.driver());
        let about = |pointer| {
            PointerInfo::of(driver, pointer)
                .expect("it can be queried")
                .expect("it is known")
        };
        let pooled = DeviceBuffer::<u8>::zeroed(&stream, 100).expect("memory suffices");
        let info = about(pooled.as_pointer());
        assert_eq!(
            (info.kind, info.is_pooled, info.is_managed),
            (MemoryType::Device, true, false)
        );
        assert_eq!(
            (info.host_address, info.device),
            (None, test.device().as_raw())
        );
        let plain =
            DeviceBuffer::<u8, _>::zeroed_in(&stream, 100, SyncAlloc).expect("memory suffices");
        let (start, info) = (
            plain.as_pointer().as_raw(),
            about(plain.as_pointer().wrapping_add(50)),
        );
        assert_eq!(
            (info.range.clone(), info.is_pooled),
            (start..start + 100, false)
        );
        assert_ne!(info.buffer_id, about(pooled.as_pointer()).buffer_id);
        let range = address_range(&test.context(), plain.as_pointer().wrapping_add(99))
            .expect("it can be queried");
        assert_eq!(range, Some(start..start + 100));
        let unified = UnifiedBuffer::<u8>::zeroed(&stream, 100).expect("memory suffices");
        assert!(about(unified.as_pointer()).is_managed);
        let pinned = PinnedBuffer::<u8>::zeroed(&test.context(), 100, PinnedFlags::empty())
            .expect("memory suffices");
        let address = pinned.as_ptr().expose_provenance() as u64;
        let info = about(DevicePointer::from_raw(address));
        assert_eq!(
            (info.kind, info.host_address),
            (MemoryType::Host, Some(address))
        );
        let ordinary = Box::new(1_u8);
        let address = (&raw const *ordinary).expose_provenance() as u64;
        let unknown = DevicePointer::<u8>::from_raw(address);
        assert_eq!(
            PointerInfo::of(driver, unknown).expect("it can be queried"),
            None
        );
        assert_eq!(
            address_range(&test.context(), unknown).expect("it can be queried"),
            None
        );
        let view: DeviceSlice<'_, u8> = unified.as_slice();
        assert_eq!(view.as_pointer(), unified.as_pointer());
    });
}

pub(crate) mod operations {
    use curium_driver::DevicePointer;
    use curium_memory::{PointerInfo, PointerSharing, address_range, set_sync_memops};

    use crate::operations::{Operation, made};

    pub(crate) const OPERATIONS: &[Operation] = &[
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
}
