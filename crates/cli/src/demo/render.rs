//! The computation of the picture on the device.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use curium::prelude::*;

use curium_kernel::host::{Blocks, RowMajor};

use crate::demo::Kernels;
use crate::demo::stage::Stage;
use crate::demo::view::View;
use crate::progress::Progress;
use crate::terminal::Colors;

/// The columns and rows of the tile that a block of the kernel computes.
const TILE: (u32, u32) = (32, 8);

/// The computed picture, on the host.
pub(super) struct Rendering {
    iterations: PinnedBuffer<u32>,
    bands: Vec<View>,
    /// The run time of the kernel.
    pub(super) kernel: Duration,
    /// The time of copies to the host.
    pub(super) transfer: Duration,
    /// The time before the first launch: JIT compilation and allocation.
    pub(super) preparation: Duration,
}

/// The kernel with its stream and events.
struct Renderer {
    stream: Stream,
    kernels: Kernels,
    begin: Event,
    computed: Event,
    copied: Event,
}

impl Rendering {
    /// Returns the iteration count of every pixel, row by row from the top.
    pub(super) fn iterations(&self) -> &[u32] {
        &self.iterations
    }

    /// Returns the views of the launches, from the top down.
    pub(super) fn bands(&self) -> &[View] {
        &self.bands
    }
}

/// Computes the picture of `view`.
///
/// # Errors
///
/// Returns the error of the driver.
pub(super) fn render(stage: &Stage, view: &View, colors: Colors) -> Result<Rendering> {
    let begin = Instant::now();
    let renderer = Renderer::new(stage.context())?;
    let pinned = PinnedBuffer::zeroed(stage.context(), view.pixels(), PinnedFlags::empty());
    let bands = view.bands(stage.pixels_per_launch());
    let kernel = Duration::ZERO;
    let transfer = Duration::ZERO;
    let mut rendering = Rendering {
        iterations: pinned?,
        bands,
        kernel,
        transfer,
        preparation: begin.elapsed(),
    };

    let progress = Progress::new("computing", view.height, colors);
    let mut remaining = &mut *rendering.iterations;
    for band in &rendering.bands {
        let (target, below) = remaining.split_at_mut(band.pixels());
        let (kernel, transfer) = renderer.render(band, target)?;
        rendering.kernel = rendering.kernel.saturating_add(kernel);
        rendering.transfer = rendering.transfer.saturating_add(transfer);
        remaining = below;
        progress.advance(band.height);
    }
    Ok(rendering)
}

impl Renderer {
    fn new(context: &Context) -> Result<Self> {
        let kernels = Kernels::load(context.device()).context("the kernel cannot be loaded")?;
        Ok(Self {
            stream: context.stream()?,
            kernels,
            begin: Event::new(context, EventFlags::empty())?,
            computed: Event::new(context, EventFlags::empty())?,
            copied: Event::new(context, EventFlags::empty())?,
        })
    }

    /// Computes one band into `target`, and returns the times of the kernel and of the copy.
    fn render(&self, band: &View, target: &mut [u32]) -> Result<(Duration, Duration)> {
        let mut iterations = DeviceBuffer::uninit(&self.stream, band.pixels())?;
        self.begin.record(&self.stream)?;
        self.launch(band, &mut iterations)?;
        self.computed.record(&self.stream)?;
        iterations.copy_to_slice(target)?;
        self.copied.record(&self.stream)?;
        self.copied.synchronize()?;
        Ok((
            self.computed.elapsed_since(&self.begin)?,
            self.copied.elapsed_since(&self.computed)?,
        ))
    }

    fn launch(&self, band: &View, iterations: &mut DeviceBuffer<u32>) -> Result<()> {
        let View {
            width,
            height,
            center_x,
            center_y,
            pixel,
            max_iterations,
        } = *band;
        self.kernels.mandelbrot.launch(
            &self.stream,
            Blocks::new((width.div_ceil(TILE.0), height.div_ceil(TILE.1))),
            center_x,
            center_y,
            pixel,
            max_iterations,
            RowMajor::new(iterations, height as usize, width as usize),
        )?;
        Ok(())
    }
}
