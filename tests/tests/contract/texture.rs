//! [`Texture`] and [`Surface`]: their descriptors, and the objects they keep alive.

use std::sync::Arc;

use curium_driver::{
    Argument, ContextOptions, Error, Function, Graph, GreenContextOptions, SplitFlags, Stream,
};
use curium_memory::{
    AddressMode, Array, ArrayFlags, ArrayRegion, ArrayShape, DeviceBuffer, FilterMode,
    MipmappedArray, Pitch2d, Surface, SurfaceObject, Texture, TextureFlags, TextureObject,
    TextureOptions, TextureView,
};
use curium_sim::{Fault, Simulator};
use curium_sys::{CUresourceViewFormat, CUresult};
use curium_tests::{
    Gate, TestDriver, TestResult, begin, driver_test, resume_panic, simulator_test, skip,
    stream_work,
};

fn array(test: &TestDriver, flags: ArrayFlags) -> TestResult<Arc<Array<f32>>> {
    let array = Array::from_slice(&test.stream(), &[0.5; 32], ArrayShape::new_2d(8, 4), flags);
    Ok(Arc::new(array?))
}

#[driver_test]
fn texture_returns_its_options(test: &TestDriver) -> TestResult {
    let options = TextureOptions::new()
        .with_address_mode(AddressMode::Mirror)
        .with_filter(FilterMode::Linear)
        .with_flags(TextureFlags::NORMALIZED_COORDINATES)
        .with_border_color([0.0, 0.25, 0.5, 1.0]);
    let texture = Texture::from_array(&array(test, ArrayFlags::empty())?, &options)?;
    let told = texture.options()?;
    // Drivers do not return the border color.
    assert_eq!(told.with_border_color(options.border_color), options);
    texture.close()?;
    Ok(())
}

/// Textures are of arrays mipmapped arrays and buffers.
#[driver_test]
fn textures_read_arrays_mipmaps_and_buffers(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let options = TextureOptions::new();
    let plain = array(test, ArrayFlags::empty())?;
    Texture::from_array(&plain, &options)?;
    let view = TextureView::new(
        CUresourceViewFormat::CU_RES_VIEW_FORMAT_FLOAT_1X32,
        [8, 4, 0],
    );
    Texture::from_array_with_view(&plain, &options, Some(&view))?;
    let levels =
        MipmappedArray::<[u8; 4]>::new(&stream, ArrayShape::new_2d(16, 16), 4, ArrayFlags::empty());
    let levels = Arc::new(levels?);
    let options = TextureOptions::new()
        .with_flags(TextureFlags::NORMALIZED_COORDINATES)
        .with_mipmaps(FilterMode::Point, 0.0, 3.0);
    Texture::from_mipmapped_array(&levels, &options, None)?;
    let buffer = Arc::new(DeviceBuffer::<u32>::zeroed(&stream, 4096)?);
    Texture::from_buffer(&buffer, &TextureOptions::new())?;
    let plane = Pitch2d {
        width: 32,
        height: 16,
        pitch_bytes: 1024,
    };
    Texture::from_pitch2d(&buffer, plane, &TextureOptions::new())?;
    let beyond = Pitch2d {
        height: 17,
        ..plane
    };
    let error = Texture::from_pitch2d(&buffer, beyond, &TextureOptions::new())
        .expect_err("the buffer is shorter");
    assert!(matches!(error, Error::Argument(_)), "{error}");
    assert!(
        error
            .to_string()
            .contains("17 rows of 32 elements, pitch 1024 bytes, buffer of 16384"),
        "{error}"
    );
    Ok(())
}

#[driver_test]
fn texture_keeps_its_array_and_is_destroyed_before_it(test: &TestDriver) -> TestResult {
    let array = array(test, ArrayFlags::empty())?;
    let texture = Texture::from_array(&array, &TextureOptions::new())?;
    test.assert_calls(Function::cuArrayDestroy, 0, || drop(array));
    test.assert_calls(Function::cuTexObjectDestroy, 1, || {
        test.assert_calls(Function::cuArrayDestroy, 1, || drop(texture));
    });
    Ok(())
}

