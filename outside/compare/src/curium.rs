//! Curium, in its plain form and with its cache of memory.

use std::hint::black_box;

use curium_driver::{Context, Kernel, LaunchConfig, Library, Stream};
use curium_memory::{
    CachingOptions, CachingResource, DeviceBuffer, PinnedBuffer, PinnedFlags, SyncAlloc,
};

use crate::libraries::{self, Libraries, Operation};
use crate::measure::each;
use crate::{COUNT, Copy, NOTHING, Result, Source, Subject};

pub(crate) struct Lane {
    stream: Stream,
    kernel: Kernel<(&'static [f32], &'static mut [f32], u32)>,
    x: DeviceBuffer<f32>,
    y: DeviceBuffer<f32>,
    sides: Option<Sides>,
    calls: Option<libraries::curium::Calls>,
}

/// Curium with its cache as the source of memory; the rest would be the same.
pub(crate) struct Cached {
    stream: Stream,
    cache: CachingResource,
}

struct Sides {
    device: DeviceBuffer<u8>,
    pageable: Vec<u8>,
    pinned: PinnedBuffer<u8>,
}

impl Lane {
    pub(crate) fn new(context: &Context) -> Result<Self> {
        let stream = context.stream()?;
        let [x, y] = [
            DeviceBuffer::zeroed(&stream, COUNT as usize)?,
            DeviceBuffer::zeroed(&stream, COUNT as usize)?,
        ];
        stream.synchronize()?;
        let kernel = Library::from_ptx(context.driver(), NOTHING)?.kernel("nothing")?;
        Ok(Self {
            stream,
            kernel,
            x,
            y,
            sides: None,
            calls: None,
        })
    }

    #[inline(never)]
    fn launch(&mut self) -> curium_driver::Result<()> {
        let config = LaunchConfig::new(1, COUNT);
        let n = black_box(COUNT);
        // SAFETY: the kernel does nothing.
        unsafe {
            self.kernel
                .launch(&self.stream, config, (&self.x, &mut self.y, n))
        }
    }
}

impl Subject for Lane {
    fn name(&self) -> &'static str {
        "Curium"
    }

    fn launches(&mut self, count: u32) -> Result<Option<f64>> {
        let time = each(count, || self.launch())?;
        self.stream.synchronize()?;
        Ok(Some(time))
    }

    fn awaited_launches(&mut self, count: u32) -> Result<Option<f64>> {
        let time = each(count, || {
            self.launch().and_then(|()| self.stream.synchronize())
        })?;
        Ok(Some(time))
    }

    fn allocations(&mut self, source: Source, bytes: usize, count: u32) -> Result<Option<f64>> {
        let stream = &self.stream;
        let time = match source {
            Source::Stream => each(count, || {
                DeviceBuffer::<u8>::uninit(stream, bytes).map(drop_used)
            }),
            Source::Plain => each(count, || {
                DeviceBuffer::<u8, _>::uninit_in(stream, bytes, SyncAlloc).map(drop_used)
            }),
        }?;
        stream.synchronize()?;
        Ok(Some(time))
    }

    fn set_sides(&mut self, bytes: usize) -> Result<()> {
        self.sides = None;
        let pinned = PinnedBuffer::zeroed(self.stream.context(), bytes, PinnedFlags::empty())?;
        let device = DeviceBuffer::zeroed(&self.stream, bytes)?;
        self.sides = Some(Sides {
            device,
            pageable: vec![1; bytes],
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
        let host: &mut [u8] = if copy.is_pinned { pinned } else { pageable };
        let time = match copy.to_device {
            true => each(1, || device.copy_from_slice(host)),
            false => each(1, || device.copy_to_slice(host)),
        };
        Ok(Some(time?))
    }

    fn set_libraries(&mut self, libraries: &Libraries) -> Result<()> {
        self.calls = Some(libraries::curium::Calls::new(libraries, &self.stream)?);
        Ok(())
    }

    fn library_calls(&mut self, operation: Operation, count: u32) -> Result<Option<f64>> {
        let calls = self.calls.as_mut().ok_or("library calls were not set up")?;
        let time = each(count, || calls.call(operation))?;
        self.stream.synchronize()?;
        Ok(Some(time))
    }
}

impl Cached {
    pub(crate) fn new(context: &Context) -> Result<Self> {
        let cache =
            CachingResource::with_options(context, &CachingOptions::new().with_cache(true))?;
        Ok(Self {
            stream: context.stream()?,
            cache,
        })
    }
}

impl Subject for Cached {
    fn name(&self) -> &'static str {
        "Curium, CachingResource"
    }

    fn launches(&mut self, _count: u32) -> Result<Option<f64>> {
        Ok(None)
    }

    fn awaited_launches(&mut self, _count: u32) -> Result<Option<f64>> {
        Ok(None)
    }

    fn allocations(&mut self, source: Source, bytes: usize, count: u32) -> Result<Option<f64>> {
        if source == Source::Plain {
            return Ok(None);
        }
        let stream = &self.stream;
        let cache = &self.cache;
        let time = each(count, || {
            DeviceBuffer::<u8, _>::uninit_in(stream, bytes, cache.clone()).map(drop_used)
        })?;
        stream.synchronize()?;
        Ok(Some(time))
    }

    fn set_sides(&mut self, _bytes: usize) -> Result<()> {
        Ok(())
    }

    fn copy(&mut self, _copy: Copy) -> Result<Option<f64>> {
        Ok(None)
    }
}

/// Drops what the compiler must believe to have been used.
fn drop_used<T>(value: T) {
    drop(black_box(value));
}
