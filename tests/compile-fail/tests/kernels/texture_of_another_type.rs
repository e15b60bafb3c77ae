//! A texture returns the type of the parameter.

mod kernels {
    use curium_kernel::Texture2D;
    use curium_kernel::prelude::*;

    #[kernel]
    pub fn copy(t: Thread, image: Texture2D<f32>, mut y: PerThread<f32>) {
        if let Some(y) = y.get(&t) {
            *y = image.fetch(0, 0);
        }
    }
}

fn launch(
    kernel: &kernels::copy,
    stream: &curium_driver::Stream,
    image: &curium_memory::Texture<u32>,
    y: &mut curium_memory::DeviceBuffer<f32>,
) -> curium_driver::Result<()> {
    kernel.launch(stream, 1, image, y)
}

fn main() {
    let _ = launch;
}
