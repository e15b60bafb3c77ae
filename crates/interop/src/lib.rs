//! Interoperability of CUDA with graphics APIs and with other processes.
//!
//! | Shared with | Items |
//! |---|---|
//! | OpenGL | [`GraphicsResource`], [`MappedGraphics`], [`GlDevices`] |
//! | EGL | [`GraphicsResource`], [`EglConsumer`], [`EglProducer`], [`event_from_egl_sync`] |
//! | Vulkan, Direct3D | [`external::ExternalMemory`], [`external::ExternalSemaphore`] |
//! | another process | [`IpcMemory`], [`IpcMemoryHandle`], [`IpcEventHandle`] |
//!
//! Stream-ordered memory and mapped physical memory are shared between processes through their
//! [pool](curium_memory::MemoryPool::export_pointer) and their
//! [handle](curium_memory::PhysicalMemory), which are in `curium-memory`.
//!
//! Nothing orders the work of the two sides but what both of them use: events, semaphores, or waits
//! on the host. Hazard tracking knows the accesses of this process through CUDA only. The simulator
//! shares memory between processes on Linux, and implements no graphics API.

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod external;
mod graphics;
mod ipc_event;
mod ipc_memory;

pub use self::graphics::{
    EglConsumer, EglFrame, EglLocation, EglProducer, GlDevices, GraphicsAccess, GraphicsFlags,
    GraphicsResource, MappedGraphics, event_from_egl_sync,
};
pub use self::ipc_event::IpcEventHandle;
pub use self::ipc_memory::{IpcMemory, IpcMemoryHandle};
