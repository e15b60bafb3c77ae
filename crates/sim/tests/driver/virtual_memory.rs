//! Virtual memory management: reservations, physical memory, mappings and access rights.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

use curium_sim::Config;
use curium_sys::{
    CUdeviceptr, CUmemAccess_flags, CUmemAccessDesc, CUmemAllocationGranularity_flags,
    CUmemAllocationHandleType, CUmemAllocationProp, CUmemAllocationType,
    CUmemGenericAllocationHandle, CUmemLocation, CUmemLocationType, CUresult,
};

use crate::launch::poke;
use crate::support::{Fixture, SUCCESS, cu, get, ok};

const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;
const PAGE: usize = 2 << 20;
const DESCRIPTOR: CUmemAllocationHandleType =
    CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
const READ: CUmemAccess_flags = CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READ;
const READ_WRITE: CUmemAccess_flags = CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE;

fn location(type_: CUmemLocationType, id: i32) -> CUmemLocation {
    let mut location = CUmemLocation {
        type_,
        ..CUmemLocation::default()
    };
    location.__bindgen_anon_1.id = id;
    location
}

fn device(id: i32) -> CUmemLocation {
    location(CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id)
}

fn properties(location: CUmemLocation) -> CUmemAllocationProp {
    let type_ = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    CUmemAllocationProp {
        type_,
        location,
        ..CUmemAllocationProp::default()
    }
}

impl Fixture {
    fn create(&self, size: usize) -> CUmemGenericAllocationHandle {
        let properties = properties(device(0));
        get!(self.api, cuMemCreate(_, size, &raw const properties, 0))
    }

    fn reserve(&self, size: usize) -> CUdeviceptr {
        get!(self.api, cuMemAddressReserve(_, size, 0, 0, 0))
    }

    fn grant(
        &self,
        address: CUdeviceptr,
        size: usize,
        location: CUmemLocation,
        flags: CUmemAccess_flags,
    ) -> CUresult {
        let right = CUmemAccessDesc { location, flags };
        cu!(self.api, cuMemSetAccess(address, size, &raw const right, 1))
    }

    /// Maps `size` bytes at `address`, with access for device 0.
    fn map(&self, address: CUdeviceptr, size: usize) {
        let memory = self.create(size);
        ok!(self.api, cuMemMap(address, size, 0, memory, 0));
        ok!(self.api, cuMemRelease(memory));
        assert_eq!(self.grant(address, size, device(0), READ_WRITE), SUCCESS);
    }
}

