//! Kernels by `cudarc`.

use cudarc::driver::{CudaContext, DriverError, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use outside::{COUNT, SIZE, check, numbers, ptx};

fn main() -> Result<(), DriverError> {
    let stream = CudaContext::new(0)?.default_stream();
    let module = stream.context().load_module(Ptx::from_src(ptx()))?;
    let count = COUNT as u32;
    let size = SIZE as u32;
    let blocks = LaunchConfig {
        grid_dim: (count.div_ceil(256), 1, 1),
        block_dim: (256, 1, 1),
        shared_mem_bytes: 0,
    };
    let tiles = LaunchConfig {
        grid_dim: (size / 16, size / 16, 1),
        block_dim: (16, 16, 1),
        shared_mem_bytes: 0,
    };

    let x = stream.clone_htod(&numbers(COUNT, 17))?;
    let y = stream.clone_htod(&numbers(COUNT, 5))?;
    let mut added = stream.alloc_zeros::<f32>(COUNT)?;
    let add = module.load_function("add")?;
    // SAFETY: the kernel takes these arguments and guards its index with the last.
    unsafe {
        stream
            .launch_builder(&add)
            .arg(&x)
            .arg(&y)
            .arg(&mut added)
            .arg(&count)
            .launch(blocks)
    }?;

    let mut total = stream.alloc_zeros::<f32>(1)?;
    let sum = module.load_function("sum")?;
    // SAFETY: the kernel takes these arguments and guards its index with the last; blocks have the
    // 256 threads that it requires.
    unsafe {
        stream
            .launch_builder(&sum)
            .arg(&x)
            .arg(&mut total)
            .arg(&count)
            .launch(blocks)
    }?;

    let a = stream.clone_htod(&numbers(SIZE * SIZE, 7))?;
    let b = stream.clone_htod(&numbers(SIZE * SIZE, 3))?;
    let mut product = stream.alloc_zeros::<f32>(SIZE * SIZE)?;
    let multiply = module.load_function("multiply")?;
    // SAFETY: the kernel takes these arguments and guards its index with the last; blocks have the
    // 256 threads that it requires; the matrices have as many rows as the grid of 16 by 16 blocks
    // covers.
    unsafe {
        stream
            .launch_builder(&multiply)
            .arg(&a)
            .arg(&b)
            .arg(&mut product)
            .arg(&size)
            .launch(tiles)
    }?;

    check(
        &stream.clone_dtoh(&added)?,
        stream.clone_dtoh(&total)?[0],
        &stream.clone_dtoh(&product)?,
    );
    Ok(())
}
