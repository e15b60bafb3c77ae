//! Measuring algorithms.

use std::time::Duration;

use curium_driver::{CacheKey, DeviceAttribute, DiskCache, Event, EventFlags, Stream};
use curium_memory::DeviceBuffer;

use super::plan::{Target, no_algorithm};
use super::role::{ByRole, Role};
use super::{Algorithm, BlasLt, Matmul, MatmulPlan, Operands, PlanOptions};
use crate::error::Result;

/// Creates plans with the fastest of several algorithms, each measured on the device. If none is
/// faster than the library's first choice by more than 1 %, that one is kept.
///
/// With a [`DiskCache`], a product is measured once for each version of the library and each type
/// of device; later runs of any program read the algorithm from the cache. Without one, each call
/// measures.
///
/// ```
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// # let cublaslt = curium_sim_libraries::cublaslt();
/// # let stream = driver.device(0)?.primary_context()?.stream()?;
/// # let folder = std::env::temp_dir().join(format!("curium-lt-{}", std::process::id()));
/// use curium_blas::MatrixLayout;
/// use curium_blas::lt::{BlasLt, Matmul, Tuner, TypedLayout};
/// use curium_driver::DiskCache;
///
/// let lt = BlasLt::new(&cublaslt, stream.context())?;
/// let square = TypedLayout::new::<f32>(MatrixLayout::row_major(64, 64));
/// let tuner = Tuner::new().with_cache(DiskCache::open(&folder)?);
/// let tuned = tuner.plan(&lt, &stream, &Matmul::new(square, square, square))?;
/// assert!(!tuned.measurements.is_empty());
/// let again = tuner.plan(&lt, &stream, &Matmul::new(square, square, square))?;
/// assert_eq!(again.plan.algorithm(), tuned.plan.algorithm());
/// assert!(again.measurements.is_empty(), "the cache has it");
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Tuner {
    cache: Option<DiskCache>,
    options: PlanOptions,
    candidates: usize,
    repetitions: usize,
}

/// A plan with the selected algorithm.
#[derive(Debug)]
#[non_exhaustive]
pub struct TunedPlan {
    /// The plan.
    pub plan: MatmulPlan,
    /// The algorithms with their times, in the order in which the library expects them to be fast.
    /// Empty if the plan was in the cache, or if there is only one algorithm.
    pub measurements: Vec<Measurement>,
}

/// The time of a product with one algorithm.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Measurement {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The median of the times on the device.
    pub time: Duration,
}

const OPERATION: &str = "Tuner::plan";

impl Default for Tuner {
    fn default() -> Self {
        Self::new()
    }
}

