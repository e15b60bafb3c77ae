//! Tests of graphics interoperability on a simulator with stub functions.

use std::ffi::c_uint;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use curium_driver::sys::{
    CUdeviceptr, CUeglFrame, CUeglStreamConnection, CUresult, CUstream, EGLStreamKHR, GLuint,
};
use curium_sim::{Config, Simulator};

use super::*;

type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

static REGISTERED: AtomicUsize = AtomicUsize::new(0);
static MAPPED: AtomicUsize = AtomicUsize::new(0);
static CONNECTED: AtomicUsize = AtomicUsize::new(0);
static HELD: AtomicUsize = AtomicUsize::new(0);

/// Adds `count` to a counter, which must not become negative.
fn step(counter: &AtomicUsize, count: isize) -> CUresult {
    match counter.fetch_update(Ordering::AcqRel, Ordering::Acquire, |before| {
        before.checked_add_signed(count)
    }) {
        Ok(_) => CUresult::CUDA_SUCCESS,
        Err(_) => CUresult::CUDA_ERROR_INVALID_HANDLE,
    }
}

unsafe extern "C" fn register_buffer(
    output: *mut CUgraphicsResource,
    buffer: GLuint,
    flags: c_uint,
) -> CUresult {
    if buffer == 0 || flags != GraphicsFlags::READ_ONLY.bits() {
        return CUresult::CUDA_ERROR_INVALID_HANDLE;
    }
    // SAFETY: the wrapper under test passes a pointer that is valid for writes.
    unsafe { output.write(ptr::without_provenance_mut(buffer as usize * 0x100)) };
    step(&REGISTERED, 1)
}

unsafe extern "C" fn unregister(_: CUgraphicsResource) -> CUresult {
    step(&REGISTERED, -1)
}

unsafe extern "C" fn map(count: c_uint, first: *mut CUgraphicsResource, _: CUstream) -> CUresult {
    // SAFETY: the wrapper under test passes an array of the given length.
    let resources = unsafe { std::slice::from_raw_parts(first, count as usize) };
    assert!(resources.iter().all(|resource| !resource.is_null()));
    step(&MAPPED, count as isize)
}

unsafe extern "C" fn unmap(count: c_uint, _: *mut CUgraphicsResource, _: CUstream) -> CUresult {
    step(&MAPPED, -(count as isize))
}

unsafe extern "C" fn pointer(
    address: *mut CUdeviceptr,
    size: *mut usize,
    resource: CUgraphicsResource,
) -> CUresult {
    // SAFETY: the wrapper under test passes a pointer that is valid for writes.
    unsafe { address.write(resource.addr() as u64 * 2) };
    // SAFETY: the wrapper under test passes a pointer that is valid for writes.
    unsafe { size.write(4096) };
    CUresult::CUDA_SUCCESS
}

unsafe extern "C" fn connect(output: *mut CUeglStreamConnection, _: EGLStreamKHR) -> CUresult {
    // SAFETY: the wrapper under test passes a pointer that is valid for writes.
    unsafe { output.write(ptr::without_provenance_mut(0x700)) };
    step(&CONNECTED, 1)
}

unsafe extern "C" fn disconnect(_: *mut CUeglStreamConnection) -> CUresult {
    step(&CONNECTED, -1)
}

unsafe extern "C" fn acquire(
    connection: *mut CUeglStreamConnection,
    output: *mut CUgraphicsResource,
    _: *mut CUstream,
    timeout: c_uint,
) -> CUresult {
    // SAFETY: the wrapper under test passes a pointer to a connection.
    assert_eq!(unsafe { connection.read() }.addr(), 0x700);
    if timeout == 1_000 {
        return CUresult::CUDA_ERROR_LAUNCH_TIMEOUT;
    }
    // SAFETY: the wrapper under test passes a pointer that is valid for writes.
    unsafe { output.write(ptr::without_provenance_mut(0x900)) };
    step(&HELD, 1)
}

