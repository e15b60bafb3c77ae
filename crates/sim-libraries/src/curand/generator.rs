//! Generators: their settings, their sequences, and their outputs.

use std::collections::HashMap;
use std::ffi::{c_int, c_uint, c_ulonglong};
use std::ptr;
use std::sync::LazyLock;

use bytemuck::Pod;
use curium_sim::{LibraryOperation, Operand};
use curium_sys::curand::{
    Api, cudaStream_t, curandGenerator_t, curandOrdering_t, curandRngType_t, curandStatus_t,
    libraryPropertyType_t,
};
use parking_lot::Mutex;

use super::engine::{Engine, Settings};
use super::{Result, code};
use crate::own_memory::OwnMemory;

/// The version that the library reports.
const VERSION: [c_int; 3] = [10, 4, 0];

/// Generators are multiples of this, as addresses would be.
const STEP: usize = 64;

/// The size of the state in device memory.
const STATE_BYTES: usize = 64;

/// The maximum number of dimensions.
const MAX_DIMENSIONS: c_uint = 20_000;

/// The location of the outputs of a generator.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Location {
    Host,
    Device,
}

/// A generator. Its sequence starts with the first operation.
pub(super) struct Generator {
    pub(super) settings: Settings,
    engine: Option<Engine>,
    location: Location,
    /// The state in device memory. As on hardware, every operation writes it.
    state: Option<OwnMemory>,
    /// The address of the stream's handle.
    stream: usize,
}

/// The live generators by their numbers, which are not reused.
#[derive(Default)]
struct Generators {
    live: HashMap<usize, Generator>,
    last: usize,
}

static GENERATORS: LazyLock<Mutex<Generators>> = LazyLock::new(Mutex::default);

/// Calls `operation` with a generator.
pub(super) fn with<T>(
    raw: curandGenerator_t,
    operation: impl FnOnce(&mut Generator) -> Result<T>,
) -> Result<T> {
    let mut generators = GENERATORS.lock();
    let generator = generators
        .live
        .get_mut(&raw.addr())
        .ok_or(curandStatus_t::CURAND_STATUS_NOT_INITIALIZED)?;
    operation(generator)
}

impl Generator {
    /// Returns the next numbers of the sequence.
    pub(super) fn next(&mut self, count: usize, is_wide: bool) -> Result<Vec<u64>> {
        if self.settings.is_quasi_random()
            && !count.is_multiple_of(self.settings.dimensions as usize)
        {
            return Err(curandStatus_t::CURAND_STATUS_LENGTH_NOT_MULTIPLE);
        }
        Ok(self
            .engine
            .get_or_insert_with(|| self.settings.start())
            .next(count, is_wide))
    }

    /// Writes numbers to the output: at once on the host, or when the stream has completed earlier
    /// work.
    ///
    /// # Safety
    ///
    /// On the host, `output` is valid for writes of the numbers.
    pub(super) unsafe fn write<T: Pod>(
        &self,
        name: &'static str,
        output: *mut T,
        numbers: &[T],
    ) -> Result {
        if self.location == Location::Host {
            // SAFETY: the caller guarantees the memory.
            unsafe { ptr::copy_nonoverlapping(numbers.as_ptr(), output, numbers.len()) };
            return Ok(());
        }
        let operand = Operand::write().with_run(output.addr() as u64, size_of_val(numbers));
        let bytes = bytemuck::cast_slice::<T, u8>(numbers).to_vec();
        // SAFETY: the caller guarantees the memory.
        unsafe {
            self.enqueue(name, vec![operand], move |operands| {
                operands[0].copy_from_slice(&bytes);
            })
        }
    }

    /// Enqueues an operation, which writes the state in addition to its operands.
    ///
    /// # Safety
    ///
    /// As for [`LibraryOperation::enqueue`].
    unsafe fn enqueue(
        &self,
        name: &'static str,
        mut operands: Vec<Operand>,
        compute: impl Fn(&mut [Vec<u8>]) + Send + Sync + 'static,
    ) -> Result {
        if let Some(state) = &self.state {
            let (address, bytes) = state.range();
            operands.push(Operand::write().with_run(address, bytes));
        }
        let operation = LibraryOperation::new(name, operands, compute);
        // SAFETY: the caller of the library guarantees the memory, as that of a kernel. The state
        // lives as long as the generator.
        unsafe { operation.enqueue(ptr::without_provenance_mut(self.stream)) }
            .map_err(|_| curandStatus_t::CURAND_STATUS_LAUNCH_FAILURE)
    }

    /// Changes the settings, which starts the sequence again.
    fn set(&mut self, is_supported: bool, change: impl FnOnce(&mut Settings)) -> Result {
        if !is_supported {
            return Err(curandStatus_t::CURAND_STATUS_TYPE_ERROR);
        }
        change(&mut self.settings);
        self.engine = None;
        Ok(())
    }
}

