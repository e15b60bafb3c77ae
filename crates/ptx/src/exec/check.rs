//! Checks of kernels: races, uninitialized reads, watched accesses, and the reports.

pub(crate) mod copies;
pub(crate) mod definedness;
pub(crate) mod launch_race;
pub(crate) mod launch_shadow;
pub(crate) mod local_written;
pub(crate) mod name;
pub(crate) mod race;
pub(crate) mod report;
pub(crate) mod shadow;
pub(crate) mod source;
pub(crate) mod uninitialized;
pub(crate) mod variable;
pub(crate) mod watch;
pub(crate) mod written;
