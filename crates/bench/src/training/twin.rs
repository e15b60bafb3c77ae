//! The step as a C program launches it: direct driver calls with device addresses.

use std::ffi::c_void;
use std::ptr;

use curium_driver::sys::{Api, CUdeviceptr, CUfunction, CUstream};
use curium_driver::{Function, Kernel, Stream};
use curium_memory::DeviceBuffer;

use super::network::{LAYERS, Network, RATE, WIDTH};
use crate::error::checked;
use crate::{Error, Result};

/// The network as device addresses.
pub(super) struct Twin<'a> {
    network: &'a Network,
    api: &'a Api,
    stream: CUstream,
}

impl<'a> Twin<'a> {
    pub(super) fn new(network: &'a Network, stream: &'a Stream) -> Self {
        Self {
            network,
            api: stream.driver().api(),
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
        let [accumulate, product] =
            [&self.network.accumulate, &self.network.product].map(Kernel::as_raw);
        for layer in 0..LAYERS {
            self.copy(&values[layer + 1], &biases[layer])?;
            self.of_two(
                accumulate,
                &weights[layer],
                &values[layer],
                &values[layer + 1],
            )?;
        }
        self.copy(&slopes[LAYERS], &values[LAYERS])?;
        self.axpy(-1.0, targets, &slopes[LAYERS])?;
        for layer in (0..LAYERS).rev() {
            self.of_two(product, &slopes[layer + 1], &weights[layer], &slopes[layer])?;
            self.of_two(product, &slopes[layer + 1], &values[layer], &changes[layer])?;
            self.axpy(-RATE, &changes[layer], &weights[layer])?;
            self.axpy(-RATE, &slopes[layer + 1], &biases[layer])?;
        }
        Ok(())
    }

    fn copy(&self, to: &DeviceBuffer<f32>, from: &DeviceBuffer<f32>) -> Result<()> {
        let function = Function::cuMemcpyDtoDAsync_v2;
        let copy = self
            .api
            .cuMemcpyDtoDAsync_v2
            .ok_or(Error::Missing(function))?;
        let (to, from, bytes) = (
            address(to),
            address(from),
            WIDTH as usize * size_of::<f32>(),
        );
        // SAFETY: both buffers have as many bytes, and are used on this stream only.
        checked(function, unsafe { copy(to, from, bytes, self.stream) })
    }

    fn of_two(
        &self,
        kernel: CUfunction,
        a: &DeviceBuffer<f32>,
        b: &DeviceBuffer<f32>,
        c: &DeviceBuffer<f32>,
    ) -> Result<()> {
        let (mut a, mut b, mut c, mut n) = (address(a), address(b), address(c), WIDTH);
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

    fn axpy(&self, mut a: f32, x: &DeviceBuffer<f32>, y: &DeviceBuffer<f32>) -> Result<()> {
        let (kernel, mut x, mut y, mut n) =
            (self.network.axpy.as_raw(), address(x), address(y), WIDTH);
        self.launch(
            kernel,
            &mut [
                (&raw mut a).cast(),
                (&raw mut x).cast(),
                (&raw mut y).cast(),
                (&raw mut n).cast(),
            ],
        )
    }

    fn launch(&self, kernel: CUfunction, values: &mut [*mut c_void; 4]) -> Result<()> {
        let function = Function::cuLaunchKernel;
        let launch = self.api.cuLaunchKernel.ok_or(Error::Missing(function))?;
        let (values, extra) = (values.as_mut_ptr(), ptr::null_mut());
        // SAFETY: the kernel has parameters of these sizes; the buffers have the length passed to it, and are used on
        // this stream only.
        checked(function, unsafe {
            launch(kernel, 1, 1, 1, WIDTH, 1, 1, 0, self.stream, values, extra)
        })
    }
}

fn address(buffer: &DeviceBuffer<f32>) -> CUdeviceptr {
    buffer.as_pointer().as_raw()
}
