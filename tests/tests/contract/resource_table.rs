//! [`ResourceTable`]: the C interface of resources, in both directions.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use curium_driver::AsRawStream as _;
use curium_driver::{DevicePointer, Result, Stream};
use curium_memory::c_resource::{ExternalResource, ResourceTable};
use curium_memory::{
    CachingOptions, CachingResource, LimitedResource, Resource, Statistics, StreamOrdered,
};
use curium_sys::{CUdeviceptr, CUresult, CUstream};
use curium_tests::{TestDriver, TestResult, driver_test};

/// A resource as a C program implements it; its addresses are consecutive numbers.
struct Counter {
    live: AtomicUsize,
    released: Arc<AtomicUsize>,
}

unsafe extern "C" fn allocate(
    context: *mut c_void,
    stream: CUstream,
    bytes: usize,
    alignment: usize,
    address: *mut CUdeviceptr,
) -> CUresult {
    // SAFETY: the context is the one of the table.
    let counter = unsafe { &*context.cast::<Counter>() };
    match bytes {
        1 => CUresult::CUDA_ERROR_OUT_OF_MEMORY,
        2 => CUresult::CUDA_ERROR_NOT_PERMITTED,
        _ => {
            assert!(!stream.is_null() && alignment == 256);
            counter.live.fetch_add(1, Ordering::Relaxed);
            // SAFETY: the caller passes an address that is valid for writes.
            unsafe { address.write(bytes as u64 * 1000) };
            CUresult::CUDA_SUCCESS
        }
    }
}

unsafe extern "C" fn deallocate(
    context: *mut c_void,
    _stream: CUstream,
    address: CUdeviceptr,
    bytes: usize,
    _alignment: usize,
) -> CUresult {
    // SAFETY: the context is the one of the table.
    let counter = unsafe { &*context.cast::<Counter>() };
    assert_eq!(address, bytes as u64 * 1000);
    counter.live.fetch_sub(1, Ordering::Relaxed);
    CUresult::CUDA_SUCCESS
}

unsafe extern "C" fn release(context: *mut c_void) {
    // SAFETY: the context was returned by `Box::into_raw`, and this is the only release.
    let counter = unsafe { Box::from_raw(context.cast::<Counter>()) };
    assert_eq!(counter.live.load(Ordering::Relaxed), 0);
    counter.released.fetch_add(1, Ordering::Relaxed);
}

#[driver_test]
fn c_resource_is_released_once(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let released = Arc::new(AtomicUsize::new(0));
    let counter = Box::new(Counter {
        live: AtomicUsize::new(0),
        released: Arc::clone(&released),
    });
    let table = ResourceTable {
        context: Box::into_raw(counter).cast(),
        allocate: Some(allocate),
        deallocate: Some(deallocate),
        release: Some(release),
    };
    // SAFETY: the table has no other owner, and its functions may be called from any thread; no
    // memory is accessed.
    let resource = unsafe { ExternalResource::from_table(table) }?;
    let pointer = resource.allocate(&stream, 77, 256)?;
    assert_eq!(pointer.as_raw(), 77_000);
    // SAFETY: the memory was allocated from this resource with this size and alignment.
    unsafe { resource.deallocate(&stream, pointer, 77, 256) }?;
    assert!(
        resource
            .allocate(&stream, 1, 256)
            .expect_err("memory is exhausted")
            .is_out_of_memory()
    );
    let error = resource
        .allocate(&stream, 2, 256)
        .expect_err("the table returns an error");
    assert_eq!(
        error.to_string(),
        "ExternalResource::allocate: the C function failed (code 800, 2 bytes)"
    );
    assert_eq!(released.load(Ordering::Relaxed), 0);
    drop(resource);
    assert_eq!(released.load(Ordering::Relaxed), 1);
    Ok(())
}

#[test]
fn incomplete_table_is_refused() {
    let table = ResourceTable {
        context: std::ptr::null_mut(),
        allocate: None,
        deallocate: None,
        release: None,
    };
    // SAFETY: the call rejects the table.
    unsafe { ExternalResource::from_table(table) }.expect_err("there is no function");
}

/// Calls the table's allocation function as a C program does.
fn call(table: &ResourceTable, stream: &Stream, bytes: usize) -> TestResult<(CUresult, u64)> {
    let function = table.allocate.ok_or("no `allocate`")?;
    let mut address = 0;
    // SAFETY: the table was not released, the stream is live, and `address` is valid for writes.
    let code = unsafe { function(table.context, stream.as_raw(), bytes, 256, &raw mut address) };
    Ok((code, address))
}

