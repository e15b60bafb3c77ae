//! Pitched views of device memory.

mod host;
mod mutable;

use std::fmt;

use crate::AnyBitPattern;
use curium_driver::{DevicePointer, Error, Result, Stream};

pub use self::host::{HostPitchedSlice, HostPitchedSliceMut};
pub use self::mutable::PitchedSliceMut;
use crate::capture_advice::READ_LATER;
use crate::transfer::pitched::{self as copies, PitchedLayout};
use crate::{DeviceSlice, DeviceView, size, wait};

/// A two- or three-dimensional extent in elements.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Extent {
    /// The number of elements per row.
    pub width: usize,
    /// The number of rows per layer.
    pub height: usize,
    /// The number of layers.
    pub depth: usize,
}

/// The distances between rows and between layers.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Pitch {
    /// The distance between the starts of consecutive rows, in bytes.
    pub row_bytes: usize,
    /// The distance between the starts of consecutive layers, in rows.
    pub layer_rows: usize,
}

/// A shared two- or three-dimensional view of device-accessible memory. It starts at the first
/// element of its slice.
///
/// ```
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// use curium_memory::{DeviceBuffer, Extent, Pitch};
///
/// # let stream = driver.device(0)?.primary_context()?.stream()?;
/// let image: Vec<u8> = (0..12).collect(); // 3 rows of 4
/// let source = DeviceBuffer::from_slice(&stream, &image)?;
/// let mut target = DeviceBuffer::<u8>::zeroed(&stream, 4)?;
/// let extent = Extent::new_2d(2, 2);
/// let lower_right = source.slice(6..)?;
/// let lower_right = lower_right.pitched(extent, Pitch::from_row_len::<u8>(4))?;
/// target.pitched_mut(extent, Pitch::tight::<u8>(extent))?.copy_from(&lower_right)?;
/// assert_eq!(target.to_vec()?, [6, 7, 10, 11]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PitchedSlice<'a, T> {
    start: DeviceView<'a, T>,
    layout: PitchedLayout,
}

impl Extent {
    /// Creates a two-dimensional extent.
    #[must_use]
    pub const fn new_2d(width: usize, height: usize) -> Self {
        Self {
            width,
            height,
            depth: 1,
        }
    }

    /// Returns the number of elements. Those of an empty extent may have any size.
    pub(crate) fn len(self) -> usize {
        self.width
            .saturating_mul(self.height)
            .saturating_mul(self.depth)
    }

    /// Creates a three-dimensional extent.
    #[must_use]
    pub const fn new_3d(width: usize, height: usize, depth: usize) -> Self {
        Self {
            width,
            height,
            depth,
        }
    }
}

impl Pitch {
    /// Creates a two-dimensional pitch of `elements` elements of type `T` per row, including
    /// padding.
    #[must_use]
    pub const fn from_row_len<T>(elements: usize) -> Self {
        Self {
            row_bytes: elements.saturating_mul(size_of::<T>()),
            layer_rows: 0,
        }
    }

    /// Sets the distance between layers in rows.
    #[must_use]
    pub const fn with_layer_rows(mut self, rows: usize) -> Self {
        self.layer_rows = rows;
        self
    }

    /// Creates the pitch of an extent without padding.
    #[must_use]
    pub const fn tight<T>(extent: Extent) -> Self {
        Self::from_row_len::<T>(extent.width).with_layer_rows(extent.height)
    }

    /// Returns the byte layout of an extent of `T` with this pitch, within `bytes` bytes.
    fn layout<T>(
        self,
        operation: &'static str,
        extent: Extent,
        bytes: usize,
    ) -> Result<PitchedLayout> {
        let Extent {
            width,
            height,
            depth,
        } = extent;
        let Some(row) = width.checked_mul(size_of::<T>()) else {
            let reason = format!("size overflow (a row of {width} elements)");
            return Err(Error::argument(operation, reason));
        };
        self.check::<T>(row, extent)
            .map_err(|reason| Error::argument(operation, reason))?;
        let layout = PitchedLayout {
            width: row,
            height,
            depth,
            pitch: self.row_bytes.max(row),
            layer: self.layer_rows.max(height),
        };
        let span = layout.span();
        if span.is_some_and(|span| span <= bytes) {
            return Ok(layout);
        }
        let span = span.map_or_else(
            || "more than the address space".into(),
            |span| format!("{span} bytes"),
        );
        let reason = format!(
            "pitched slice out of bounds ({width} × {height} × {depth} elements take {span}, the memory has {bytes} bytes)"
        );
        Err(Error::argument(operation, reason))
    }

