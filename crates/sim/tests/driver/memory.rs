//! Device memory, host memory and copies.

use std::ffi::c_void;
use std::ptr;
#[cfg(not(miri))]
use std::sync::atomic::{AtomicU32, Ordering};
#[cfg(all(target_os = "linux", not(miri)))]
use std::time::{Duration, Instant};

use crate::support::{self, Fixture, cu, get, handle, ok};
use curium_sim::Config;
use curium_sys::{CUdeviceptr, CUpointer_attribute, CUresult};

const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;

#[test]
fn bytes_copied_to_the_device_can_be_copied_back() {
    let fixture = Fixture::new();
    let memory = fixture.alloc(1000);
    let bytes: Vec<u8> = (0..1000).map(|n| (n % 251) as u8).collect();
    fixture.upload(memory, &bytes);
    assert_eq!(fixture.download(memory, 1000), bytes);
    assert_eq!(fixture.download(memory + 10, 5), bytes[10..15]);
    ok!(fixture.api, cuMemFree_v2(memory));
}

#[test]
fn fresh_memory_contains_no_zero() {
    let fixture = Fixture::new();
    let memory = fixture.alloc(4096);
    assert!(fixture.download(memory, 4096).iter().all(|byte| *byte != 0));
}

/// Hardware takes about 0.2 ms. Filling the memory would take most of a second.
#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn memory_that_is_not_used_costs_no_time() {
    const SIZE: usize = 1 << 30;
    let fixture = Fixture::with(
        Config::new()
            .with_race_checks(true)
            .with_uninitialized_checks(true),
    );
    let allocate = |_| {
        let begin = Instant::now();
        ok!(fixture.api, cuMemFree_v2(fixture.alloc(SIZE)));
        begin.elapsed()
    };
    let least = (0..10).map(allocate).min().expect("there were ten");
    assert!(least < Duration::from_millis(10), "{least:?}");
    let memory = fixture.alloc(SIZE + 3);
    for offset in [0, 511 << 20, SIZE - 1000] {
        assert_eq!(fixture.download(memory + offset as u64, 1003), [0xFD; 1003]);
    }
    fixture.upload(memory + (100 << 20) - 1, &[1, 2]);
    let [before, one, two, after] = fixture.download(memory + (100 << 20) - 2, 4)[..] else {
        panic!("four bytes")
    };
    assert_eq!([before, one, two, after], [0xFD, 1, 2, 0xFD]);
    ok!(fixture.api, cuMemFree_v2(memory));
}

/// Writes ones to a word, and to the first word of the flags, until the second is set.
const MARK: &str = ".version 8.0
.target sm_75
.address_size 64
.visible .entry mark(.param .u64 memory, .param .u64 flags)
{
    .reg .b32 %stop;
    .reg .b64 %memory, %flags;
    .reg .pred %again;
    ld.param.u64 %memory, [memory];
    ld.param.u64 %flags, [flags];
again:
    st.volatile.global.u32 [%memory], 1;
    st.volatile.global.u32 [%flags], 1;
    ld.volatile.global.u32 %stop, [%flags+4];
    setp.eq.u32 %again, %stop, 0;
    @%again bra again;
    ret;
}
\0";

