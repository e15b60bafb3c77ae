//! The network and its step.

use curium_driver::{Kernel, LaunchConfig, Library, Stream};
use curium_memory::DeviceBuffer;

use super::twin::Twin;
use crate::Result;

/// `c += a * b` or `c = a * b`, element by element.
type OfTwo = Kernel<(&'static [f32], &'static [f32], &'static mut [f32], u32)>;
/// `y += a * x`, element by element.
type Axpy = Kernel<(f32, &'static [f32], &'static mut [f32], u32)>;
type Buffer = DeviceBuffer<f32>;

const KERNELS: &str = include_str!("kernels.ptx");

pub(super) const LAYERS: usize = 40;
/// Elements of a layer.
pub(super) const WIDTH: u32 = 256;
pub(super) const RATE: f32 = 1e-3;

/// Layers of weights and biases with their activations and gradients.
pub(super) struct Network {
    pub(super) accumulate: OfTwo,
    pub(super) product: OfTwo,
    pub(super) axpy: Axpy,
    pub(super) targets: Buffer,
    pub(super) weights: Vec<Buffer>,
    pub(super) biases: Vec<Buffer>,
    /// The gradients of the weights.
    pub(super) changes: Vec<Buffer>,
    /// The input, and the activations of each layer.
    pub(super) values: Vec<Buffer>,
    /// The gradients of the activations.
    pub(super) slopes: Vec<Buffer>,
}

impl Network {
    pub(super) fn new(stream: &Stream) -> Result<Self> {
        let library = Library::from_ptx(stream.driver(), KERNELS)?;
        let all = |value: f32| DeviceBuffer::from_slice(stream, &[value; WIDTH as usize]);
        let layers = |count: usize, value: f32| {
            (0..count)
                .map(|_| all(value))
                .collect::<Result<Vec<_>, _>>()
        };
        Ok(Self {
            accumulate: library.kernel("accumulate")?,
            product: library.kernel("product")?,
            axpy: library.kernel("axpy")?,
            targets: all(1.0)?,
            weights: layers(LAYERS, 1.0)?,
            biases: layers(LAYERS, 0.0)?,
            changes: layers(LAYERS, 0.0)?,
            values: layers(LAYERS + 1, 0.5)?,
            slopes: layers(LAYERS + 1, 0.0)?,
        })
    }

    /// Enqueues a step on `stream`, and the updates of weights and biases on `asides` in turn, which may be the same stream.
    pub(super) fn step(&mut self, stream: &Stream, asides: &[Stream]) -> curium_driver::Result<()> {
        self.forward(stream)?;
        self.back(stream, asides)
    }

    /// Enqueues the same step on one stream, as a C program does.
    pub(super) fn step_as_c(&self, stream: &Stream) -> Result<()> {
        Twin::new(self, stream).step()
    }

    fn forward(&mut self, stream: &Stream) -> curium_driver::Result<()> {
        let config = LaunchConfig::new(1, WIDTH);
        for layer in 0..LAYERS {
            let (before, after) = self.values.split_at_mut(layer + 1);
            let (input, output) = (&before[layer], &mut after[0]);
            output
                .as_slice_mut()
                .copy_from_device_on(stream, &self.biases[layer])?;
            // SAFETY: the kernel accesses `WIDTH` elements, which is the length of all buffers here.
            unsafe {
                self.accumulate
                    .launch(stream, config, (&self.weights[layer], input, output, WIDTH))
            }?;
        }
        self.slopes[LAYERS]
            .as_slice_mut()
            .copy_from_device_on(stream, &self.values[LAYERS])?;
        // SAFETY: as above.
        unsafe {
            self.axpy.launch(
                stream,
                config,
                (-1.0, &self.targets, &mut self.slopes[LAYERS], WIDTH),
            )
        }
    }

    fn back(&mut self, stream: &Stream, asides: &[Stream]) -> curium_driver::Result<()> {
        let config = LaunchConfig::new(1, WIDTH);
        for (layer, aside) in (0..LAYERS).rev().zip(asides.iter().cycle()) {
            let (before, after) = self.slopes.split_at_mut(layer + 1);
            let (input, output) = (&mut before[layer], &after[0]);
            let (weights, change) = (&mut self.weights[layer], &mut self.changes[layer]);
            // SAFETY: the kernel accesses `WIDTH` elements, which is the length of all buffers here.
            unsafe {
                self.product
                    .launch(stream, config, (output, &*weights, input, WIDTH))
            }?;
            // SAFETY: as above.
            unsafe {
                self.product.launch(
                    aside,
                    config,
                    (output, &self.values[layer], &mut *change, WIDTH),
                )
            }?;
            // SAFETY: as above.
            unsafe {
                self.axpy
                    .launch(aside, config, (-RATE, &*change, weights, WIDTH))
            }?;
            // SAFETY: as above.
            unsafe {
                self.axpy.launch(
                    aside,
                    config,
                    (-RATE, output, &mut self.biases[layer], WIDTH),
                )
            }?;
        }
        Ok(())
    }
}
