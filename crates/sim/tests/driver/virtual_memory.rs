//! Virtual memory management: faults of accesses, and the memory budget.

use curium_sim::Config;
use curium_sys::{
    CUdeviceptr, CUmemAccess_flags, CUmemAccessDesc, CUmemAllocationProp, CUmemAllocationType,
    CUmemGenericAllocationHandle, CUmemLocation, CUmemLocationType, CUresult,
};

use crate::launch::poke;
use crate::support::{Fixture, SUCCESS, cu, get, ok};

const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;
const PAGE: usize = 2 << 20;
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

    fn set_access(
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
        assert_eq!(
            self.set_access(address, size, device(0), READ_WRITE),
            SUCCESS
        );
    }
}

#[test]
fn copies_cross_mappings() {
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
fn memory_without_rights_faults() {
    let fixture = Fixture::new();
    let address = fixture.reserve(PAGE);
    let memory = fixture.create(PAGE);
    ok!(fixture.api, cuMemMap(address, PAGE, 0, memory, 0));
    let location = device(0);
    assert_eq!(
        get!(fixture.api, cuMemGetAccess(_, &raw const location, address)),
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
fn read_only_memory_faults() {
    let fixture = Fixture::new();
    let address = fixture.reserve(PAGE);
    let memory = fixture.create(PAGE);
    ok!(fixture.api, cuMemMap(address, PAGE, 0, memory, 0));
    assert_eq!(fixture.set_access(address, PAGE, device(0), READ), SUCCESS);
    let location = device(0);
    assert_eq!(
        get!(
            fixture.api,
            cuMemGetAccess(_, &raw const location, address + 7)
        ),
        1
    );
    assert_eq!(poke(&fixture, address), SUCCESS);
    assert_eq!(
        cu!(fixture.api, cuCtxSynchronize()),
        CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
    );
}

#[test]
fn access_is_per_device() {
    let fixture = Fixture::with(Config::new().with_devices(2).with_memory_budget(64 << 20));
    let address = fixture.reserve(PAGE);
    let memory = fixture.create(PAGE);
    ok!(fixture.api, cuMemMap(address, PAGE, 0, memory, 0));
    assert_eq!(
        fixture.set_access(address, PAGE, device(1), READ_WRITE),
        SUCCESS
    );
    assert_eq!(
        fixture.set_access(address, PAGE, device(2), READ_WRITE),
        CUresult::CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(poke(&fixture, address), SUCCESS);
    assert_eq!(
        cu!(fixture.api, cuCtxSynchronize()),
        CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
    );
}

/// Memory counts against the budget until its last use.
#[test]
fn budget_counts_used_memory() {
    let fixture = Fixture::with(Config::new().with_memory_budget(4 << 20));
    let address = fixture.reserve(4 << 20);
    let memory = fixture.create(4 << 20);
    let wanted = properties(device(0));
    let mut other = 0;
    let refused = cu!(
        fixture.api,
        cuMemCreate(&raw mut other, PAGE, &raw const wanted, 0)
    );
    assert_eq!(refused, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
    ok!(fixture.api, cuMemMap(address, 4 << 20, 0, memory, 0));
    ok!(fixture.api, cuMemRelease(memory));
    let mut free = 0;
    let mut total = 0;
    ok!(fixture.api, cuMemGetInfo_v2(&raw mut free, &raw mut total));
    assert_eq!((free, total), (0, 4 << 20));
    ok!(fixture.api, cuMemUnmap(address, 4 << 20));
    ok!(fixture.api, cuMemGetInfo_v2(&raw mut free, &raw mut total));
    assert_eq!(free, total);
}

#[test]
fn access_after_unmapping_faults() {
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
