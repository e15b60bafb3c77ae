//! The foundation of every object: driver calls, errors, the current context, and teardown.
//!
//! These modules import no other object.

pub(crate) mod attachments;
pub(crate) mod c_string;
pub(crate) mod call;
pub(crate) mod call_spans;
pub(crate) mod call_trace;
pub(crate) mod callback;
pub(crate) mod capture_gate;
pub(crate) mod capture_guard;
pub(crate) mod capture_mode;
pub(crate) mod contain;
pub(crate) mod current;
pub(crate) mod driver;
pub(crate) mod driver_log;
pub(crate) mod error;
pub(crate) mod exclusive;
pub(crate) mod fork;
pub(crate) mod handle;
pub(crate) mod hook;
pub(crate) mod identity;
pub(crate) mod kept_value;
pub(crate) mod leak;
pub(crate) mod release;
pub(crate) mod shared_handle;
pub(crate) mod slow_path;
pub(crate) mod sync;
pub(crate) mod wait_history;
