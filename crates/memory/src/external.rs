//! Memory and semaphores of other interfaces to the device, such as Vulkan.
//!
//! What is imported here belongs to both sides. Neither knows what the other has put in its queues: semaphores that both signal and
//! wait for are the only order between them.

#[cfg(unix)]
mod descriptor;
#[cfg(feature = "textures")]
mod image;
mod memory;
mod semaphore;

pub use self::memory::{ExternalBuffer, ExternalMemory, ExternalMemoryKind};
pub use self::semaphore::{ExternalSemaphore, ExternalSemaphoreKind};
