//! Operations of libraries: work of simulated libraries that is not a PTX kernel.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// An operation of a library on device memory, such as a matrix product.
///
/// The simulator treats it as a kernel: it runs in stream order, a capture adds it as a node, its
/// accesses are checked for bounds and races, and an invalid access is a sticky error. It counts as
/// a call of `cuLaunchKernel`, and faults of that function apply to it.
///
/// ```
/// use curium_driver::{AsRawStream, Device, Error};
/// use curium_memory::DeviceBuffer;
/// use curium_sim::{LibraryOperation, Operand};
///
/// curium_sim::test(|device: Device| {
///     let stream = device.primary_context()?.stream()?;
///     let buffer = DeviceBuffer::from_slice(&stream, &[1_u8, 2, 3])?;
///     let operand = Operand::read_write().with_run(buffer.as_pointer().as_raw(), 3);
///     let reverse = LibraryOperation::new("reverse", [operand], |bytes| bytes[0].reverse());
///     // SAFETY: the buffer lives until the operation has run.
///     assert_eq!(unsafe { reverse.enqueue(stream.as_raw()) }, Ok(()));
///     assert_eq!(buffer.to_vec()?, [3, 2, 1]);
///     Ok::<(), Error>(())
/// })?;
/// # Ok::<(), curium_driver::Error>(())
/// ```
#[derive(Clone)]
pub struct LibraryOperation {
    pub(crate) name: &'static str,
    pub(crate) operands: Arc<[Operand]>,
    pub(crate) compute: Arc<Compute>,
    pub(crate) condition: Option<Arc<Condition>>,
}

/// The computation of an operation. It receives the bytes of each operand, one run after the other.
type Compute = dyn Fn(&mut [Vec<u8>]) + Send + Sync;

/// A condition that must hold before an operation runs.
pub(crate) type Condition = dyn Fn() -> bool + Send + Sync;

/// Device memory that an operation reads, writes or both: runs of consecutive bytes.
#[derive(Clone)]
pub struct Operand {
    runs: Vec<Run>,
    /// The operand whose bytes determine further runs, and the function that finds these runs.
    indirection: Option<(usize, Arc<FindRuns>)>,
    pub(crate) is_read: bool,
    pub(crate) is_written: bool,
}

/// Returns the addresses and the sizes of runs that the bytes of another operand refer to.
type FindRuns = dyn Fn(&[u8]) -> Vec<(u64, usize)> + Send + Sync;

/// Consecutive bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) address: u64,
    pub(crate) bytes: usize,
}

impl LibraryOperation {
    /// Creates an operation that is called `name` in reports.
    ///
    /// When it runs, the simulator copies the bytes of the operands that it reads, calls `compute`
    /// with the bytes of every operand, and copies those that it writes back. Operands that are
    /// only written start as zeros. In a graph, `compute` runs at each launch.
    pub fn new(
        name: &'static str,
        operands: impl IntoIterator<Item = Operand>,
        compute: impl Fn(&mut [Vec<u8>]) + Send + Sync + 'static,
    ) -> Self {
        Self {
            name,
            operands: operands.into_iter().collect(),
            compute: Arc::new(compute),
            condition: None,
        }
    }

    /// Makes the operation wait until `condition` holds, such as the arrival of data from another
    /// device. The stream waits meanwhile, and other streams continue. The condition is polled.
    #[must_use]
    pub fn with_condition(mut self, condition: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.condition = Some(Arc::new(condition));
        self
    }
}

impl Operand {
    /// Creates an operand that is only read.
    #[must_use]
    pub const fn read() -> Self {
        Self {
            runs: Vec::new(),
            indirection: None,
            is_read: true,
            is_written: false,
        }
    }

    /// Creates an operand whose every byte is written without being read.
    #[must_use]
    pub const fn write() -> Self {
        Self {
            runs: Vec::new(),
            indirection: None,
            is_read: false,
            is_written: true,
        }
    }

    /// Creates an operand that is read and then written.
    #[must_use]
    pub const fn read_write() -> Self {
        Self {
            runs: Vec::new(),
            indirection: None,
            is_read: true,
            is_written: true,
        }
    }

    /// Adds `bytes` bytes at `address`, which extend the previous run if they follow it.
    #[must_use]
    pub fn with_run(mut self, address: u64, bytes: usize) -> Self {
        match self.runs.last_mut() {
            Some(last) if last.address.wrapping_add(last.bytes as u64) == address => {
                last.bytes += bytes;
            }
            _ if bytes == 0 => {}
            _ => self.runs.push(Run { address, bytes }),
        }
        self
    }

    /// Adds runs whose addresses are in device memory, such as the matrices of an array of
    /// pointers.
    ///
    /// When the operation runs, `find` receives the bytes of the operand with this index, which
    /// must be an earlier one that is read. It returns the addresses and the sizes of the runs.
    #[must_use]
    pub fn with_runs_from(
        mut self,
        index: usize,
        find: impl Fn(&[u8]) -> Vec<(u64, usize)> + Send + Sync + 'static,
    ) -> Self {
        self.indirection = Some((index, Arc::new(find)));
        self
    }

    /// Returns the number of bytes of all runs whose addresses are known before the operation runs.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        self.runs.iter().map(|run| run.bytes).sum()
    }

    /// Returns the runs whose addresses are known before the operation runs.
    pub(crate) fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Returns all runs; `earlier` are the bytes of the operands before this one.
    pub(crate) fn resolved(&self, earlier: &[Vec<u8>]) -> Cow<'_, [Run]> {
        let Some((index, find)) = &self.indirection else {
            return Cow::Borrowed(&self.runs);
        };
        let mut resolved = Self {
            indirection: None,
            ..self.clone()
        };
        if let Some(bytes) = earlier.get(*index) {
            for (address, size) in find(bytes) {
                resolved = resolved.with_run(address, size);
            }
        }
        Cow::Owned(resolved.runs)
    }
}

impl fmt::Debug for Operand {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            runs,
            indirection,
            is_read,
            is_written,
        } = self;
        formatter
            .debug_struct("Operand")
            .field("runs", runs)
            .field("runs_from", &indirection.as_ref().map(|(index, _)| index))
            .field("is_read", is_read)
            .field("is_written", is_written)
            .finish()
    }
}

impl fmt::Debug for LibraryOperation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            operands,
            compute: _,
            condition: _,
        } = self;
        formatter
            .debug_struct("LibraryOperation")
            .field("name", name)
            .field("operands", operands)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_follow_each_other_are_one() {
        let operand = Operand::read()
            .with_run(64, 0)
            .with_run(64, 8)
            .with_run(72, 8)
            .with_run(96, 4);
        let runs: Vec<_> = operand
            .runs
            .iter()
            .map(|run| (run.address, run.bytes))
            .collect();
        assert_eq!((runs, operand.byte_len()), (vec![(64, 16), (96, 4)], 20));
    }

    #[test]
    fn indirect_runs_follow_direct_ones() {
        let operand = Operand::read_write()
            .with_run(8, 2)
            .with_runs_from(1, |bytes| {
                bytes.iter().map(|byte| (u64::from(*byte), 4)).collect()
            });
        let resolved = operand.resolved(&[vec![1], vec![64, 68, 96]]);
        let runs: Vec<_> = resolved
            .iter()
            .map(|run| (run.address, run.bytes))
            .collect();
        assert_eq!(
            (runs, operand.byte_len()),
            (vec![(8, 2), (64, 8), (96, 4)], 2)
        );
    }
}
