//! The attribute that names the crate of the trait implements no other `unsafe` trait, and passes no `unsafe` to macros.

mod evil {
    pub use curium_kernel::ByValue;

    pub mod host {
        #[allow(unused_imports)]
        pub use bytemuck::Zeroable as ByValue;
    }

    macro_rules! ignore {
        ($name:ident) => {};
    }
    pub(crate) use ignore as __driver_by_value;
}

#[derive(Clone, Copy, curium_kernel::ByValue)]
#[by_value(crate = crate::evil)]
#[repr(C)]
pub struct Flag {
    flag: bool,
}

fn main() {
    let _ = <Flag as bytemuck::Zeroable>::zeroed();
}
