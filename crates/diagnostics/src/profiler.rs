//! Control of an attached profiler.

use std::fmt;

use curium_driver::extend::release;
use curium_driver::{Context, Result, Returned, call};

/// A profiled region, which ends when this value is dropped.
///
/// NVIDIA's profilers restrict recording to such regions on request
/// (`nsys profile --capture-range=cudaProfilerApi`). Without a profiler this has no effect.
///
/// ```
/// use curium_diagnostics::Profiling;
///
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// let context = driver.device(0)?.primary_context()?;
/// let profiling = Profiling::start(&context)?;
/// // … what is to be recorded …
/// drop(profiling);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "the profiler stops when this is dropped"]
pub struct Profiling {
    context: Context,
    is_running: bool,
}

impl Profiling {
    /// Starts profiling `context` until the result is dropped. Has no effect without a profiler.
    ///
    /// CUDA: `cuProfilerStart`.
    ///
    /// # Errors
    ///
    /// An error returned by the driver.
    #[doc(alias = "cuProfilerStart")]
    #[doc(alias = "cudaProfilerStart")]
    pub fn start(context: &Context) -> Result<Self> {
        context.entered(|driver| {
            // SAFETY: the call takes no argument, and this context is current.
            unsafe { call!(driver, cuProfilerStart()) }
        })?;
        Ok(Self {
            context: context.clone(),
            is_running: true,
        })
    }

    /// Stops the profiler and returns any error, instead of only reporting it as [`Drop`] does.
    ///
    /// CUDA: `cuProfilerStop`.
    ///
    /// # Errors
    ///
    /// Returns the value to the caller if the driver call fails.
    #[doc(alias = "cuProfilerStop")]
    #[doc(alias = "cudaProfilerStop")]
    pub fn close(mut self) -> Result<(), Returned<Self>> {
        self.stop().map_err(|error| Returned::new(self, error))
    }

    fn stop(&mut self) -> Result<()> {
        self.context.entered(|driver| {
            // SAFETY: the call takes no argument, and this context is current.
            unsafe { call!(driver, cuProfilerStop()) }
        })?;
        self.is_running = false;
        Ok(())
    }
}

impl fmt::Debug for Profiling {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Profiling({:?})", self.context)
    }
}

impl Drop for Profiling {
    fn drop(&mut self) {
        if self.is_running {
            release(|| self.stop());
        }
    }
}