/// A kernel that reads a texture waits for the copy to its array.
#[driver_test]
fn texture_read_waits_for_the_array_copy(test: &TestDriver) -> TestResult {
    let array = array(test, ArrayFlags::empty())?;
    let other = test.stream();
    let source = DeviceBuffer::from_slice(array.stream(), &[1.0_f32; 32])?;
    let texture = Texture::from_array(&array, &TextureOptions::new())?;
    let gate = Gate::on(array.stream());
    array.copy_from_device(ArrayRegion::whole(array.shape()), &source)?;
    let mut argument = &texture;
    // SAFETY: nothing is launched with the value.
    let object: TextureObject = unsafe { argument.bind(&mut begin(&other)) }?;
    assert_eq!(
        format!("{object:?}"),
        format!("TextureObject({})", texture.as_raw())
    );
    assert!(
        stream_work::is_held_up(&other),
        "the stream did not wait for the copy"
    );
    gate.open();
    other.synchronize()?;
    Ok(())
}

/// A copy to an array waits for the kernel that reads it through a texture.
#[driver_test]
fn array_copy_waits_for_the_texture_read(test: &TestDriver) -> TestResult {
    let array = array(test, ArrayFlags::empty())?;
    let other = test.stream();
    let source = DeviceBuffer::from_slice(array.stream(), &[1.0_f32; 32])?;
    let texture = Texture::from_array(&array, &TextureOptions::new())?;
    let mut argument = &texture;
    // SAFETY: `launched` is called before the texture is used for anything else.
    let _: TextureObject = unsafe { argument.bind(&mut begin(&other)) }?;
    let gate = Gate::on(&other);
    // SAFETY: the texture was bound to this stream above and has not been used since.
    unsafe { Argument::<TextureObject>::launched(&mut argument, &mut begin(&other)) };
    let region = ArrayRegion::whole(array.shape());
    array.copy_from_device(region, &source)?;
    assert!(
        stream_work::is_held_up(array.stream()),
        "the copy did not wait for the kernel"
    );
    gate.open();
    let mut target = DeviceBuffer::<f32>::zeroed(array.stream(), 32)?;
    array.copy_to_device(region, &mut target)?;
    assert_eq!(target.to_vec()?, [1.0; 32]);
    Ok(())
}

/// A copy to a level waits for the kernel that reads it through a texture.
#[driver_test]
fn level_copy_waits_for_the_texture_read(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let other = test.stream();
    let levels =
        MipmappedArray::<[u8; 4]>::new(&stream, ArrayShape::new_2d(16, 16), 4, ArrayFlags::empty());
    let levels = Arc::new(levels?);
    let level = levels.level(1)?;
    level.copy_from_slice(&[[7; 4]; 64])?;
    let options = TextureOptions::new().with_flags(TextureFlags::NORMALIZED_COORDINATES);
    let texture = Texture::from_mipmapped_array(&levels, &options, None)?;
    let source = DeviceBuffer::from_slice(&stream, &[[1_u8; 4]; 64])?;
    let mut argument = &texture;
    // SAFETY: `launched` is called before the texture is used for anything else.
    let _: TextureObject = unsafe { argument.bind(&mut begin(&other)) }?;
    let gate = Gate::on(&other);
    // SAFETY: the texture was bound to this stream above and has not been used since.
    unsafe { Argument::<TextureObject>::launched(&mut argument, &mut begin(&other)) };
    level.copy_from_device(ArrayRegion::whole(level.shape()), &source)?;
    assert!(
        stream_work::is_held_up(&stream),
        "the copy did not wait for the kernel"
    );
    gate.open();
    stream.synchronize()?;
    Ok(())
}

