//! The driver's log of failed calls.

mod listener;
mod reader;

pub use self::listener::{LogLevel, LogListener};
pub use self::reader::LogReader;
