//! Batched copies.

use std::fmt;

use curium_driver::hazard::Operation;
use curium_driver::sys::{CUDA_MEMCPY3D_BATCH_OP, CUdeviceptr};
use curium_driver::{Function, Result, Stream, call};

use crate::operand::Operand;
use crate::transfer::{CopyOptions, device, peer, pitched};
use crate::{DeviceView, DeviceViewMut, PitchedSlice, PitchedSliceMut, peer_access, size};

const OPERATION: &str = "CopyBatch::enqueue";

/// A batch of copies, which costs less to enqueue than individual copies. The order of the copies
/// is unspecified.
///
/// ```
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// use curium_memory::{DeviceBuffer, copy::CopyBatch};
///
/// # let stream = driver.device(0)?.primary_context()?.stream()?;
/// let source = DeviceBuffer::from_slice(&stream, &[1_u32, 2, 3, 4])?;
/// let mut target = DeviceBuffer::<u32>::zeroed(&stream, 4)?;
/// let (first, second) = target.split_at_mut(2)?;
/// CopyBatch::new()
///     .copy(first, source.slice(2..)?)?
///     .copy(second, source.slice(..2)?)?
///     .enqueue(&stream)?;
/// assert_eq!(target.to_vec()?, [3, 4, 1, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "nothing is copied until the batch is enqueued"]
#[derive(Default)]
pub struct CopyBatch<'a> {
    lines: Vec<(Operand<'a>, Operand<'a>)>,
    boxes: Vec<Box<dyn BoxCopy + Send + Sync + 'a>>,
    options: CopyOptions,
}

/// A pitched copy in a batch.
pub(crate) trait BoxCopy {
    /// Makes the operation's stream wait for conflicting accesses.
    fn prepare(&self, operation: &mut Operation<'_>) -> Result<()>;

    /// Returns `true` if a batch on `stream` can access both operands.
    fn is_at(&self, stream: &Stream) -> bool;

    /// Returns the copy as a driver parameter.
    fn batch_entry(&self, options: CopyOptions) -> CUDA_MEMCPY3D_BATCH_OP;

    /// Enqueues the copy on `stream` individually.
    fn enqueue(&self, operation: &Operation<'_>) -> Result<()>;

    /// Records the accesses of the copy, which may have been enqueued.
    fn record(&self, operation: &mut Operation<'_>);
}

/// A linear copy.
struct Between<'a> {
    to: pitched::PitchedOperand<'a>,
    from: pitched::PitchedOperand<'a>,
}

impl<'a> CopyBatch<'a> {
    /// Creates an empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets hints for all copies, which drivers without support ignore.
    pub fn with_options(mut self, options: CopyOptions) -> Self {
        self.options = options;
        self
    }

    /// Adds a copy of `source` to `target`, which must have the same length. Both may be on any
    /// device.
    ///
    /// # Errors
    ///
    /// An argument error if the lengths differ.
    pub fn copy<T: Copy + 'a>(
        mut self,
        target: impl Into<DeviceViewMut<'a, T>>,
        source: impl Into<DeviceView<'a, T>>,
    ) -> Result<Self> {
        let target = target.into();
        let source = source.into();
        size::same_len("CopyBatch::copy", target.len(), source.len())?;
        let target = target.into_operand();
        let source = source.into_operand();
        if target.bytes > 0 {
            self.lines.push((target, source));
        }
        Ok(self)
    }

    /// Adds a copy of `source` to `target`, which must have the same extent. Both may be on any
    /// device.
    ///
    /// # Errors
    ///
    /// An argument error if the extents differ.
    pub fn copy_pitched<T: Copy>(
        mut self,
        target: PitchedSliceMut<'a, T>,
        source: PitchedSlice<'a, T>,
    ) -> Result<Self> {
        let target = target.into_end();
        let source = source.end();
        pitched::same_extent("CopyBatch::copy_pitched", &target.layout, &source.layout)?;
        if !target.layout.is_empty() {
            self.boxes.push(Box::new(Between {
                to: target,
                from: source,
            }));
        }
        Ok(self)
    }

    /// Adds a pitched copy of another kind.
    pub(crate) fn with_box(mut self, copy: impl BoxCopy + Send + Sync + 'a) -> Self {
        self.boxes.push(Box::new(copy));
        self
    }

    /// Returns the number of copies.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.lines.len() + self.boxes.len()
    }

