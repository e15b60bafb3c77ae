//! Hardware decompression.

use std::fmt;

use curium_driver::sys::{CUmemDecompressAlgorithm, CUmemDecompressParams};
use curium_driver::{Result, Stream, call};

use crate::operand::Operand;
use crate::{DeviceView, DeviceViewMut};

/// A compression format.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Compression {
    /// DEFLATE.
    Deflate,
    /// Snappy.
    Snappy,
    /// LZ4.
    Lz4,
}

/// A batch of decompressions, which run on the device's decompression engine. Their order is
/// unspecified.
///
/// [`DeviceAttribute::MEM_DECOMPRESS_ALGORITHM_MASK`] reports the formats that a device supports.
/// The memory must be allocated with the usage flag for decompression, as the driver's pools are.
///
/// [`DeviceAttribute::MEM_DECOMPRESS_ALGORITHM_MASK`]: curium_driver::DeviceAttribute::MEM_DECOMPRESS_ALGORITHM_MASK
#[must_use = "nothing is decompressed until the batch is enqueued"]
#[derive(Default)]
pub struct DecompressBatch<'a> {
    pieces: Vec<Piece<'a>>,
}

struct Piece<'a> {
    source: Operand<'a>,
    target: Operand<'a>,
    written: Operand<'a>,
    compression: Compression,
}

impl<'a> DecompressBatch<'a> {
    /// Creates an empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the decompression of `source` to `target`. The engine writes the number of decompressed
    /// bytes to the first element of `written`.
    ///
    /// # Errors
    ///
    /// An argument error if `source`, `target` or `written` is empty.
    pub fn add(
        mut self,
        compression: Compression,
        source: impl Into<DeviceView<'a, u8>>,
        target: impl Into<DeviceViewMut<'a, u8>>,
        written: impl Into<DeviceViewMut<'a, u32>>,
    ) -> Result<Self> {
        let source = source.into();
        let target = target.into();
        let written = written.into();
        for (what, len) in [
            ("source", source.len()),
            ("target", target.len()),
            ("written", written.len()),
        ] {
            if len == 0 {
                let reason = format!("`{what}` is empty");
                return Err(curium_driver::Error::argument(
                    "DecompressBatch::add",
                    reason,
                ));
            }
        }
        self.pieces.push(Piece {
            source: source.into_operand(),
            target: target.into_operand(),
            written: written.into_operand(),
            compression,
        });
        Ok(self)
    }

    /// Returns the number of decompressions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Returns `true` if the batch is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Enqueues the batch on `stream` and returns immediately.
    ///
    /// Requires a driver for CUDA 12.6. CUDA: `cuMemBatchDecompressAsync`.
    ///
    /// # Errors
    ///
    /// `CUDA_ERROR_NOT_SUPPORTED` if the device has no decompression engine; any error returned by
    /// the driver.
    #[doc(alias = "cuMemBatchDecompressAsync")]
    pub fn enqueue(self, stream: &Stream) -> Result<()> {
        const OPERATION: &str = "DecompressBatch::enqueue";
        let mut operation = stream.enqueue_uncaptured(OPERATION)?;
        if self.is_empty() {
            return Ok(());
        }
        for piece in &self.pieces {
            piece.source.tracked.before_read(&mut operation)?;
            piece.target.tracked.before_write(&mut operation)?;
            piece.written.tracked.before_write(&mut operation)?;
        }
        let mut pieces: Vec<_> = self.pieces.iter().map(Piece::to_raw).collect();
        let count = pieces.len();
        let first = pieces.as_mut_ptr();
        let mut failed = usize::MAX;
        let failed_index = &raw mut failed;
        // SAFETY: the array has `count` entries, all memory is live on this stream, which has
        // waited for conflicting accesses, and `failed_index` is a valid pointer.
        let result = unsafe {
            call!(
                stream.driver(),
                cuMemBatchDecompressAsync(first, count, 0, failed_index, operation.raw_stream())
            )
        };
        for piece in &self.pieces {
            piece.source.tracked.after_read(&mut operation);
            piece.target.tracked.after_partial_write(&mut operation);
            piece.written.tracked.after_partial_write(&mut operation);
        }
        result.map_err(|error| match failed {
            usize::MAX => error.about(format!("{count} pieces")),
            index => error.about(format!("piece {index} of {count}")),
        })
    }
}

impl Piece<'_> {
    fn to_raw(&self) -> CUmemDecompressParams {
        CUmemDecompressParams {
            srcNumBytes: self.source.bytes,
            dstNumBytes: self.target.bytes,
            dstActBytes: std::ptr::with_exposed_provenance_mut(self.written.address as usize),
            src: std::ptr::with_exposed_provenance(self.source.address as usize),
            dst: std::ptr::with_exposed_provenance_mut(self.target.address as usize),
            algo: self.compression.to_raw(),
            ..CUmemDecompressParams::default()
        }
    }
}

impl Compression {
    const fn to_raw(self) -> CUmemDecompressAlgorithm {
        match self {
            Self::Deflate => CUmemDecompressAlgorithm::CU_MEM_DECOMPRESS_ALGORITHM_DEFLATE,
            Self::Snappy => CUmemDecompressAlgorithm::CU_MEM_DECOMPRESS_ALGORITHM_SNAPPY,
            Self::Lz4 => CUmemDecompressAlgorithm::CU_MEM_DECOMPRESS_ALGORITHM_LZ4,
        }
    }
}

impl fmt::Debug for DecompressBatch<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "DecompressBatch({} pieces)", self.len())
    }
}