impl Tuner {
    /// Creates a tuner that measures 8 algorithms 10 times each.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            cache: None,
            options: PlanOptions {
                workspace_limit: None,
            },
            candidates: 8,
            repetitions: 10,
        }
    }

    /// Stores the results in `cache`, such as [`DiskCache::for_user`].
    #[must_use]
    pub fn with_cache(mut self, cache: DiskCache) -> Self {
        self.cache = Some(cache);
        self
    }

    /// Sets the options of the plans.
    #[must_use]
    pub const fn with_options(mut self, options: PlanOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets the number of algorithms that are measured.
    #[must_use]
    pub const fn with_candidates(mut self, count: usize) -> Self {
        self.candidates = count;
        self
    }

    /// Sets the number of measurements of each algorithm. Each lasts at least a millisecond, within
    /// which short products run several times.
    #[must_use]
    pub const fn with_repetitions(mut self, count: usize) -> Self {
        self.repetitions = count;
        self
    }

    /// Creates the plan of a product. If it is not in the cache, allocates operands on `stream`,
    /// measures the algorithms there with events, and waits for them. Failures of the cache are
    /// ignored.
    ///
    /// The elements of the factors are small numbers. Work on other streams disturbs the
    /// measurements.
    ///
    /// # Errors
    ///
    /// As for [`MatmulPlan::new`], and an error of an allocation.
    pub fn plan(&self, lt: &BlasLt, stream: &Stream, matmul: &Matmul) -> Result<TunedPlan> {
        stream.check_enqueue_uncaptured(OPERATION)?;
        let key = self.key(lt, matmul)?;
        if let Some(plan) = self.cached(lt, matmul, &key) {
            return Ok(TunedPlan {
                plan,
                measurements: Vec::new(),
            });
        }
        let mut plans = MatmulPlan::candidates(lt, matmul, self.options, self.candidates)?;
        let measurements = if plans.len() < 2 {
            Vec::new()
        } else {
            self.measure(stream, *matmul, &mut plans)?
        };
        let times: Vec<_> = measurements
            .iter()
            .map(|measurement| measurement.time)
            .collect();
        if plans.is_empty() {
            return Err(no_algorithm(OPERATION, lt, matmul, self.options));
        }
        let plan = plans.swap_remove(selected(&times));
        if let Some(cache) = &self.cache {
            // The plan is valid even if the cache has no room for it.
            let _ = cache.put(&key, &plan.to_bytes());
        }
        Ok(TunedPlan { plan, measurements })
    }

    /// Returns everything that determines the fastest algorithm.
    fn key(&self, lt: &BlasLt, matmul: &Matmul) -> Result<CacheKey> {
        let device = lt.context().device();
        let count = device.attribute(DeviceAttribute::MULTIPROCESSOR_COUNT)?;
        let target = Target::current(lt).numbers().map(u64::to_le_bytes).concat();
        let limit = self.options.workspace_limit_for(lt) as u64;
        // SAFETY: only this function creates keys of this kind, and `plan` stores plans under them.
        let key = unsafe { CacheKey::for_code("cublaslt") }
            .with("target", &target)
            .with("device", device.name()?.as_bytes())
            .with("multiprocessors", count.to_string().as_bytes())
            .with("limit", &limit.to_le_bytes())
            .with("candidates", &(self.candidates as u64).to_le_bytes())
            .with("matmul", &matmul.to_bytes());
        Ok(key)
    }

    fn cached(&self, lt: &BlasLt, matmul: &Matmul, key: &CacheKey) -> Option<MatmulPlan> {
        let bytes = self.cache.as_ref()?.get(key).ok()??;
        // SAFETY: entries of such keys are those of `plan`, and the cache checks them.
        let plan = unsafe { MatmulPlan::from_bytes(lt, &bytes) }.ok()?;
        (plan.matmul() == matmul).then_some(plan)
    }

    /// Measures the plans in turns, so that a change of the clock affects all of them.
    fn measure(
        &self,
        stream: &Stream,
        matmul: Matmul,
        plans: &mut [MatmulPlan],
    ) -> Result<Vec<Measurement>> {
        let mut memory = Scratch::new(stream, matmul, plans)?;
        let mut shortest = MEASURED;
        for plan in &mut *plans {
            // The first run loads the kernel.
            plan.execute(stream, memory.operands())?;
            shortest = shortest.min(time(stream, plan, &mut memory, 1)?);
        }
        let runs = MEASURED
            .as_nanos()
            .div_ceil(shortest.as_nanos().max(1))
            .clamp(1, u128::from(MAX_RUNS)) as u32;
        let mut times = vec![Vec::with_capacity(self.repetitions.max(1)); plans.len()];
        for _ in 0..self.repetitions.max(1) {
            for (plan, times) in plans.iter_mut().zip(&mut times) {
                times.push(time(stream, plan, &mut memory, runs)?);
            }
        }
        let measured = plans.iter().zip(&mut times);
        Ok(measured
            .filter_map(|(plan, times)| {
                Some(Measurement {
                    algorithm: *plan.algorithm()?,
                    time: median(times),
                })
            })
            .collect())
    }
}

/// The least duration of a measurement, within which short products run several times: the clock is
/// then the one that the products sustain.
const MEASURED: Duration = Duration::from_millis(1);

/// The maximum number of runs in a measurement.
const MAX_RUNS: u32 = 100;

/// The first algorithm is kept unless another takes less than this percentage of its time.
const GAIN: u128 = 99;

