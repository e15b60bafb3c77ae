//! EGL images and fences.

use curium_driver::{Error, EventFlags};
use curium_interop::{GraphicsFlags, GraphicsResource, event_from_egl_sync};
use curium_memory::Array;
use curium_sys::CUeglFrameType;
use curium_tests::{TestDriver, TestResult};
use khronos_egl as egl;

use crate::image::texels;
use crate::on_hardware;
use crate::opengl::OpenGl;

const LEN: usize = 64 * 32;

/// `EGL_GL_TEXTURE_2D`
const GL_TEXTURE_2D: egl::Enum = 0x30b1;
/// `EGL_SYNC_FENCE`
const SYNC_FENCE: egl::Enum = 0x30f9;

#[test]
fn egl_image_is_an_array() -> TestResult {
    on_hardware(OpenGl::open, |test, gl| {
        let egl = &gl.egl;
        let source = gl.texture((64, 32), &[texels(0, 1)]);
        // SAFETY: EGL passes the name of the texture as a pointer.
        let client = unsafe {
            egl::ClientBuffer::from_ptr(std::ptr::without_provenance_mut(source.0.get() as usize))
        };
        let image = egl.instance.create_image(
            egl.display,
            egl.context,
            GL_TEXTURE_2D,
            client,
            &[egl::ATTRIB_NONE],
        )?;
        let texture = gl.texture_from_image(image)?;
        gl.write(texture, (64, 32), &texels(0, 5));
        gl.finish();
        // SAFETY: the image outlives the resource, and each side waits for the other.
        let resource = unsafe {
            GraphicsResource::from_egl_image(
                &test.context(),
                image.as_ptr(),
                GraphicsFlags::empty(),
            )
        }?;
        let array = array(test, &resource);
        assert_eq!(array.to_vec()?, texels(0, 5));
        array.copy_from_slice(&texels(0, 99))?;
        array.stream().synchronize()?;
        assert_eq!(gl.texels(texture, 0, LEN), texels(0, 99));
        drop(array);
        resource.close()?;
        egl.instance.destroy_image(egl.display, image)?;
        Ok(())
    })
}

/// Returns the array of an image, which outlives the result.
fn array(test: &TestDriver, resource: &GraphicsResource) -> Array<[u8; 4]> {
    let frame = resource.egl_frame(0, 0).expect("not an EGL image");
    assert_eq!((frame.width, frame.height, frame.planeCount), (64, 32, 1));
    assert_eq!(frame.frameType, CUeglFrameType::CU_EGL_FRAME_TYPE_ARRAY);
    // SAFETY: the frame is made of arrays.
    let [raw, ..] = unsafe { frame.frame.pArray };
    // SAFETY: the array lives as long as the resource, and each side waits for the other.
    unsafe { Array::borrow_raw(&test.stream(), raw) }.expect("four bytes each")
}

#[test]
fn event_completes_with_the_fence() -> TestResult {
    on_hardware(OpenGl::open, |test, gl| {
        let egl = &gl.egl;
        // SAFETY: OpenGL is current on this thread.
        let sync = unsafe {
            egl.instance
                .create_sync(egl.display, SYNC_FENCE, &[egl::ATTRIB_NONE])
        }?;
        gl.finish();
        // SAFETY: the fence lives until the event is complete.
        let event =
            unsafe { event_from_egl_sync(&test.context(), sync.as_ptr(), EventFlags::empty()) };
        match event {
            Ok(event) => {
                test.stream()
                    .wait_event(&event)
                    .and_then(|()| event.synchronize())?;
                assert!(event.is_finished()?);
            }
            // Drivers for consumer graphics cards do not support it.
            Err(error) => assert!(matches!(error, Error::Missing(_)), "{error}"),
        }
        // SAFETY: the fence is not in use any more.
        unsafe { egl.instance.destroy_sync(egl.display, sync) }?;
        Ok(())
    })
}
