//! The types of CUDA objects: their data, and what they do without a driver.

pub(crate) mod array;
pub(crate) mod capture;
pub(crate) mod copy;
pub(crate) mod event;
pub(crate) mod function;
pub(crate) mod graph;
pub(crate) mod ipc_event;
pub(crate) mod kernel;
pub(crate) mod launch;
pub(crate) mod library;
pub(crate) mod library_operation;
pub(crate) mod module;
pub(crate) mod notification;
pub(crate) mod stream_memory_operation;
pub(crate) mod texture;