    /// Returns the reason if rows of `row` bytes or layers of `extent` overlap, or if rows are
    /// misaligned.
    fn check<T>(self, row: usize, extent: Extent) -> Result<(), String> {
        let Self {
            row_bytes,
            layer_rows,
        } = self;
        if extent.height > 1 && row_bytes < row {
            Err(format!(
                "pitch too small (rows of {row} bytes, pitch of {row_bytes} bytes)"
            ))
        } else if extent.depth > 1 && layer_rows < extent.height {
            Err(format!(
                "pitch too small (layers of {} rows, pitch of {layer_rows} rows)",
                extent.height
            ))
        } else if !row_bytes.is_multiple_of(align_of::<T>()) {
            Err(format!("misaligned pitch ({row_bytes} bytes)"))
        } else {
            Ok(())
        }
    }
}

impl<T> DeviceSlice<T> {
    /// Returns the elements as a pitched view.
    ///
    /// # Errors
    ///
    /// An argument error if the extent is out of bounds, or if rows or layers overlap.
    pub fn pitched(&self, extent: Extent, pitch: Pitch) -> Result<PitchedSlice<'_, T>> {
        let layout = pitch.layout::<T>(self.names().pitched, extent, self.byte_len())?;
        Ok(PitchedSlice::new(self.view(), layout))
    }

    /// Returns the elements as a mutable pitched view.
    ///
    /// # Errors
    ///
    /// An argument error if the extent is out of bounds, or if rows or layers overlap.
    pub fn pitched_mut(&mut self, extent: Extent, pitch: Pitch) -> Result<PitchedSliceMut<'_, T>> {
        let layout = pitch.layout::<T>(self.names().pitched_mut, extent, self.byte_len())?;
        Ok(PitchedSliceMut::new(self.view_mut(), layout))
    }
}

impl<'a, T> PitchedSlice<'a, T> {
    /// Creates a view that starts at `start`. The layout must be in bounds.
    pub(crate) fn new(start: DeviceView<'a, T>, layout: PitchedLayout) -> Self {
        Self { start, layout }
    }

    /// Returns the extent.
    #[must_use]
    pub fn extent(&self) -> Extent {
        extent::<T>(&self.layout)
    }

    /// Returns the distances between rows and between layers.
    #[must_use]
    pub fn pitch(&self) -> Pitch {
        Pitch {
            row_bytes: self.layout.pitch,
            layer_rows: self.layout.layer,
        }
    }

    /// Returns the address of the first element. Accesses through the pointer are not tracked.
    #[must_use]
    #[inline]
    pub fn as_pointer(&self) -> DevicePointer<T> {
        self.start.as_pointer()
    }

    /// Returns the stream of the operations: that of [`PitchedSlice::on`], or else that of the
    /// slice.
    #[must_use]
    #[inline]
    pub fn stream(&self) -> &Stream {
        self.start.stream()
    }

    /// Returns a view of the same memory whose operations use `stream`. See [`DeviceSlice::on`].
    pub fn on<'s>(&'s self, stream: &'s Stream) -> PitchedSlice<'s, T> {
        PitchedSlice::new(self.start.on(stream), self.layout)
    }

    /// Returns the subregion of `extent` that starts at column, row and layer `origin`.
    ///
    /// # Errors
    ///
    /// An argument error if the subregion is out of bounds.
    pub fn region(self, origin: [usize; 3], extent: Extent) -> Result<Self> {
        let (offset, layout) = part::<T>("PitchedSlice::region", &self.layout, origin, extent)?;
        let pointer = DevicePointer::from_raw(self.as_pointer().as_raw() + offset as u64);
        Ok(Self {
            start: self.start.with_pointer(pointer, self.start.len()),
            layout,
        })
    }