/// A kernel that writes a surface waits for every earlier access to its array.
#[driver_test]
fn surface_write_waits_for_earlier_accesses(test: &TestDriver) -> TestResult {
    let array = array(test, ArrayFlags::SURFACE)?;
    let texture = Texture::from_array(&array, &TextureOptions::new())?;
    let surface = Surface::new(&array)?;
    let source = DeviceBuffer::from_slice(array.stream(), &[1.0_f32; 32])?;
    let mut target = DeviceBuffer::<f32>::zeroed(array.stream(), 32)?;
    let region = ArrayRegion::whole(array.shape());
    let mut copy_from = || {
        array
            .copy_to_device(region, &mut target)
            .expect("the lengths are equal");
    };
    let copy_to = || {
        array
            .copy_from_device(region, &source)
            .expect("the lengths are equal");
    };
    let read = |stream: &Stream| {
        // SAFETY: nothing is launched with the value; the gate on the stream stands for the kernel.
        let _: TextureObject =
            unsafe { (&mut &texture).bind(&mut begin(stream)) }.expect("failed to use the texture");
        // SAFETY: the texture was bound to this stream and has not been used since.
        unsafe { Argument::<TextureObject>::launched(&mut &texture, &mut begin(stream)) };
    };
    let write = |stream: &Stream| {
        // SAFETY: as for the texture.
        let _: SurfaceObject =
            unsafe { (&mut &surface).bind(&mut begin(stream)) }.expect("failed to use the surface");
        // SAFETY: as for the texture.
        unsafe { Argument::<SurfaceObject>::launched(&mut &surface, &mut begin(stream)) };
    };
    let waits_for =
        |what: &str, access: &mut dyn FnMut(&Stream), stream: &Stream| -> TestResult<_> {
            let other = test.stream();
            let gate = Gate::on(stream);
            access(stream);
            write(&other);
            assert!(
                stream_work::is_held_up(&other),
                "the kernel did not wait for the {what}"
            );
            gate.open();
            other.synchronize()?;
            Ok(())
        };
    waits_for("copy to the array", &mut |_| copy_to(), array.stream())?;
    waits_for("copy from the array", &mut |_| copy_from(), array.stream())?;
    waits_for(
        "kernel that reads a texture",
        &mut |stream| read(stream),
        &test.stream(),
    )?;
    waits_for(
        "kernel that writes a surface",
        &mut |stream| write(stream),
        &test.stream(),
    )?;
    Ok(())
}

#[driver_test]
fn copy_waits_for_the_kernel_that_writes_a_surface(test: &TestDriver) -> TestResult {
    let array = array(test, ArrayFlags::SURFACE)?;
    let other = test.stream();
    let surface = Surface::new(&array)?;
    let mut argument = &surface;
    // SAFETY: `launched` is called before the surface is used for anything else.
    let _: SurfaceObject = unsafe { argument.bind(&mut begin(&other)) }?;
    let gate = Gate::on(&other);
    // SAFETY: the surface was bound to this stream above and has not been used since.
    unsafe { Argument::<SurfaceObject>::launched(&mut argument, &mut begin(&other)) };
    let mut target = DeviceBuffer::<f32>::zeroed(array.stream(), 32)?;
    array.stream().synchronize()?;
    array.copy_to_device(ArrayRegion::whole(array.shape()), &mut target)?;
    assert!(
        stream_work::is_held_up(array.stream()),
        "the copy did not wait for the kernel"
    );
    gate.open();
    assert_eq!(target.to_vec()?, [0.5; 32]);
    surface.close()?;
    Ok(())
}

#[driver_test]
fn array_that_was_not_made_for_surfaces_has_none(test: &TestDriver) -> TestResult {
    let array = array(test, ArrayFlags::empty())?;
    let error = Surface::new(&array).expect_err("the array lacks the flag");
    assert!(
        matches!(error, Error::Argument(_)) && error.to_string().contains("ArrayFlags::SURFACE"),
        "{error}"
    );
    Ok(())
}

