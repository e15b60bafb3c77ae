//! Texture fetches match the arithmetic of the CUDA Programming Guide.

use std::sync::Arc;

use curium_driver::{LaunchConfig, Stream};
use curium_memory::{
    AddressMode, Array, ArrayFlags, ArrayShape, DeviceBuffer, FilterMode, MipmappedArray,
    SurfaceObject, Texture, TextureFlags, TextureObject, TextureOptions,
};
use curium_tests::{TestDriver, TestResult, driver_test, on_driver};

use super::{buffer, kernel, launch, values};

type Reading<'a> = (TextureObject, &'a [f32], &'a mut [f32], u32);

fn array<T: curium_memory::Texel + curium_memory::NoUninit>(
    stream: &Stream,
    shape: ArrayShape,
    elements: &[T],
) -> TestResult<Arc<Array<T>>> {
    Ok(Arc::new(Array::from_slice(
        stream,
        elements,
        shape,
        ArrayFlags::empty(),
    )?))
}

/// Returns the values fetched from a texture at these coordinates, `per` components each.
fn read<T>(
    test: &TestDriver,
    name: &str,
    texture: &Texture<T>,
    at: &[f32],
    (per, channels): (usize, usize),
) -> TestResult<Vec<f32>> {
    let stream = test.stream();
    let count = at.len() / per;
    let coordinates = buffer(&stream, at);
    let mut out = DeviceBuffer::<f32>::zeroed(&stream, count * channels)?;
    let kernel = kernel::<Reading<'_>>(test, curium_tests::kernels::TEXTURE, name);
    let config = LaunchConfig::for_elements(count);
    // SAFETY: the kernel fetches one value per thread, and writes one element per channel for each.
    unsafe {
        kernel.launch(
            &stream,
            config,
            (texture, &coordinates, &mut out, count as u32),
        )
    }?;
    Ok(values(&out))
}

/// Returns the index of an element for a coordinate that may be out of bounds, as CUDA documents
/// it; `None` is the border.
fn folded(mode: AddressMode, is_normalized: bool, index: i64, extent: i64) -> Option<usize> {
    let coordinate = match mode {
        AddressMode::Border => {
            return usize::try_from(index)
                .ok()
                .filter(|coordinate| *coordinate < extent as usize);
        }
        AddressMode::Wrap if is_normalized => index.rem_euclid(extent),
        AddressMode::Mirror if is_normalized => {
            let turn = index.div_euclid(extent);
            let remainder = index.rem_euclid(extent);
            if turn % 2 == 0 {
                remainder
            } else {
                extent - 1 - remainder
            }
        }
        _ => index.clamp(0, extent - 1),
    };
    Some(coordinate as usize)
}

#[track_caller]
fn assert_near(found: &[f32], expected: &[f32], most: f32) {
    assert_eq!(found.len(), expected.len());
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!(
            (found - expected).abs() <= most,
            "place {index}: {found} instead of {expected}"
        );
    }
}

const MODES: [AddressMode; 4] = [
    AddressMode::Wrap,
    AddressMode::Clamp,
    AddressMode::Mirror,
    AddressMode::Border,
];

/// Returns options with one kind of coordinates, and the border color -1.
fn options(mode: AddressMode, filter: FilterMode, is_normalized: bool) -> TextureOptions {
    let flags = if is_normalized {
        TextureFlags::NORMALIZED_COORDINATES
    } else {
        TextureFlags::empty()
    };
    TextureOptions::new()
        .with_address_mode(mode)
        .with_filter(filter)
        .with_flags(flags)
        .with_border_color([-1.0; 4])
}

