//! The steps of out-of-memory recovery, and their statistics.

use std::sync::atomic::{AtomicU64, Ordering};

/// A step of out-of-memory recovery.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum RecoveryStep {
    /// Returns the blocks in thread caches to the central heap.
    Purge,
    /// Waits for the work in the context.
    Synchronize,
    /// Returns unused memory of the resource and of the device's current pool to the driver.
    Trim,
    /// Calls the registered reclaimers.
    Reclaim,
}

/// Statistics of out-of-memory recovery, by step.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct RecoveryStatistics {
    /// Statistics of [`RecoveryStep::Purge`].
    pub purge: RecoveryStepStatistics,
    /// Statistics of [`RecoveryStep::Synchronize`].
    pub synchronize: RecoveryStepStatistics,
    /// Statistics of [`RecoveryStep::Trim`].
    pub trim: RecoveryStepStatistics,
    /// Statistics of [`RecoveryStep::Reclaim`].
    pub reclaim: RecoveryStepStatistics,
}

/// Statistics of one step of out-of-memory recovery.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct RecoveryStepStatistics {
    /// The number of attempts.
    pub tried: u64,
    /// The number of attempts after which the allocation succeeded.
    pub helped: u64,
    /// The number of attempts in which the step itself failed.
    pub failed: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counters([Counter; 4]);

#[derive(Debug, Default)]
pub(super) struct Counter {
    tried: AtomicU64,
    helped: AtomicU64,
    failed: AtomicU64,
}

impl RecoveryStep {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Purge => "purging",
            Self::Synchronize => "synchronizing",
            Self::Trim => "trimming",
            Self::Reclaim => "reclaiming",
        }
    }
}

impl Counters {
    pub(super) fn counter(&self, step: RecoveryStep) -> &Counter {
        let [purge, synchronize, trim, reclaim] = &self.0;
        match step {
            RecoveryStep::Purge => purge,
            RecoveryStep::Synchronize => synchronize,
            RecoveryStep::Trim => trim,
            RecoveryStep::Reclaim => reclaim,
        }
    }

    pub(super) fn statistics(&self) -> RecoveryStatistics {
        let [purge, synchronize, trim, reclaim] = self.0.each_ref().map(Counter::statistics);
        RecoveryStatistics {
            purge,
            synchronize,
            trim,
            reclaim,
        }
    }
}

impl Counter {
    pub(super) fn count_try(&self, has_failed: bool) {
        self.tried.fetch_add(1, Ordering::Relaxed);
        self.failed
            .fetch_add(u64::from(has_failed), Ordering::Relaxed);
    }

    pub(super) fn count_help(&self) {
        self.helped.fetch_add(1, Ordering::Relaxed);
    }

    fn statistics(&self) -> RecoveryStepStatistics {
        RecoveryStepStatistics {
            tried: self.tried.load(Ordering::Relaxed),
            helped: self.helped.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
        }
    }
}