/// Textures and surfaces are valid on streams of their context and green ones only.
#[driver_test]
fn textures_are_valid_in_their_context_only(test: &TestDriver) -> TestResult {
    let array = array(test, ArrayFlags::SURFACE)?;
    let texture = Texture::from_array(&array, &TextureOptions::new())?;
    let surface = Surface::new(&array)?;
    let bind = |stream: &Stream| {
        // SAFETY: nothing is launched with the value.
        let texture =
            unsafe { Argument::<TextureObject>::bind(&mut &texture, &mut begin(stream)) }.map(drop);
        // SAFETY: nothing is launched with the value.
        let surface =
            unsafe { Argument::<SurfaceObject>::bind(&mut &surface, &mut begin(stream)) }.map(drop);
        [(texture, "texture"), (surface, "surface")]
    };
    let context = test.device().create_context(ContextOptions::new())?;
    let stream = context.stream()?;
    for (result, what) in bind(&stream) {
        let error = result.expect_err("the stream belongs to another context");
        assert!(matches!(error, Error::Argument(_)), "{error}");
        let expected = format!(
            "the {what} belongs to {:?}, {stream:?} to {context:?}",
            array.stream().context()
        );
        assert!(error.to_string().contains(&expected), "{error}");
    }
    if !test.driver().has(Function::cuGreenCtxCreate) {
        return skip("the driver lacks cuGreenCtxCreate");
    }
    let split = test
        .device()
        .multiprocessors()
        .and_then(|all| all.split(1, 16, SplitFlags::empty()));
    let part = split?.parts.swap_remove(0);
    let green = test
        .device()
        .green_context(GreenContextOptions::new(part))?;
    let stream = green.stream()?;
    for (result, _) in bind(&stream) {
        result?;
    }
    Ok(())
}

#[driver_test]
fn view_without_levels_or_layers_is_refused(test: &TestDriver) -> TestResult {
    let levels = MipmappedArray::<[u8; 4]>::new(
        &test.stream(),
        ArrayShape::new_2d(16, 16),
        4,
        ArrayFlags::empty(),
    );
    let levels = Arc::new(levels?);
    let options = TextureOptions::new().with_flags(TextureFlags::NORMALIZED_COORDINATES);
    let view = || {
        TextureView::new(
            CUresourceViewFormat::CU_RES_VIEW_FORMAT_UINT_4X8,
            [16, 16, 0],
        )
    };
    for (view, expected) in [
        (view().with_levels(2..2), "empty range of levels (2..2)"),
        (view().with_layers(0..0), "empty range of layers (0..0)"),
    ] {
        let error = Texture::from_mipmapped_array(&levels, &options, Some(&view))
            .expect_err("nothing is reported");
        assert!(
            matches!(error, Error::Argument(_)) && error.to_string().contains(expected),
            "{error}"
        );
    }
    Ok(())
}

/// A texture of a buffer dropped during a capture outlives the kernels that read it.
#[driver_test]
fn texture_dropped_in_a_capture_outlives_readers(test: &TestDriver) -> TestResult {
    let stream = test.stream();
    let other = test.stream();
    let buffer = Arc::new(DeviceBuffer::<u32>::zeroed(&stream, 4096)?);
    let texture =
        || -> TestResult<_> { Ok(Texture::from_buffer(&buffer, &TextureOptions::new())?) };
    let idle = texture()?;
    let graph = Graph::capture(&test.context(), |_| {
        test.assert_calls(Function::cuTexObjectDestroy, 1, || {
            idle.close().map_err(|returned| returned.error)
        })
    });
    drop(graph?);
    let used = texture()?;
    // SAFETY: `launched` is called before the texture is used for anything else.
    let _: TextureObject = unsafe { (&mut &used).bind(&mut begin(&other)) }?;
    let gate = Gate::on(&other);
    // SAFETY: the texture was bound to this stream above and has not been used since.
    unsafe { Argument::<TextureObject>::launched(&mut &used, &mut begin(&other)) };
    std::thread::scope(|scope| {
        let dropping = scope.spawn(|| drop(used));
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert!(
            !dropping.is_finished(),
            "the texture was destroyed while the device used it"
        );
        gate.open();
        resume_panic(dropping.join());
    });
    Ok(())
}

