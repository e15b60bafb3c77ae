//! The data of the checks of kernels: recorded accesses, written and undefined bytes, and the
//! reports. The checks themselves are in `ops`.

pub(crate) mod copies;
pub(crate) mod fact;
pub(crate) mod first_stores;
pub(crate) mod launch_shadow;
pub(crate) mod local_written;
pub(crate) mod name;
pub(crate) mod report;
pub(crate) mod shadow;
pub(crate) mod source;
pub(crate) mod undefined;
pub(crate) mod variable;
pub(crate) mod watch;
pub(crate) mod written;
