//! Win32 handles, on a driver whose functions pass them on.

use curium_tests::TestResult;
use std::fs::File;
use std::os::windows::io::{AsHandle as _, AsRawHandle as _, IntoRawHandle as _, OwnedHandle};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use curium_driver::{Driver, MemoryHandleTypes};
use curium_interop::external::{
    ExternalMemory, ExternalMemoryKind, ExternalSemaphore, ExternalSemaphoreKind,
};
use curium_memory::virtual_memory::{PhysicalMemory, PhysicalOptions};
use curium_memory::{MemoryPool, PoolOptions};
use curium_sim::{Config, Simulator};
use curium_sys::{
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC, CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC, CUexternalMemory,
    CUexternalMemoryHandleType, CUexternalSemaphore, CUmemAllocationHandleType,
    CUmemAllocationProp, CUmemGenericAllocationHandle, CUmemPool_attribute, CUmemPoolProps,
    CUmemoryPool, CUresult,
};

const OK: CUresult = CUresult::CUDA_SUCCESS;
const WIN32: CUmemAllocationHandleType = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_WIN32;

/// The handle that a function of the driver received last, and the kind of external memory.
static RECEIVED: AtomicPtr<std::ffi::c_void> = AtomicPtr::new(ptr::null_mut());
static KIND: AtomicU32 = AtomicU32::new(0);

fn handle() -> OwnedHandle {
    File::open("NUL").expect("Windows has it").into()
}

unsafe extern "C" fn create(
    handle: *mut CUmemGenericAllocationHandle,
    _: usize,
    properties: *const CUmemAllocationProp,
    _: u64,
) -> CUresult {
    // SAFETY: the caller passes properties.
    let properties = unsafe { &*properties };
    // The first member of the attributes is their size.
    let attributes = properties.win32HandleMetaData.cast::<u32>();
    if properties.requestedHandleTypes != WIN32 || attributes.is_null() {
        return CUresult::CUDA_ERROR_INVALID_VALUE;
    }
    // SAFETY: the attributes begin with a number.
    assert_eq!(unsafe { attributes.read() }, 48);
    // SAFETY: the caller passes a place for the handle.
    unsafe { handle.write(1) };
    OK
}

unsafe extern "C" fn release(_: CUmemGenericAllocationHandle) -> CUresult {
    OK
}

unsafe extern "C" fn export(
    output: *mut std::ffi::c_void,
    _: CUmemGenericAllocationHandle,
    kind: CUmemAllocationHandleType,
    _: u64,
) -> CUresult {
    assert_eq!(kind, WIN32);
    // SAFETY: for this type the caller passes a place for a handle.
    unsafe {
        output
            .cast::<*mut std::ffi::c_void>()
            .write(handle().into_raw_handle())
    };
    OK
}

unsafe extern "C" fn import(
    handle: *mut CUmemGenericAllocationHandle,
    received: *mut std::ffi::c_void,
    kind: CUmemAllocationHandleType,
) -> CUresult {
    assert_eq!(kind, WIN32);
    RECEIVED.store(received, Ordering::SeqCst);
    // SAFETY: the caller passes a place for the handle.
    unsafe { handle.write(2) };
    OK
}

unsafe extern "C" fn create_pool(
    pool: *mut CUmemoryPool,
    properties: *const CUmemPoolProps,
) -> CUresult {
    // SAFETY: the caller passes properties.
    let properties = unsafe { &*properties };
    let attributes = properties.win32SecurityAttributes.cast::<u32>();
    if properties.handleTypes != WIN32 || attributes.is_null() {
        return CUresult::CUDA_ERROR_INVALID_VALUE;
    }
    // SAFETY: the attributes begin with a number.
    assert_eq!(unsafe { attributes.read() }, 24);
    // SAFETY: the caller passes a place for the pool.
    unsafe { pool.write(ptr::without_provenance_mut(8)) };
    OK
}

unsafe extern "C" fn destroy_pool(_: CUmemoryPool) -> CUresult {
    OK
}

unsafe extern "C" fn set_pool(
    _: CUmemoryPool,
    _: CUmemPool_attribute,
    _: *mut std::ffi::c_void,
) -> CUresult {
    OK
}

unsafe extern "C" fn import_memory(
    memory: *mut CUexternalMemory,
    description: *const CUDA_EXTERNAL_MEMORY_HANDLE_DESC,
) -> CUresult {
    // SAFETY: the caller passes a description.
    let description = unsafe { &*description };
    // SAFETY: for these kinds the caller sets the Win32 handle.
    RECEIVED.store(unsafe { description.handle.win32.handle }, Ordering::SeqCst);
    KIND.store(
        description.type_.0 | description.flags << 16,
        Ordering::SeqCst,
    );
    // SAFETY: the caller passes a place for the handle.
    unsafe { memory.write(ptr::without_provenance_mut(16)) };
    OK
}

