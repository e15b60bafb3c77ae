//! Registered memory is not freed before its registration.

use curium_driver::Context;
use curium_memory::{RegisterFlags, Registered};

fn register(context: &Context) {
    let mut values = vec![1_u32; 8];
    let registered = unsafe { Registered::new(context, &mut values, RegisterFlags::empty()) }.unwrap();
    drop(values);
    assert_eq!(registered[0], 1);
}

fn main() {}