#[test]
#[cfg(not(miri))]
fn fill_spreads_nothing_that_a_kernel_writes_at_the_same_time() {
    const SIZE: usize = 32 << 20;
    let fixture = Fixture::new();
    let api = &fixture.api;
    let module = handle!(api, cuModuleLoadData(_, MARK.as_ptr().cast()));
    let kernel = handle!(api, cuModuleGetFunction(_, module, c"mark".as_ptr()));
    let (marking, filling) = (fixture.stream(1), fixture.stream(1));
    let mut memory = fixture.alloc(SIZE);
    let mut flags: *mut c_void = handle!(api, cuMemHostAlloc(_, 8, 0));
    let words = flags.cast::<u32>();
    // SAFETY: the word is live and aligned, and is accessed by atomics and by the kernel only.
    let started = unsafe { AtomicU32::from_ptr(words) };
    // SAFETY: as above, for the second of two words.
    let stop = unsafe { AtomicU32::from_ptr(words.wrapping_add(1)) };
    started.store(0, Ordering::SeqCst);
    stop.store(0, Ordering::SeqCst);
    let mut params = [(&raw mut memory).cast(), (&raw mut flags).cast()];
    let (params, none) = (params.as_mut_ptr(), ptr::null_mut());
    ok!(
        api,
        cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, marking, params, none)
    );
    while started.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    ok!(api, cuMemsetD8Async(memory, 0, SIZE, filling));
    ok!(api, cuStreamSynchronize(filling));
    stop.store(1, Ordering::SeqCst);
    ok!(api, cuStreamSynchronize(marking));
    assert_eq!(
        fixture.download(memory, SIZE)[4..]
            .iter()
            .position(|byte| *byte != 0),
        None
    );
    ok!(api, cuMemFreeHost(flags));
}

#[test]
fn allocation_of_zero_bytes_is_an_invalid_value_for_device_memory_only() {
    let Fixture { api, .. } = &Fixture::new();
    let mut address: CUdeviceptr = 0;
    assert_eq!(cu!(api, cuMemAlloc_v2(&raw mut address, 0)), INVALID);
    assert_eq!(cu!(api, cuMemAlloc_v2(ptr::null_mut(), 4)), INVALID);
    ok!(api, cuMemAllocAsync(&raw mut address, 0, ptr::null_mut()));
    assert!(handle!(api, cuMemHostAlloc(_, 0, 0)).is_null());
    assert_eq!(cu!(api, cuMemAllocManaged(&raw mut address, 4, 0)), INVALID);
}

#[test]
fn free_requires_the_start_of_a_live_allocation() {
    let fixture = Fixture::new();
    let memory = fixture.alloc(64);
    let api = &fixture.api;
    ok!(api, cuMemFree_v2(0));
    assert_eq!(cu!(api, cuMemFree_v2(memory + 4)), INVALID);
    assert_eq!(cu!(api, cuMemFree_v2(0x1234)), INVALID);
    ok!(api, cuMemFree_v2(memory));
    assert_eq!(cu!(api, cuMemFree_v2(memory)), INVALID);
    let pinned = handle!(api, cuMemHostAlloc(_, 64, 0));
    assert_eq!(cu!(api, cuMemFree_v2(pinned as CUdeviceptr)), INVALID);
    ok!(api, cuMemFreeHost(pinned));
    assert_eq!(cu!(api, cuMemFreeHost(pinned)), INVALID);
    assert!(fixture.simulator.live_handles().device_allocations == 0);
}

#[test]
fn copy_and_fill_are_checked_against_the_requested_size() {
    let fixture = Fixture::new();
    let memory = fixture.alloc(1000);
    let api = &fixture.api;
    let mut bytes = [0_u8; 1001];
    let host: *mut c_void = bytes.as_mut_ptr().cast();
    assert_eq!(
        cu!(api, cuMemcpyHtoD_v2(memory, host.cast_const(), 1001)),
        INVALID
    );
    assert_eq!(cu!(api, cuMemcpyDtoH_v2(host, memory + 1, 1000)), INVALID);
    assert_eq!(
        cu!(api, cuMemcpyDtoD_v2(memory + 500, memory, 501)),
        INVALID
    );
    assert_eq!(cu!(api, cuMemsetD8_v2(memory, 0, 1001)), INVALID);
    assert_eq!(cu!(api, cuMemsetD32_v2(memory, 0, 251)), INVALID);
    assert_eq!(cu!(api, cuMemcpyHtoD_v2(memory, ptr::null(), 4)), INVALID);
    ok!(api, cuMemsetD32_v2(memory, 0, 250));
}

