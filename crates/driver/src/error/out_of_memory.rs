//! Memory was short: the figures.

use std::fmt;

use curium_sys::{CUmemPool_attribute, CUmemoryPool};

use super::CallError;
use crate::capture_mode::relaxed;
use crate::{Device, Driver, Error, MemoryInfo, Result, Stream, call};

/// Memory was short, with the figures of that moment. What could not be learnt is `None`.
#[derive(Debug)]
#[non_exhaustive]
pub struct OutOfMemoryError {
    /// The call that failed; nothing if a resource refused by itself.
    pub call: Option<CallError>,
    /// The limit that a resource has set itself in bytes, if that is what was reached.
    pub limit: Option<usize>,
    /// The bytes that were asked for.
    pub requested: usize,
    /// The bytes that the resource with the limit had handed out.
    pub used: Option<usize>,
    /// The bytes of the device that were free, outside of pools and caches.
    pub free: Option<usize>,
    /// All bytes of the device.
    pub total: Option<usize>,
    /// The bytes in use of the device's current pool.
    pub pool_used: Option<usize>,
    /// The bytes that the device's current pool has taken from the device.
    pub pool_reserved: Option<usize>,
    /// The longest row of bytes that the resource itself had free, of resources that hold free memory.
    pub largest_free: Option<usize>,
    /// What was tried in vain to have more memory, in this order.
    pub attempts: Vec<RecoveryAttempt>,
}

/// Something that was tried to have more memory.
#[derive(Debug)]
#[non_exhaustive]
pub struct RecoveryAttempt {
    /// What was done, such as `trimming`.
    pub what: &'static str,
    /// Why it could not be done, if so.
    pub error: Option<Error>,
}

impl RecoveryAttempt {
    /// An attempt, and its error if it failed itself.
    #[doc(hidden)]
    #[must_use]
    #[inline]
    pub fn new(what: &'static str, error: Option<Error>) -> Self {
        Self { what, error }
    }
}

impl Error {
    /// The error of a resource that has `used` bytes in use, or does not know, and will not give `requested` more for its own reasons: a
    /// limit, or none that it tells.
    #[doc(hidden)]
    #[cold]
    #[must_use]
    #[inline]
    pub fn refused_memory(requested: usize, limit: Option<usize>, used: Option<usize>) -> Self {
        let error = OutOfMemoryError { limit, used, ..OutOfMemoryError::bare(requested) };
        Self::OutOfMemory(Box::new(error))
    }

    /// Adds to an error that says that memory was short what was tried in vain.
    #[doc(hidden)]
    #[cold]
    #[must_use]
    #[inline]
    pub fn with_recovery_attempts(mut self, attempts: Vec<RecoveryAttempt>) -> Self {
        if let Self::OutOfMemory(error) = &mut self {
            error.attempts.extend(attempts);
        }
        self
    }

    /// Adds to an error that says that memory was short what was asked for on `stream`, and what there is. Other errors stay as they
    /// are.
    #[doc(hidden)]
    #[cold]
    #[must_use]
    #[inline]
    pub fn with_memory_figures(self, stream: &Stream, requested: usize, largest_free: Option<usize>) -> Self {
        match self {
            Self::Call(call) if call.code == curium_sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                let error = OutOfMemoryError::new(*call, stream, requested, largest_free);
                Self::OutOfMemory(Box::new(error))
            }
            // A source inside knew the figures, unless it refused without asking the driver, but maybe not the cache around it.
            Self::OutOfMemory(mut error) => {
                error.requested = requested;
                error.largest_free = largest_free.or(error.largest_free);
                if error.free.is_none() {
                    error.look_up(stream);
                }
                Self::OutOfMemory(error)
            }
            other => other,
        }
    }
}

impl OutOfMemoryError {
    #[inline]
    fn new(call: CallError, stream: &Stream, requested: usize, largest_free: Option<usize>) -> Self {
        let mut error = Self { call: Some(call), largest_free, ..Self::bare(requested) };
        error.look_up(stream);
        error
    }

    /// Asks the driver for the figures of the device.
    #[inline]
    fn look_up(&mut self, stream: &Stream) {
        let memory = relaxed(stream.driver(), || stream.context().memory_info()).ok();
        let pool = relaxed(stream.driver(), || PoolFigures::of(stream.device())).ok();
        self.free = memory.map(|MemoryInfo { free, .. }| free);
        self.total = memory.map(|MemoryInfo { total, .. }| total);
        self.pool_used = pool.as_ref().map(|pool| pool.used);
        self.pool_reserved = pool.as_ref().map(|pool| pool.reserved);
    }

    /// Without any figure but one.
    #[inline]
    fn bare(requested: usize) -> Self {
        Self {
            call: None,
            limit: None,
            requested,
            used: None,
            free: None,
            total: None,
            pool_used: None,
            pool_reserved: None,
            largest_free: None,
            attempts: Vec::new(),
        }
    }
}

struct PoolFigures {
    used: usize,
    reserved: usize,
}

impl PoolFigures {
    /// Those of the device's current pool.
    #[inline]
    fn of(device: &Device) -> Result<Self> {
        let driver = device.driver();
        let mut pool: CUmemoryPool = std::ptr::null_mut();
        // SAFETY: `pool` is a valid place for the answer, and the device is one of this driver.
        unsafe { call!(driver, cuDeviceGetMemPool(&raw mut pool, device.as_raw())) }?;
        let used = figure(driver, pool, CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT)?;
        let reserved = figure(driver, pool, CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)?;
        Ok(Self { used, reserved })
    }
}

#[inline]
fn figure(driver: &Driver, pool: CUmemoryPool, attribute: CUmemPool_attribute) -> Result<usize> {
    let mut value: u64 = 0;
    let place = (&raw mut value).cast();
    // SAFETY: the device's current pool is live, and both attributes are numbers of 64 bits, for which `value` is the place.
    unsafe { call!(driver, cuMemPoolGetAttribute(pool, attribute, place)) }?;
    Ok(usize::try_from(value).unwrap_or(usize::MAX))
}

impl fmt::Display for OutOfMemoryError {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.call {
            Some(call) => {
                call.fmt(formatter)?;
                // A resource may ask for more than it was asked for.
                if !call.subject.starts_with(&format!("{} bytes", self.requested)) {
                    write!(formatter, "; {} bytes were asked for", self.requested)?;
                }
            }
            None => write!(formatter, "a resource refused {} bytes", self.requested)?,
        }
        if let Some(limit) = self.limit {
            write!(formatter, "; its limit is {limit} bytes")?;
        }
        if let Some(used) = self.used {
            write!(formatter, ", of which {used} are in use")?;
        }
        if let (Some(free), Some(total)) = (self.free, self.total) {
            write!(formatter, "; {free} of {total} bytes of the device are free")?;
        }
        if let (Some(used), Some(reserved)) = (self.pool_used, self.pool_reserved) {
            write!(formatter, "; its pool has {reserved} bytes, of which {used} are in use")?;
        }
        if let Some(largest) = self.largest_free {
            write!(formatter, "; the longest free range of the resource has {largest} bytes")?;
        }
        for (index, attempt) in self.attempts.iter().enumerate() {
            write!(formatter, "{}{}", if index == 0 { "; in vain: " } else { ", " }, attempt.what)?;
            if let Some(error) = &attempt.error {
                write!(formatter, " ({error})")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for OutOfMemoryError {}
