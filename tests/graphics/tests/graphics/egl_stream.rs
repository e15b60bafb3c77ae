//! EGL streams with CUDA as the producer and the consumer.

use std::ffi::c_void;
use std::time::Duration;

use curium_interop::{EglConsumer, EglLocation, EglProducer};
use curium_memory::{Array, ArrayFlags, ArrayShape};
use curium_sys::{CUarray_format, CUeglColorFormat, CUeglFrame, CUeglFrameType, CUresult};
use curium_tests::{TestDriver, TestResult};
use khronos_egl as egl;

use crate::egl::Egl;
use crate::image::texels;
use crate::on_hardware;

type Create = unsafe extern "system" fn(egl::EGLDisplay, *const egl::Int) -> *mut c_void;
type Destroy = unsafe extern "system" fn(egl::EGLDisplay, *mut c_void) -> egl::Boolean;

/// An EGL stream.
struct EglStream {
    raw: *mut c_void,
    display: egl::EGLDisplay,
    destroy: Destroy,
}

impl EglStream {
    fn new(egl: &Egl) -> Self {
        let [create, destroy] = ["eglCreateStreamKHR", "eglDestroyStreamKHR"].map(|name| {
            egl.instance
                .get_proc_address(name)
                .expect("EGL has the function")
        });
        // SAFETY: the function of this name has this type.
        let create = unsafe { std::mem::transmute::<extern "system" fn(), Create>(create) };
        // SAFETY: the function of this name has this type.
        let destroy = unsafe { std::mem::transmute::<extern "system" fn(), Destroy>(destroy) };
        let display = egl.display.as_ptr();
        // SAFETY: the display is initialized, and the attribute list is empty.
        let raw = unsafe { create(display, [egl::NONE].as_ptr()) };
        assert!(!raw.is_null(), "an EGL stream can be created");
        Self {
            raw,
            display,
            destroy,
        }
    }
}

impl Drop for EglStream {
    fn drop(&mut self) {
        // SAFETY: the stream is live, and no connection uses it any more.
        unsafe { (self.destroy)(self.display, self.raw) };
    }
}

/// Opens EGL with support for streams.
fn open(test: &TestDriver) -> Result<Egl, String> {
    let egl = Egl::open(test)?;
    if egl.has("EGL_KHR_stream") {
        Ok(egl)
    } else {
        Err(String::from("the display has no streams"))
    }
}

/// Returns a one-plane frame in an array.
fn frame(array: &Array<[u8; 4]>) -> CUeglFrame {
    let mut frame = CUeglFrame {
        width: 64,
        height: 32,
        depth: 1,
        planeCount: 1,
        numChannels: 4,
        frameType: CUeglFrameType::CU_EGL_FRAME_TYPE_ARRAY,
        eglColorFormat: CUeglColorFormat::CU_EGL_COLOR_FORMAT_ABGR,
        cuFormat: CUarray_format::CU_AD_FORMAT_UNSIGNED_INT8,
        ..CUeglFrame::default()
    };
    frame.frame.pArray = [array.as_raw(), std::ptr::null_mut(), std::ptr::null_mut()];
    frame
}

#[test]
fn egl_stream_frames_are_returned() -> TestResult {
    on_hardware(open, |test, egl| {
        let stream = test.stream();
        let frames = EglStream::new(egl);
        let location = Some(EglLocation::Video);
        // SAFETY: the stream has no consumer, and outlives the connection.
        let mut consumer = unsafe { EglConsumer::connect(&test.context(), frames.raw, location) }?;
        // SAFETY: the stream has no producer, and outlives the connection.
        let mut producer = unsafe { EglProducer::connect(&test.context(), frames.raw, (64, 32)) }?;
        let error = consumer
            .acquire(&stream, Some(Duration::from_millis(1)))
            .map(drop)
            .expect_err("there is none yet");
        assert!(error.code().is_some() && !error.is_sticky(), "{error}");

        let arrays = [5, 6].map(|seed| {
            let shape = ArrayShape::new_2d(64, 32);
            Array::from_slice(&stream, &texels(0, seed), shape, ArrayFlags::empty())
                .expect("allocation failed")
        });
        for (seed, array) in (5..).zip(&arrays) {
            // SAFETY: no code writes the array until the frame is returned.
            unsafe { producer.present(frame(array), &stream) }?;
            let taken = consumer.acquire(&stream, Some(Duration::from_secs(5)))?;
            let planes = taken.planes()?;
            assert_eq!(
                (planes.width, planes.height, planes.planeCount),
                (64, 32, 1)
            );
            // SAFETY: the frame is made of arrays.
            let [raw, ..] = unsafe { planes.frame.pArray };
            // SAFETY: the array lives until the frame is released, and no code writes it until
            // then.
            let read = unsafe { Array::<[u8; 4]>::borrow_raw(&stream, raw) }?;
            assert_eq!(read.to_vec()?, texels(0, seed));
            drop(read);
            taken.close()?;
        }
        let back = producer.take_back(&stream)?;
        // SAFETY: the frame is made of arrays.
        assert_eq!(unsafe { back.frame.pArray }[0], arrays[0].as_raw());
        let error = producer
            .take_back(&stream)
            .map(drop)
            .expect_err("the consumer may acquire the last frame again");
        assert_eq!(
            error.code(),
            Some(CUresult::CUDA_ERROR_LAUNCH_TIMEOUT),
            "{error}"
        );
        assert!(!error.is_sticky(), "{error}");
        stream.synchronize()?;
        producer.close()?;
        consumer.close()?;
        Ok(())
    })
}
