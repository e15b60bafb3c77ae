//! Import of external memory and semaphores, for instance from Vulkan.
//!
//! Imported objects are shared with the other API. Neither side observes work enqueued by the
//! other: order the two with semaphores that both sides signal and wait for.

#[cfg(unix)]
mod descriptor;
mod image;
mod memory;
mod semaphore;

pub use self::memory::{ExternalBuffer, ExternalMemory, ExternalMemoryKind};
pub use self::semaphore::{ExternalSemaphore, ExternalSemaphoreKind};