/// A nearest element of a line is read in every address mode.
#[test]
fn nearest_filter_address_modes() -> TestResult {
    let elements: Vec<f32> = (0..8).map(|x| (x * x) as f32).collect();
    // No coordinate is at the boundary of an element.
    let coordinates: Vec<f32> = (-48..48).map(|step| step as f32 / 2.0 + 0.25).collect();
    on_driver(|test| -> TestResult {
        let line = array(&test.stream(), ArrayShape::new_1d(8), &elements)?;
        for (mode, is_normalized) in MODES
            .into_iter()
            .flat_map(|mode| [(mode, true), (mode, false)])
        {
            let texture =
                Texture::from_array(&line, &options(mode, FilterMode::Point, is_normalized))?;
            let scale = if is_normalized { 8.0 } else { 1.0 };
            let positions: Vec<f32> = coordinates
                .iter()
                .map(|coordinate| coordinate / scale)
                .collect();
            let expected = coordinates.iter().map(|coordinate| {
                folded(mode, is_normalized, coordinate.floor() as i64, 8)
                    .map_or(-1.0, |coordinate| elements[coordinate])
            });
            let actual = read(test, "read_line", &texture, &positions, (1, 1))?;
            assert_eq!(
                actual,
                expected.collect::<Vec<_>>(),
                "{mode:?}, normalized: {is_normalized}"
            );
        }
        Ok(())
    })?;
    Ok(())
}

#[test]
fn linear_filter_blends_1d() -> TestResult {
    let elements: Vec<f32> = (0..8).map(|x| (x * x) as f32).collect();
    let coordinates: Vec<f32> = (-160..320).map(|step| step as f32 / 16.0).collect();
    on_driver(|test| -> TestResult {
        let line = array(&test.stream(), ArrayShape::new_1d(8), &elements)?;
        for (mode, is_normalized) in MODES
            .into_iter()
            .flat_map(|mode| [(mode, true), (mode, false)])
        {
            let options = options(mode, FilterMode::Linear, is_normalized);
            let texture = Texture::from_array(&line, &options)?;
            let scale = if is_normalized { 8.0 } else { 1.0 };
            let positions: Vec<f32> = coordinates
                .iter()
                .map(|coordinate| coordinate / scale)
                .collect();
            let element = |index| {
                folded(mode, is_normalized, index, 8)
                    .map_or(-1.0, |coordinate| elements[coordinate])
            };
            let expected: Vec<f32> = coordinates
                .iter()
                .map(|coordinate| {
                    let first = (coordinate - 0.5).floor();
                    let share = (coordinate - 0.5).rem_euclid(1.0);
                    (1.0 - share) * element(first as i64) + share * element(first as i64 + 1)
                })
                .collect();
            assert_near(
                &read(test, "read_line", &texture, &positions, (1, 1))?,
                &expected,
                0.05,
            );
        }
        Ok(())
    })?;
    Ok(())
}

/// Elements of planes and volumes are blended in each direction.
#[driver_test]
fn linear_filter_blends_2d_and_3d(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let options = options(AddressMode::Clamp, FilterMode::Linear, false);
    // Interpolation of the sum of the coordinates is exact between the centers.
    let plane: Vec<f32> = (0..8 * 6)
        .map(|index| (index % 8 + 10 * (index / 8)) as f32)
        .collect();
    let plane = Texture::from_array(&array(&stream, ArrayShape::new_2d(8, 6), &plane)?, &options)?;
    let positions: Vec<[f32; 2]> = (0..50)
        .map(|step| {
            [
                0.5 + (step % 10) as f32 * 0.75,
                0.5 + (step / 10) as f32 * 1.125,
            ]
        })
        .collect();
    let expected: Vec<f32> = positions
        .iter()
        .map(|[x, y]| x - 0.5 + 10.0 * (y - 0.5))
        .collect();
    assert_near(
        &read(test, "read_plane", &plane, positions.as_flattened(), (2, 1))?,
        &expected,
        0.1,
    );
    let volume: Vec<f32> = (0..4 * 4 * 4)
        .map(|index| (index % 4 + 4 * (index / 4 % 4) + 16 * (index / 16)) as f32)
        .collect();
    let volume = Texture::from_array(
        &array(&stream, ArrayShape::new_3d(4, 4, 4), &volume)?,
        &options,
    )?;
    let positions: Vec<[f32; 3]> = (0..64_u8)
        .map(|step| {
            [step % 4, step / 4 % 4, step / 16]
                .map(|coordinate| 0.5 + f32::from(coordinate) * 0.875)
        })
        .collect();
    let expected: Vec<f32> = positions
        .iter()
        .map(|[x, y, z]| x - 0.5 + 4.0 * (y - 0.5) + 16.0 * (z - 0.5))
        .collect();
    assert_near(
        &read(
            test,
            "read_volume",
            &volume,
            positions.as_flattened(),
            (3, 1),
        )?,
        &expected,
        0.2,
    );
    Ok(())
}

