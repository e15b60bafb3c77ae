//! A struct passed by value implements `ByValue`, a signature is a tuple, and a tuple is not an argument list.

use curium_driver::{ArgumentList, Kernel, LaunchConfig, Library, Stream, Untyped};

#[derive(Clone, Copy)]
#[repr(C)]
struct Size {
    width: u32,
    height: u32,
}

fn value(size: Size) -> ArgumentList<'static> {
    ArgumentList::new().value(size)
}

fn parameter(library: &Library) {
    library.kernel::<(Size,)>("resize").unwrap();
}

fn signature(library: &Library) {
    library.kernel::<u32>("resize").unwrap();
}

fn untyped(stream: &Stream, kernel: &Kernel<Untyped>) {
    unsafe { kernel.launch(stream, LaunchConfig::new(1, 1), (1_u32,)) }.unwrap();
}

fn main() {}
