//! Comparison of a kernel with its twins.

use curium_driver::{
    ArgumentList, Context, Device, Dimensions, Event, EventFlags, Kernel, LaunchConfig, Stream,
    Untyped,
};
use curium_kernel::{F32x2, F32x4, F64x2, U32x4};
use curium_memory::{AnyBitPattern, DeviceBuffer, NoUninit};
use curium_test_kernels::Kernels;

use crate::Result;
use crate::cuda::{self, Twins};
use crate::entries::Entry;
use crate::report::{Agreement, Measurement, Row};

/// The PTX of the kernels in Rust.
const RUST_PTX: &str = include_str!(concat!(env!("OUT_DIR"), "/kernels.sm_80.ptx"));

/// The number of launches that are measured.
const LAUNCHES: usize = 20;

/// The number of elements at each end of an output that are compared.
const COMPARED: usize = 1 << 20;

/// The number of random elements that are repeated in large inputs.
const NOISE: usize = 1 << 18;

/// The device, and what is compiled for it.
pub(crate) struct Bench {
    pub(crate) context: Context,
    pub(crate) stream: Stream,
    pub(crate) kernels: Kernels,
    pub(crate) twins: Twins,
    pub(crate) is_small: bool,
}

/// A kernel in CUDA C++, as compiled by one compiler.
pub(crate) struct Twin<'a> {
    kernel: &'a Kernel<Untyped>,
    stream: &'a Stream,
}

impl Twin<'_> {
    /// Launches the kernel.
    pub(crate) fn launch(
        &self,
        grid: impl Into<Dimensions>,
        block: impl Into<Dimensions>,
        arguments: ArgumentList<'_>,
    ) -> Result<()> {
        self.launch_with_shared(grid, block, 0, arguments)
    }

    /// Launches the kernel with dynamic shared memory.
    pub(crate) fn launch_with_shared(
        &self,
        grid: impl Into<Dimensions>,
        block: impl Into<Dimensions>,
        shared_bytes: u32,
        arguments: ArgumentList<'_>,
    ) -> Result<()> {
        if shared_bytes > 48 << 10 {
            let device = self.stream.context().device();
            self.kernel
                .set_max_dynamic_shared_bytes(device, shared_bytes)?;
        }
        let config = LaunchConfig::new(grid, block).with_shared_bytes(shared_bytes);
        // SAFETY: the sources are a part of this program, and each entry of the table passes what
        // its twin in CUDA C++ requires.
        unsafe { self.kernel.launch(self.stream, config, arguments) }?;
        Ok(())
    }
}

/// How far outputs may differ.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Tolerance {
    /// They are equal.
    Exact,
    /// A difference relative to the number, or to 1 if it is smaller.
    Relative(f64),
    /// A share of elements may differ.
    Share(f64),
}

impl Tolerance {
    fn compare(self, actual: &[f64], expected: &[f64]) -> Agreement {
        if actual.len() != expected.len() {
            return Agreement::Wrong(actual.len().max(expected.len()));
        }
        let is_equal = |actual: f64, expected: f64| match self {
            Self::Exact | Self::Share(_) => actual.to_bits() == expected.to_bits(),
            Self::Relative(tolerance) => {
                (actual - expected).abs() <= tolerance * expected.abs().max(1.0)
            }
        };
        let pairs = actual.iter().zip(expected);
        let differences = pairs
            .filter(|(actual, expected)| !is_equal(**actual, **expected))
            .count();
        let limit = match self {
            Self::Share(share) => (share * actual.len() as f64) as usize,
            Self::Exact | Self::Relative(_) => 0,
        };
        if differences > limit {
            Agreement::Wrong(differences)
        } else {
            Agreement::Equal
        }
    }
}

/// Numbers that can be compared.
pub(crate) trait Number: NoUninit + AnyBitPattern {
    fn push(self, numbers: &mut Vec<f64>);
}

macro_rules! numbers {
    ($($ty:ty)*) => {$(
        impl Number for $ty {
            fn push(self, numbers: &mut Vec<f64>) {
                numbers.push(self.into());
            }
        }
    )*};
}

numbers!(f32 f64 i32 u8 u16 u32);

