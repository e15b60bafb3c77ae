//! Creation of generators.

use std::sync::Arc;

use curium_driver::extend::with_relaxed_capture_mode;
use curium_driver::sys::call;
use curium_driver::{Context, Stream};

use super::Generator;
use crate::algorithm::{Algorithm, PseudoRandom, QuasiRandom};
use crate::error::Result;
use crate::handle::Handle;
use crate::library::CuRand;
use crate::place::{Device, Host};
use crate::sys::curandGenerator_t;

impl<A: PseudoRandom> Generator<A> {
    /// Creates a generator of pseudo-random numbers on `stream`.
    ///
    /// CUDA: `curandCreateGenerator`, `curandSetStream`, `curandSetPseudoRandomGeneratorSeed`.
    ///
    /// # Errors
    ///
    /// An error of the library.
    #[doc(alias = "curandCreateGenerator")]
    pub fn seeded(library: &CuRand, stream: &Stream, seed: u64) -> Result<Self> {
        let mut generator = Self::on(library, stream)?;
        generator.set_seed(seed)?;
        Ok(generator)
    }
}

impl<A: QuasiRandom> Generator<A> {
    /// Creates a generator of quasi-random numbers on `stream`, with 1 to 20,000 dimensions.
    ///
    /// CUDA: `curandCreateGenerator`, `curandSetStream`, `curandSetQuasiRandomGeneratorDimensions`.
    ///
    /// # Errors
    ///
    /// As for [`Generator::set_dimensions`].
    pub fn with_dimensions(library: &CuRand, stream: &Stream, dimensions: u32) -> Result<Self> {
        let mut generator = Self::on(library, stream)?;
        generator.set_dimensions(dimensions)?;
        Ok(generator)
    }
}

impl<A: PseudoRandom> Generator<A, Host> {
    /// Creates a generator of pseudo-random numbers on the host, which fills slices and needs no device memory.
    ///
    /// CUDA: `curandCreateGeneratorHost`, `curandSetPseudoRandomGeneratorSeed`.
    ///
    /// # Errors
    ///
    /// An error of the library.
    #[doc(alias = "curandCreateGeneratorHost")]
    pub fn seeded_on_host(library: &CuRand, seed: u64) -> Result<Self> {
        let mut generator = Self::host(library)?;
        generator.set_seed(seed)?;
        Ok(generator)
    }
}

impl<A: QuasiRandom> Generator<A, Host> {
    /// Creates a generator of quasi-random numbers on the host, with 1 to 20,000 dimensions.
    ///
    /// CUDA: `curandCreateGeneratorHost`, `curandSetQuasiRandomGeneratorDimensions`.
    ///
    /// # Errors
    ///
    /// As for [`Generator::set_dimensions`].
    pub fn with_dimensions_on_host(library: &CuRand, dimensions: u32) -> Result<Self> {
        let mut generator = Self::host(library)?;
        generator.set_dimensions(dimensions)?;
        Ok(generator)
    }
}

impl<A: Algorithm> Generator<A> {
    /// Takes over a generator that other code created in the context of `stream`, and moves it to this stream.
    ///
    /// # Safety
    ///
    /// `raw` is a live generator of `library` on a device, with this algorithm and this number of dimensions, 1 for pseudo-random numbers.
    /// Nobody else uses or destroys it, and its work has completed.
    ///
    /// # Errors
    ///
    /// An error of the library. The generator is destroyed then.
    pub unsafe fn from_raw(library: &CuRand, raw: curandGenerator_t, stream: &Stream, dimensions: u32) -> Result<Self> {
        let handle = Handle::new(raw, library, Some(stream.context().clone()));
        set_stream(&handle, stream)?;
        Ok(Self::with(handle, Device { stream: stream.clone() }, dimensions))
    }

    fn on(library: &CuRand, stream: &Stream) -> Result<Self> {
        // A capture forbids the allocations of the library in any other mode.
        let handle = relaxed(stream.context(), || Handle::create(library, Some(stream.context())))?;
        set_stream(&handle, stream)?;
        Ok(Self::with(handle, Device { stream: stream.clone() }, 1))
    }

    /// Writes the initial state, if a capture would otherwise make it a part of each launch.
    pub(super) fn make_ready(&mut self) -> Result<()> {
        let stream = &self.place.stream;
        if self.is_ready || !stream.is_capturing()? {
            return Ok(());
        }
        let (context, handle) = (stream.context(), &self.handle);
        relaxed(context, || {
            let setup = context.stream()?;
            set_stream(handle, &setup)?;
            // SAFETY: the generator is live, and its context is current.
            let seeded = handle.entered(|| unsafe { call!(handle.library().api(), curandGenerateSeeds(handle.raw())) });
            let drained = setup.drain();
            if let Err(error) = set_stream(handle, stream) {
                // The generator still uses it.
                std::mem::forget(setup);
                return Err(error);
            }
            seeded.and(drained.map_err(Into::into))
        })?;
        self.is_ready = true;
        Ok(())
    }
}

impl<A: Algorithm> Generator<A, Host> {
    fn host(library: &CuRand) -> Result<Self> {
        Ok(Self::with(Handle::create(library, None)?, Host, 1))
    }
}

impl<A: Algorithm, P> Generator<A, P> {
    fn with(handle: Handle<A>, place: P, dimensions: u32) -> Self {
        Self { handle: Arc::new(handle), place, dimensions, is_ready: false }
    }
}

fn set_stream<A: Algorithm>(handle: &Handle<A>, stream: &Stream) -> Result<()> {
    let raw = stream.as_raw().cast();
    // SAFETY: the generator and the stream are live, and their context is current.
    handle.entered(|| unsafe { call!(handle.library().api(), curandSetStream(handle.raw(), raw)) })
}

/// Calls the library in the relaxed capture mode.
fn relaxed<T>(context: &Context, operation: impl FnOnce() -> Result<T>) -> Result<T> {
    with_relaxed_capture_mode(context.driver(), || Ok(operation()))?
}
