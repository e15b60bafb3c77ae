//! Fault injection: chosen calls of a function fail with a code, are delayed, or lose the devices.

mod text;

use std::time::Duration;

use curium_sys::{CUresult, Function};

pub use self::text::FaultSyntaxError;
use crate::random::Random;

/// A fault: the calls of a function that fail, and the code that they return.
///
/// Calls are counted from 1, from the injection of the fault on. [`Fault::once`], [`Fault::call`],
/// [`Fault::from_call`] and [`Fault::always`] select the calls; without any of them, the fault
/// applies to the next call only.
///
/// ```
/// use std::time::Duration;
///
/// use curium_sim::Fault;
/// use curium_sys::{CUresult, Function};
///
/// let next = Fault::on(Function::cuMemAlloc_v2).once().returns(CUresult::CUDA_ERROR_OUT_OF_MEMORY);
/// let second = Fault::on(Function::cuMemAlloc_v2).call(2).returns(CUresult::CUDA_ERROR_OUT_OF_MEMORY);
/// let all = Fault::on(Function::cuInit).always().returns(CUresult::CUDA_ERROR_NO_DEVICE);
/// let some = Fault::on(Function::cuMemAllocAsync).always().with_probability(0.1, 7);
/// let late = Fault::on(Function::cuLaunchKernel).always().delays(Duration::from_millis(2));
/// let none = Fault::on(Function::cuEventCreate).creates_nothing();
/// let lost = Fault::on(Function::cuStreamSynchronize).call(3).loses_devices();
/// assert_eq!("cuMemAlloc_v2@2=OUT_OF_MEMORY".parse(), Ok(second));
/// assert_eq!("cuEventCreate@1=null".parse(), Ok(none));
/// # let _ = (next, all, some, late, lost);
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use]
pub struct Fault {
    function: Function,
    first: u64,
    last: u64,
    chance: Option<Chance>,
    effect: Effect,
}

/// The probability that a matching call fails.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Chance {
    per_million: u32,
    seed: u64,
}

/// The effect of a fault on a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Effect {
    Return(CUresult),
    Delay(Duration),
    LoseDevices,
}

/// The combined effect of the faults on one call.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct FaultOutcome {
    /// The delay before the call.
    pub(crate) delay: Duration,
    /// `true` if no device does any work from now on.
    pub(crate) loses_devices: bool,
    /// The code that the call returns.
    pub(crate) result: Option<CUresult>,
}

/// The code of every call on a lost device.
pub(crate) const LOST: CUresult = CUresult::CUDA_ERROR_UNKNOWN;

const MILLION: u32 = 1_000_000;

impl Fault {
    /// Creates a fault of `function`. By default it applies once: the next call returns
    /// `CUDA_ERROR_UNKNOWN`.
    pub const fn on(function: Function) -> Self {
        Self {
            function,
            first: 1,
            last: 1,
            chance: None,
            effect: Effect::Return(CUresult::CUDA_ERROR_UNKNOWN),
        }
    }

    /// Applies the fault once, to the next call. This is the default.
    pub const fn once(self) -> Self {
        self.call(1)
    }

    /// Limits the fault to the `n`-th call, counted from 1.
    pub const fn call(mut self, n: u64) -> Self {
        (self.first, self.last) = (n, n);
        self
    }

    /// Applies the fault to every call from the `n`-th on, counted from 1.
    pub const fn from_call(mut self, n: u64) -> Self {
        (self.first, self.last) = (n, u64::MAX);
        self
    }

    /// Applies the fault to every call.
    pub const fn always(self) -> Self {
        self.from_call(1)
    }

    /// Applies the fault with this probability, between 0 and 1, to each matching call. The same
    /// seed selects the same calls.
    pub const fn with_probability(mut self, probability: f64, seed: u64) -> Self {
        // The cast maps negative numbers and NaN to 0.
        let per_million = (probability * MILLION as f64) as u32;
        self.chance = Some(Chance { per_million, seed });
        self
    }

    /// Sets the code that each failing call returns. It does not select the calls: see
    /// [`Fault::once`] and [`Fault::always`].
    pub const fn returns(mut self, result: CUresult) -> Self {
        self.effect = Effect::Return(result);
        self
    }

    /// Makes the call return success without doing anything, so that a handle that it should create
    /// stays null, as the caller initialized it.
    pub const fn creates_nothing(self) -> Self {
        self.returns(CUresult::CUDA_SUCCESS)
    }

    /// Delays the call instead of failing it.
    pub const fn delays(mut self, delay: Duration) -> Self {
        self.effect = Effect::Delay(delay);
        self
    }

    /// Makes the call lose all devices, as if they had fallen off the bus: it and every later call
    /// that uses a context return `CUDA_ERROR_UNKNOWN`, and queued work never runs.
    pub const fn loses_devices(mut self) -> Self {
        self.effect = Effect::LoseDevices;
        self
    }
}

/// The faults that a simulator starts with.
#[derive(Clone, Debug, Default)]
pub struct FaultPlan {
    faults: Vec<Fault>,
}

impl FaultPlan {
    /// Creates a plan without faults.
    #[must_use]
    pub const fn new() -> Self {
        Self { faults: Vec::new() }
    }