/// Bytes are read as fractions and in sRGB as brightness.
#[test]
fn bytes_are_normalized() -> TestResult {
    let colors: Vec<[u8; 4]> = (0..64)
        .map(|step| [4 * step, 255 - 4 * step, 128, step])
        .collect();
    let positions: Vec<f32> = (0..64_u8)
        .flat_map(|step| [f32::from(step % 8) + 0.5, f32::from(step / 8) + 0.5])
        .collect();
    on_driver(|test| -> TestResult {
        let plane = array(&test.stream(), ArrayShape::new_2d(8, 8), &colors)?;
        let point = options(AddressMode::Clamp, FilterMode::Point, false);
        let texture = Texture::from_array(&plane, &point)?;
        let fractions: Vec<f32> = colors
            .iter()
            .flatten()
            .map(|byte| f32::from(*byte) / 255.0)
            .collect();
        assert_near(
            &read(test, "read_colors", &texture, &positions, (2, 4))?,
            &fractions,
            1e-6,
        );
        let texture = Texture::from_array(&plane, &point.with_flags(TextureFlags::SRGB))?;
        let brightness = |(index, value): (usize, &f32)| match value {
            alpha if index % 4 == 3 => *alpha,
            dark if *dark <= 0.04045 => dark / 12.92,
            bright => ((bright + 0.055) / 1.055).powf(2.4),
        };
        let expected: Vec<f32> = fractions.iter().enumerate().map(brightness).collect();
        // The precision is unspecified: the error of hardware is half a step of a byte, which is
        // largest near white.
        let step = 1.0 - brightness((0, &(254.0 / 255.0)));
        assert_near(
            &read(test, "read_colors", &texture, &positions, (2, 4))?,
            &expected,
            step / 2.0,
        );
        Ok(())
    })?;
    Ok(())
}

/// Integers are fetched unconverted in element read mode.
#[test]
fn read_mode_fetches_integers() -> TestResult {
    let pairs: Vec<[u16; 2]> = (0..16).map(|step| [step * 4000, 65_535 - step]).collect();
    on_driver(|test| -> TestResult {
        let stream = test.stream();
        let plane = array(&stream, ArrayShape::new_2d(4, 4), &pairs)?;
        let options = options(AddressMode::Clamp, FilterMode::Point, false)
            .with_flags(TextureFlags::READ_AS_INTEGER);
        let texture = Texture::from_array(&plane, &options)?;
        let positions: Vec<f32> = (0..16_u8)
            .flat_map(|step| [f32::from(step % 4) + 0.5, f32::from(step / 4) + 0.5])
            .collect();
        let coordinates = buffer(&stream, &positions);
        let mut out = DeviceBuffer::<u32>::zeroed(&stream, 32)?;
        launch!(test, &stream, TEXTURE::"read_pairs", (TextureObject, &[f32], &mut [u32], u32),
            LaunchConfig::for_elements(16), (&texture, &coordinates, &mut out, 16));
        let expected: Vec<u32> = pairs
            .iter()
            .flatten()
            .map(|number| u32::from(*number))
            .collect();
        assert_eq!(values(&out), expected);
        Ok(())
    })?;
    Ok(())
}

