//! The resources of a device that are divided between green contexts.
//!
//! A description belongs to the caller and is self-contained: besides the public fields, the device
//! and the membership in a set are stored in the bytes reserved for the driver.

use curium_sys::{CUdevResourceDesc_st, CUdevWorkqueueConfigResource};

use crate::handle::{Kind, Object};

/// The resources of a green context.
pub(crate) struct Descriptor {
    pub(crate) device: usize,
    pub(crate) resources: Resources,
}

/// The resources that a context runs on.
#[derive(Clone, Copy)]
pub(crate) struct Resources {
    pub(crate) multiprocessors: u32,
    pub(crate) work_queues: CUdevWorkqueueConfigResource,
}

impl Object for Descriptor {
    type Raw = CUdevResourceDesc_st;
    const KIND: Kind = Kind::Descriptor;
}