unsafe extern "C" fn give_back(
    _: *mut CUeglStreamConnection,
    frame: CUgraphicsResource,
    _: *mut CUstream,
) -> CUresult {
    assert_eq!(frame.addr(), 0x900);
    step(&HELD, -1)
}

unsafe extern "C" fn frame(
    output: *mut CUeglFrame,
    _: CUgraphicsResource,
    _: c_uint,
    _: c_uint,
) -> CUresult {
    let frame = CUeglFrame {
        width: 640,
        ..CUeglFrame::default()
    };
    // SAFETY: the wrapper under test passes a pointer that is valid for writes.
    unsafe { output.write(frame) };
    CUresult::CUDA_SUCCESS
}

fn driver() -> TestResult<(Driver, Simulator)> {
    let simulator = Simulator::new(Config::new())?;
    let mut api = simulator.api();
    api.cuGraphicsGLRegisterBuffer = Some(register_buffer);
    api.cuGraphicsUnregisterResource = Some(unregister);
    api.cuGraphicsMapResources = Some(map);
    api.cuGraphicsUnmapResources = Some(unmap);
    api.cuGraphicsResourceGetMappedPointer_v2 = Some(pointer);
    api.cuEGLStreamConsumerConnect = Some(connect);
    api.cuEGLStreamConsumerDisconnect = Some(disconnect);
    api.cuEGLStreamConsumerAcquireFrame = Some(acquire);
    api.cuEGLStreamConsumerReleaseFrame = Some(give_back);
    api.cuGraphicsResourceGetMappedEglFrame = Some(frame);
    // SAFETY: the functions implement their CUDA contract as far as the tests call them, and the
    // simulator outlives the driver.
    Ok((unsafe { Driver::from_api(api) }?, simulator))
}

/// One test, since the counts are global.
#[test]
fn resources_are_returned_once() -> TestResult {
    let (driver, simulator) = driver()?;
    let context = driver
        .device(0)
        .and_then(|device| device.primary_context())?;
    let stream = context.stream()?;
    // SAFETY: the buffers of this test are plain numbers.
    let register = |buffer| unsafe {
        GraphicsResource::from_gl_buffer(&context, buffer, GraphicsFlags::READ_ONLY)
    };

    let error = register(0)
        .expect_err("there is no such buffer")
        .to_string();
    assert!(error.contains("buffer 0 of OpenGL"), "{error}");
    let mut resources = [register(1)?, register(2)?];
    let mapped = GraphicsResource::map(&mut resources, &stream)?;
    assert_eq!(MAPPED.load(Ordering::Acquire), 2);
    assert_eq!(
        mapped.pointer(1)?,
        (curium_driver::DevicePointer::from_raw(0x400), 4096)
    );
    let error = mapped.pointer(2).expect_err("there are two").to_string();
    assert_eq!(
        error,
        "MappedGraphics::pointer: resource index out of bounds (2 of 2)"
    );
    drop(mapped);
    assert_eq!(MAPPED.load(Ordering::Acquire), 0);
    drop(resources);
    assert_eq!(REGISTERED.load(Ordering::Acquire), 0);

    // SAFETY: the stream of this test is a plain number.
    let mut consumer = unsafe { EglConsumer::connect(&context, ptr::null_mut(), None) }?;
    let timeout = std::time::Duration::from_millis(1);
    let error = consumer
        .acquire(&stream, Some(timeout))
        .map(drop)
        .expect_err("the time is too short");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_LAUNCH_TIMEOUT));
    assert!(
        !error.is_sticky() && !error.to_string().contains("lost"),
        "no frame came in time, no more: {error}"
    );
    let frame = consumer.acquire(&stream, None)?;
    assert_eq!(frame.planes()?.width, 640);
    drop(frame);
    assert_eq!(
        (
            HELD.load(Ordering::Acquire),
            CONNECTED.load(Ordering::Acquire)
        ),
        (0, 1)
    );
    consumer.close()?;
    assert_eq!(CONNECTED.load(Ordering::Acquire), 0);
    drop((stream, context, driver));
    assert!(simulator.live_handles().is_empty());
    Ok(())
}
