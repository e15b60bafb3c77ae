//! Copies between host and device by size: of pageable memory, which Curium stages, and of pinned memory.

use std::time::{Duration, Instant};

use curium_driver::{Context, Function, Stream};
use curium_memory::{DeviceBuffer, PinnedBuffer, PinnedFlags};

use crate::error::checked;
use crate::{Error, Measurement, Plan, Result, Visit, Way};

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

/// Both sides of a copy.
struct Sides {
    stream: Stream,
    device: DeviceBuffer<u8>,
    pageable: Vec<u8>,
    pinned: PinnedBuffer<u8>,
}

pub(crate) fn ids(plan: &Plan) -> Vec<String> {
    plan.copies
        .iter()
        .flat_map(|bytes| KINDS.map(|kind| kind.id(*bytes)))
        .collect()
}

pub(crate) fn visit(context: &Context, plan: &Plan, visit: &mut Visit<'_>) -> Result<()> {
    for &bytes in plan.copies {
        let wanted: Vec<_> = KINDS
            .into_iter()
            .filter(|kind| plan.wants(&kind.id(bytes)))
            .collect();
        if wanted.is_empty() {
            continue;
        }
        let mut sides = Sides::new(context, bytes)?;
        for kind in wanted {
            let copies = |way, count| sides.copies(kind, way, count);
            visit(
                &mut Measurement::new(kind.id(bytes), plan.copy_rounds(bytes), [1; 2], copies)
                    .of_bytes(bytes),
            )?;
        }
    }
    Ok(())
}

impl Kind {
    fn id(self, bytes: usize) -> String {
        format!("{}/{bytes}", self.name)
    }
}

impl Sides {
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

    /// Returns the time of consecutive copies with waiting.
    fn copies(&mut self, kind: Kind, way: Way, count: usize) -> Result<Duration> {
        let begin = Instant::now();
        match way {
            Way::C => (0..count).try_for_each(|_| self.copy_as_c(kind))?,
            Way::Curium => (0..count).try_for_each(|_| self.copy(kind))?,
        }
        Ok(begin.elapsed())
    }

    /// Copies as a C program does: one call, and a wait.
    fn copy_as_c(&mut self, kind: Kind) -> Result<()> {
        let (bytes, stream, device) = (
            self.pageable.len(),
            self.stream.as_raw(),
            self.device.as_pointer().as_raw(),
        );
        let host: *mut u8 = if kind.pinned {
            self.pinned.as_mut_ptr()
        } else {
            self.pageable.as_mut_ptr()
        };
        let api = self.stream.driver().api();
        if kind.to_device {
            let function = Function::cuMemcpyHtoDAsync_v2;
            let copy = api.cuMemcpyHtoDAsync_v2.ok_or(Error::Missing(function))?;
            // SAFETY: both sides have this many bytes and live until the stream is synchronized below.
            checked(function, unsafe {
                copy(device, host.cast(), bytes, stream)
            })?;
        } else {
            let function = Function::cuMemcpyDtoHAsync_v2;
            let copy = api.cuMemcpyDtoHAsync_v2.ok_or(Error::Missing(function))?;
            // SAFETY: as above.
            checked(function, unsafe {
                copy(host.cast(), device, bytes, stream)
            })?;
        }
        let function = Function::cuStreamSynchronize;
        let synchronize = api.cuStreamSynchronize.ok_or(Error::Missing(function))?;
        // SAFETY: the stream is live.
        checked(function, unsafe { synchronize(stream) })
    }

    fn copy(&mut self, kind: Kind) -> Result<()> {
        let host: &mut [u8] = if kind.pinned {
            &mut self.pinned
        } else {
            &mut self.pageable
        };
        let copied = if kind.to_device {
            self.device.copy_from_slice(host)
        } else {
            self.device.copy_to_slice(host)
        };
        Ok(copied?)
    }
}
