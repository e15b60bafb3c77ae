//! Resources in C: the header matches the layout of the Rust type, a Curium resource is used by C,
//! and a C resource is used here.

use std::ffi::c_int;
use std::sync::atomic::{AtomicIsize, Ordering};

use curium_driver::AsRawStream as _;
use curium_memory::c_resource::{ExternalResource, ResourceTable};
use curium_memory::{
    CachingOptions, CachingResource, DeviceBuffer, LimitedResource, Resource as _, Statistics,
    StreamOrdered,
};
use curium_sys::{CUdeviceptr, CUresult, CUstream};
use curium_tests::{TestResult, c_library, on_driver};
use libloading::{Library, Symbol};

type Use = unsafe extern "C" fn(*const ResourceTable, CUstream, usize) -> c_int;
type Make =
    unsafe extern "C" fn(*const ResourceTable, *const AtomicIsize, *mut ResourceTable) -> c_int;

/// Returns the program, or `None` without a C compiler.
fn program() -> Option<Library> {
    let header = include_str!("../../crates/memory/include/curium_resource.h");
    c_library(&include_str!("../c/resource.c").replace("#include \"curium_resource.h\"", header))
}

#[test]
fn resources_have_one_layout() -> TestResult {
    let Some(library) = program() else {
        return curium_tests::skip("no C compiler `cc`");
    };
    // SAFETY: the symbol has this type.
    let layout: Symbol<'_, *const [usize; 8]> = unsafe { library.get(c"layout") }?;
    // SAFETY: the symbol is an array of this length.
    let layout = unsafe { **layout };
    assert_eq!(
        layout,
        [
            size_of::<ResourceTable>(),
            std::mem::offset_of!(ResourceTable, context),
            std::mem::offset_of!(ResourceTable, allocate),
            std::mem::offset_of!(ResourceTable, deallocate),
            std::mem::offset_of!(ResourceTable, release),
            size_of::<CUresult>(),
            size_of::<CUdeviceptr>(),
            size_of::<CUstream>(),
        ]
    );
    on_driver(|test| {
        let context = test.context();
        let stream = test.stream();
        // SAFETY: the symbol has this type.
        let use_resource: Symbol<'_, Use> = unsafe { library.get(c"use_resource") }?;
        let options = CachingOptions::new().with_cache(true);
        let cache = CachingResource::with_options(&context, &options)?;
        let table = ResourceTable::export(cache.clone(), &context);
        assert_eq!(
            // SAFETY: the table was not released, and the stream is live.
            unsafe { use_resource(&raw const table, stream.as_raw(), 5000) },
            0
        );
        let statistics = cache.statistics();
        assert_eq!(
            (statistics.allocations, statistics.live_allocations()),
            (5000, 0)
        );
        // The table from C becomes a Rust resource again.
        // SAFETY: the symbol has this type.
        let make: Symbol<'_, Make> = unsafe { library.get(c"make_counting") }?;
        let remaining = AtomicIsize::new(-1);
        let mut counting = ResourceTable {
            context: std::ptr::null_mut(),
            allocate: None,
            deallocate: None,
            release: None,
        };
        assert_eq!(
            // SAFETY: both tables and the counter are valid; the function takes ownership of the
            // first.
            unsafe { make(&raw const table, &raw const remaining, &raw mut counting) },
            0
        );
        // SAFETY: the C functions forward to those of the cache, from any thread, and the table has
        // no other owner.
        let resource = unsafe { ExternalResource::from_table(counting) }?;
        let buffer = DeviceBuffer::from_slice_in(&stream, &[1, 2, 3], &resource)?;
        assert_eq!(buffer.to_vec()?, [1, 2, 3]);
        assert_eq!(cache.statistics().live_allocations(), 1);
        drop(buffer);
        resource.purge()?;
        drop(resource);
        assert_eq!(remaining.load(Ordering::Relaxed), 0);
        Ok(())
    })
}

#[test]
fn refusal_is_a_code_in_c() -> TestResult {
    let Some(library) = program() else {
        return curium_tests::skip("no C compiler `cc`");
    };
    on_driver(|test| {
        let context = test.context();
        let stream = test.stream();
        // SAFETY: the symbol has this type.
        let use_resource: Symbol<'_, Use> = unsafe { library.get(c"use_resource") }?;
        let table = ResourceTable::export(
            Statistics::new(LimitedResource::new(StreamOrdered, 200_000)),
            &context,
        );
        // SAFETY: the table was not released, and the stream is live.
        let code = unsafe { use_resource(&raw const table, stream.as_raw(), 5000) };
        assert_eq!(code, CUresult::CUDA_ERROR_OUT_OF_MEMORY.0.cast_signed());
        // SAFETY: the table is not used from here on.
        unsafe { table.release.ok_or("no `release`")?(table.context) };
        Ok(())
    })
}