#[test]
fn unaligned_fill_is_an_invalid_value() {
    let fixture = Fixture::new();
    let memory = fixture.alloc(64);
    assert_eq!(cu!(fixture.api, cuMemsetD16_v2(memory + 1, 0, 1)), INVALID);
    assert_eq!(cu!(fixture.api, cuMemsetD32_v2(memory + 2, 0, 1)), INVALID);
    ok!(fixture.api, cuMemsetD8_v2(memory + 1, 0, 1));
}

#[test]
fn fill_writes_its_elements_only() {
    let fixture = Fixture::new();
    let memory = fixture.alloc(64);
    let api = &fixture.api;
    ok!(api, cuMemsetD8_v2(memory, 9, 64));
    ok!(api, cuMemsetD16_v2(memory + 2, 0x0201, 3));
    ok!(api, cuMemsetD32_v2(memory + 12, 0x0403_0201, 5));
    let bytes = fixture.download(memory, 64);
    assert_eq!(bytes[..12], [9, 9, 1, 2, 1, 2, 1, 2, 9, 9, 9, 9]);
    assert_eq!(bytes[12..32], [1, 2, 3, 4].repeat(5));
    assert_eq!(bytes[32..], [9; 32]);
}

#[test]
fn allocation_beyond_the_budget_is_out_of_memory_and_the_rest_stays_free() {
    let fixture = Fixture::with(Config::new().with_memory_budget(1 << 20));
    let api = &fixture.api;
    let (mut free, mut total) = (0, 0);
    ok!(api, cuMemGetInfo_v2(&raw mut free, &raw mut total));
    assert_eq!((free, total), (1 << 20, 1 << 20));
    let memory = fixture.alloc(1 << 19);
    ok!(api, cuMemGetInfo_v2(&raw mut free, &raw mut total));
    assert_eq!((free, total), (1 << 19, 1 << 20));
    let mut address = 0;
    assert_eq!(
        cu!(api, cuMemAlloc_v2(&raw mut address, (1 << 19) + 1)),
        CUresult::CUDA_ERROR_OUT_OF_MEMORY
    );
    ok!(api, cuMemFree_v2(memory));
    fixture.alloc(1 << 20);
}

#[test]
fn address_of_freed_memory_is_not_used_again_at_once() {
    let fixture = Fixture::new();
    let first = fixture.alloc(512);
    ok!(fixture.api, cuMemFree_v2(first));
    assert_ne!(fixture.alloc(512), first);
}

#[test]
fn address_range_names_the_allocation_and_fails_outside() {
    let fixture = Fixture::new();
    let memory = fixture.alloc(100);
    let (mut base, mut size) = (0, 0);
    ok!(
        fixture.api,
        cuMemGetAddressRange_v2(&raw mut base, &raw mut size, memory + 99)
    );
    assert_eq!((base, size), (memory, 100));
    let outside = cu!(
        fixture.api,
        cuMemGetAddressRange_v2(&raw mut base, &raw mut size, memory + 100)
    );
    assert_eq!(outside, CUresult::CUDA_ERROR_NOT_FOUND);
}

#[test]
fn pinned_memory_is_the_hosts_at_its_own_address() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    let pinned = handle!(api, cuMemHostAlloc(_, 16, 1));
    let bytes: *mut u8 = pinned.cast();
    // SAFETY: the memory holds 16 bytes and nothing else uses it.
    unsafe { bytes.write_bytes(7, 16) };
    assert_eq!(
        get!(api, cuMemHostGetDevicePointer_v2(_, pinned, 0)),
        pinned as CUdeviceptr
    );
    let memory = fixture.alloc(16);
    ok!(api, cuMemcpyDtoD_v2(memory, pinned as CUdeviceptr, 16));
    assert_eq!(fixture.download(memory, 16), [7; 16]);
    assert_eq!(get!(api, cuMemHostGetFlags(_, pinned)) & 1, 1);
    ok!(api, cuMemFreeHost(pinned));
}

