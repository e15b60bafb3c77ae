//! Creation of generators.

use std::sync::Arc;

use curium_driver::AsRawStream as _;
use curium_driver::Stream;
use curium_driver::extend::with_relaxed_capture_mode;

use super::Generator;
use crate::CuRand;
use crate::algorithm::{Algorithm, PseudoRandom, QuasiRandom};
use crate::error::{ArgumentError, Result};
use crate::handle::Handle;
use crate::location::{Device, Host};
use crate::sys::curandGenerator_t;
use curium_sys::library_call as call;

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
        const OPERATION: &str = "Generator::seeded";
        let mut generator = Self::for_stream(OPERATION, library, stream)?;
        generator.configure(OPERATION, |handle| handle.set_seed(seed))?;
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
        const OPERATION: &str = "Generator::with_dimensions";
        let mut generator = Self::for_stream(OPERATION, library, stream)?;
        generator.change_dimensions(OPERATION, dimensions)?;
        Ok(generator)
    }
}

impl<A: PseudoRandom> Generator<A, Host> {
    /// Creates a generator of pseudo-random numbers on the host, which fills slices and needs no
    /// device memory.
    ///
    /// CUDA: `curandCreateGeneratorHost`, `curandSetPseudoRandomGeneratorSeed`.
    ///
    /// # Errors
    ///
    /// An error of the library.
    #[doc(alias = "curandCreateGeneratorHost")]
    pub fn seeded_on_host(library: &CuRand, seed: u64) -> Result<Self> {
        let generator = Self::host(library)?;
        generator.handle.set_seed(seed)?;
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
        generator.change_dimensions("Generator::with_dimensions_on_host", dimensions)?;
        Ok(generator)
    }
}

impl<A: Algorithm> Generator<A> {
    /// Takes ownership of a generator that other code created in the context of `stream`, and moves
    /// it to this stream.
    ///
    /// # Safety
    ///
    /// `raw` is a live generator of `library` on a device, with this algorithm and this number of
    /// dimensions, 1 for pseudo-random numbers. No other code uses or destroys it, and its work has
    /// completed.
    ///
    /// # Errors
    ///
    /// An error of the library, in which case the generator is destroyed.
    pub unsafe fn from_raw(
        library: &CuRand,
        raw: curandGenerator_t,
        stream: &Stream,
        dimensions: u32,
    ) -> Result<Self> {
        let handle = Handle::new(raw, library, Some(stream.context().clone()));
        set_stream(&handle, stream)?;
        Ok(Self::with(handle, Device::new(stream), dimensions))
    }

    fn for_stream(operation: &'static str, library: &CuRand, stream: &Stream) -> Result<Self> {
        stream.check_enqueue_uncaptured(operation)?;
        let handle = Handle::create(library, Some(stream.context()))?;
        set_stream(&handle, stream)?;
        Ok(Self::with(handle, Device::new(stream), 1))
    }

    /// Moves the generator to another stream of its context. The sequence continues. In a capture,
    /// pass the scope: the operations become nodes.
    ///
    /// Waits for the work of the previous stream, unless that is captured.
    ///
    /// CUDA: `curandSetStream`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`](crate::Error::Argument) if the stream belongs to another context; an
    /// error of the library or of the driver.
    #[doc(alias = "curandSetStream")]
    pub fn set_stream(&mut self, stream: &Stream) -> Result<()> {
        const OPERATION: &str = "Generator::set_stream";
        let old = self.location.stream.context();
        let new = stream.context();
        if old.as_raw() != new.as_raw() {
            let problem = format!(
                "the stream belongs to another context ({:p} instead of {:p})",
                new.as_raw(),
                old.as_raw()
            );
            return Err(ArgumentError::refused(OPERATION, problem));
        }
        if !self.location.stream.is_capturing()? {
            with_relaxed_capture_mode(old.driver(), || Ok(self.location.stream.drain()))??;
        }
        set_stream(&self.handle, stream)?;
        self.location.stream = stream.clone();
        Ok(())
    }
}

impl<A: Algorithm> Generator<A, Host> {
    fn host(library: &CuRand) -> Result<Self> {
        Ok(Self::with(Handle::create(library, None)?, Host, 1))
    }
}

impl<A: Algorithm, P> Generator<A, P> {
    fn with(handle: Handle<A>, location: P, dimensions: u32) -> Self {
        Self {
            handle: Arc::new(handle),
            location,
            dimensions,
        }
    }
}

fn set_stream<A: Algorithm>(handle: &Handle<A>, stream: &Stream) -> Result<()> {
    let raw = stream.as_raw().cast();
    // SAFETY: the generator and the stream are live, and their context is current.
    handle.entered(|| unsafe { call!(handle.library().api(), curandSetStream(handle.raw(), raw)) })
}