fn give_back(
    table: &ResourceTable,
    stream: &Stream,
    address: u64,
    bytes: usize,
) -> TestResult<CUresult> {
    let function = table.deallocate.ok_or("no `deallocate`")?;
    // SAFETY: the table was not released, and the memory was allocated from it with this size and
    // alignment.
    unsafe {
        Ok(function(
            table.context,
            stream.as_raw(),
            address,
            bytes,
            256,
        ))
    }
}

fn end(table: ResourceTable) -> TestResult {
    // SAFETY: the table is not used from here on.
    unsafe { table.release.ok_or("no `release`")?(table.context) };
    Ok(())
}

/// An exported resource allocates for C and records its streams.
#[driver_test]
fn exported_resource_allocates_for_c(test: &TestDriver) -> TestResult {
    let context = test.context();
    let stream = test.stream();
    let other = test.stream();
    let options = CachingOptions::new().with_cache(true);
    let resource = CachingResource::with_options(&context, &options)?;
    let table = ResourceTable::export(resource.clone(), &context);
    let (code, first) = call(&table, &stream, 1 << 20)?;
    assert_eq!(code, CUresult::CUDA_SUCCESS);
    assert_eq!(
        give_back(&table, &stream, first, 1 << 20)?,
        CUresult::CUDA_SUCCESS
    );
    assert_eq!(
        call(&table, &stream, 1 << 20)?,
        (CUresult::CUDA_SUCCESS, first),
        "the stream is the same"
    );
    let (_, second) = call(&table, &other, 1 << 20)?;
    assert_ne!(first, second);
    assert_eq!(resource.statistics().hits, 1);
    assert_eq!(
        give_back(&table, &stream, first, 1 << 20)?,
        CUresult::CUDA_SUCCESS
    );
    assert_eq!(
        give_back(&table, &other, second, 1 << 20)?,
        CUresult::CUDA_SUCCESS
    );
    end(table)?;
    Ok(())
}

/// A resource that panics, as user code may.
struct Panicking;

// SAFETY: it returns no memory.
unsafe impl Resource for Panicking {
    fn allocate(&self, _: &Stream, _: usize, _: usize) -> Result<DevicePointer<u8>> {
        std::panic::panic_any("this panic is part of the test")
    }

    unsafe fn deallocate(
        &self,
        _: &Stream,
        _: DevicePointer<u8>,
        _: usize,
        _: usize,
    ) -> Result<()> {
        Ok(())
    }
}

#[driver_test]
fn failures_are_error_codes_in_c(test: &TestDriver) -> TestResult {
    let context = test.context();
    let stream = test.stream();
    let table = ResourceTable::export(
        Statistics::new(LimitedResource::new(StreamOrdered, 100)),
        &context,
    );
    assert_eq!(
        call(&table, &stream, 101)?.0,
        CUresult::CUDA_ERROR_OUT_OF_MEMORY
    );
    assert_eq!(
        call(&table, &stream, 0)?.0,
        CUresult::CUDA_ERROR_INVALID_VALUE
    );
    let function = table.allocate.ok_or("no `allocate`")?;
    let mut address = 0;
    // SAFETY: a default stream and a null output pointer are rejected before any access.
    let code = unsafe {
        function(
            table.context,
            std::ptr::null_mut(),
            10,
            256,
            &raw mut address,
        )
    };
    assert_eq!(code, CUresult::CUDA_ERROR_INVALID_VALUE);
    // SAFETY: a default stream and a null output pointer are rejected before any access.
    let code = unsafe {
        function(
            table.context,
            stream.as_raw(),
            10,
            256,
            std::ptr::null_mut(),
        )
    };
    assert_eq!(code, CUresult::CUDA_ERROR_INVALID_VALUE);
    end(table)?;
    let table = ResourceTable::export(Panicking, &context);
    assert_eq!(call(&table, &stream, 10)?.0, CUresult::CUDA_ERROR_UNKNOWN);
    end(table)?;
    Ok(())
}

pub(crate) mod operations {
    use curium_memory::StreamOrdered;
    use curium_memory::c_resource::{ExternalResource, ResourceTable};

    use crate::operations::{Operation, Operations, allocate_and_free};

    const SOLITARY: &[Operation] = &[(
        "ResourceTable::export and ExternalResource::allocate and ExternalResource::deallocate",
        |fixture| {
            let table = ResourceTable::export(StreamOrdered, &fixture.context);
            // SAFETY: the table is that of a resource, and has no other owner.
            allocate_and_free(fixture, unsafe { ExternalResource::from_table(table) }?)
        },
    )];

    inventory::submit! { Operations::Solitary(SOLITARY) }
}