/// A texture that the driver does not destroy is returned.
#[simulator_test]
fn texture_is_returned_if_destruction_fails(
    test: &TestDriver,
    simulator: &Simulator,
) -> TestResult {
    let array = array(test, ArrayFlags::SURFACE)?;
    let texture = Texture::from_array(&array, &TextureOptions::new())?;
    let surface = Surface::new(&array)?;
    for function in [Function::cuTexObjectDestroy, Function::cuSurfObjectDestroy] {
        simulator.inject(Fault::on(function).returns(CUresult::CUDA_ERROR_OPERATING_SYSTEM));
    }
    let (texture, error) = texture
        .close()
        .expect_err("the injected fault occurs")
        .into_parts();
    assert_eq!(error.function(), Some(Function::cuTexObjectDestroy));
    texture.options()?;
    let (_surface, error) = surface
        .close()
        .expect_err("the injected fault occurs")
        .into_parts();
    assert_eq!(error.function(), Some(Function::cuSurfObjectDestroy));
    Ok(())
}

pub(crate) mod operations {
    use std::sync::Arc;

    use curium_driver::{Graph, Result};
    use curium_memory::{
        DeviceBuffer, Pitch2d, Surface, SurfaceObject, Texture, TextureObject, TextureOptions,
    };

    use crate::array::operations::{array, levels};
    use crate::operations::{Fixture, Operation, Operations, made, pass};

    const OPERATIONS: &[Operation] = &[
        ("Texture::from_array", |fixture| made(texture(fixture)?)),
        ("Texture::from_mipmapped_array", |fixture| {
            made(Texture::from_mipmapped_array(
                &Arc::new(levels(fixture)?),
                &TextureOptions::new(),
                None,
            )?)
        }),
        ("Texture::from_array_with_view", |fixture| {
            made(Texture::from_array_with_view(
                &Arc::new(array(fixture)?),
                &TextureOptions::new(),
                None,
            )?)
        }),
        ("Texture::from_buffer", |fixture| {
            made(Texture::from_buffer(
                &buffer(fixture)?,
                &TextureOptions::new(),
            )?)
        }),
        ("Texture::from_pitch2d", |fixture| {
            let plane = Pitch2d {
                width: 4,
                height: 2,
                pitch_bytes: 512,
            };
            made(Texture::from_pitch2d(
                &buffer(fixture)?,
                plane,
                &TextureOptions::new(),
            )?)
        }),
        ("Texture::options", |fixture| {
            let texture = texture(fixture)?;
            texture.options()?;
            made(texture)
        }),
        ("Texture::bind and Texture::launched", |fixture| {
            let texture = texture(fixture)?;
            pass::<TextureObject>(&fixture.other, &texture)?;
            made(texture)
        }),
        ("Surface::bind and Surface::launched", |fixture| {
            let surface = Surface::new(&Arc::new(array(fixture)?))?;
            pass::<SurfaceObject>(&fixture.other, &surface)?;
            made(surface)
        }),
        ("Texture::bind and Surface::bind, in a capture", |fixture| {
            let array = Arc::new(array(fixture)?);
            let texture = Texture::from_array(&array, &TextureOptions::new())?;
            let surface = Surface::new(&array)?;
            made(Graph::capture(&fixture.context, |scope| {
                pass::<TextureObject>(scope, &texture).map(drop)?;
                pass::<SurfaceObject>(scope, &surface).map(drop)
            })?)
        }),
        ("Texture::close", |fixture| {
            let array = Arc::new(array(fixture)?);
            let texture = Texture::from_array(&array, &TextureOptions::new())?;
            texture.close()?;
            made(array)
        }),
        ("Surface::new", |fixture| {
            made(Surface::new(&Arc::new(array(fixture)?))?)
        }),
        ("Surface::close", |fixture| {
            let array = Arc::new(array(fixture)?);
            Surface::new(&array)?.close()?;
            made(array)
        }),
    ];

    inventory::submit! { Operations::Common(OPERATIONS) }

    fn texture(fixture: &Fixture) -> Result<Texture<u32>> {
        Texture::from_array(&Arc::new(array(fixture)?), &TextureOptions::new())
    }

    fn buffer(fixture: &Fixture) -> Result<Arc<DeviceBuffer<u32>>> {
        DeviceBuffer::zeroed(&fixture.stream, 4096).map(Arc::new)
    }
}
