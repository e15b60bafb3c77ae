//! An argument list borrows its buffers.

use curium_driver::{ArgumentList, Kernel, LaunchConfig, Stream, Untyped};
use curium_memory::DeviceBuffer;

fn launch(stream: &Stream, kernel: &Kernel<Untyped>, mut x: DeviceBuffer<u32>) {
    let arguments = ArgumentList::new().write(&mut x);
    drop(x);
    unsafe { kernel.launch(stream, LaunchConfig::new(1, 1), arguments) }.unwrap();
}

fn read_and_written(stream: &Stream, kernel: &Kernel<Untyped>, mut x: DeviceBuffer<u32>) {
    let arguments = ArgumentList::new().read(&x).write(&mut x);
    unsafe { kernel.launch(stream, LaunchConfig::new(1, 1), arguments) }.unwrap();
}

fn main() {}
