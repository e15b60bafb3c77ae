//! Properties of memory that only the simulator guarantees.

use crate::TestResult;
use std::ffi::c_void;
use std::ptr;
#[cfg(not(miri))]
use std::sync::atomic::{AtomicU32, Ordering};
#[cfg(all(target_os = "linux", not(miri)))]
use std::time::{Duration, Instant};

use curium_sim::Config;
#[cfg(target_os = "linux")]
use curium_sys::CUipcMemHandle;
use curium_sys::CUresult;
#[cfg(all(target_os = "linux", not(miri)))]
use curium_sys::{
    CUmemAllocationHandleType, CUmemAllocationType, CUmemLocationType, CUmemPoolProps,
};

use crate::support::{Fixture, cu, get, handle, ok};

#[test]
fn fresh_memory_contains_no_zero() {
    let fixture = Fixture::new();
    let memory = fixture.alloc(4096);
    assert!(fixture.download(memory, 4096).iter().all(|byte| *byte != 0));
}

/// Hardware takes about 0.2 ms. Filling the memory would take most of a second.
#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn unused_memory_costs_no_time() -> TestResult {
    const SIZE: usize = 1 << 30;
    let fixture = Fixture::with(
        Config::new()
            .with_race_checks(true)
            .with_uninitialized_checks(true),
    );
    let durations = (0..10).map(|_| {
        let begin = Instant::now();
        ok!(fixture.api, cuMemFree_v2(fixture.alloc(SIZE)));
        begin.elapsed()
    });
    let minimum = durations.min().ok_or("no measurement")?;
    assert!(minimum < Duration::from_millis(10), "{minimum:?}");
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
    Ok(())
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
fn fill_keeps_concurrent_writes() {
    const SIZE: usize = 32 << 20;
    let fixture = Fixture::new();
    let api = &fixture.api;
    let module = handle!(api, cuModuleLoadData(_, MARK.as_ptr().cast()));
    let kernel = handle!(api, cuModuleGetFunction(_, module, c"mark".as_ptr()));
    let marking = fixture.stream(1);
    let filling = fixture.stream(1);
    let mut memory = fixture.alloc(SIZE);
    let mut flags: *mut c_void = handle!(api, cuMemHostAlloc(_, 8, 0));
    let words = flags.cast::<u32>();
    // SAFETY: the word is live and aligned, and is accessed by atomics and by the kernel only.
    let started = unsafe { AtomicU32::from_ptr(words) };
    // SAFETY: the second word is live and aligned too, and is accessed by atomics and by the kernel
    // only.
    let stop = unsafe { AtomicU32::from_ptr(words.wrapping_add(1)) };
    started.store(0, Ordering::SeqCst);
    stop.store(0, Ordering::SeqCst);
    let mut params = [(&raw mut memory).cast(), (&raw mut flags).cast()];
    ok!(
        api,
        cuLaunchKernel(
            kernel,
            1,
            1,
            1,
            1,
            1,
            1,
            0,
            marking,
            params.as_mut_ptr(),
            ptr::null_mut()
        )
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
fn budget_limits_allocations() {
    let fixture = Fixture::with(Config::new().with_memory_budget(1 << 20));
    let api = &fixture.api;
    let mut free = 0;
    let mut total = 0;
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
fn freed_addresses_are_kept() {
    let fixture = Fixture::new();
    let first = fixture.alloc(512);
    ok!(fixture.api, cuMemFree_v2(first));
    assert_ne!(fixture.alloc(512), first);
}

/// Each simulator represents a process.
#[test]
#[cfg(target_os = "linux")]
fn large_memory_is_shared() {
    const SIZE: usize = (3 << 20) + 1000;
    let owner = Fixture::new();
    let other = Fixture::new();
    // Another allocation occupies the first page.
    owner.alloc(100);
    let memory = owner.alloc(SIZE);
    let bytes: Vec<u8> = (0..SIZE).map(|index| (index % 251) as u8).collect();
    owner.upload(memory, &bytes[..SIZE / 2]);
    let fresh = owner.download(memory + SIZE as u64 / 2, SIZE / 2);
    let name: CUipcMemHandle = get!(owner.api, cuIpcGetMemHandle(_, memory));
    let opened = get!(other.api, cuIpcOpenMemHandle_v2(_, name, 1));
    assert_eq!(other.download(opened, SIZE / 2), bytes[..SIZE / 2]);
    assert_eq!(other.download(opened + SIZE as u64 / 2, SIZE / 2), fresh);
    other.upload(opened, &bytes[1..]);
    assert_eq!(owner.download(memory, SIZE - 1), bytes[1..]);
    let name: CUipcMemHandle = get!(owner.api, cuIpcGetMemHandle(_, memory));
    assert_eq!(get!(other.api, cuIpcOpenMemHandle_v2(_, name, 1)), opened);
    ok!(other.api, cuIpcCloseMemHandle(opened));
    ok!(other.api, cuIpcCloseMemHandle(opened));
    ok!(owner.api, cuMemFree_v2(memory));
}

/// A copy or a fill that reaches memory which another stream freed without an order is reported.
#[test]
fn transfer_to_freed_memory_is_reported() {
    for fills in [false, true] {
        let fixture = Fixture::new();
        let api = &fixture.api;
        let [late, freeing] = [fixture.stream(1), fixture.stream(1)];
        let source = fixture.alloc(64);
        let memory = get!(api, cuMemAllocAsync(_, 64, freeing));
        let gate = fixture.block(late);
        if fills {
            ok!(api, cuMemsetD8Async(memory, 1, 64, late));
        } else {
            ok!(api, cuMemcpyDtoDAsync_v2(memory, source, 64, late));
        }
        ok!(api, cuMemFreeAsync(memory, freeing));
        ok!(api, cuStreamSynchronize(freeing));
        gate.open();
        assert_eq!(
            cu!(api, cuStreamSynchronize(late)),
            CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
        );
        let reports = fixture.simulator.reports();
        let [report] = &reports[..] else {
            panic!("{reports:?}")
        };
        let text = format!("copy: illegal address: 64-byte write at {memory:#x}");
        assert!(report.to_string().starts_with(&text), "{report}");
        assert!(
            report.to_string().contains("a freed 64-byte allocation"),
            "{report}"
        );
    }
}

/// A pool of pinned memory at a NUMA node is exported and imported as a descriptor.
#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn host_pool_is_exported_and_imported() {
    const DESCRIPTOR: CUmemAllocationHandleType =
        CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    let fixture = Fixture::new();
    let api = &fixture.api;
    let mut properties = CUmemPoolProps {
        allocType: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        handleTypes: DESCRIPTOR,
        ..CUmemPoolProps::default()
    };
    properties.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA;
    let pool = handle!(api, cuMemPoolCreate(_, &raw const properties));
    let mut descriptor = -1_i32;
    ok!(
        api,
        cuMemPoolExportToShareableHandle((&raw mut descriptor).cast(), pool, DESCRIPTOR, 0)
    );
    assert!(descriptor >= 0);
    let imported = handle!(
        api,
        cuMemPoolImportFromShareableHandle(
            _,
            ptr::without_provenance_mut(descriptor as usize),
            DESCRIPTOR,
            0
        )
    );
    ok!(api, cuMemPoolDestroy(imported));
    ok!(api, cuMemPoolDestroy(pool));
}
