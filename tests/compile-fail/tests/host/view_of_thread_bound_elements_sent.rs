//! Views and slices are `Send` only if their elements are.

use std::marker::PhantomData;

use curium_memory::{DeviceSlice, DeviceView};

#[derive(Clone, Copy)]
struct Bound(#[allow(dead_code)] PhantomData<*mut u8>);

fn send(view: DeviceView<'static, Bound>) {
    std::thread::spawn(move || view.len());
}

fn send_slice(slice: &'static DeviceSlice<Bound>) {
    std::thread::spawn(move || slice.len());
}

fn main() {}