    /// Returns `true` if the batch is empty.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Enqueues the copies on `stream` and returns immediately.
    ///
    /// The copies are enqueued individually on drivers before CUDA 12.8 (13.0 for pitched copies),
    /// on the legacy default stream, on a stream that is being captured, and if an operand is on
    /// another device than the stream's.
    ///
    /// CUDA: `cuMemcpyBatchAsync_v2` or `cuMemcpyBatchAsync`; `cuMemcpy3DBatchAsync_v2` for pitched
    /// copies.
    ///
    /// # Errors
    ///
    /// An error returned by the driver. Some of the copies may then have been enqueued.
    #[doc(alias = "cuMemcpyBatchAsync")]
    #[doc(alias = "cudaMemcpyBatchAsync")]
    #[doc(alias = "cuMemcpy3DBatchAsync")]
    #[doc(alias = "cudaMemcpy3DBatchAsync")]
    pub fn enqueue(self, stream: &Stream) -> Result<()> {
        let mut operation = stream.enqueue(OPERATION)?;
        for (to, from) in &self.lines {
            prepare(&mut operation, to, from)?;
        }
        self.boxes
            .iter()
            .try_for_each(|copy| copy.prepare(&mut operation))?;
        let result = self
            .enqueue_lines(&operation)
            .and_then(|()| self.enqueue_boxes(&operation));
        // On failure, some copies may have been enqueued.
        self.lines
            .iter()
            .for_each(|(to, from)| record(&mut operation, to, from));
        self.boxes
            .iter()
            .for_each(|copy| copy.record(&mut operation));
        result.map_err(|error| error.about(format!("{} copies", self.len())))
    }

    fn enqueue_lines(&self, operation: &Operation<'_>) -> Result<()> {
        let stream = operation.stream();
        let driver = stream.driver();
        let has = driver.has(Function::cuMemcpyBatchAsync_v2);
        let has_older = driver.has(Function::cuMemcpyBatchAsync);
        let takes_batches =
            !stream.is_legacy_default() && !stream.is_capture_active() && (has || has_older);
        let (batched, single): (Vec<_>, Vec<_>) =
            self.lines.iter().enumerate().partition(|(_, (to, from))| {
                takes_batches && to.is_at(stream) && from.is_at(stream)
            });
        if !batched.is_empty() {
            let mut batch = Lines::new(&batched, self.options);
            if has {
                batch.call(operation)
            } else {
                batch.call_cuda_12_8(operation)
            }?;
        }
        single
            .into_iter()
            .try_for_each(|(_, (to, from))| enqueue_line(operation, to, from))
    }

    fn enqueue_boxes(&self, operation: &Operation<'_>) -> Result<()> {
        let stream = operation.stream();
        let takes_batches = pitched::takes_batches(stream);
        let (together, alone): (Vec<_>, Vec<_>) = self
            .boxes
            .iter()
            .partition(|copy| takes_batches && copy.is_at(stream));
        if !together.is_empty() {
            let mut entries: Vec<CUDA_MEMCPY3D_BATCH_OP> = together
                .into_iter()
                .map(|copy| copy.batch_entry(self.options))
                .collect();
            let count = entries.len();
            let entries = entries.as_mut_ptr();
            stream.context().entered(|driver| {
                // SAFETY: the list has this many entries, all operands are live on this stream,
                // which has waited for conflicting accesses, and a context is current.
                unsafe {
                    call!(
                        driver,
                        cuMemcpy3DBatchAsync_v2(count, entries, 0, operation.raw_stream())
                    )
                }
            })?;
        }
        alone
            .into_iter()
            .try_for_each(|copy| copy.enqueue(operation))
    }
}