impl Number for u64 {
    fn push(self, numbers: &mut Vec<f64>) {
        numbers.extend([(self >> 32) as f64, f64::from(self as u32)]);
    }
}

macro_rules! vectors {
    ($($ty:ident: $($field:ident)*;)*) => {$(
        impl Number for $ty {
            fn push(self, numbers: &mut Vec<f64>) {
                numbers.extend([$(f64::from(self.$field)),*]);
            }
        }
    )*};
}

vectors! {
    F32x2: x y;
    F32x4: x y z w;
    F64x2: x y;
    U32x4: x y z w;
}

/// The outputs of a kernel: a buffer, or a tuple of buffers.
pub(crate) trait Outputs {
    /// Reads the elements at both ends.
    fn read(&self) -> Result<Vec<f64>>;
}

impl<T: Number> Outputs for DeviceBuffer<T> {
    fn read(&self) -> Result<Vec<f64>> {
        let len = self.len();
        let mut elements = self.slice(..len.min(COMPARED))?.to_vec()?;
        if len > COMPARED {
            let rest = len.saturating_sub(COMPARED).max(COMPARED);
            elements.extend(self.slice(rest..)?.to_vec()?);
        }
        let mut numbers = Vec::with_capacity(elements.len());
        for element in elements {
            element.push(&mut numbers);
        }
        Ok(numbers)
    }
}

impl<A: Outputs, B: Outputs> Outputs for (A, B) {
    fn read(&self) -> Result<Vec<f64>> {
        let mut numbers = self.0.read()?;
        numbers.extend(self.1.read()?);
        Ok(numbers)
    }
}

impl<A: Outputs, B: Outputs, C: Outputs> Outputs for (A, B, C) {
    fn read(&self) -> Result<Vec<f64>> {
        let mut numbers = self.0.read()?;
        numbers.extend(self.1.read()?);
        numbers.extend(self.2.read()?);
        Ok(numbers)
    }
}

/// A kernel, its twin in CUDA C++, and a reference on the host.
pub(crate) struct Comparison<'a, O> {
    pub(crate) outputs: O,
    pub(crate) tolerance: Tolerance,
    /// Sets the outputs before a launch whose results are compared, if kernels read them.
    pub(crate) prepare: &'a dyn Fn(&mut O) -> Result<()>,
    /// Returns the kernel in Rust.
    pub(crate) kernel: &'a dyn Fn(&'a Kernels) -> &'a Kernel<Untyped>,
    /// Launches the kernel in Rust.
    pub(crate) rust: &'a dyn Fn(&Kernels, &Stream, &mut O) -> curium_driver::Result<()>,
    /// Launches the kernel in CUDA C++.
    pub(crate) cuda: &'a dyn Fn(&Twin<'_>, &mut O) -> Result<()>,
    /// Computes the outputs on the host, of small sizes only.
    pub(crate) reference: &'a dyn Fn() -> Result<Vec<f64>>,
}

/// A compiled kernel.
enum Variant {
    Cuda(Kernel<Untyped>),
    Rust,
}

impl Bench {
    pub(crate) fn new(device: &Device, twins: Twins, is_small: bool) -> Result<Self> {
        let context = device.primary_context()?;
        Ok(Self {
            stream: context.stream()?,
            kernels: Kernels::load(device)?,
            context,
            twins,
            is_small,
        })
    }

    /// Returns the size of a problem.
    pub(crate) fn size(&self, full: usize, small: usize) -> usize {
        if self.is_small { small } else { full }
    }

    /// Creates a buffer, and repeats the elements of a pattern in it.
    pub(crate) fn repeat<T: Number>(&self, pattern: &[T], len: usize) -> Result<DeviceBuffer<T>> {
        let mut buffer = DeviceBuffer::uninit(&self.stream, len)?;
        let mut filled = pattern.len().min(len);
        let (mut first, _) = buffer.split_at_mut(filled)?;
        first.copy_from_slice(&pattern[..filled])?;
        while filled < len {
            let (source, mut target) = buffer.split_at_mut(filled)?;
            let count = filled.min(len - filled);
            let mut target = target.slice_mut(..count)?;
            target.copy_from_device(&source.slice(..count)?)?;
            filled += count;
        }
        Ok(buffer)
    }