/// Returns the mean time of `runs` products in succession.
fn time(
    stream: &Stream,
    plan: &mut MatmulPlan,
    memory: &mut Scratch,
    runs: u32,
) -> Result<Duration> {
    let begin = Event::new(stream.context(), EventFlags::empty())?;
    let end = Event::new(stream.context(), EventFlags::empty())?;
    begin.record(stream)?;
    for _ in 0..runs {
        plan.execute(stream, memory.operands())?;
    }
    end.record(stream)?;
    end.synchronize()?;
    Ok(end.elapsed_since(&begin)? / runs)
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Returns the index of the selected algorithm: the first one, unless another is faster by more
/// than the error of a measurement.
fn selected(times: &[Duration]) -> usize {
    let Some(first) = times.first() else {
        return 0;
    };
    let (index, fastest) = times
        .iter()
        .enumerate()
        .min_by_key(|(_, time)| **time)
        .unwrap_or((0, first));
    if fastest.as_nanos() * 100 < first.as_nanos() * GAIN {
        index
    } else {
        0
    }
}

/// Memory for the operands of a product.
struct Scratch {
    buffers: ByRole<Option<DeviceBuffer<u8>>>,
    matmul: Matmul,
}

impl Scratch {
    /// Allocates memory for any of these plans of one product.
    fn new(stream: &Stream, matmul: Matmul, plans: &[MatmulPlan]) -> Result<Self> {
        let requirements = matmul.requirements();
        let sizes = Role::ALL.map(|role| match (role, requirements[role]) {
            (Role::Workspace, _) => plans.iter().map(MatmulPlan::workspace_bytes).max(),
            (_, Some(requirement)) => Some(requirement.bytes),
            (_, None) => None,
        });
        let largest = sizes.into_iter().flatten().max().unwrap_or(0);
        let numbers = DeviceBuffer::from_slice(stream, &numbers(largest.clamp(1, NUMBERS)))?;
        let mut buffers = ByRole([const { None }; Role::ALL.len()]);
        for (role, size) in Role::ALL.into_iter().zip(sizes) {
            if let Some(bytes) = size {
                buffers[role] = Some(repeated(stream, &numbers, bytes.max(1))?);
            }
        }
        Ok(Self { buffers, matmul })
    }

    fn operands(&mut self) -> Operands<'_> {
        let requirements = self.matmul.requirements();
        let buffers = self.buffers.0.iter_mut().zip(requirements.0).zip(Role::ALL);
        Operands::from_byte_buffers(buffers.filter_map(|((buffer, requirement), role)| {
            Some((role, requirement, buffer.as_mut()?))
        }))
    }
}

/// The maximum number of different bytes. It is odd, so that the rows of a matrix differ.
const NUMBERS: usize = (8 << 20) - 1;

/// Returns random numbers of moderate size in each type: without the highest bit of the exponent.
/// Products of equal numbers draw less power than those of real data, so that the device runs them
/// at a higher clock.
fn numbers(bytes: usize) -> Vec<u8> {
    let mut numbers = vec![0; bytes];
    // Each run measures the same products.
    fastrand::Rng::with_seed(0).fill(&mut numbers);
    numbers.iter_mut().for_each(|byte| *byte &= 0xbf);
    numbers
}

/// Allocates memory, and fills it with repetitions of these numbers.
fn repeated(stream: &Stream, numbers: &DeviceBuffer<u8>, bytes: usize) -> Result<DeviceBuffer<u8>> {
    let mut memory = DeviceBuffer::uninit(stream, bytes)?;
    for start in (0..bytes).step_by(numbers.len()) {
        let len = numbers.len().min(bytes - start);
        memory
            .slice_mut(start..start + len)?
            .copy_from_device(&numbers.slice(..len)?)?;
    }
    Ok(memory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_algorithm_must_gain_one_percent() {
        assert_eq!(selected(&[]), 0);
        for (micros, index) in [
            ([1000, 995, 990], 0),
            ([1000, 995, 989], 2),
            ([1000, 1200, 800], 2),
        ] {
            assert_eq!(selected(&micros.map(Duration::from_micros)), index);
        }
    }

    #[test]
    fn median_sorts_the_times() {
        assert_eq!(
            median(&mut [5, 1, 9, 3, 7].map(Duration::from_secs)),
            Duration::from_secs(5)
        );
    }
}
