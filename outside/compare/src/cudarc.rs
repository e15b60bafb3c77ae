//! `cudarc`, with and without the events by which it orders streams.

use std::hint::black_box;
use std::sync::Arc;

use cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, DriverError, LaunchConfig, PinnedHostSlice,
    PushKernelArg,
};
use cudarc::nvrtc::Ptx;

use crate::libraries::{self, Libraries, Operation};
use crate::measure::each;
use crate::{COUNT, Copy, NOTHING, Result, Source, Subject};

/// The event tracking of slices, which is on unless a program disables it in unsafe code.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) enum Tracking {
    On,
    Off,
}

pub(crate) struct Lane {
    tracking: Tracking,
    stream: Arc<CudaStream>,
    kernel: CudaFunction,
    x: CudaSlice<f32>,
    y: CudaSlice<f32>,
    sides: Option<Sides>,
    calls: Option<libraries::cudarc::Calls>,
}

struct Sides {
    device: CudaSlice<u8>,
    pageable: Vec<u8>,
    pinned: PinnedHostSlice<u8>,
}

impl Lane {
    pub(crate) fn new(tracking: Tracking) -> Result<Self> {
        let context = CudaContext::new(0)?;
        // A second stream is what the tracking begins with.
        let stream = context.new_stream()?;
        if tracking == Tracking::Off {
            // SAFETY: nothing here is used by two streams.
            unsafe { context.disable_event_tracking() };
        }
        let kernel = context
            .load_module(Ptx::from_src(NOTHING))?
            .load_function("nothing")?;
        let [x, y] = [
            stream.alloc_zeros::<f32>(COUNT as usize)?,
            stream.alloc_zeros::<f32>(COUNT as usize)?,
        ];
        stream.synchronize()?;
        Ok(Self {
            tracking,
            stream,
            kernel,
            x,
            y,
            sides: None,
            calls: None,
        })
    }

    #[inline(never)]
    fn launch(&mut self) -> Result<(), DriverError> {
        let n = black_box(COUNT);
        let config = LaunchConfig {
            grid_dim: (1, 1, 1),
            block_dim: (COUNT, 1, 1),
            shared_mem_bytes: 0,
        };
        let mut launch = self.stream.launch_builder(&self.kernel);
        launch.arg(&self.x).arg(&mut self.y).arg(&n);
        // SAFETY: the kernel has these parameters, which it does not use.
        unsafe { launch.launch(config) }.map(drop)
    }
}

impl Subject for Lane {
    fn name(&self) -> &'static str {
        match self.tracking {
            Tracking::On => "cudarc",
            Tracking::Off => "cudarc, untracked (unsafe)",
        }
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
        if source == Source::Plain {
            return Ok(None);
        }
        // SAFETY: nothing reads the memory.
        let time = each(count, || {
            unsafe { self.stream.alloc::<u8>(bytes) }.map(|slice| drop(black_box(slice)))
        })?;
        self.stream.synchronize()?;
        Ok(Some(time))
    }

    fn set_sides(&mut self, bytes: usize) -> Result<()> {
        self.sides = None;
        // SAFETY: copies are all that uses the memory, and any bytes are good.
        let pinned = unsafe { self.stream.context().alloc_pinned::<u8>(bytes) }?;
        let device = self.stream.alloc_zeros::<u8>(bytes)?;
        self.stream.synchronize()?;
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
        let stream = &self.stream;
        let time = each(1, || {
            match (copy.is_pinned, copy.to_device) {
                (false, true) => stream.memcpy_htod(pageable.as_slice(), device),
                (false, false) => stream.memcpy_dtoh(device, pageable.as_mut_slice()),
                (true, true) => stream.memcpy_htod(pinned, device),
                (true, false) => stream.memcpy_dtoh(device, pinned),
            }?;
            stream.synchronize()
        });
        Ok(Some(time?))
    }

    fn set_libraries(&mut self, _libraries: &Libraries) -> Result<()> {
        self.calls = Some(libraries::cudarc::Calls::new(&self.stream)?);
        Ok(())
    }

    fn library_calls(&mut self, operation: Operation, count: u32) -> Result<Option<f64>> {
        let calls = self.calls.as_mut().ok_or("library calls were not set up")?;
        let time = each(count, || calls.call(operation))?;
        self.stream.synchronize()?;
        Ok(Some(time))
    }
}