unsafe extern "C" fn destroy_memory(_: CUexternalMemory) -> CUresult {
    OK
}

unsafe extern "C" fn import_semaphore(
    semaphore: *mut CUexternalSemaphore,
    description: *const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC,
) -> CUresult {
    // SAFETY: the caller passes a description and sets the Win32 handle.
    RECEIVED.store(
        unsafe { (*description).handle.win32.handle },
        Ordering::SeqCst,
    );
    // SAFETY: the caller passes a place for the handle.
    unsafe { semaphore.write(ptr::without_provenance_mut(24)) };
    OK
}

unsafe extern "C" fn destroy_semaphore(_: CUexternalSemaphore) -> CUresult {
    OK
}

/// Handles are passed to the driver and remain the caller's.
#[test]
fn driver_borrows_handles() -> TestResult {
    let simulator = Simulator::new(Config::new())?;
    let mut api = simulator.api();
    api.cuMemCreate = Some(create);
    api.cuMemRelease = Some(release);
    api.cuMemExportToShareableHandle = Some(export);
    api.cuMemImportFromShareableHandle = Some(import);
    api.cuMemPoolCreate = Some(create_pool);
    api.cuMemPoolDestroy = Some(destroy_pool);
    api.cuMemPoolSetAttribute = Some(set_pool);
    api.cuImportExternalMemory = Some(import_memory);
    api.cuDestroyExternalMemory = Some(destroy_memory);
    api.cuImportExternalSemaphore = Some(import_semaphore);
    api.cuDestroyExternalSemaphore = Some(destroy_semaphore);
    // SAFETY: the functions are the simulator's, which outlives the driver, and replacements that
    // return results of a driver.
    let driver = unsafe { Driver::from_api(api) }?;
    let device = driver.device(0)?;
    let context = device.primary_context()?;
    fn is_last(handle: &OwnedHandle) -> bool {
        RECEIVED.load(Ordering::SeqCst) == handle.as_raw_handle()
    }

    let options = PhysicalOptions::new(&device).with_handle_types(MemoryHandleTypes::WIN32);
    let memory = PhysicalMemory::with_options(&driver, 2 << 20, &options)?;
    let exported = memory.export_win32()?;
    PhysicalMemory::import_win32(&driver, exported.as_handle(), 2 << 20)?;
    assert!(is_last(&exported));

    let options = PoolOptions::new(&device).with_handle_types(MemoryHandleTypes::WIN32);
    MemoryPool::with_options(&driver, &options)?;

    let ours = handle();
    for (kind, raw, dedicated) in [
        (
            ExternalMemoryKind::Opaque,
            CUexternalMemoryHandleType::CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32,
            0,
        ),
        (
            ExternalMemoryKind::D3d12Heap,
            CUexternalMemoryHandleType::CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_HEAP,
            0,
        ),
        (
            ExternalMemoryKind::D3d12Resource,
            CUexternalMemoryHandleType::CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_RESOURCE,
            1,
        ),
        (
            ExternalMemoryKind::D3d11Resource,
            CUexternalMemoryHandleType::CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D11_RESOURCE,
            1,
        ),
    ] {
        ExternalMemory::import_win32(&context, ours.as_handle(), kind, 4096, false)?;
        assert!(is_last(&ours));
        assert_eq!(
            KIND.load(Ordering::SeqCst),
            raw.0 | dedicated << 16,
            "{kind:?}"
        );
    }
    ExternalSemaphore::import_win32(&context, ours.as_handle(), ExternalSemaphoreKind::Timeline)?;
    assert!(is_last(&ours));
    // The handle is still open.
    ours.try_clone()?;
    Ok(())
}

#[test]
fn empty_import_is_refused() -> TestResult {
    let simulator = Simulator::new(Config::new())?;
    let driver = simulator.driver::<Driver>()?;
    let context = driver
        .device(0)
        .and_then(|device| device.primary_context())?;
    let ours = handle();
    let imported = ExternalMemory::import_win32(
        &context,
        ours.as_handle(),
        ExternalMemoryKind::Opaque,
        0,
        false,
    );
    assert!(
        imported
            .expect_err("no bytes")
            .to_string()
            .contains("zero length")
    );
    Ok(())
}