#[test]
fn managed_memory_is_read_by_the_host_after_a_wait() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    let managed = get!(api, cuMemAllocManaged(_, 8, 1));
    ok!(api, cuMemsetD8Async(managed, 3, 8, ptr::null_mut()));
    ok!(api, cuCtxSynchronize());
    let place: *const u8 = ptr::with_exposed_provenance(managed as usize);
    // SAFETY: managed memory can be read at its address, and nothing writes it any more.
    assert_eq!(unsafe { place.cast::<[u8; 8]>().read() }, [3; 8]);
    ok!(api, cuMemFree_v2(managed));
}

#[test]
fn memory_is_registered_once_until_it_is_unregistered() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    let mut bytes = vec![5_u8; 64];
    let host: *mut c_void = bytes.as_mut_ptr().cast();
    ok!(api, cuMemHostRegister_v2(host, 64, 0));
    let again = cu!(api, cuMemHostRegister_v2(host.wrapping_byte_add(32), 8, 0));
    assert_eq!(again, CUresult::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    assert_eq!(cu!(api, cuMemHostRegister_v2(host, 0, 0)), INVALID);
    assert_eq!(
        cu!(api, cuMemHostUnregister(host.wrapping_byte_add(4))),
        INVALID
    );
    ok!(api, cuMemHostUnregister(host));
    assert_eq!(
        cu!(api, cuMemHostUnregister(host)),
        CUresult::CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED
    );
}

#[test]
fn pointer_attributes_distinguish_kinds_of_memory() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    let attribute = |address, attribute| {
        let mut value = 0_u32;
        let code = cu!(
            api,
            cuPointerGetAttribute((&raw mut value).cast(), attribute, address)
        );
        (code, value)
    };
    let kind = CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    let memory = fixture.alloc(64);
    let pinned = handle!(api, cuMemHostAlloc(_, 64, 0)) as CUdeviceptr;
    let managed = get!(api, cuMemAllocManaged(_, 64, 1));
    assert_eq!(attribute(memory + 63, kind), (support::SUCCESS, 2));
    assert_eq!(attribute(pinned, kind), (support::SUCCESS, 1));
    assert_eq!(
        attribute(
            managed,
            CUpointer_attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED
        ),
        (support::SUCCESS, 1)
    );
    assert_eq!(attribute(memory + 64, kind).0, INVALID);
    ok!(api, cuMemFree_v2(memory));
    assert_eq!(attribute(memory, kind).0, INVALID);
}

#[test]
fn pointer_attributes_of_an_unknown_address_are_zeros_in_the_plural_call() {
    let fixture = Fixture::new();
    let mut attributes = [
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_RANGE_SIZE,
    ];
    let (mut kind, mut size) = (77_u32, 77_usize);
    let mut values: [*mut c_void; 2] = [(&raw mut kind).cast(), (&raw mut size).cast()];
    ok!(
        fixture.api,
        cuPointerGetAttributes(2, attributes.as_mut_ptr(), values.as_mut_ptr(), 0x10)
    );
    assert_eq!((kind, size), (0, 0));
}

#[test]
fn small_pageable_copy_is_staged_when_it_is_queued() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    let stream = fixture.stream(1);
    let memory = fixture.alloc(64);
    let gate = fixture.block(stream);
    let mut bytes = [1_u8; 64];
    ok!(
        api,
        cuMemcpyHtoDAsync_v2(memory, bytes.as_ptr().cast(), 64, stream)
    );
    bytes = [2; 64];
    gate.open();
    ok!(api, cuStreamSynchronize(stream));
    assert_eq!(fixture.download(memory, 64), [1; 64]);
    assert_eq!(bytes, [2; 64]);
}

#[test]
fn pinned_copy_is_read_when_it_runs() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    let stream = fixture.stream(1);
    let memory = fixture.alloc(64);
    let pinned = handle!(api, cuMemHostAlloc(_, 64, 0));
    let gate = fixture.block(stream);
    ok!(
        api,
        cuMemcpyHtoDAsync_v2(memory, pinned.cast_const(), 64, stream)
    );
    // SAFETY: the memory holds 64 bytes, and the copy does not run before the gate opens.
    unsafe { pinned.cast::<u8>().write_bytes(9, 64) };
    gate.open();
    ok!(api, cuStreamSynchronize(stream));
    assert_eq!(fixture.download(memory, 64), [9; 64]);
}