/// Layers are read separately and the layer is clamped.
#[driver_test]
fn layers_are_separate_and_clamped(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let options = options(AddressMode::Clamp, FilterMode::Point, false);
    let lines: Vec<f32> = (0..12_u8).map(f32::from).collect();
    let lines = Texture::from_array(
        &array(&stream, ArrayShape::layered_1d(4, 3), &lines)?,
        &options,
    )?;
    let actual = read(
        test,
        "read_line_of_layer",
        &lines,
        &[1.5, 0.0, 1.5, 2.0, 9.0, 1.0, 0.5, 7.0],
        (2, 1),
    )?;
    assert_eq!(actual, [1.0, 9.0, 7.0, 8.0]);
    let planes: Vec<f32> = (0..24_u8).map(f32::from).collect();
    let planes = Texture::from_array(
        &array(&stream, ArrayShape::layered_2d(4, 2, 3), &planes)?,
        &options,
    )?;
    let actual = read(
        test,
        "read_layer",
        &planes,
        &[1.5, 1.5, 0.0, 3.5, 0.5, 2.0, 0.5, 0.5, 1.0],
        (3, 1),
    )?;
    assert_eq!(actual, [5.0, 19.0, 8.0]);
    Ok(())
}

/// A direction into a cube reads the face that it points to.
#[test]
fn direction_selects_the_face() -> TestResult {
    // The top two elements of each face differ from the others.
    let face = |number: u8| [0.25, 0.25, 0.0, 0.0].map(|more| f32::from(number) + more);
    let options = options(AddressMode::Clamp, FilterMode::Point, true);
    on_driver(|test| -> TestResult {
        let stream = test.stream();
        let faces: Vec<f32> = (0..6).flat_map(face).collect();
        let cube = Texture::from_array(&array(&stream, ArrayShape::cubemap(2), &faces)?, &options)?;
        let directions = [
            [1.0, 0.4, 0.3],
            [-1.0, -0.4, 0.3],
            [0.2, 2.0, -0.9],
            [0.2, -2.0, -0.9],
            [0.1, 0.5, 3.0],
            [0.1, -0.5, -3.0_f32],
        ];
        let actual = read(test, "read_cube", &cube, directions.as_flattened(), (3, 1))?;
        assert_eq!(actual, [0.25, 1.0, 2.25, 3.0, 4.25, 5.0]);
        let faces: Vec<f32> = (0..12).flat_map(face).collect();
        let cubes = Texture::from_array(
            &array(&stream, ArrayShape::layered_cubemap(2, 2), &faces)?,
            &options,
        )?;
        let actual = read(
            test,
            "read_cube_of_layer",
            &cubes,
            &[1.0, 0.4, 0.3, 0.0, 0.1, -0.5, -3.0, 1.0],
            (4, 1),
        )?;
        assert_eq!(actual, [0.25, 11.0]);
        Ok(())
    })?;
    Ok(())
}