#[test]
fn kernel_writes_mapped_memory_and_copies_cross_from_one_mapping_to_the_next() {
    let fixture = Fixture::new();
    let address = fixture.reserve(4 * PAGE);
    fixture.map(address, PAGE);
    fixture.map(address + PAGE as u64, 2 * PAGE);
    let edge = address + PAGE as u64 - 4;
    ok!(fixture.api, cuMemsetD16_v2(edge, 0x0102, 4));
    assert_eq!(fixture.download(edge, 8), [2, 1].repeat(4));
    fixture.upload(edge, &[1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(fixture.download(edge, 8), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(poke(&fixture, edge + 4), SUCCESS);
    assert_eq!(fixture.download(edge, 8), [1, 2, 3, 4, 42, 0, 0, 0]);
    let mut byte = 0_u8;
    let beyond = address + 3 * PAGE as u64 - 1;
    assert_eq!(
        cu!(
            fixture.api,
            cuMemcpyDtoH_v2((&raw mut byte).cast(), beyond, 2)
        ),
        INVALID
    );
    ok!(fixture.api, cuMemUnmap(address, 3 * PAGE));
    ok!(fixture.api, cuMemAddressFree(address, 4 * PAGE));
    let live = fixture.simulator.live_handles();
    assert_eq!(
        (
            live.address_ranges,
            live.physical_allocations,
            live.mappings
        ),
        (0, 0, 0)
    );
}

#[test]
fn one_memory_at_two_addresses_is_one_memory() {
    let fixture = Fixture::new();
    let (first, second, memory) = (
        fixture.reserve(PAGE),
        fixture.reserve(PAGE),
        fixture.create(PAGE),
    );
    for address in [first, second] {
        ok!(fixture.api, cuMemMap(address, PAGE, 0, memory, 0));
        assert_eq!(fixture.grant(address, PAGE, device(0), READ_WRITE), SUCCESS);
    }
    fixture.upload(first, &[9, 8, 7]);
    assert_eq!(fixture.download(second, 3), [9, 8, 7]);
    let retained = get!(
        fixture.api,
        cuMemRetainAllocationHandle(_, ptr::without_provenance_mut(first as usize + 5))
    );
    ok!(fixture.api, cuMemRelease(memory));
    ok!(fixture.api, cuMemRelease(retained));
    assert_eq!(cu!(fixture.api, cuMemRelease(memory)), INVALID);
    assert_eq!(fixture.download(second, 3), [9, 8, 7]);
    assert_eq!(fixture.simulator.live_handles().physical_allocations, 1);
    ok!(fixture.api, cuMemUnmap(first, PAGE));
    ok!(fixture.api, cuMemUnmap(second, PAGE));
    assert_eq!(fixture.simulator.live_handles().physical_allocations, 0);
}

#[test]
fn memory_without_rights_faults() {
    let fixture = Fixture::new();
    let (address, memory) = (fixture.reserve(PAGE), fixture.create(PAGE));
    ok!(fixture.api, cuMemMap(address, PAGE, 0, memory, 0));
    let at = device(0);
    assert_eq!(
        get!(fixture.api, cuMemGetAccess(_, &raw const at, address)),
        0
    );
    assert_eq!(cu!(fixture.api, cuMemsetD8_v2(address, 0, 1)), INVALID);
    assert_eq!(poke(&fixture, address), SUCCESS);
    assert_eq!(
        cu!(fixture.api, cuCtxSynchronize()),
        CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
    );
}

#[test]
fn memory_that_may_be_read_faults_when_it_is_written() {
    let fixture = Fixture::new();
    let (address, memory) = (fixture.reserve(PAGE), fixture.create(PAGE));
    ok!(fixture.api, cuMemMap(address, PAGE, 0, memory, 0));
    assert_eq!(fixture.grant(address, PAGE, device(0), READ), SUCCESS);
    let at = device(0);
    assert_eq!(
        get!(fixture.api, cuMemGetAccess(_, &raw const at, address + 7)),
        1
    );
    assert_eq!(poke(&fixture, address), SUCCESS);
    assert_eq!(
        cu!(fixture.api, cuCtxSynchronize()),
        CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
    );
}

#[test]
fn rights_are_those_of_each_device() {
    let fixture = Fixture::with(Config::new().with_devices(2).with_memory_budget(64 << 20));
    let (address, memory) = (fixture.reserve(PAGE), fixture.create(PAGE));
    ok!(fixture.api, cuMemMap(address, PAGE, 0, memory, 0));
    assert_eq!(fixture.grant(address, PAGE, device(1), READ_WRITE), SUCCESS);
    assert_eq!(
        fixture.grant(address, PAGE, device(2), READ_WRITE),
        CUresult::CUDA_ERROR_INVALID_DEVICE
    );
    assert_eq!(poke(&fixture, address), SUCCESS);
    assert_eq!(
        cu!(fixture.api, cuCtxSynchronize()),
        CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
    );
}

#[test]
fn sizes_and_addresses_are_multiples_of_the_granularity() {
    let fixture = Fixture::new();
    let (api, wanted) = (&fixture.api, properties(device(0)));
    let minimum = CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM;
    assert_eq!(
        get!(
            api,
            cuMemGetAllocationGranularity(_, &raw const wanted, minimum)
        ),
        PAGE
    );
    let (mut memory, mut address) = (0, 0);
    for size in [0, 4096, PAGE + 1] {
        assert_eq!(
            cu!(
                api,
                cuMemCreate(&raw mut memory, size, &raw const wanted, 0)
            ),
            INVALID
        );
        assert_eq!(
            cu!(api, cuMemAddressReserve(&raw mut address, size, 0, 0, 0)),
            INVALID
        );
    }
    assert_eq!(
        cu!(api, cuMemAddressReserve(&raw mut address, PAGE, 3, 0, 0)),
        INVALID
    );
    let aligned: CUdeviceptr = get!(api, cuMemAddressReserve(_, PAGE, 64 << 20, 0, 0));
    assert!(aligned.is_multiple_of(64 << 20), "{aligned:#x}");
    let memory = fixture.create(PAGE);
    assert_eq!(
        cu!(api, cuMemMap(aligned + 4096, PAGE, 0, memory, 0)),
        INVALID
    );
    assert_eq!(cu!(api, cuMemMap(aligned, 4096, 0, memory, 0)), INVALID);
    assert_eq!(cu!(api, cuMemMap(aligned, 2 * PAGE, 0, memory, 0)), INVALID);
    assert_eq!(
        cu!(api, cuMemMap(aligned + PAGE as u64, PAGE, 0, memory, 0)),
        INVALID
    );
}

#[test]
fn mapping_twice_and_ending_parts_of_mappings_is_refused() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    let (address, memory) = (fixture.reserve(4 * PAGE), fixture.create(2 * PAGE));
    ok!(api, cuMemMap(address, 2 * PAGE, 0, memory, 0));
    assert_eq!(
        cu!(api, cuMemMap(address + PAGE as u64, 2 * PAGE, 0, memory, 0)),
        INVALID
    );
    assert_eq!(cu!(api, cuMemUnmap(address, PAGE)), INVALID);
    assert_eq!(cu!(api, cuMemUnmap(address + PAGE as u64, PAGE)), INVALID);
    assert_eq!(cu!(api, cuMemUnmap(address, 4 * PAGE)), INVALID);
    assert_eq!(fixture.grant(address, PAGE, device(0), READ_WRITE), INVALID);
    assert_eq!(cu!(api, cuMemAddressFree(address, 4 * PAGE)), INVALID);
    assert_eq!(cu!(api, cuMemFree_v2(address)), INVALID);
    ok!(api, cuMemUnmap(address, 2 * PAGE));
    assert_eq!(cu!(api, cuMemUnmap(address, 2 * PAGE)), INVALID);
    assert_eq!(cu!(api, cuMemAddressFree(address, 2 * PAGE)), INVALID);
    ok!(api, cuMemAddressFree(address, 4 * PAGE));
    assert_eq!(cu!(api, cuMemAddressFree(address, 4 * PAGE)), INVALID);
}

#[test]
fn reservation_uses_a_free_hint() {
    let fixture = Fixture::new();
    // An address range that the system does not use by itself.
    let address = 0x2000_0000_0000;
    assert_eq!(
        get!(fixture.api, cuMemAddressReserve(_, PAGE, 0, address, 0)),
        address
    );
    let other: CUdeviceptr = get!(fixture.api, cuMemAddressReserve(_, PAGE, 0, address, 0));
    assert_ne!(other, address);
}

#[test]
fn memory_counts_against_the_budget_until_its_last_use() {
    let fixture = Fixture::with(Config::new().with_memory_budget(4 << 20));
    let (address, memory) = (fixture.reserve(4 << 20), fixture.create(4 << 20));
    let (mut other, wanted) = (0, properties(device(0)));
    let refused = cu!(
        fixture.api,
        cuMemCreate(&raw mut other, PAGE, &raw const wanted, 0)
    );
    assert_eq!(refused, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
    ok!(fixture.api, cuMemMap(address, 4 << 20, 0, memory, 0));
    ok!(fixture.api, cuMemRelease(memory));
    let (mut free, mut total) = (0, 0);
    ok!(fixture.api, cuMemGetInfo_v2(&raw mut free, &raw mut total));
    assert_eq!((free, total), (0, 4 << 20));
    ok!(fixture.api, cuMemUnmap(address, 4 << 20));
    ok!(fixture.api, cuMemGetInfo_v2(&raw mut free, &raw mut total));
    assert_eq!(free, total);
}

#[test]
fn exported_memory_is_the_same_memory_where_it_is_imported() {
    let (first, second) = (Fixture::new(), Fixture::new());
    let wanted = CUmemAllocationProp {
        requestedHandleTypes: DESCRIPTOR,
        ..properties(device(0))
    };
    let memory: u64 = get!(first.api, cuMemCreate(_, PAGE, &raw const wanted, 0));
    let mut raw = -1_i32;
    ok!(
        first.api,
        cuMemExportToShareableHandle((&raw mut raw).cast(), memory, DESCRIPTOR, 0)
    );
    // SAFETY: the descriptor was made for us.
    let descriptor = unsafe { OwnedFd::from_raw_fd(raw) };
    let passed = ptr::without_provenance_mut(descriptor.as_raw_fd() as usize);
    let imported = get!(
        second.api,
        cuMemImportFromShareableHandle(_, passed, DESCRIPTOR)
    );
    drop(descriptor);
    let (here, there) = (first.reserve(PAGE), second.reserve(PAGE));
    for (fixture, address, memory) in [(&first, here, memory), (&second, there, imported)] {
        ok!(fixture.api, cuMemMap(address, PAGE, 0, memory, 0));
        assert_eq!(fixture.grant(address, PAGE, device(0), READ_WRITE), SUCCESS);
    }
    first.upload(here, b"seen");
    assert_eq!(second.download(there, 4), b"seen");
    let mut known = CUmemAllocationProp::default();
    ok!(
        second.api,
        cuMemGetAllocationPropertiesFromHandle(&raw mut known, imported)
    );
    assert_eq!(known.requestedHandleTypes, DESCRIPTOR);
}

#[test]
fn memory_that_was_not_made_for_it_is_not_exported_and_other_files_are_not_imported() {
    let fixture = Fixture::new();
    let memory = fixture.create(PAGE);
    let mut raw = -1_i32;
    assert_eq!(
        cu!(
            fixture.api,
            cuMemExportToShareableHandle((&raw mut raw).cast(), memory, DESCRIPTOR, 0)
        ),
        INVALID
    );
    let file = std::fs::File::open("/proc/self/exe").expect("a program can read itself");
    let passed = ptr::without_provenance_mut(file.as_raw_fd() as usize);
    let mut imported = 0;
    assert_eq!(
        cu!(
            fixture.api,
            cuMemImportFromShareableHandle(&raw mut imported, passed, DESCRIPTOR)
        ),
        INVALID
    );
}

#[test]
fn host_reads_memory_of_its_own_node_where_it_may_and_not_before() {
    let fixture = Fixture::new();
    let node = location(CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA, 0);
    let wanted = properties(node);
    let memory = get!(fixture.api, cuMemCreate(_, PAGE, &raw const wanted, 0));
    let address = fixture.reserve(PAGE);
    ok!(fixture.api, cuMemMap(address, PAGE, 0, memory, 0));
    assert_eq!(fixture.grant(address, PAGE, device(0), READ_WRITE), SUCCESS);
    assert_eq!(fixture.grant(address, PAGE, node, READ_WRITE), SUCCESS);
    fixture.upload(address, &[3, 1, 4]);
    let bytes: *mut [u8; 3] = ptr::with_exposed_provenance_mut(address as usize);
    // SAFETY: the memory is mapped for the host, and nothing else uses it.
    assert_eq!(unsafe { bytes.read() }, [3, 1, 4]);
    let device_only = fixture.reserve(PAGE);
    fixture.map(device_only, PAGE);
    assert_eq!(fixture.grant(device_only, PAGE, node, READ_WRITE), INVALID);
    ok!(fixture.api, cuMemUnmap(address, PAGE));
}

#[test]
fn work_after_the_end_of_a_mapping_faults() {
    let fixture = Fixture::new();
    let address = fixture.reserve(PAGE);
    fixture.map(address, PAGE);
    let stream = fixture.stream(1);
    let gate = fixture.block(stream);
    ok!(fixture.api, cuMemsetD8Async(address, 1, PAGE, stream));
    ok!(fixture.api, cuMemUnmap(address, PAGE));
    gate.open();
    assert_eq!(
        cu!(fixture.api, cuStreamSynchronize(stream)),
        CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
    );
}
