//! `cust`.

use std::hint::black_box;

use cust::context::Context;
use cust::error::CudaResult;
use cust::function::Function;
use cust::launch;
use cust::memory::{AsyncCopyDestination, CopyDestination, DeviceBuffer, LockedBuffer};
use cust::module::Module;
use cust::stream::{Stream, StreamFlags};

use crate::measure::each;
use crate::{COUNT, Copy, NOTHING, Result, Source, Subject};

pub(crate) struct Lane {
    stream: Stream,
    module: Module,
    x: DeviceBuffer<f32>,
    y: DeviceBuffer<f32>,
    sides: Option<Sides>,
    /// Ends last.
    _context: Context,
}

struct Sides {
    device: DeviceBuffer<u8>,
    pageable: Vec<u8>,
    pinned: LockedBuffer<u8>,
}

impl Lane {
    /// Also makes the primary context of the first device current.
    pub(crate) fn new() -> Result<Self> {
        let context = cust::quick_init()?;
        let zeros = [0.0_f32; COUNT as usize];
        let x = DeviceBuffer::from_slice(&zeros)?;
        let y = DeviceBuffer::from_slice(&zeros)?;
        let stream = Stream::new(StreamFlags::NON_BLOCKING, None)?;
        Ok(Self {
            stream,
            module: Module::from_ptx(NOTHING, &[])?,
            x,
            y,
            sides: None,
            _context: context,
        })
    }

    #[inline(never)]
    fn launch(&self, kernel: &Function<'_>) -> CudaResult<()> {
        let stream = &self.stream;
        let n = black_box(COUNT);
        let x = self.x.as_device_ptr();
        let y = self.y.as_device_ptr();
        // SAFETY: the kernel has these parameters, which it does not use.
        unsafe { launch!(kernel<<<1, COUNT, 0, stream>>>(x, y, n)) }
    }
}

impl Subject for Lane {
    fn name(&self) -> &'static str {
        "cust"
    }

    fn launches(&mut self, count: u32) -> Result<Option<f64>> {
        let kernel = self.module.get_function("nothing")?;
        let time = each(count, || self.launch(&kernel))?;
        self.stream.synchronize()?;
        Ok(Some(time))
    }

    fn awaited_launches(&mut self, count: u32) -> Result<Option<f64>> {
        let kernel = self.module.get_function("nothing")?;
        let time = each(count, || {
            self.launch(&kernel)
                .and_then(|()| self.stream.synchronize())
        })?;
        Ok(Some(time))
    }

    fn allocations(&mut self, source: Source, bytes: usize, count: u32) -> Result<Option<f64>> {
        let time = match source {
            Source::Stream => each(count, || {
                // SAFETY: nothing reads the memory.
                let buffer =
                    unsafe { DeviceBuffer::<u8>::uninitialized_async(bytes, &self.stream) }?;
                black_box(buffer).drop_async(&self.stream)
            }),
            // SAFETY: nothing reads the memory.
            Source::Plain => each(count, || {
                unsafe { DeviceBuffer::<u8>::uninitialized(bytes) }.map(|buffer| drop(black_box(buffer)))
            }),
        }?;
        self.stream.synchronize()?;
        Ok(Some(time))
    }

    fn set_sides(&mut self, bytes: usize) -> Result<()> {
        self.sides = None;
        let pageable = vec![1; bytes];
        let device = DeviceBuffer::from_slice(&pageable)?;
        let pinned = LockedBuffer::new(&1, bytes)?;
        self.sides = Some(Sides {
            device,
            pageable,
            pinned,
        });
        Ok(())
    }

    fn copy(&mut self, copy: Copy) -> Result<Option<f64>> {
        let Sides {
            device,
            pageable,
            pinned,
        } = self.sides.as_mut().ok_or("copies were not set up")?;
        let stream = &self.stream;
        let time = each(1, || match (copy.is_pinned, copy.to_device) {
            (false, true) => device.copy_from(pageable.as_slice()),
            (false, false) => device.copy_to(pageable.as_mut_slice()),
            // SAFETY: both sides live, unused by others, until the stream has been waited for.
            (true, true) => unsafe { device.async_copy_from(pinned.as_slice(), stream) }
                .and_then(|()| stream.synchronize()),
            // SAFETY: both sides live, unused by others, until the stream has been waited for.
            (true, false) => unsafe { device.async_copy_to(pinned.as_mut_slice(), stream) }
                .and_then(|()| stream.synchronize()),
        });
        Ok(Some(time?))
    }
}
