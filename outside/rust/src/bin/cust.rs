//! Kernels by `cust`.

use cust::error::CudaError;
use cust::launch;
use cust::memory::{CopyDestination, DeviceBuffer};
use cust::module::Module;
use cust::stream::{Stream, StreamFlags};
use outside::{COUNT, SIZE, check, numbers, ptx};

fn main() -> Result<(), CudaError> {
    let _context = cust::quick_init()?;
    let module = Module::from_ptx(ptx(), &[])?;
    let stream = Stream::new(StreamFlags::NON_BLOCKING, None)?;
    let count = COUNT as u32;
    let size = SIZE as u32;
    let blocks = count.div_ceil(256);

    let x = DeviceBuffer::from_slice(&numbers(COUNT, 17))?;
    let y = DeviceBuffer::from_slice(&numbers(COUNT, 5))?;
    let added = DeviceBuffer::from_slice(&[0.0_f32; COUNT])?;
    let add = module.get_function("add")?;
    let to = added.as_device_ptr();
    let from = x.as_device_ptr();
    let other = y.as_device_ptr();
    // SAFETY: the kernel takes these arguments and guards its index with the last.
    unsafe { launch!(add<<<blocks, 256, 0, stream>>>(from, other, to, count)) }?;

    let total = DeviceBuffer::from_slice(&[0.0_f32])?;
    let sum = module.get_function("sum")?;
    // SAFETY: the kernel takes these arguments and guards its index with the last; blocks have the
    // 256 threads that it requires.
    unsafe { launch!(sum<<<blocks, 256, 0, stream>>>(from, total.as_device_ptr(), count)) }?;

    let a = DeviceBuffer::from_slice(&numbers(SIZE * SIZE, 7))?;
    let b = DeviceBuffer::from_slice(&numbers(SIZE * SIZE, 3))?;
    let product = DeviceBuffer::from_slice(&[0.0_f32; SIZE * SIZE])?;
    let multiply = module.get_function("multiply")?;
    let left = a.as_device_ptr();
    let right = b.as_device_ptr();
    let to = product.as_device_ptr();
    // SAFETY: the kernel takes these arguments and guards its index with the last; blocks have the
    // 256 threads that it requires; the matrices have as many rows as the grid of 16 by 16 blocks
    // covers.
    unsafe {
        launch!(multiply<<<(size / 16, size / 16), (16, 16), 0, stream>>>(left, right, to, size))
    }?;

    stream.synchronize()?;
    let mut sums = [0.0];
    total.copy_to(&mut sums)?;
    check(&added.as_host_vec()?, sums[0], &product.as_host_vec()?);
    Ok(())
}
