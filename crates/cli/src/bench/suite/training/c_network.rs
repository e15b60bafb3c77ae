//! The step as a C program launches it: direct driver calls with device addresses.

use std::ffi::c_void;
use std::ptr;

use anyhow::Result;
use curium::driver::AsRawStream as _;
use curium::prelude::{DeviceBuffer, Driver, Stream};
use curium::sys::{CUdeviceptr, CUfunction, CUstream};

use super::network::{LAYERS, Network, RATE, WIDTH};
use crate::bench::suite::call;

/// The network as device addresses.
pub(super) struct CNetwork<'a> {
    network: &'a Network,
    driver: &'a Driver,
    stream: CUstream,
}

impl<'a> CNetwork<'a> {
    pub(super) fn new(network: &'a Network, stream: &'a Stream) -> Self {
        Self {
            network,
            driver: stream.driver(),
            stream: stream.as_raw(),
        }
    }

    #[inline(never)]
    pub(super) fn step(&self) -> Result<()> {
        let Network {
            targets,
            weights,
            biases,
            changes,
            values,
            slopes,
            ..
        } = self.network;
        let accumulate = self.network.accumulate.as_raw();
        let product = self.network.product.as_raw();
        for layer in 0..LAYERS {
            self.copy(&values[layer + 1], &biases[layer])?;
            self.launch_elementwise(
                accumulate,
                &weights[layer],
                &values[layer],
                &values[layer + 1],
            )?;
        }
        self.copy(&slopes[LAYERS], &values[LAYERS])?;
        self.launch_axpy(-1.0, targets, &slopes[LAYERS])?;
        for layer in (0..LAYERS).rev() {
            self.launch_elementwise(product, &slopes[layer + 1], &weights[layer], &slopes[layer])?;
            self.launch_elementwise(product, &slopes[layer + 1], &values[layer], &changes[layer])?;
            self.launch_axpy(-RATE, &changes[layer], &weights[layer])?;
            self.launch_axpy(-RATE, &slopes[layer + 1], &biases[layer])?;
        }
        Ok(())
    }

    fn copy(&self, to: &DeviceBuffer<f32>, from: &DeviceBuffer<f32>) -> Result<()> {
        let bytes = WIDTH as usize * size_of::<f32>();
        // SAFETY: both buffers have as many bytes, and are used on this stream only.
        unsafe {
            call!(
                self.driver,
                cuMemcpyDtoDAsync_v2(address(to), address(from), bytes, self.stream)
            )
        }
    }

    /// Launches a kernel that computes `c` from `a` and `b`, element by element.
    fn launch_elementwise(
        &self,
        kernel: CUfunction,
        a: &DeviceBuffer<f32>,
        b: &DeviceBuffer<f32>,
        c: &DeviceBuffer<f32>,
    ) -> Result<()> {
        let mut a = address(a);
        let mut b = address(b);
        let mut c = address(c);
        let mut n = WIDTH;
        self.launch(
            kernel,
            &mut [
                (&raw mut a).cast(),
                (&raw mut b).cast(),
                (&raw mut c).cast(),
                (&raw mut n).cast(),
            ],
        )
    }

    fn launch_axpy(&self, mut a: f32, x: &DeviceBuffer<f32>, y: &DeviceBuffer<f32>) -> Result<()> {
        let mut x = address(x);
        let mut y = address(y);
        let mut n = WIDTH;
        self.launch(
            self.network.axpy.as_raw(),
            &mut [
                (&raw mut a).cast(),
                (&raw mut x).cast(),
                (&raw mut y).cast(),
                (&raw mut n).cast(),
            ],
        )
    }

    fn launch(&self, kernel: CUfunction, arguments: &mut [*mut c_void; 4]) -> Result<()> {
        // SAFETY: the kernel has parameters of these sizes; the buffers have the length passed to
        // it, and are used on this stream only.
        unsafe {
            call!(
                self.driver,
                cuLaunchKernel(
                    kernel,
                    1,
                    1,
                    1,
                    WIDTH,
                    1,
                    1,
                    0,
                    self.stream,
                    arguments.as_mut_ptr(),
                    ptr::null_mut(),
                )
            )
        }
    }
}

fn address(buffer: &DeviceBuffer<f32>) -> CUdeviceptr {
    buffer.as_pointer().as_raw()
}