/// A copy and its index in the batch.
type Numbered<'l, 'a> = (usize, &'l (Operand<'a>, Operand<'a>));

/// Linear copies as the driver's arrays.
struct Lines {
    numbers: Vec<usize>,
    targets: Vec<CUdeviceptr>,
    sources: Vec<CUdeviceptr>,
    sizes: Vec<usize>,
    options: CopyOptions,
}

impl Lines {
    fn new(copies: &[Numbered<'_, '_>], options: CopyOptions) -> Self {
        Self {
            numbers: copies.iter().map(|(number, _)| *number).collect(),
            targets: copies.iter().map(|(_, (to, _))| to.address).collect(),
            sources: copies.iter().map(|(_, (_, from))| from.address).collect(),
            sizes: copies.iter().map(|(_, (to, _))| to.bytes).collect(),
            options,
        }
    }

    fn call(&mut self, operation: &Operation<'_>) -> Result<()> {
        let mut attributes = self.options.to_raw();
        let mut first = 0;
        let count = self.sizes.len();
        let raw = operation.raw_stream();
        let to = self.targets.as_mut_ptr();
        let from = self.sources.as_mut_ptr();
        let sizes = self.sizes.as_mut_ptr();
        let attributes = &raw mut attributes;
        let first = &raw mut first;
        operation.stream().context().entered(|driver| {
            // SAFETY: the arrays have `count` entries, the first attributes apply to all of them,
            // all operands are live on this stream, which has waited for conflicting accesses, and
            // a context is current.
            unsafe {
                call!(
                    driver,
                    cuMemcpyBatchAsync_v2(to, from, sizes, count, attributes, first, 1, raw)
                )
            }
        })
    }

    /// Enqueues the copies with the function of CUDA 12.8 and 12.9, which reports the index of the
    /// failed copy.
    fn call_cuda_12_8(&mut self, operation: &Operation<'_>) -> Result<()> {
        let mut attributes = self.options.to_raw();
        let mut first = 0;
        let count = self.sizes.len();
        let raw = operation.raw_stream();
        let to = self.targets.as_mut_ptr();
        let from = self.sources.as_mut_ptr();
        let sizes = self.sizes.as_mut_ptr();
        let attributes = &raw mut attributes;
        let first = &raw mut first;
        let mut failed = usize::MAX;
        let failed_index = &raw mut failed;
        let result = operation.stream().context().entered(|driver| {
            // SAFETY: the arrays have `count` entries, both operands of each copy have its size and
            // are live on this stream, which has waited for conflicting accesses, and
            // `failed_index` is a valid pointer.
            unsafe {
                call!(
                    driver,
                    cuMemcpyBatchAsync(
                        to,
                        from,
                        sizes,
                        count,
                        attributes,
                        first,
                        1,
                        failed_index,
                        raw
                    )
                )
            }
        });
        result.map_err(|error| match self.numbers.get(failed) {
            None => error,
            Some(number) => error.advised(|_| {
                Some(format!("the driver rejected the copy at index {number}").into())
            }),
        })
    }
}

impl BoxCopy for Between<'_> {
    fn prepare(&self, operation: &mut Operation<'_>) -> Result<()> {
        prepare(operation, &self.to.end, &self.from.end)
    }

    fn is_at(&self, stream: &Stream) -> bool {
        self.to.end.is_at(stream) && self.from.end.is_at(stream)
    }

    fn batch_entry(&self, options: CopyOptions) -> CUDA_MEMCPY3D_BATCH_OP {
        pitched::batch_entry(&self.to, &self.from, options)
    }

    fn enqueue(&self, operation: &Operation<'_>) -> Result<()> {
        pitched::enqueue(operation, &self.to, &self.from)
    }

    fn record(&self, operation: &mut Operation<'_>) {
        record(operation, &self.to.end, &self.from.end);
    }
}

/// Enqueues one copy. The operation has waited for conflicting accesses.
fn enqueue_line(operation: &Operation<'_>, to: &Operand<'_>, from: &Operand<'_>) -> Result<()> {
    let stream = operation.stream();
    if to.is_everywhere() || from.is_everywhere() || to.is_at(stream) && from.is_at(stream) {
        return device::any(operation, to, from);
    }
    peer::enqueue(operation, to, from)
}

/// Records the accesses of a copy that may have been enqueued.
fn record(operation: &mut Operation<'_>, to: &Operand<'_>, from: &Operand<'_>) {
    from.tracked.after_read(operation);
    to.tracked.after_partial_write(operation);
}

/// Makes the operation's stream wait for the accesses that conflict with a copy.
fn prepare(operation: &mut Operation<'_>, to: &Operand<'_>, from: &Operand<'_>) -> Result<()> {
    if !to.is_near(from) {
        peer_access::connect(to.stream().context(), from.stream().context())?;
    }
    to.tracked.before_write(operation)?;
    from.tracked.before_read(operation)
}

impl fmt::Debug for CopyBatch<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "CopyBatch({} copies)", self.len())
    }
}
