//! Images of graphics APIs, on a simulator with hand-written functions in place of missing ones.

use std::ptr;
use std::sync::OnceLock;

use curium_driver::{Driver, Error};
use curium_interop::external::{ExternalMemory, ExternalMemoryKind};
use curium_memory::{ArrayFlags, ArrayShape, MipmappedArray};
use curium_sim::{Config, Simulator};
use curium_sys::{
    Api, CUDA_ARRAY3D_DESCRIPTOR, CUDA_EXTERNAL_MEMORY_HANDLE_DESC,
    CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC, CUexternalMemory, CUmipmappedArray, CUresult,
};
use curium_tests::{TestResult, skip, uses_cuda};
use parking_lot::Mutex;

use super::descriptor;

static SIMULATED: OnceLock<Api> = OnceLock::new();
/// The names of the called functions, in order.
static CALLS: Mutex<Vec<&str>> = Mutex::new(Vec::new());

const BYTES: u64 = 1 << 16;
const OFFSET: u64 = 4096;

fn note(call: &'static str) -> CUresult {
    CALLS.lock().push(call);
    CUresult::CUDA_SUCCESS
}

fn calls() -> Vec<&'static str> {
    std::mem::take(&mut *CALLS.lock())
}

unsafe extern "C" fn import(
    output: *mut CUexternalMemory,
    _: *const CUDA_EXTERNAL_MEMORY_HANDLE_DESC,
) -> CUresult {
    // SAFETY: the caller passes a pointer that is valid for writes.
    unsafe { output.write(ptr::without_provenance_mut(0x100)) };
    note("import")
}

unsafe extern "C" fn destroy_memory(memory: CUexternalMemory) -> CUresult {
    assert_eq!(memory.addr(), 0x100);
    note("destroy memory")
}

unsafe extern "C" fn map_image(
    output: *mut CUmipmappedArray,
    memory: CUexternalMemory,
    description: *const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC,
) -> CUresult {
    // SAFETY: the caller passes a valid description.
    let description = unsafe { &*description };
    if memory.addr() != 0x100 || description.offset != OFFSET {
        return CUresult::CUDA_ERROR_INVALID_VALUE;
    }
    note("map");
    let create = SIMULATED
        .get()
        .and_then(|api| api.cuMipmappedArrayCreate)
        .expect("the simulator has it");
    assert_eq!(
        description.arrayDesc.Flags,
        ArrayFlags::COLOR_ATTACHMENT.bits()
    );
    // The simulator supports no graphics API, and rejects its images.
    let plain = CUDA_ARRAY3D_DESCRIPTOR {
        Flags: 0,
        ..description.arrayDesc
    };
    // SAFETY: both addresses are valid for writes, and the caller's context is current.
    unsafe { create(output, &raw const plain, description.numLevels) }
}

unsafe extern "C" fn destroy_image(image: CUmipmappedArray) -> CUresult {
    note("destroy image");
    let destroy = SIMULATED
        .get()
        .and_then(|api| api.cuMipmappedArrayDestroy)
        .expect("the simulator has it");
    // SAFETY: the caller passes ownership of the array.
    unsafe { destroy(image) }
}

/// Returns a driver of the simulator with the functions of a graphics API.
fn driver(simulator: &Simulator) -> TestResult<Driver> {
    let mut api = simulator.api();
    assert!(SIMULATED.set(api.clone()).is_ok(), "one test uses this");
    api.cuImportExternalMemory = Some(import);
    api.cuDestroyExternalMemory = Some(destroy_memory);
    api.cuExternalMemoryGetMappedMipmappedArray = Some(map_image);
    api.cuMipmappedArrayDestroy = Some(destroy_image);
    // SAFETY: the functions are the simulator's, which outlives the driver, and those above.
    Ok(unsafe { Driver::from_api(api) }?)
}

/// An image of external memory is an array that keeps the memory.
#[test]
fn image_keeps_its_memory() -> TestResult {
    if uses_cuda() {
        return skip("needs the simulator");
    }
    let simulator = Simulator::new(Config::new())?;
    let driver = driver(&simulator)?;
    let context = driver
        .device(0)
        .and_then(|device| device.primary_context())?;
    let stream = context.stream()?;
    let memory = ExternalMemory::import_fd(
        &context,
        descriptor()?,
        ExternalMemoryKind::Opaque,
        BYTES,
        true,
    )?;
    let image = |offset, shape, levels| -> Result<MipmappedArray<f32>, Error> {
        // SAFETY: the function above creates such an image, which is not used elsewhere.
        unsafe { memory.map_image(&stream, offset, shape, levels, ArrayFlags::COLOR_ATTACHMENT) }
    };
    let square = ArrayShape::new_2d(8, 8);
    for (offset, shape, levels, reason) in [
        (BYTES, square, 1, "offset 65536 of memory of 65536 bytes"),
        (OFFSET, ArrayShape::new_2d(0, 8), 1, "empty shape"),
        (OFFSET, square, 0, "(0 for a"),
        (OFFSET, square, 5, "(5 for a"),
    ] {
        let error = image(offset, shape, levels)
            .expect_err("there is no such image")
            .to_string();
        assert!(
            error.contains("ExternalMemory::map_image") && error.contains(reason),
            "{error}"
        );
    }
    let error = image(0, square, 1)
        .expect_err("the other interface has no object there")
        .to_string();
    assert!(error.contains("1 levels of 2D array of 8 × 8"), "{error}");
    let image = image(OFFSET, square, 2)?;
    let (memory, error) = memory
        .close()
        .expect_err("it contains an image")
        .into_parts();
    assert!(error.to_string().contains("still in use"), "{error}");
    let level = image.level(1)?;
    assert_eq!(level.shape(), ArrayShape::new_2d(4, 4));
    level.copy_from_slice(&[3.0; 16])?;
    assert_eq!(level.to_vec()?, [3.0; 16]);
    drop((memory, image));
    assert_eq!(calls(), ["import", "map"], "the level keeps both");
    drop(level);
    assert_eq!(calls(), ["destroy image", "destroy memory"]);
    drop((stream, context, driver));
    assert!(
        simulator.live_handles().is_empty(),
        "{}",
        simulator.live_handles()
    );
    Ok(())
}
