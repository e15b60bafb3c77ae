//! Generators: an algorithm and its state, on a device or on the host.

mod create;
mod fill;

use std::sync::Arc;

use curium_driver::Stream;

use crate::CuRand;
use crate::algorithm::{Algorithm, PseudoRandom, QuasiRandom, SkipAhead};
use crate::error::Result;
use crate::handle::Handle;
use crate::location::{Device, Location};
use crate::order::GeneratorOrdering;
use crate::sys::curandGenerator_t;

/// A generator of random numbers with the algorithm `A`, on a stream of a device or on the host.
///
/// On a device, operations are enqueued on the stream and return before they have run. The memory
/// may be in buffers of any stream: operations wait for earlier accesses on the device, and later
/// accesses wait for them. A generator has mutable state, so operations borrow it exclusively.
/// Create one generator for each thread, with different seeds or offsets.
///
/// In a capture (`Graph::capture`), move an existing generator to the capture scope
/// ([`Generator::set_stream`]): its operations become nodes, and the graph keeps the generator and
/// the memory. Each launch continues the sequence on a GPU, and repeats it on the simulator. A
/// generator cannot be created in a capture. Its seed, order, offset and dimensions cannot be
/// changed in a capture, nor while a graph uses the generator. Launches of graphs and direct calls
/// that use one generator wait for each other on the device.
///
/// ```
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// # let curand = curium_sim_libraries::curand();
/// # /*
/// let driver = Driver::load()?;
/// let curand = CuRand::load()?;
/// # */
/// use curium_memory::DeviceBuffer;
/// use curium_rand::{Generator, Philox4x32, Sobol32};
///
/// let stream = driver.device(0)?.primary_context()?.stream()?;
/// let mut generator = Generator::<Philox4x32>::seeded(&curand, &stream, 42)?;
/// let mut weights = DeviceBuffer::<f32>::zeroed(&stream, 1000)?;
/// generator.normal(&mut weights, 0.0, 0.02)?;
///
/// // 500 points in three dimensions: all first coordinates, all second ones, all third ones.
/// let mut points = DeviceBuffer::<f64>::zeroed(&stream, 3 * 500)?;
/// Generator::<Sobol32>::with_dimensions(&curand, &stream, 3)?.uniform(&mut points)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Each algorithm has only the methods that it supports: a Sobol sequence has no seed, and a
/// Mersenne Twister no offset.
///
/// ```compile_fail,E0599
/// # fn f(generator: &mut curium_rand::Generator<curium_rand::Sobol32>) -> curium_rand::Result<()> {
/// generator.set_seed(42)
/// # }
/// ```
#[derive(Debug)]
pub struct Generator<A, P = Device> {
    handle: Arc<Handle<A>>,
    location: P,
    dimensions: u32,
}

impl<A: Algorithm, P> Generator<A, P> {
    /// Returns the number of dimensions: 1 for pseudo-random numbers.
    #[must_use]
    pub fn dimensions(&self) -> u32 {
        self.dimensions
    }

    /// Returns the library.
    #[must_use]
    pub fn library(&self) -> &CuRand {
        self.handle.library()
    }

    /// Returns the raw generator, for functions that this crate does not wrap. Calls must not
    /// change the stream or the dimensions. Their accesses are not tracked.
    #[must_use]
    pub fn as_raw(&mut self) -> curandGenerator_t {
        self.handle.raw()
    }
}

impl<A: Algorithm, P: Location> Generator<A, P> {
    /// Calls functions that write the state.
    fn configure(
        &mut self,
        operation: &'static str,
        change: impl FnOnce(&Handle<A>) -> Result<()>,
    ) -> Result<()> {
        let Self {
            handle, location, ..
        } = self;
        location.configure(operation, handle, || change(handle))
    }
}

impl<A: QuasiRandom, P: Location> Generator<A, P> {
    fn change_dimensions(&mut self, operation: &'static str, dimensions: u32) -> Result<()> {
        self.configure(operation, |handle| {
            handle.set_dimensions(operation, dimensions)
        })?;
        self.dimensions = dimensions;
        Ok(())
    }
}

impl<A: Algorithm> Generator<A> {
    /// Returns the stream.
    #[must_use]
    pub fn stream(&self) -> &Stream {
        &self.location.stream
    }
}

impl<A: PseudoRandom, P: Location> Generator<A, P> {
    /// Sets the seed, and restarts the sequence.
    ///
    /// CUDA: `curandSetPseudoRandomGeneratorSeed`.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`](crate::Error::Argument) if a graph uses the generator; an error of the
    /// library.
    #[doc(alias = "curandSetPseudoRandomGeneratorSeed")]
    pub fn set_seed(&mut self, seed: u64) -> Result<()> {
        self.configure("Generator::set_seed", |handle| handle.set_seed(seed))
    }

    /// Sets the order of the numbers in memory, and restarts the sequence.
    ///
    /// CUDA: `curandSetGeneratorOrdering`.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`](crate::Error::Argument) if a graph uses the generator; an error of the
    /// library, such as for an order that the algorithm does not support.
    #[doc(alias = "curandSetGeneratorOrdering")]
    pub fn set_ordering(&mut self, ordering: GeneratorOrdering) -> Result<()> {
        self.configure("Generator::set_ordering", |handle| {
            handle.set_ordering(ordering)
        })
    }
}

impl<A: QuasiRandom, P: Location> Generator<A, P> {
    /// Sets the number of dimensions, from 1 to 20,000, and restarts the sequence.
    ///
    /// CUDA: `curandSetQuasiRandomGeneratorDimensions`.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`](crate::Error::Argument) if the number is out of range, or if a graph
    /// uses the generator; an error of the library.
    #[doc(alias = "curandSetQuasiRandomGeneratorDimensions")]
    pub fn set_dimensions(&mut self, dimensions: u32) -> Result<()> {
        self.change_dimensions("Generator::set_dimensions", dimensions)
    }
}

impl<A: SkipAhead, P: Location> Generator<A, P> {
    /// Sets the position in the sequence, counted from its start.
    ///
    /// CUDA: `curandSetGeneratorOffset`.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`](crate::Error::Argument) if a graph uses the generator; an error of the
    /// library.
    #[doc(alias = "curandSetGeneratorOffset")]
    pub fn set_offset(&mut self, offset: u64) -> Result<()> {
        self.configure("Generator::set_offset", |handle| handle.set_offset(offset))
    }
}
