//! Requests to end the job: Ctrl-C, and signals.

use anyhow::Result;

/// The number of requests to end the job. There is one for the program.
pub(super) struct Interrupts {
    _private: (),
}

impl Interrupts {
    /// Counts interrupts from now on, instead of ending this program.
    pub(super) fn handle() -> Result<Self> {
        system::handle()?;
        Ok(Self { _private: () })
    }

    /// Returns the number of interrupts so far.
    pub(super) fn count(&self) -> usize {
        system::count()
    }

    /// Returns 128 plus the number of the first signal, as in shells.
    pub(super) fn exit_code(&self) -> u8 {
        system::exit_code()
    }
}

#[cfg(unix)]
mod system {
    use std::ffi::c_int;
    use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

    use anyhow::{Context as _, Result};
    use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

    /// The signals that end the job. Ranks lead process groups of their own, so those of the
    /// terminal reach this program only; one that ended it would leave the ranks behind.
    const SIGNALS: [Signal; 4] = [
        Signal::SIGINT,
        Signal::SIGTERM,
        Signal::SIGHUP,
        Signal::SIGQUIT,
    ];

    static COUNT: AtomicUsize = AtomicUsize::new(0);

    /// The number of the first signal, or 0.
    static FIRST: AtomicI32 = AtomicI32::new(0);

    extern "C" fn record(signal: c_int) {
        // The first signal stays.
        let _ = FIRST.compare_exchange(0, signal, Ordering::Relaxed, Ordering::Relaxed);
        COUNT.fetch_add(1, Ordering::Release);
    }

    pub(super) fn handle() -> Result<()> {
        let record = SigAction::new(
            SigHandler::Handler(record),
            SaFlags::SA_RESTART,
            SigSet::empty(),
        );
        for signal in SIGNALS {
            // SAFETY: the handler only accesses atomics, which is async-signal-safe.
            let previous = unsafe { sigaction(signal, &record) }
                .with_context(|| format!("{signal}: cannot be handled"))?;
            // A signal that is ignored from the start stays so: `nohup` ignores SIGHUP, and shells
            // ignore SIGINT for programs in the background.
            if matches!(previous.handler(), SigHandler::SigIgn) {
                // SAFETY: this restores the action that the program started with, which has no
                // handler.
                unsafe { sigaction(signal, &previous) }
                    .with_context(|| format!("{signal}: cannot be ignored"))?;
            }
        }
        Ok(())
    }

    pub(super) fn count() -> usize {
        COUNT.load(Ordering::Acquire)
    }

    pub(super) fn exit_code() -> u8 {
        u8::try_from(FIRST.load(Ordering::Relaxed))
            .map_or(u8::MAX, |signal| signal.saturating_add(128))
    }
}

#[cfg(not(unix))]
mod system {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use anyhow::{Context as _, Result};

    static COUNT: AtomicUsize = AtomicUsize::new(0);

    pub(super) fn handle() -> Result<()> {
        ctrlc::set_handler(|| {
            COUNT.fetch_add(1, Ordering::Relaxed);
        })
        .context("interrupts cannot be handled")
    }

    pub(super) fn count() -> usize {
        COUNT.load(Ordering::Relaxed)
    }

    /// Returns the code after SIGINT of other systems.
    pub(super) fn exit_code() -> u8 {
        130
    }
}