    /// Copies the elements to `target`, which must have the same extent. Waits until the copy has
    /// completed.
    ///
    /// CUDA: `cuMemcpy2DAsync_v2` or `cuMemcpy3DAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An argument error if the extents differ, or if the stream is being captured; an error of
    /// earlier asynchronous work in the context.
    #[doc(alias = "cuMemcpy2D")]
    #[doc(alias = "cudaMemcpy2D")]
    #[doc(alias = "cuMemcpy3D")]
    #[doc(alias = "cudaMemcpy3D")]
    pub fn copy_to_host(&self, target: &mut HostPitchedSliceMut<'_, T>) -> Result<()>
    where
        T: AnyBitPattern,
    {
        self.download_to("PitchedSlice::copy_to_host", target)
    }

    /// Copies the elements, without padding, to `target`. Waits until the copy has completed.
    ///
    /// CUDA: `cuMemcpy2DAsync_v2` or `cuMemcpy3DAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An argument error if `target` does not have as many elements as the view, or if the stream
    /// is being captured; an error of earlier asynchronous work in the context.
    pub fn copy_to_slice(&self, target: &mut [T]) -> Result<()>
    where
        T: AnyBitPattern,
    {
        self.download("PitchedSlice::copy_to_slice", target)
    }

    /// Copies the elements, without padding, to a vector. Waits until the copy has completed.
    ///
    /// CUDA: `cuMemcpy2DAsync_v2` or `cuMemcpy3DAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An argument error if the stream is being captured; an error of earlier asynchronous work in
    /// the context.
    pub fn to_vec(&self) -> Result<Vec<T>>
    where
        T: AnyBitPattern,
    {
        self.download_to_vec("PitchedSlice::to_vec")
    }

    /// Copies the elements to a vector, as the operation `name`.
    pub(crate) fn download_to_vec(&self, name: &'static str) -> Result<Vec<T>>
    where
        T: AnyBitPattern,
    {
        let mut target = bytemuck::zeroed_vec(self.extent().len());
        self.download(name, &mut target)?;
        Ok(target)
    }

    /// Copies the elements to a slice of the same number of elements, as the operation `name`.
    pub(crate) fn download(&self, name: &'static str, target: &mut [T]) -> Result<()>
    where
        T: AnyBitPattern,
    {
        let extent = self.extent();
        size::same_len(name, extent.len(), target.len())?;
        let pitch = Pitch::tight::<T>(extent);
        self.download_to(name, &mut HostPitchedSliceMut::new(target, extent, pitch)?)
    }

    fn download_to(&self, name: &'static str, target: &mut HostPitchedSliceMut<'_, T>) -> Result<()>
    where
        T: AnyBitPattern,
    {
        copies::same_extent(name, target.layout(), &self.layout)?;
        let stream = self.stream();
        let mut operation = stream.enqueue_now(name, READ_LATER)?.blocking();
        if self.layout.is_empty() {
            return Ok(());
        }
        let end = self.end();
        end.end.tracked.before_read(&mut operation)?;
        let to = target.as_mut_ptr().cast();
        // SAFETY: the host operand has this layout, every bit pattern is a valid element, and it is
        // borrowed until the stream has been synchronized below.
        unsafe { copies::to_host(&operation, to, target.layout(), &end) }?;
        end.end.tracked.after_read(&mut operation);
        drop(operation);
        wait::until_done(stream)
    }

    /// Returns the view as a copy operand.
    pub(crate) fn end(&self) -> copies::PitchedOperand<'a> {
        copies::PitchedOperand {
            end: self.start.into_operand(),
            layout: self.layout,
        }
    }
}

impl<T> Clone for PitchedSlice<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for PitchedSlice<'_, T> {}

impl<T> fmt::Debug for PitchedSlice<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe::<T>(formatter, "PitchedSlice", &self.layout, self.as_pointer())
    }
}

fn extent<T>(layout: &PitchedLayout) -> Extent {
    Extent {
        width: layout.width / size_of::<T>().max(1),
        height: layout.height,
        depth: layout.depth,
    }
}

/// Returns the offset of a subregion in bytes, and its layout.
fn part<T>(
    operation: &'static str,
    layout: &PitchedLayout,
    origin: [usize; 3],
    inner: Extent,
) -> Result<(usize, PitchedLayout)> {
    let outer = extent::<T>(layout);
    let sizes = [
        (inner.width, outer.width),
        (inner.height, outer.height),
        (inner.depth, outer.depth),
    ];
    let is_in_bounds = origin
        .into_iter()
        .zip(sizes)
        .all(|(start, (size, limit))| start.checked_add(size).is_some_and(|end| end <= limit));
    if !is_in_bounds {
        return Err(Error::argument(
            operation,
            format!("region out of bounds ({inner:?} at {origin:?} of {outer:?})"),
        ));
    }
    let [x, y, z] = origin;
    // An empty region has no address: at the end of an empty view, the offset may exceed the
    // address space.
    let is_empty = inner.width == 0 || inner.height == 0 || inner.depth == 0;
    let offset = if is_empty {
        0
    } else {
        (z * layout.layer + y) * layout.pitch + x * size_of::<T>()
    };
    let width = inner.width * size_of::<T>();
    Ok((
        offset,
        PitchedLayout {
            width,
            height: inner.height,
            depth: inner.depth,
            ..*layout
        },
    ))
}

fn describe<T>(
    formatter: &mut fmt::Formatter<'_>,
    name: &str,
    layout: &PitchedLayout,
    pointer: DevicePointer<T>,
) -> fmt::Result {
    let Extent {
        width,
        height,
        depth,
    } = extent::<T>(layout);
    let element = std::any::type_name::<T>();
    write!(
        formatter,
        "{name}({width} × {height} × {depth} × {element} at {pointer:?}, pitch {} bytes)",
        layout.pitch
    )
}