fn add(handle: *mut curandGenerator_t, kind: curandRngType_t, location: Location) -> Result {
    if handle.is_null() {
        return Err(curandStatus_t::CURAND_STATUS_OUT_OF_RANGE);
    }
    let generator = Generator {
        settings: Settings::new(kind)?,
        engine: None,
        location,
        state: match location {
            Location::Host => None,
            Location::Device => OwnMemory::new(STATE_BYTES),
        },
        stream: 0,
    };
    let mut generators = GENERATORS.lock();
    generators.last += STEP;
    let number = generators.last;
    generators.live.insert(number, generator);
    // SAFETY: by the contract of the C function, `handle` is valid for writes.
    unsafe { handle.write(ptr::without_provenance_mut(number)) };
    Ok(())
}

unsafe extern "C" fn create(
    handle: *mut curandGenerator_t,
    kind: curandRngType_t,
) -> curandStatus_t {
    code(add(handle, kind, Location::Device))
}

unsafe extern "C" fn create_on_host(
    handle: *mut curandGenerator_t,
    kind: curandRngType_t,
) -> curandStatus_t {
    code(add(handle, kind, Location::Host))
}

unsafe extern "C" fn destroy(raw: curandGenerator_t) -> curandStatus_t {
    let removed = GENERATORS.lock().live.remove(&raw.addr());
    code(
        removed
            .map(drop)
            .ok_or(curandStatus_t::CURAND_STATUS_NOT_INITIALIZED),
    )
}

unsafe extern "C" fn get_property(
    property: libraryPropertyType_t,
    value: *mut c_int,
) -> curandStatus_t {
    let Some(number) = VERSION.get(property.0 as usize) else {
        return curandStatus_t::CURAND_STATUS_OUT_OF_RANGE;
    };
    // SAFETY: by the contract of the C function, `value` is valid for writes.
    unsafe { value.write(*number) };
    curandStatus_t::CURAND_STATUS_SUCCESS
}

unsafe extern "C" fn get_version(version: *mut c_int) -> curandStatus_t {
    // SAFETY: by the contract of the C function, `version` is valid for writes.
    unsafe { version.write(VERSION[0] * 1000 + VERSION[1] * 100 + VERSION[2]) };
    curandStatus_t::CURAND_STATUS_SUCCESS
}

unsafe extern "C" fn set_stream(raw: curandGenerator_t, stream: cudaStream_t) -> curandStatus_t {
    code(with(raw, |generator| {
        generator.stream = stream.addr();
        Ok(())
    }))
}

unsafe extern "C" fn set_seed(raw: curandGenerator_t, seed: c_ulonglong) -> curandStatus_t {
    code(with(raw, |generator| {
        generator.set(!generator.settings.is_quasi_random(), |settings| {
            settings.seed = seed;
        })
    }))
}

unsafe extern "C" fn set_offset(raw: curandGenerator_t, offset: c_ulonglong) -> curandStatus_t {
    code(with(raw, |generator| {
        generator.set(generator.settings.has_offset(), |settings| {
            settings.offset = offset;
        })
    }))
}

/// Every order is the same here.
unsafe extern "C" fn set_ordering(
    raw: curandGenerator_t,
    order: curandOrdering_t,
) -> curandStatus_t {
    code(with(raw, |generator| {
        let is_quasi_random = order == curandOrdering_t::CURAND_ORDERING_QUASI_DEFAULT;
        if !(100..=104).contains(&order.0) && !is_quasi_random {
            return Err(curandStatus_t::CURAND_STATUS_OUT_OF_RANGE);
        }
        generator.set(
            generator.settings.is_quasi_random() == is_quasi_random,
            |_| {},
        )
    }))
}

unsafe extern "C" fn set_dimensions(raw: curandGenerator_t, dimensions: c_uint) -> curandStatus_t {
    code(with(raw, |generator| {
        if !(1..=MAX_DIMENSIONS).contains(&dimensions) {
            return Err(curandStatus_t::CURAND_STATUS_OUT_OF_RANGE);
        }
        generator.set(generator.settings.is_quasi_random(), |settings| {
            settings.dimensions = dimensions;
        })
    }))
}

unsafe extern "C" fn generate_seeds(raw: curandGenerator_t) -> curandStatus_t {
    code(with(raw, |generator| {
        generator.engine = Some(generator.settings.start());
        if generator.state.is_none() {
            return Ok(());
        }
        // SAFETY: the only operand is the state, which is live.
        unsafe { generator.enqueue("curandGenerateSeeds", Vec::new(), |_| {}) }
    }))
}

/// Adds the functions on generators.
pub(super) fn add_to(api: &mut Api) {
    api.curandCreateGenerator = Some(create);
    api.curandCreateGeneratorHost = Some(create_on_host);
    api.curandDestroyGenerator = Some(destroy);
    api.curandGetProperty = Some(get_property);
    api.curandGetVersion = Some(get_version);
    api.curandSetStream = Some(set_stream);
    api.curandSetPseudoRandomGeneratorSeed = Some(set_seed);
    api.curandSetGeneratorOffset = Some(set_offset);
    api.curandSetGeneratorOrdering = Some(set_ordering);
    api.curandSetQuasiRandomGeneratorDimensions = Some(set_dimensions);
    api.curandGenerateSeeds = Some(generate_seeds);
}
