//! The parts that every object uses: calls into the driver, errors, the current context, and dropping.
//!
//! The [`Driver`](crate::Driver) is the only object that these modules import.

pub(crate) mod c_string;
pub(crate) mod call;
pub(crate) mod call_spans;
pub(crate) mod callback;
pub(crate) mod capture_guard;
pub(crate) mod capture_mode;
pub(crate) mod current;
pub(crate) mod driver_log;
pub(crate) mod error;
pub(crate) mod exclusive;
pub(crate) mod fork;
pub(crate) mod handle;
pub(crate) mod hook;
pub(crate) mod leak;
pub(crate) mod release;
pub(crate) mod shared_handle;
#[cfg(test)]
pub(crate) mod stub_api;
