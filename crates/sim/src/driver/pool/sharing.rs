//! Pools that are shared between processes, and their memory.

use crate::driver::Driver;
use crate::memory::Purpose;

impl Driver {
    /// Returns `true` if memory can be exported: its pool was exported before.
    pub(crate) fn is_exportable(&self, purpose: Purpose) -> bool {
        let (Purpose::Pool(pool) | Purpose::HostPool(pool)) = purpose else {
            return false;
        };
        self.memory()
            .read()
            .pools
            .get(pool)
            .is_some_and(|pool| pool.is_shared)
    }
}
