//! Memory of one simulator in another: IPC handles and pools. Each simulator represents a process.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

use curium_sys::{
    CUipcMemHandle, CUmemAllocationHandleType, CUmemAllocationType, CUmemLocationType,
    CUmemPoolProps, CUmemPoolPtrExportData, CUresult,
};

use crate::launch::poke;
use crate::support::{Fixture, SUCCESS, cu, get, handle, ok};

const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;
const DESCRIPTOR: CUmemAllocationHandleType =
    CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
const LAZY: u32 = 1;

fn shareable() -> CUmemPoolProps {
    let mut properties = CUmemPoolProps {
        allocType: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        handleTypes: DESCRIPTOR,
        ..CUmemPoolProps::default()
    };
    properties.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    properties
}

#[test]
fn memory_opened_by_its_handle_is_the_memory_of_the_other_process() {
    let (owner, other) = (Fixture::new(), Fixture::new());
    let memory = owner.alloc(1000);
    owner.upload(memory, &[7; 1000]);
    let name: CUipcMemHandle = get!(owner.api, cuIpcGetMemHandle(_, memory + 5));
    let opened = get!(other.api, cuIpcOpenMemHandle_v2(_, name, LAZY));
    assert_eq!(other.download(opened, 1000), [7; 1000]);
    assert_eq!(poke(&other, opened + 4), SUCCESS);
    ok!(other.api, cuCtxSynchronize());
    assert_eq!(owner.download(memory + 4, 2), [42, 0]);
    let again = get!(other.api, cuIpcOpenMemHandle_v2(_, name, LAZY));
    assert_eq!(again, opened);
    ok!(other.api, cuIpcCloseMemHandle(opened));
    assert_eq!(other.simulator.live_handles().imported_allocations, 1);
    ok!(other.api, cuIpcCloseMemHandle(opened));
    assert_eq!(cu!(other.api, cuIpcCloseMemHandle(opened)), INVALID);
    assert_eq!(other.simulator.live_handles().imported_allocations, 0);
}

#[test]
fn large_memory_is_the_same_in_both_processes() {
    const SIZE: usize = (3 << 20) + 1000;
    let (owner, other) = (Fixture::new(), Fixture::new());
    // Another allocation occupies the first page.
    owner.alloc(100);
    let memory = owner.alloc(SIZE);
    let bytes: Vec<u8> = (0..SIZE).map(|index| (index % 251) as u8).collect();
    owner.upload(memory, &bytes[..SIZE / 2]);
    let fresh = owner.download(memory + SIZE as u64 / 2, SIZE / 2);
    let name: CUipcMemHandle = get!(owner.api, cuIpcGetMemHandle(_, memory));
    let opened = get!(other.api, cuIpcOpenMemHandle_v2(_, name, LAZY));
    assert_eq!(other.download(opened, SIZE / 2), bytes[..SIZE / 2]);
    assert_eq!(other.download(opened + SIZE as u64 / 2, SIZE / 2), fresh);
    other.upload(opened, &bytes[1..]);
    assert_eq!(owner.download(memory, SIZE - 1), bytes[1..]);
    let name: CUipcMemHandle = get!(owner.api, cuIpcGetMemHandle(_, memory));
    assert_eq!(
        get!(other.api, cuIpcOpenMemHandle_v2(_, name, LAZY)),
        opened
    );
    ok!(other.api, cuIpcCloseMemHandle(opened));
    ok!(other.api, cuIpcCloseMemHandle(opened));
    ok!(owner.api, cuMemFree_v2(memory));
}

#[test]
fn handle_is_refused_in_its_own_process_and_when_it_is_none() {
    let fixture = Fixture::new();
    let memory = fixture.alloc(64);
    let name: CUipcMemHandle = get!(fixture.api, cuIpcGetMemHandle(_, memory));
    let mut address = 0;
    let open = |name, flags| {
        cu!(
            fixture.api,
            cuIpcOpenMemHandle_v2(&raw mut address, name, flags)
        )
    };
    let mut open = open;
    assert_eq!(open(name, LAZY), CUresult::CUDA_ERROR_INVALID_CONTEXT);
    assert_eq!(open(name, 0), INVALID);
    assert_eq!(open(CUipcMemHandle { reserved: [1; 64] }, LAZY), INVALID);
    let pinned = handle!(fixture.api, cuMemHostAlloc(_, 64, 0));
    let mut name = CUipcMemHandle::default();
    assert_eq!(
        cu!(fixture.api, cuIpcGetMemHandle(&raw mut name, pinned as u64)),
        INVALID
    );
}

#[test]
fn memory_of_an_exported_pool_is_imported_by_its_pool() {
    let (owner, other) = (Fixture::new(), Fixture::new());
    let properties = shareable();
    let pool = handle!(owner.api, cuMemPoolCreate(_, &raw const properties));
    let mut raw = -1_i32;
    ok!(
        owner.api,
        cuMemPoolExportToShareableHandle((&raw mut raw).cast(), pool, DESCRIPTOR, 0)
    );
    // SAFETY: the descriptor was made for us.
    let descriptor = unsafe { OwnedFd::from_raw_fd(raw) };
    let passed = ptr::without_provenance_mut(descriptor.as_raw_fd() as usize);
    let imported = handle!(
        other.api,
        cuMemPoolImportFromShareableHandle(_, passed, DESCRIPTOR, 0)
    );
    let memory: u64 = get!(
        owner.api,
        cuMemAllocFromPoolAsync(_, 5000, pool, ptr::null_mut())
    );
    owner.upload(memory, &[3; 5000]);
    let mut data: CUmemPoolPtrExportData = get!(owner.api, cuMemPoolExportPointer(_, memory));
    let there: u64 = get!(
        other.api,
        cuMemPoolImportPointer(_, imported, &raw mut data)
    );
    assert_eq!(other.download(there, 5000), [3; 5000]);
    ok!(other.api, cuMemFreeAsync(there, ptr::null_mut()));
    ok!(other.api, cuCtxSynchronize());
    assert_eq!(other.simulator.live_handles().imported_allocations, 0);
    let mut address = 0;
    let allocated = cu!(
        other.api,
        cuMemAllocFromPoolAsync(&raw mut address, 8, imported, ptr::null_mut())
    );
    assert_eq!(allocated, INVALID);
    ok!(other.api, cuMemPoolDestroy(imported));
    assert_eq!(
        cu!(owner.api, cuMemPoolExportPointer(&raw mut data, memory + 1)),
        INVALID
    );
}

#[test]
fn pool_that_was_not_made_for_it_is_not_exported() {
    let fixture = Fixture::new();
    let pool = handle!(fixture.api, cuDeviceGetDefaultMemPool(_, 0));
    let mut raw = -1_i32;
    let place = (&raw mut raw).cast();
    assert_eq!(
        cu!(
            fixture.api,
            cuMemPoolExportToShareableHandle(place, pool, DESCRIPTOR, 0)
        ),
        INVALID
    );
}
