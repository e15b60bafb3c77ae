//! A view is `Send` only if its elements are.

use std::marker::PhantomData;

use curium_memory::DeviceSlice;

#[derive(Clone, Copy)]
struct Bound(#[allow(dead_code)] PhantomData<*mut u8>);

fn send(view: DeviceSlice<'static, Bound>) {
    std::thread::spawn(move || view.len());
}

fn main() {}
