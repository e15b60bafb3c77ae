//! The rungs of the ladder, and how often they helped.

use std::sync::atomic::{AtomicU64, Ordering};

/// What is tried when memory is short.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Rung {
    /// Putting together what threads hold.
    Purge,
    /// Waiting for the work of the context.
    Synchronize,
    /// Giving back what resources and the device's pool do not use.
    Trim,
    /// Asking those who registered to give up memory.
    Reclaim,
}

/// How often each rung was tried, and what came of it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct LadderStatistics {
    /// Those of [`Rung::Purge`].
    pub purge: RungStatistics,
    /// Those of [`Rung::Synchronize`].
    pub synchronize: RungStatistics,
    /// Those of [`Rung::Trim`].
    pub trim: RungStatistics,
    /// Those of [`Rung::Reclaim`].
    pub reclaim: RungStatistics,
}

/// How often a rung was tried, and what came of it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct RungStatistics {
    /// How often it was tried.
    pub tried: u64,
    /// How often there was memory afterwards.
    pub helped: u64,
    /// How often it failed itself.
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

impl Rung {
    #[inline]
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
    #[inline]
    pub(super) fn of(&self, rung: Rung) -> &Counter {
        let [purge, synchronize, trim, reclaim] = &self.0;
        match rung {
            Rung::Purge => purge,
            Rung::Synchronize => synchronize,
            Rung::Trim => trim,
            Rung::Reclaim => reclaim,
        }
    }

    #[inline]
    pub(super) fn statistics(&self) -> LadderStatistics {
        let [purge, synchronize, trim, reclaim] = self.0.each_ref().map(Counter::statistics);
        LadderStatistics { purge, synchronize, trim, reclaim }
    }
}

impl Counter {
    #[inline]
    pub(super) fn count_try(&self, has_failed: bool) {
        self.tried.fetch_add(1, Ordering::Relaxed);
        self.failed.fetch_add(u64::from(has_failed), Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn count_help(&self) {
        self.helped.fetch_add(1, Ordering::Relaxed);
    }

    #[inline]
    fn statistics(&self) -> RungStatistics {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        RungStatistics { tried: load(&self.tried), helped: load(&self.helped), failed: load(&self.failed) }
    }
}
