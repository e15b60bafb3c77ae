//! How the driver's compiler and linker are to work, and what they say.

mod log;
mod options;

pub(crate) use self::log::Compilation;
pub use self::log::JitReport;
pub use self::options::{HostSymbol, JitCacheMode, JitFallback, JitOptions, JitTarget, LtoOptions};