    /// Creates a buffer of random numbers from -1 to 1.
    pub(crate) fn floats(&self, len: usize, seed: u64) -> Result<DeviceBuffer<f32>> {
        let mut random = fastrand::Rng::with_seed(seed);
        let noise: Vec<f32> = (0..NOISE.min(len))
            .map(|_| random.f32() * 2.0 - 1.0)
            .collect();
        self.repeat(&noise, len)
    }

    /// Creates a buffer of random integers.
    pub(crate) fn words(&self, len: usize, seed: u64) -> Result<DeviceBuffer<u32>> {
        let mut random = fastrand::Rng::with_seed(seed);
        let noise: Vec<u32> = (0..NOISE.min(len)).map(|_| random.u32(..)).collect();
        self.repeat(&noise, len)
    }

    /// Creates a buffer of random bytes.
    pub(crate) fn bytes(&self, len: usize, seed: u64) -> Result<DeviceBuffer<u8>> {
        let mut random = fastrand::Rng::with_seed(seed);
        let noise: Vec<u8> = (0..NOISE.min(len)).map(|_| random.u8(..)).collect();
        self.repeat(&noise, len)
    }

    /// Measures an entry of the table.
    pub(crate) fn run(&self, entry: &Entry) -> Result<Row> {
        (entry.run)(self, entry)
    }

    /// Compares the outputs, and measures the times.
    pub(crate) fn compare<'a, O: Outputs>(
        &'a self,
        entry: &Entry,
        mut comparison: Comparison<'a, O>,
    ) -> Result<Row> {
        let mut variants = Vec::new();
        let mut row = Row::new(entry.name);
        let device = self.context.device();
        for compiler in &self.twins.compilers {
            let kernel = compiler.library(entry.source)?.untyped_kernel(entry.name)?;
            let ptx_bytes = compiler.ptx_bytes(entry.source, entry.name);
            row.measurements
                .push(Measurement::new(compiler.name, device, &kernel, ptx_bytes)?);
            variants.push(Variant::Cuda(kernel));
        }
        let kernel = (comparison.kernel)(&self.kernels).clone();
        let ptx_bytes = cuda::ptx_bytes(RUST_PTX, kernel.name());
        row.measurements
            .push(Measurement::new("Rust", device, &kernel, ptx_bytes)?);
        variants.push(Variant::Rust);

        let mut expected = if self.is_small {
            Some((comparison.reference)()?)
        } else {
            None
        };
        for (variant, measurement) in variants.iter().zip(&mut row.measurements) {
            (comparison.prepare)(&mut comparison.outputs)?;
            self.launch(variant, &mut comparison)?;
            let actual = comparison.outputs.read()?;
            // Without a reference, all others are compared with the first compiler.
            let expected = expected.get_or_insert_with(|| actual.clone());
            measurement.agreement = comparison.tolerance.compare(&actual, expected);
        }
        if !self.is_small {
            for variant in &variants {
                self.launch(variant, &mut comparison)?;
            }
            // In turn, so that all have the same clock rate and temperature.
            for _ in 0..LAUNCHES {
                for (variant, measurement) in variants.iter().zip(&mut row.measurements) {
                    let begin = Event::new(&self.context, EventFlags::empty())?;
                    let end = Event::new(&self.context, EventFlags::empty())?;
                    begin.record(&self.stream)?;
                    self.launch(variant, &mut comparison)?;
                    end.record(&self.stream)?;
                    end.synchronize()?;
                    measurement.push(f64::from(end.milliseconds_since(&begin)?) * 1000.0);
                }
            }
        }
        Ok(row)
    }

    fn launch<O>(&self, variant: &Variant, comparison: &mut Comparison<'_, O>) -> Result<()> {
        match variant {
            Variant::Cuda(kernel) => {
                let twin = Twin {
                    kernel,
                    stream: &self.stream,
                };
                (comparison.cuda)(&twin, &mut comparison.outputs)
            }
            Variant::Rust => {
                let outputs = &mut comparison.outputs;
                Ok((comparison.rust)(&self.kernels, &self.stream, outputs)?)
            }
        }
    }
}
