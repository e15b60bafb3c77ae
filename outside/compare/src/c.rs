//! The twin in C: direct calls through the driver's table.

use std::ffi::c_void;
use std::hint::black_box;
use std::ptr;

use curium_driver::sys::{Api, CUresult};
use curium_driver::{Context, Function, Kernel, Library, Stream};
use curium_memory::{DeviceBuffer, PinnedBuffer, PinnedFlags};

use crate::libraries::{self, Libraries, Operation};
use crate::measure::each;
use crate::{COUNT, Copy, NOTHING, Result, Source, Subject};

pub(crate) struct Lane {
    stream: Stream,
    kernel: Kernel<(&'static [f32], &'static mut [f32], u32)>,
    x: DeviceBuffer<f32>,
    y: DeviceBuffer<f32>,
    sides: Option<Sides>,
    calls: Option<libraries::c::Calls>,
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

    fn api(&self) -> &Api {
        self.stream.driver().api()
    }

    /// The addresses of the arguments, the call, and a look at the code.
    #[inline(never)]
    fn launch(&self) -> Result<()> {
        let launch = self.api().cuLaunchKernel.ok_or_else(missing)?;
        let mut x = self.x.as_pointer().as_raw();
        let mut y = self.y.as_pointer().as_raw();
        let mut n = black_box(COUNT);
        let mut arguments = [
            (&raw mut x).cast(),
            (&raw mut y).cast(),
            (&raw mut n).cast::<c_void>(),
        ];
        let kernel = self.kernel.as_raw();
        let stream = self.stream.as_raw();
        let arguments = arguments.as_mut_ptr();
        // SAFETY: the kernel and the stream are live, and it has parameters of these sizes, which
        // it does not use.
        checked(Function::cuLaunchKernel, unsafe {
            launch(
                kernel,
                1,
                1,
                1,
                COUNT,
                1,
                1,
                0,
                stream,
                arguments,
                ptr::null_mut(),
            )
        })
    }

    #[inline(never)]
    fn wait(&self) -> Result<()> {
        let wait = self.api().cuStreamSynchronize.ok_or_else(missing)?;
        // SAFETY: the stream is live.
        checked(Function::cuStreamSynchronize, unsafe {
            wait(self.stream.as_raw())
        })
    }

    #[inline(never)]
    fn allocate_and_free(&self, bytes: usize) -> Result<()> {
        let api = self.api();
        let (allocate, free) = api
            .cuMemAllocAsync
            .zip(api.cuMemFreeAsync)
            .ok_or_else(missing)?;
        let mut address = 0;
        let stream = self.stream.as_raw();
        // SAFETY: `address` is a valid place for the answer, and the stream is live.
        checked(Function::cuMemAllocAsync, unsafe {
            allocate(&raw mut address, bytes, stream)
        })?;
        // SAFETY: the memory is live, and nothing uses it.
        checked(Function::cuMemFreeAsync, unsafe {
            free(black_box(address), stream)
        })
    }

    #[inline(never)]
    fn allocate_and_free_plain(&self, bytes: usize) -> Result<()> {
        let api = self.api();
        let (allocate, free) = api
            .cuMemAlloc_v2
            .zip(api.cuMemFree_v2)
            .ok_or_else(missing)?;
        let mut address = 0;
        // SAFETY: `address` is a valid place for the answer, and a context is current.
        checked(Function::cuMemAlloc_v2, unsafe {
            allocate(&raw mut address, bytes)
        })?;
        // SAFETY: the memory is live, and nothing uses it.
        checked(Function::cuMemFree_v2, unsafe { free(black_box(address)) })
    }

    fn copy_to(&self, device: u64, host: *const u8, bytes: usize) -> Result<()> {
        let copy = self.api().cuMemcpyHtoDAsync_v2.ok_or_else(missing)?;
        // SAFETY: both sides have this many bytes and live until the stream has been waited for.
        checked(Function::cuMemcpyHtoDAsync_v2, unsafe {
            copy(device, host.cast(), bytes, self.stream.as_raw())
        })?;
        self.wait()
    }

    fn copy_from(&self, device: u64, host: *mut u8, bytes: usize) -> Result<()> {
        let copy = self.api().cuMemcpyDtoHAsync_v2.ok_or_else(missing)?;
        // SAFETY: both sides have this many bytes and live until the stream has been waited for;
        // nothing else uses the host's.
        checked(Function::cuMemcpyDtoHAsync_v2, unsafe {
            copy(host.cast(), device, bytes, self.stream.as_raw())
        })?;
        self.wait()
    }
}

impl Subject for Lane {
    fn name(&self) -> &'static str {
        "C"
    }

    fn launches(&mut self, count: u32) -> Result<Option<f64>> {
        let time = each(count, || self.launch())?;
        self.wait()?;
        Ok(Some(time))
    }

    fn awaited_launches(&mut self, count: u32) -> Result<Option<f64>> {
        each(count, || self.launch().and_then(|()| self.wait())).map(Some)
    }

    fn allocations(&mut self, source: Source, bytes: usize, count: u32) -> Result<Option<f64>> {
        let time = match source {
            Source::Stream => each(count, || self.allocate_and_free(bytes)),
            Source::Plain => each(count, || self.allocate_and_free_plain(bytes)),
        }?;
        self.wait()?;
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
        let mut sides = self.sides.take().ok_or("copies were not set up")?;
        let device = sides.device.as_pointer().as_raw();
        let bytes = sides.pageable.len();
        let host = if copy.is_pinned {
            sides.pinned.as_mut_ptr()
        } else {
            sides.pageable.as_mut_ptr()
        };
        let time = each(1, || match copy.to_device {
            true => self.copy_to(device, host, bytes),
            false => self.copy_from(device, host, bytes),
        });
        self.sides = Some(sides);
        time.map(Some)
    }

    fn set_libraries(&mut self, libraries: &Libraries) -> Result<()> {
        self.calls = Some(libraries::c::Calls::new(libraries, &self.stream)?);
        Ok(())
    }

    fn library_calls(&mut self, operation: Operation, count: u32) -> Result<Option<f64>> {
        let calls = self.calls.as_mut().ok_or("library calls were not set up")?;
        let time = each(count, || calls.call(operation))?;
        self.wait()?;
        Ok(Some(time))
    }
}

fn missing() -> String {
    "the driver lacks a function".to_owned()
}

/// Checks a code as a C program does.
#[inline]
fn checked(function: Function, code: CUresult) -> Result<()> {
    if code == CUresult::CUDA_SUCCESS {
        Ok(())
    } else {
        Err(format!("{function} returned {}", code.0).into())
    }
}
