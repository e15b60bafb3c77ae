//! Copies between host and device by size: of pageable memory, which Curium stages, and of pinned
//! memory.

use std::time::{Duration, Instant};

use anyhow::Result;
use curium::driver::AsRawStream as _;
use curium::prelude::{Context, DeviceBuffer, PinnedBuffer, PinnedFlags, Stream};

use super::{Implementation, Measurement, Observer, Plan, call};

/// The direction and the kind of host memory.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    pinned: bool,
    to_device: bool,
}

const KINDS: [Kind; 4] = [
    Kind {
        name: "copy/pageable-to-device",
        pinned: false,
        to_device: true,
    },
    Kind {
        name: "copy/device-to-pageable",
        pinned: false,
        to_device: false,
    },
    Kind {
        name: "copy/pinned-to-device",
        pinned: true,
        to_device: true,
    },
    Kind {
        name: "copy/device-to-pinned",
        pinned: true,
        to_device: false,
    },
];

/// The source and the destination of copies of every kind.
struct Buffers {
    stream: Stream,
    device: DeviceBuffer<u8>,
    pageable: Vec<u8>,
    pinned: PinnedBuffer<u8>,
}

pub(super) fn ids(plan: &Plan) -> Vec<String> {
    plan.copies
        .iter()
        .flat_map(|bytes| KINDS.map(|kind| kind.id(*bytes)))
        .collect()
}

pub(super) fn run(context: &Context, plan: &Plan, observe: &mut Observer<'_>) -> Result<()> {
    for &bytes in plan.copies {
        let mut kinds = KINDS.to_vec();
        kinds.retain(|kind| plan.wants(&kind.id(bytes)));
        if kinds.is_empty() {
            continue;
        }
        let mut buffers = Buffers::new(context, bytes)?;
        for kind in kinds {
            let measurement = Measurement::new(
                kind.id(bytes),
                plan.copy_rounds(bytes),
                [1; 2],
                |implementation, count| buffers.measure(kind, implementation, count),
            );
            observe(measurement.with_bytes(bytes).compare()?)?;
        }
    }
    Ok(())
}

impl Kind {
    fn id(self, bytes: usize) -> String {
        format!("{}/{bytes}", self.name)
    }
}

impl Buffers {
    fn new(context: &Context, bytes: usize) -> Result<Self> {
        let stream = context.stream()?;
        let pinned = PinnedBuffer::zeroed(context, bytes, PinnedFlags::empty())?;
        let device = DeviceBuffer::zeroed(&stream, bytes)?;
        Ok(Self {
            stream,
            device,
            pageable: vec![1; bytes],
            pinned,
        })
    }

    /// Returns the time of consecutive copies, each until the host memory may be used again: C
    /// waits for the copy, and Curium as far as it has to.
    fn measure(
        &mut self,
        kind: Kind,
        implementation: Implementation,
        count: usize,
    ) -> Result<Duration> {
        let begin = Instant::now();
        match implementation {
            Implementation::C => (0..count).try_for_each(|_| self.copy_as_c(kind))?,
            Implementation::Curium => (0..count).try_for_each(|_| self.copy(kind))?,
        }
        let elapsed = begin.elapsed();
        // The next measurement begins on an idle stream.
        self.stream.synchronize()?;
        Ok(elapsed)
    }

    /// Copies as a C program does: one call, and a wait.
    fn copy_as_c(&mut self, kind: Kind) -> Result<()> {
        let bytes = self.pageable.len();
        let stream = self.stream.as_raw();
        let device = self.device.as_pointer().as_raw();
        let host: *mut u8 = if kind.pinned {
            self.pinned.as_mut_ptr()
        } else {
            self.pageable.as_mut_ptr()
        };
        let driver = self.stream.driver();
        if kind.to_device {
            // SAFETY: source and destination have this many bytes and live until the stream is
            // synchronized below.
            unsafe {
                call!(
                    driver,
                    cuMemcpyHtoDAsync_v2(device, host.cast(), bytes, stream)
                )
            }?;
        } else {
            // SAFETY: source and destination have this many bytes and live until the stream is
            // synchronized below.
            unsafe {
                call!(
                    driver,
                    cuMemcpyDtoHAsync_v2(host.cast(), device, bytes, stream)
                )
            }?;
        }
        // SAFETY: the stream is live.
        unsafe { call!(driver, cuStreamSynchronize(stream)) }
    }

    fn copy(&mut self, kind: Kind) -> Result<()> {
        let host: &mut [u8] = if kind.pinned {
            &mut self.pinned
        } else {
            &mut self.pageable
        };
        if kind.to_device {
            self.device.copy_from_slice(host)?;
        } else {
            self.device.copy_to_slice(host)?;
        }
        Ok(())
    }
}
