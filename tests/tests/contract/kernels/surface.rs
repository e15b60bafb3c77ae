//! Surfaces: writes reach the array, and writes out of bounds follow the boundary mode.

use std::sync::Arc;

use curium_driver::{LaunchConfig, Stream};
use curium_memory::{Array, ArrayFlags, ArrayShape, DeviceBuffer, Surface, SurfaceObject};
use curium_sim::Simulator;
use curium_sys::CUresult;
use curium_tests::kernels::TEXTURE;
use curium_tests::{TestDriver, TestResult, driver_test, simulator_test};

use super::{launch, values};

fn array<T: curium_memory::Texel + curium_memory::NoUninit>(
    stream: &Stream,
    shape: ArrayShape,
    elements: &[T],
) -> TestResult<Arc<Array<T>>> {
    Ok(Arc::new(Array::from_slice(
        stream,
        elements,
        shape,
        ArrayFlags::SURFACE,
    )?))
}

/// A plane is accessed out of bounds by the boundary mode.
#[driver_test]
fn surface_boundary_mode_applies(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let width = 5_u32;
    let height = 3_u32;
    let plane = array(&stream, ArrayShape::new_2d(5, 3), &[0.0_f32; 15])?;
    let surface = Surface::new(&plane)?;
    let mut out = DeviceBuffer::<f32>::zeroed(&stream, 30)?;
    launch!(test, &stream, TEXTURE::"surface_plane", (SurfaceObject, &mut [f32], u32, u32), LaunchConfig::new(1, 1),
            (&surface, &mut out, width, height));
    fn value(x: u32, y: u32) -> f32 {
        (x + 10 * y) as f32
    }

    let coordinates = || (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
    let next = |(x, y): (u32, u32)| {
        let is_inside = x + 1 < width;
        [
            value((x + 1).min(width - 1), y),
            if is_inside { value(x + 1, y) } else { 0.0 },
        ]
    };
    assert_eq!(
        values(&out),
        coordinates().flat_map(next).collect::<Vec<_>>()
    );
    let expected: Vec<f32> = coordinates().map(|(x, y)| value(x, y)).collect();
    assert_eq!(plane.to_vec()?, expected);
    Ok(())
}

#[driver_test]
fn volume_and_layers_are_written_element_by_element(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let volume = array(&stream, ArrayShape::new_3d(4, 3, 2), &[[0_u8; 4]; 24])?;
    let surface = Surface::new(&volume)?;
    launch!(test, &stream, TEXTURE::"surface_volume", (SurfaceObject, u32, u32, u32), LaunchConfig::new(1, 1),
            (&surface, 4, 3, 2));
    let expected: Vec<[u8; 4]> = (0..24)
        .map(|index| [index % 4, index / 4 % 3, index / 12, 255])
        .collect();
    assert_eq!(volume.to_vec()?, expected);
    let before: Vec<u16> = (0..12).map(|index| 1000 * index).collect();
    let layers = array(&stream, ArrayShape::layered_1d(4, 3), &before)?;
    let surface = Surface::new(&layers)?;
    launch!(test, &stream, TEXTURE::"surface_layers", (SurfaceObject, u32, u32), LaunchConfig::new(1, 1),
            (&surface, 4, 3));
    let expected: Vec<u16> = (0..12).map(|index| 1001 * index).collect();
    assert_eq!(layers.to_vec()?, expected);
    Ok(())
}

/// Threads add to elements of a surface without losing any.
#[driver_test]
fn surface_reductions_are_atomic(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let line = array(&stream, ArrayShape::new_1d(8), &[5_u32; 8])?;
    let surface = Surface::new(&line)?;
    launch!(test, &stream, TEXTURE::"surface_add", (SurfaceObject, u32, u32), LaunchConfig::for_elements(1000),
            (&surface, 8, 1000));
    let expected: Vec<u32> = (0..8)
        .map(|index| 5 + (index..1000).step_by(8).sum::<u32>())
        .collect();
    assert_eq!(line.to_vec()?, expected);
    Ok(())
}

/// Access out of bounds with trap mode fails the launch.
#[simulator_test]
fn trap_mode_fails_an_out_of_bounds_launch(test: &TestDriver, simulator: &Simulator) -> TestResult {
    let stream = test.stream();
    let line = array(&stream, ArrayShape::new_1d(8), &[0_u32; 8])?;
    let surface = Surface::new(&line)?;
    // The kernel outlives its fault: a library cannot be unloaded from a corrupted context.
    let kernel = super::kernel::<(SurfaceObject, u32)>(test, TEXTURE, "surface_trap");
    // SAFETY: the kernel writes only to the surface, and an out-of-bounds write traps.
    unsafe { kernel.launch(&stream, LaunchConfig::new(1, 1), (&surface, 8)) }?;
    let error = stream
        .synchronize()
        .expect_err("the location is out of bounds");
    assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_LAUNCH_FAILED));
    simulator.reset_errors();
    Ok(())
}
