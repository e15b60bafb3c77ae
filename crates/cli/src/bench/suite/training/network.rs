//! The network and its step.

use anyhow::Result;
use curium::prelude::{DeviceBuffer, Kernel, LaunchConfig, Library, Stream};

use super::c_network::CNetwork;

/// `c += a * b` or `c = a * b`, element by element.
type Elementwise = Kernel<(&'static [f32], &'static [f32], &'static mut [f32], u32)>;
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
    pub(super) accumulate: Elementwise,
    pub(super) product: Elementwise,
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

/// Returns the buffer of one layer.
fn filled(stream: &Stream, value: f32) -> curium::Result<Buffer> {
    DeviceBuffer::from_slice(stream, &[value; WIDTH as usize])
}

/// Returns the buffers of several layers.
fn layers(stream: &Stream, count: usize, value: f32) -> curium::Result<Vec<Buffer>> {
    (0..count).map(|_| filled(stream, value)).collect()
}

impl Network {
    pub(super) fn new(stream: &Stream) -> Result<Self> {
        let library = Library::from_ptx(stream.driver(), KERNELS)?;
        Ok(Self {
            accumulate: library.kernel("accumulate")?,
            product: library.kernel("product")?,
            axpy: library.kernel("axpy")?,
            targets: filled(stream, 1.0)?,
            weights: layers(stream, LAYERS, 1.0)?,
            biases: layers(stream, LAYERS, 0.0)?,
            changes: layers(stream, LAYERS, 0.0)?,
            values: layers(stream, LAYERS + 1, 0.5)?,
            slopes: layers(stream, LAYERS + 1, 0.0)?,
        })
    }

    /// Enqueues a step on `stream`, and the updates of weights and biases on `branches` in turn,
    /// which may be the same stream.
    pub(super) fn step(&mut self, stream: &Stream, branches: &[Stream]) -> curium::Result<()> {
        self.forward(stream)?;
        self.backward(stream, branches)
    }

    /// Enqueues the same step on one stream, as a C program does.
    pub(super) fn step_as_c(&self, stream: &Stream) -> Result<()> {
        CNetwork::new(self, stream).step()
    }

    fn forward(&mut self, stream: &Stream) -> curium::Result<()> {
        let config = LaunchConfig::new(1, WIDTH);
        for layer in 0..LAYERS {
            let (before, after) = self.values.split_at_mut(layer + 1);
            let input = &before[layer];
            let output = &mut after[0];
            output
                .on_mut(stream)
                .copy_from_device(&self.biases[layer])?;
            // SAFETY: the kernel accesses `WIDTH` elements, which is the length of every buffer.
            unsafe {
                self.accumulate
                    .launch(stream, config, (&self.weights[layer], input, output, WIDTH))
            }?;
        }
        self.slopes[LAYERS]
            .on_mut(stream)
            .copy_from_device(&self.values[LAYERS])?;
        // SAFETY: the kernel accesses `WIDTH` elements, which is the length of every buffer.
        unsafe {
            self.axpy.launch(
                stream,
                config,
                (-1.0, &self.targets, &mut self.slopes[LAYERS], WIDTH),
            )
        }
    }

    fn backward(&mut self, stream: &Stream, branches: &[Stream]) -> curium::Result<()> {
        let config = LaunchConfig::new(1, WIDTH);
        for (layer, branch) in (0..LAYERS).rev().zip(branches.iter().cycle()) {
            let (before, after) = self.slopes.split_at_mut(layer + 1);
            let input = &mut before[layer];
            let output = &after[0];
            let weights = &mut self.weights[layer];
            let change = &mut self.changes[layer];
            // SAFETY: the kernel accesses `WIDTH` elements, which is the length of every buffer.
            unsafe {
                self.product
                    .launch(stream, config, (output, &*weights, input, WIDTH))
            }?;
            // SAFETY: the kernel accesses `WIDTH` elements, which is the length of every buffer.
            unsafe {
                self.product.launch(
                    branch,
                    config,
                    (output, &self.values[layer], &mut *change, WIDTH),
                )
            }?;
            // SAFETY: the kernel accesses `WIDTH` elements, which is the length of every buffer.
            unsafe {
                self.axpy
                    .launch(branch, config, (-RATE, &*change, weights, WIDTH))
            }?;
            // SAFETY: the kernel accesses `WIDTH` elements, which is the length of every buffer.
            unsafe {
                self.axpy.launch(
                    branch,
                    config,
                    (-RATE, output, &mut self.biases[layer], WIDTH),
                )
            }?;
        }
        Ok(())
    }
}
