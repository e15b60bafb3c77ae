//! Options and logs of the driver's JIT compiler and linker.

mod log;
mod lto;
mod options;
mod symbol;

pub(crate) use self::log::Compilation;
pub use self::log::JitReport;
pub use self::lto::LtoOptions;
pub use self::options::{JitCacheMode, JitFallback, JitOptions, JitTarget};
pub use self::symbol::HostSymbol;
