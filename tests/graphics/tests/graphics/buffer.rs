//! OpenGL buffers.

use curium_driver::{LaunchConfig, Library, Stream};
use curium_interop::{GlDevices, GraphicsAccess, GraphicsFlags, GraphicsResource, MappedGraphics};
use curium_memory::BorrowedBuffer;
use curium_sys::CUresult;
use curium_tests::{TestDriver, TestResult, kernels};

use crate::on_hardware;
use crate::opengl::OpenGl;

const LEN: usize = 1024;

fn numbers(factor: u32) -> Vec<u32> {
    (0..LEN as u32).map(|number| number * factor).collect()
}

fn bytes(numbers: &[u32]) -> Vec<u8> {
    numbers
        .iter()
        .flat_map(|number| number.to_ne_bytes())
        .collect()
}

fn register(test: &TestDriver, buffer: glow::Buffer) -> TestResult<GraphicsResource> {
    // SAFETY: OpenGL is current on this thread, and the buffer lives as long as its context, which
    // outlives the test.
    let resource = unsafe {
        GraphicsResource::from_gl_buffer(&test.context(), buffer.0.get(), GraphicsFlags::empty())
    };
    Ok(resource?)
}

/// Returns a view of a mapped buffer as numbers.
fn mapped_numbers(
    stream: &Stream,
    mapped: &MappedGraphics<'_>,
) -> TestResult<BorrowedBuffer<u32, ()>> {
    let (pointer, len) = mapped.pointer(0)?;
    assert_eq!(len, LEN * 4);
    // SAFETY: the memory has this many bytes while it is mapped on the same stream, which outlives
    // the result; OpenGL does not access it meanwhile.
    Ok(unsafe { BorrowedBuffer::new(stream, pointer.cast(), LEN, ()) }?)
}

#[test]
fn opengl_devices_draw() -> TestResult {
    on_hardware(OpenGl::open, |test, _| {
        for which in [GlDevices::All, GlDevices::CurrentFrame] {
            let devices = which.query(test.driver())?;
            assert!(devices.contains(&test.device()), "{devices:?}");
        }
        Ok(())
    })
}

#[test]
fn opengl_buffer_is_accessed() -> TestResult {
    on_hardware(OpenGl::open, |test, gl| {
        let stream = test.stream();
        let buffer = gl.buffer(&bytes(&numbers(1)));
        let mut resources = [register(test, buffer)?];
        let mapped = GraphicsResource::map(&mut resources, &stream)?;
        let mut memory = mapped_numbers(&stream, &mapped)?;
        assert_eq!(memory.to_vec()?, numbers(1));
        memory.copy_from_slice(&numbers(3))?;
        drop(memory);
        mapped.close()?;
        assert_eq!(gl.contents(buffer, LEN * 4), bytes(&numbers(3)));

        let other = gl.buffer(&bytes(&numbers(7)));
        gl.copy(other, buffer, 2048);
        let mapped = GraphicsResource::map(&mut resources, &stream)?;
        let mut memory = mapped_numbers(&stream, &mapped)?;
        let expected = [&numbers(7)[..512], &numbers(3)[512..]].concat();
        assert_eq!(
            memory.to_vec()?,
            expected,
            "mapping waits for the work of OpenGL"
        );
        let library = Library::from_ptx(test.driver(), kernels::FILL)?;
        let fill = library.kernel::<(&mut [u32], u32, u32)>("fill")?;
        let config = LaunchConfig::for_elements(LEN);
        // SAFETY: `fill` writes exactly the words of the buffer.
        unsafe { fill.launch(&stream, config, (&mut memory, 9, LEN as u32)) }?;
        drop((memory, mapped));
        assert_eq!(gl.contents(buffer, LEN * 4), bytes(&[9; LEN]));
        Ok(())
    })
}

#[test]
fn missing_buffer_is_named() -> TestResult {
    on_hardware(OpenGl::open, |test, _| {
        // SAFETY: the buffer does not exist, which the driver must detect.
        let registered = unsafe {
            GraphicsResource::from_gl_buffer(&test.context(), 4711, GraphicsFlags::empty())
        };
        let error = registered.expect_err("there is no such buffer");
        assert!(
            error.to_string().contains("buffer 4711 of OpenGL"),
            "{error}"
        );
        assert!(error.code().is_some(), "{error}");
        Ok(())
    })
}

#[test]
fn mapping_fixes_the_access() -> TestResult {
    on_hardware(OpenGl::open, |test, gl| {
        let buffer = gl.buffer(&bytes(&numbers(1)));
        let mut resources = [register(test, buffer)?];
        resources[0].set_access(GraphicsAccess::ReadOnly)?;
        let stream = test.stream();
        let mapped = GraphicsResource::map(&mut resources, &stream)?;
        let error = mapped.array(0, 0, 0).expect_err("it is a buffer");
        assert_eq!(
            error.code(),
            Some(CUresult::CUDA_ERROR_NOT_MAPPED_AS_ARRAY),
            "{error}"
        );
        drop(mapped);
        let [resource] = resources;
        resource.set_access(GraphicsAccess::ReadWrite)?;
        resource.close()?;
        assert_eq!(
            gl.contents(buffer, LEN * 4),
            bytes(&numbers(1)),
            "the buffer outlives its registration"
        );
        Ok(())
    })
}
