//! The handle of a generator, which lives until its owner and every graph that captured it are
//! gone.

use std::fmt;
use std::marker::PhantomData;
use std::ptr;

use curium_driver::Context;
use curium_driver::extend::release_handle;

use crate::CuRand;
use crate::algorithm::{Algorithm, PseudoRandom, QuasiRandom, SkipAhead};
use crate::error::{ArgumentError, Error, Result};
use crate::order::GeneratorOrdering;
use crate::sys::{curandGenerator_t, curandStatus_t};
use curium_sys::library_call as call;

/// The largest number of dimensions of a Sobol sequence.
const MAX_DIMENSIONS: u32 = 20_000;

/// A generator of cuRAND: on a device, in whose context it was created, or on the host.
pub(crate) struct Handle<A> {
    raw: curandGenerator_t,
    library: CuRand,
    context: Option<Context>,
    _algorithm: PhantomData<A>,
}

// SAFETY: a generator may be used by any thread, by one at a time: calls are made through an owner
// that is borrowed exclusively.
unsafe impl<A> Send for Handle<A> {}
// SAFETY: a shared handle is never passed to the library.
unsafe impl<A> Sync for Handle<A> {}

impl<A: Algorithm> Handle<A> {
    /// Creates a generator on the device of `context`, or on the host.
    pub(crate) fn create(library: &CuRand, context: Option<&Context>) -> Result<Self> {
        let api = library.api();
        let kind = A::to_raw();
        let mut raw = ptr::null_mut();
        match context {
            Some(context) => {
                let _entered = context.enter()?;
                // SAFETY: `raw` is valid for writes, and the context is current.
                unsafe { call!(api, curandCreateGenerator(&raw mut raw, kind)) }?;
            }
            // SAFETY: `raw` is valid for writes.
            None => unsafe { call!(api, curandCreateGeneratorHost(&raw mut raw, kind)) }?,
        }
        Ok(Self::new(raw, library, context.cloned()))
    }
}

impl<A> Handle<A> {
    pub(crate) fn new(raw: curandGenerator_t, library: &CuRand, context: Option<Context>) -> Self {
        Self {
            raw,
            library: library.clone(),
            context,
            _algorithm: PhantomData,
        }
    }

    pub(crate) fn raw(&self) -> curandGenerator_t {
        self.raw
    }

    pub(crate) fn library(&self) -> &CuRand {
        &self.library
    }

    /// Calls the library, with the context of the generator current.
    #[inline]
    pub(crate) fn entered<T>(&self, operation: impl FnOnce() -> Result<T>) -> Result<T> {
        let _entered = self.context.as_ref().map(Context::enter).transpose()?;
        operation()
    }
}

impl<A> Handle<A> {
    /// Starts the sequence again: cuRAND keeps the position when the seed, the order or the
    /// dimensions change. Algorithms without an offset start again by themselves.
    fn restart(&self) -> Result<()> {
        let api = self.library.api();
        // SAFETY: the generator is live, and its context is current.
        match self.entered(|| unsafe { call!(api, curandSetGeneratorOffset(self.raw, 0)) }) {
            Err(Error::Call(error)) if error.code == curandStatus_t::CURAND_STATUS_TYPE_ERROR => {}
            result => result?,
        }
        self.write_state()
    }

    /// Writes the initial state, which cuRAND cannot do in a capture.
    fn write_state(&self) -> Result<()> {
        let api = self.library.api();
        // SAFETY: the generator is live, and its context is current.
        self.entered(|| unsafe { call!(api, curandGenerateSeeds(self.raw)) })
    }
}

impl<A: PseudoRandom> Handle<A> {
    pub(crate) fn set_seed(&self, seed: u64) -> Result<()> {
        let api = self.library.api();
        // SAFETY: the generator is live, and its context is current.
        self.entered(|| unsafe { call!(api, curandSetPseudoRandomGeneratorSeed(self.raw, seed)) })?;
        self.restart()
    }

    pub(crate) fn set_ordering(&self, ordering: GeneratorOrdering) -> Result<()> {
        let api = self.library.api();
        // SAFETY: the generator is live, and its context is current.
        self.entered(|| unsafe {
            call!(api, curandSetGeneratorOrdering(self.raw, ordering.to_raw()))
        })?;
        self.restart()
    }
}

impl<A: QuasiRandom> Handle<A> {
    pub(crate) fn set_dimensions(&self, operation: &'static str, dimensions: u32) -> Result<()> {
        if !(1..=MAX_DIMENSIONS).contains(&dimensions) {
            let problem = format!(
                "unsupported number of dimensions ({dimensions}, allowed: 1 to {MAX_DIMENSIONS})"
            );
            return Err(ArgumentError::refused(operation, problem));
        }
        let api = self.library.api();
        // SAFETY: the generator is live, and its context is current.
        self.entered(|| unsafe {
            call!(
                api,
                curandSetQuasiRandomGeneratorDimensions(self.raw, dimensions)
            )
        })?;
        self.restart()
    }
}

impl<A: SkipAhead> Handle<A> {
    pub(crate) fn set_offset(&self, offset: u64) -> Result<()> {
        let api = self.library.api();
        // SAFETY: the generator is live, and its context is current.
        self.entered(|| unsafe { call!(api, curandSetGeneratorOffset(self.raw, offset)) })?;
        self.write_state()
    }
}

impl<A> Drop for Handle<A> {
    fn drop(&mut self) {
        release_handle("Generator::drop", || {
            // SAFETY: the generator is live, its context is current, and nothing else uses it.
            self.entered(|| unsafe { call!(self.library.api(), curandDestroyGenerator(self.raw)) })
        });
    }
}

impl<A> fmt::Debug for Handle<A> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:p}", self.raw)
    }
}