#[test]
fn memory_freed_in_stream_order_serves_work_queued_before() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    let stream = fixture.stream(1);
    let kept = fixture.alloc(32);
    let gate = fixture.block(stream);
    let memory = get!(api, cuMemAllocAsync(_, 32, stream));
    ok!(api, cuMemsetD8Async(memory, 6, 32, stream));
    ok!(api, cuMemcpyDtoDAsync_v2(kept, memory, 32, stream));
    ok!(api, cuMemFreeAsync(memory, stream));
    assert_eq!(cu!(api, cuMemFreeAsync(memory, stream)), INVALID);
    gate.open();
    ok!(api, cuStreamSynchronize(stream));
    assert_eq!(fixture.download(kept, 32), [6; 32]);
    assert_eq!(fixture.simulator.live_handles().device_allocations, 1);
}

#[test]
fn pool_memory_and_other_memory_can_be_freed_in_stream_order_or_synchronously() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    let pooled = get!(api, cuMemAllocAsync(_, 32, ptr::null_mut()));
    ok!(api, cuMemFree_v2(pooled));
    let plain = fixture.alloc(32);
    ok!(api, cuMemFreeAsync(plain, ptr::null_mut()));
    ok!(api, cuCtxSynchronize());
    assert!(fixture.simulator.live_handles().device_allocations == 0);
}

#[test]
fn default_pool_reserves_in_steps_and_gives_back_at_a_synchronization() {
    use curium_sys::CUmemPool_attribute as Attribute;

    let fixture = Fixture::new();
    let api = &fixture.api;
    let pool = handle!(api, cuDeviceGetDefaultMemPool(_, 0));
    let read = |attribute| {
        let mut value = 0_u64;
        ok!(
            api,
            cuMemPoolGetAttribute(pool, attribute, (&raw mut value).cast())
        );
        value
    };
    assert_eq!(read(Attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), 0);
    let memory = get!(api, cuMemAllocAsync(_, 1000, ptr::null_mut()));
    assert_eq!(
        read(Attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT),
        32 << 20
    );
    assert_eq!(read(Attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 1000);
    ok!(api, cuMemFreeAsync(memory, ptr::null_mut()));
    ok!(api, cuCtxSynchronize());
    assert_eq!(read(Attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
    assert_eq!(read(Attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH), 1000);
    assert_eq!(cu!(api, cuMemPoolDestroy(pool)), INVALID);
}

#[test]
fn memory_of_a_destroyed_context_is_freed() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    let context = handle!(api, cuCtxCreate_v2(_, 0, 0));
    let memory = fixture.alloc(64);
    ok!(api, cuCtxDestroy_v2(context));
    assert_eq!(cu!(api, cuMemFree_v2(memory)), INVALID);
}

#[test]
fn fault_is_met_by_the_call_that_it_names_and_reported_as_its_code() {
    use curium_sim::Fault;
    use curium_sys::Function;

    let fixture = Fixture::new();
    let api = &fixture.api;
    fixture.simulator.inject(
        Fault::on(Function::cuMemAlloc_v2)
            .call(2)
            .returns(CUresult::CUDA_ERROR_OUT_OF_MEMORY),
    );
    let before = fixture.simulator.calls(Function::cuMemAlloc_v2);
    fixture.alloc(4);
    let mut address = 0;
    assert_eq!(
        cu!(api, cuMemAlloc_v2(&raw mut address, 4)),
        CUresult::CUDA_ERROR_OUT_OF_MEMORY
    );
    fixture.alloc(4);
    assert_eq!(fixture.simulator.calls(Function::cuMemAlloc_v2) - before, 3);
    assert_eq!(fixture.simulator.live_handles().device_allocations, 2);
}