    /// Returns the plan with one more fault.
    #[must_use]
    pub fn with(mut self, fault: Fault) -> Self {
        self.faults.push(fault);
        self
    }
}

/// The pending faults.
#[derive(Debug, Default)]
pub(crate) struct PendingFaults {
    faults: Vec<Pending>,
}

/// A fault and the number of calls of its function.
#[derive(Debug)]
struct Pending {
    fault: Fault,
    calls: u64,
    random: Random,
}

impl PendingFaults {
    pub(crate) fn new(plan: &FaultPlan) -> Self {
        Self {
            faults: plan.faults.iter().copied().map(Pending::new).collect(),
        }
    }

    pub(crate) fn add(&mut self, fault: Fault) {
        self.faults.push(Pending::new(fault));
    }

    pub(crate) fn clear(&mut self) {
        self.faults.clear();
    }

    /// Counts a call of `function` and returns the effect of its faults. The first fault that fails
    /// the call determines its code.
    pub(crate) fn apply(&mut self, function: Function) -> FaultOutcome {
        let mut met = FaultOutcome::default();
        for pending in self
            .faults
            .iter_mut()
            .filter(|pending| pending.fault.function == function)
        {
            match pending.apply() {
                None => {}
                Some(Effect::Return(code)) => met.result = met.result.or(Some(code)),
                Some(Effect::Delay(delay)) => met.delay += delay,
                Some(Effect::LoseDevices) => {
                    met.loses_devices = true;
                    met.result = met.result.or(Some(LOST));
                }
            }
        }
        met
    }
}

impl Pending {
    fn new(fault: Fault) -> Self {
        Self {
            fault,
            calls: 0,
            random: Random::new(fault.chance.map_or(0, |chance| chance.seed)),
        }
    }

    /// Counts a call and returns the effect if the fault applies to it.
    fn apply(&mut self) -> Option<Effect> {
        self.calls += 1;
        let is_chosen = (self.fault.first..=self.fault.last).contains(&self.calls);
        let happens =
            |chance: Chance| self.random.below(MILLION as usize) < chance.per_million as usize;
        (is_chosen && self.fault.chance.is_none_or(happens)).then_some(self.fault.effect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: CUresult = CUresult::CUDA_ERROR_OUT_OF_MEMORY;

    fn outcomes(fault: Fault) -> Vec<bool> {
        let mut pending = PendingFaults::new(&FaultPlan::new().with(fault.returns(CODE)));
        (0..4)
            .map(|_| pending.apply(Function::cuInit).result == Some(CODE))
            .collect()
    }

    #[test]
    fn calls_are_counted_from_one() {
        assert_eq!(
            outcomes(Fault::on(Function::cuInit)),
            [true, false, false, false]
        );
        assert_eq!(
            outcomes(Fault::on(Function::cuInit).call(2)),
            [false, true, false, false]
        );
        assert_eq!(
            outcomes(Fault::on(Function::cuInit).from_call(3)),
            [false, false, true, true]
        );
        assert_eq!(
            outcomes(Fault::on(Function::cuInit).always().once()),
            [true, false, false, false]
        );
        assert_eq!(outcomes(Fault::on(Function::cuInit).always()), [true; 4]);
    }

    #[test]
    fn other_functions_are_left_alone() {
        assert_eq!(
            outcomes(Fault::on(Function::cuMemAlloc_v2).always()),
            [false; 4]
        );
    }

    /// Returns the indices of the calls that fail, out of 10,000.
    fn failing_calls(probability: f64, seed: u64) -> Vec<u32> {
        let fault = Fault::on(Function::cuInit)
            .always()
            .with_probability(probability, seed)
            .returns(CODE);
        let mut pending = PendingFaults::new(&FaultPlan::new().with(fault));
        (0..10_000)
            .filter(|_| pending.apply(Function::cuInit).result.is_some())
            .collect()
    }

    #[test]
    fn probability_repeats_with_its_seed() {
        assert!((900..1100).contains(&failing_calls(0.1, 1).len()));
        assert_eq!(failing_calls(0.1, 1), failing_calls(0.1, 1));
        assert_ne!(failing_calls(0.1, 1), failing_calls(0.1, 2));
        assert_eq!(
            (failing_calls(0.0, 1).len(), failing_calls(1.0, 1).len()),
            (0, 10_000)
        );
    }

    #[test]
    fn delays_add_up_and_the_first_code_wins() {
        let delay = Fault::on(Function::cuInit)
            .always()
            .delays(Duration::from_millis(2));
        let plan = FaultPlan::new()
            .with(delay)
            .with(delay)
            .with(Fault::on(Function::cuInit).call(2).loses_devices());
        let mut pending = PendingFaults::new(&plan);
        let delay = Duration::from_millis(4);
        assert_eq!(
            pending.apply(Function::cuInit),
            FaultOutcome {
                delay,
                ..FaultOutcome::default()
            }
        );
        assert_eq!(
            pending.apply(Function::cuInit),
            FaultOutcome {
                delay,
                loses_devices: true,
                result: Some(LOST)
            }
        );
    }
}
