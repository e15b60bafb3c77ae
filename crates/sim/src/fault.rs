//! Faults on request: a call of a function returns a code and does nothing else.

use curium_sys::{CUresult, Function};

/// One fault: which calls of a function fail, and with which code.
///
/// Calls are counted from 1, from the moment when the fault is injected.
///
/// ```
/// use curium_sim::Fault;
/// use curium_sys::{CUresult, Function};
///
/// let second = Fault::on(Function::cuMemAlloc_v2).call(2).returns(CUresult::CUDA_ERROR_OUT_OF_MEMORY);
/// let all = Fault::on(Function::cuInit).always().returns(CUresult::CUDA_ERROR_NO_DEVICE);
/// # let _ = (second, all);
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use]
pub struct Fault {
    function: Function,
    first: u64,
    last: u64,
    result: CUresult,
}

impl Fault {
    /// A fault of `function`: its next call returns `CUDA_ERROR_UNKNOWN`, unless the other methods say otherwise.
    pub const fn on(function: Function) -> Self {
        Self { function, first: 1, last: 1, result: CUresult::CUDA_ERROR_UNKNOWN }
    }

    /// Only the `n`-th call fails, counted from 1.
    pub const fn call(mut self, n: u64) -> Self {
        (self.first, self.last) = (n, n);
        self
    }

    /// Every call from the `n`-th on fails, counted from 1.
    pub const fn from_call(mut self, n: u64) -> Self {
        (self.first, self.last) = (n, u64::MAX);
        self
    }

    /// Every call fails.
    pub const fn always(self) -> Self {
        self.from_call(1)
    }

    /// What a failing call returns.
    pub const fn returns(mut self, result: CUresult) -> Self {
        self.result = result;
        self
    }
}

/// Faults that a simulator starts with.
#[derive(Clone, Debug, Default)]
pub struct FaultPlan {
    faults: Vec<Fault>,
}

impl FaultPlan {
    /// A plan without faults.
    #[must_use]
    pub const fn new() -> Self {
        Self { faults: Vec::new() }
    }

    /// The plan with one more fault.
    #[must_use]
    pub fn with(mut self, fault: Fault) -> Self {
        self.faults.push(fault);
        self
    }
}

/// The faults that are waiting, each with the calls it has seen.
#[derive(Debug, Default)]
pub(crate) struct PendingFaults {
    faults: Vec<(Fault, u64)>,
}

impl PendingFaults {
    pub(crate) fn new(plan: &FaultPlan) -> Self {
        Self { faults: plan.faults.iter().map(|fault| (*fault, 0)).collect() }
    }

    pub(crate) fn add(&mut self, fault: Fault) {
        self.faults.push((fault, 0));
    }

    pub(crate) fn clear(&mut self) {
        self.faults.clear();
    }

    /// Counts a call of `function` and returns the code of the fault that it meets.
    pub(crate) fn meet(&mut self, function: Function) -> Option<CUresult> {
        let mut met = None;
        for (fault, calls) in self.faults.iter_mut().filter(|(fault, _)| fault.function == function) {
            *calls += 1;
            if (fault.first..=fault.last).contains(calls) {
                met = met.or(Some(fault.result));
            }
        }
        met
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: CUresult = CUresult::CUDA_ERROR_OUT_OF_MEMORY;

    fn outcomes(fault: Fault) -> Vec<bool> {
        let mut pending = PendingFaults::new(&FaultPlan::new().with(fault.returns(CODE)));
        (0..4).map(|_| pending.meet(Function::cuInit) == Some(CODE)).collect()
    }

    #[test]
    fn calls_are_counted_from_one() {
        assert_eq!(outcomes(Fault::on(Function::cuInit)), [true, false, false, false]);
        assert_eq!(outcomes(Fault::on(Function::cuInit).call(2)), [false, true, false, false]);
        assert_eq!(outcomes(Fault::on(Function::cuInit).from_call(3)), [false, false, true, true]);
        assert_eq!(outcomes(Fault::on(Function::cuInit).always()), [true; 4]);
    }

    #[test]
    fn other_functions_are_left_alone() {
        assert_eq!(outcomes(Fault::on(Function::cuMemAlloc_v2).always()), [false; 4]);
    }
}
