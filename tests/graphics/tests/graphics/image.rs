//! OpenGL textures.

use curium_interop::{GraphicsFlags, GraphicsResource};
use curium_memory::{Array, ArrayShape, MipmappedArray};
use curium_sys::CUresult;
use curium_tests::{TestDriver, TestResult};

use crate::on_hardware;
use crate::opengl::OpenGl;

const WIDTH: usize = 64;
const HEIGHT: usize = 32;

/// Returns distinct texels for a level.
pub(crate) fn texels(level: usize, seed: u8) -> Vec<[u8; 4]> {
    let width = WIDTH >> level;
    let height = HEIGHT >> level;
    (0..width * height)
        .map(|index| {
            [
                (index % width) as u8,
                (index / width) as u8,
                level as u8,
                seed,
            ]
        })
        .collect()
}

fn register(test: &TestDriver, texture: glow::Texture) -> TestResult<GraphicsResource> {
    let image = texture.0.get();
    let flags = GraphicsFlags::SURFACE_LOAD_STORE;
    // SAFETY: OpenGL is current on this thread, and the texture lives as long as its context, which
    // outlives the test.
    let resource =
        unsafe { GraphicsResource::from_gl_image(&test.context(), image, glow::TEXTURE_2D, flags) };
    Ok(resource?)
}

#[test]
fn texture_level_is_an_array() -> TestResult {
    on_hardware(OpenGl::open, |test, gl| {
        let levels: Vec<_> = (0..3).map(|level| texels(level, 5)).collect();
        let texture = gl.texture((WIDTH as i32, HEIGHT as i32), &levels);
        let mut resources = [register(test, texture)?];
        let stream = test.stream();
        let mapped = GraphicsResource::map(&mut resources, &stream)?;
        for (level, expected) in levels.iter().enumerate() {
            let raw = mapped.array(0, 0, level as u32)?;
            // SAFETY: the array lives until it is unmapped, and OpenGL does not access it until
            // then.
            let array = unsafe { Array::<[u8; 4]>::borrow_raw(&stream, raw) }?;
            assert_eq!(
                array.shape(),
                ArrayShape::new_2d(WIDTH >> level, HEIGHT >> level)
            );
            assert_eq!(&array.to_vec()?, expected, "level {level}");
            array.copy_from_slice(&texels(level, 99))?;
        }
        let error = mapped.pointer(0).expect_err("it is an image");
        assert_eq!(
            error.code(),
            Some(CUresult::CUDA_ERROR_NOT_MAPPED_AS_POINTER),
            "{error}"
        );
        drop(mapped);
        for level in 0..3 {
            let expected = texels(level, 99);
            assert_eq!(
                gl.texels(texture, level as i32, expected.len()),
                expected,
                "level {level}"
            );
        }
        Ok(())
    })
}

#[test]
fn texture_is_a_mipmapped_array() -> TestResult {
    on_hardware(OpenGl::open, |test, gl| {
        let levels: Vec<_> = (0..3).map(|level| texels(level, 5)).collect();
        let texture = gl.texture((WIDTH as i32, HEIGHT as i32), &levels);
        let mut resources = [register(test, texture)?];
        let stream = test.stream();
        let mapped = GraphicsResource::map(&mut resources, &stream)?;
        let raw = mapped.mipmapped_array(0)?;
        // SAFETY: the array has three levels and lives until it is unmapped, and OpenGL does not
        // access it until then.
        let array = unsafe { MipmappedArray::<[u8; 4]>::borrow_raw(&stream, raw, 3) }?;
        assert_eq!(
            (array.shape(), array.levels()),
            (ArrayShape::new_2d(WIDTH, HEIGHT), 3)
        );
        for (level, expected) in (0..).zip(&levels) {
            let read = array.level(level).and_then(|level| level.to_vec())?;
            assert_eq!(&read, expected, "level {level}");
        }
        array
            .level(1)
            .and_then(|level| level.copy_from_slice(&texels(1, 7)))?;
        drop((array, mapped));
        assert_eq!(gl.texels(texture, 1, levels[1].len()), texels(1, 7));
        Ok(())
    })
}

#[test]
fn missing_image_is_named() -> TestResult {
    on_hardware(OpenGl::open, |test, _| {
        let target = glow::TEXTURE_2D;
        let flags = GraphicsFlags::READ_ONLY;
        // SAFETY: the texture does not exist, which the driver must detect.
        let registered =
            unsafe { GraphicsResource::from_gl_image(&test.context(), 4711, target, flags) };
        let error = registered.expect_err("there is no such texture");
        assert!(
            error
                .to_string()
                .contains("image 4711 of OpenGL, target 0xde1"),
            "{error}"
        );
        assert!(error.code().is_some(), "{error}");
        Ok(())
    })
}