#[driver_test]
fn mipmap_level_is_selected_or_blended(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let flags = ArrayFlags::empty();
    let levels = MipmappedArray::<f32>::new(&stream, ArrayShape::new_2d(8, 8), 4, flags)?;
    for level in 0..4_u8 {
        let array = levels.level(level.into())?;
        let elements = vec![10.0 * f32::from(level); array.len()];
        array.copy_from_slice(&elements)?;
    }
    let levels = Arc::new(levels);
    let positions = [
        0.3, 0.6, 0.0, 0.3, 0.6, 1.25, 0.3, 0.6, 2.75, 0.3, 0.6, 9.0, 0.3, 0.6, -1.0,
    ];
    let texture = |filter, most| -> TestResult<_> {
        let options =
            options(AddressMode::Clamp, FilterMode::Point, true).with_mipmaps(filter, 0.0, most);
        Ok(Texture::from_mipmapped_array(&levels, &options, None)?)
    };
    let nearest = read(
        test,
        "read_level",
        &texture(FilterMode::Point, 3.0)?,
        &positions,
        (3, 1),
    )?;
    assert_eq!(nearest, [0.0, 10.0, 30.0, 30.0, 0.0]);
    let blended = read(
        test,
        "read_level",
        &texture(FilterMode::Linear, 3.0)?,
        &positions,
        (3, 1),
    )?;
    assert_near(&blended, &[0.0, 12.5, 27.5, 30.0, 0.0], 0.05);
    let clamped = read(
        test,
        "read_level",
        &texture(FilterMode::Linear, 2.0)?,
        &positions,
        (3, 1),
    )?;
    assert_near(&clamped, &[0.0, 12.5, 20.0, 20.0, 0.0], 0.05);
    // A step of a quarter of the plane is two elements, which is level 1.
    let steps = [0.3, 0.6, 0.125, 0.3, 0.6, 0.25, 0.3, 0.6, 0.5];
    let actual = read(
        test,
        "read_gradient",
        &texture(FilterMode::Point, 3.0)?,
        &steps,
        (3, 1),
    )?;
    assert_eq!(actual, [0.0, 10.0, 20.0]);
    Ok(())
}

#[driver_test]
fn four_elements_are_gathered_against_the_clock(test: &TestDriver) -> TestResult {
    let elements: Vec<f32> = (0..16_u8).map(f32::from).collect();
    let stream = test.stream();
    let plane = Array::from_slice(
        &stream,
        &elements,
        ArrayShape::new_2d(4, 4),
        ArrayFlags::GATHER,
    );
    let options = options(AddressMode::Clamp, FilterMode::Point, false);
    let texture = Texture::from_array(&Arc::new(plane?), &options)?;
    let actual = read(test, "gather", &texture, &[2.0, 1.0, 0.0, 2.0], (2, 4))?;
    assert_eq!(actual, [5.0, 6.0, 2.0, 1.0, 8.0, 8.0, 4.0, 4.0]);
    Ok(())
}

/// A buffer is fetched by integers and zero past its end.
#[driver_test]
fn buffer_texture_is_zero_past_its_end(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let elements: Vec<u32> = (0..128).map(|index| index * index).collect();
    let texture = Texture::from_buffer(
        &Arc::new(buffer(&stream, &elements)),
        &TextureOptions::new(),
    )?;
    let coordinates = buffer(&stream, &[0_i32, 5, 127, 128, -1]);
    let mut out = DeviceBuffer::<u32>::zeroed(&stream, 5)?;
    launch!(test, &stream, TEXTURE::"fetch", (TextureObject, &[i32], &mut [u32], u32), LaunchConfig::for_elements(5),
            (&texture, &coordinates, &mut out, 5));
    assert_eq!(values(&out), [0, 25, 127 * 127, 0, 0]);
    Ok(())
}

/// A kernel learns the sizes of a texture and of a surface.
#[driver_test]
fn kernel_queries_texture_and_surface_sizes(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let plane = array(&stream, ArrayShape::new_2d(6, 5), &[0.0_f32; 30])?;
    let texture = Texture::from_array(&plane, &TextureOptions::new())?;
    let written = Array::from_slice(
        &stream,
        &[0.0_f32; 21],
        ArrayShape::new_2d(3, 7),
        ArrayFlags::SURFACE,
    );
    let surface = curium_memory::Surface::new(&Arc::new(written?))?;
    let mut out = DeviceBuffer::<u32>::zeroed(&stream, 4)?;
    launch!(test, &stream, TEXTURE::"sizes", (TextureObject, SurfaceObject, &mut [u32]), LaunchConfig::new(1, 1),
            (&texture, &surface, &mut out));
    assert_eq!(values(&out), [6, 5, 3, 7]);
    Ok(())
}
