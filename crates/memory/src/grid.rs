//! Rows and layers of elements.

mod host;
mod mutable;

use std::fmt;

use bytemuck::AnyBitPattern;
use curium_driver::hazard::AccessGuard;
use curium_driver::{DevicePointer, Error, Result, Stream};

pub use self::host::{HostGrid, HostGridMut};
pub use self::mutable::GridMut;
use crate::capture_advice::READ_LATER;
use crate::copy::grid::{self as copies, Place};
use crate::{DeviceSlice, wait};

/// How many elements a row has, how many rows a layer, and how many layers there are.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Extent {
    /// Elements in a row.
    pub width: usize,
    /// Rows in a layer.
    pub height: usize,
    /// Layers.
    pub depth: usize,
}

/// How rows and layers lie in memory.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Pitch {
    /// The bytes from the beginning of one row to that of the next.
    pub row_bytes: usize,
    /// The rows from the beginning of one layer to that of the next.
    pub layer_rows: usize,
}

/// Rows and layers of elements in memory that the device uses, borrowed to be read. The first element is that of the view it was made of.
///
/// ```
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// use curium_memory::{DeviceBuffer, Extent, Pitch};
///
/// # let stream = driver.device(0)?.primary_context()?.stream()?;
/// let image: Vec<u8> = (0..12).collect(); // 3 rows of 4
/// let source = DeviceBuffer::from_slice(&stream, &image)?;
/// let mut target = DeviceBuffer::<u8>::zeroed(&stream, 4)?;
/// let extent = Extent::plane(2, 2);
/// let lower_right = source.slice(6..)?.grid(extent, Pitch::rows::<u8>(4))?;
/// target.as_slice_mut().grid(extent, Pitch::tight::<u8>(extent))?.copy_from(&lower_right)?;
/// assert_eq!(target.to_vec()?, [6, 7, 10, 11]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Grid<'a, T> {
    start: DeviceSlice<'a, T>,
    place: Place,
}

impl Extent {
    /// Rows in one layer.
    #[must_use]
    #[inline]
    pub const fn plane(width: usize, height: usize) -> Self {
        Self { width, height, depth: 1 }
    }

    /// Rows in several layers.
    #[must_use]
    #[inline]
    pub const fn volume(width: usize, height: usize, depth: usize) -> Self {
        Self { width, height, depth }
    }
}

impl Pitch {
    /// Rows that begin `elements` elements of type `T` behind each other, in one layer.
    #[must_use]
    #[inline]
    pub const fn rows<T>(elements: usize) -> Self {
        Self { row_bytes: elements.saturating_mul(size_of::<T>()), layer_rows: 0 }
    }

    /// The same with layers that begin `rows` rows behind each other.
    #[must_use]
    #[inline]
    pub const fn with_layers(mut self, rows: usize) -> Self {
        self.layer_rows = rows;
        self
    }

    /// Rows and layers without gaps.
    #[must_use]
    #[inline]
    pub const fn tight<T>(extent: Extent) -> Self {
        Self::rows::<T>(extent.width).with_layers(extent.height)
    }

    /// The place of an extent of elements of `T` at this pitch in `bytes` bytes.
    #[inline]
    fn place<T>(self, operation: &'static str, extent: Extent, bytes: usize) -> Result<Place> {
        let Extent { width, height, depth } = extent;
        let refuse = |reason: String| Err(Error::argument(operation, reason));
        let Some(row) = width.checked_mul(size_of::<T>()) else {
            return refuse(format!("size overflow (a row of {width} elements)"));
        };
        if height > 1 && self.row_bytes < row {
            return refuse(format!("pitch too small (rows of {row} bytes, pitch of {} bytes)", self.row_bytes));
        }
        if depth > 1 && self.layer_rows < height {
            return refuse(format!("pitch too small (layers of {height} rows, pitch of {} rows)", self.layer_rows));
        }
        if !self.row_bytes.is_multiple_of(align_of::<T>()) {
            return refuse(format!("misaligned pitch ({} bytes)", self.row_bytes));
        }
        let (pitch, layer) = (self.row_bytes.max(row), self.layer_rows.max(height));
        let place = Place { width: row, height, depth, pitch, layer };
        match place.span() {
            Some(span) if span <= bytes => Ok(place),
            span => {
                let span = span.map_or_else(|| "more than the address space".into(), |span| format!("{span} bytes"));
                refuse(format!(
                    "grid out of bounds ({width} × {height} × {depth} elements take {span}, the memory has {bytes} bytes)"
                ))
            }
        }
    }
}

impl<'a, T> DeviceSlice<'a, T> {
    /// The elements from the first on as rows and layers.
    ///
    /// # Errors
    ///
    /// An argument error if they reach beyond the view, or if rows or layers overlap.
    #[inline]
    pub fn grid(self, extent: Extent, pitch: Pitch) -> Result<Grid<'a, T>> {
        let place = pitch.place::<T>("DeviceSlice::grid", extent, self.byte_len())?;
        Ok(Grid { start: self, place })
    }
}

impl<'a, T> Grid<'a, T> {
    /// The rows and layers from `start` on, which are known to lie in the memory of the view.
    #[inline]
    pub(crate) fn new(start: DeviceSlice<'a, T>, place: Place) -> Self {
        Self { start, place }
    }

    /// How many elements, rows and layers there are.
    #[must_use]
    #[inline]
    pub fn extent(&self) -> Extent {
        extent::<T>(&self.place)
    }

    /// How rows and layers lie in memory.
    #[must_use]
    #[inline]
    pub fn pitch(&self) -> Pitch {
        Pitch { row_bytes: self.place.pitch, layer_rows: self.place.layer }
    }

    /// The address of the first element. What is done with it is not tracked.
    #[must_use]
    #[inline]
    pub fn as_pointer(&self) -> DevicePointer<T> {
        self.start.as_pointer()
    }

    /// The stream of the memory that this is a view of, on which it copies.
    #[must_use]
    #[inline]
    pub fn stream(&self) -> &'a Stream {
        self.start.stream()
    }

    /// The box of `extent` whose first element is in column, row and layer `origin`.
    ///
    /// # Errors
    ///
    /// An argument error if it reaches beyond this one.
    #[inline]
    pub fn part(self, origin: [usize; 3], extent: Extent) -> Result<Self> {
        let (offset, place) = part::<T>("Grid::part", &self.place, origin, extent)?;
        let pointer = DevicePointer::from_raw(self.as_pointer().as_raw() + offset as u64);
        Ok(Self { start: DeviceSlice::new(pointer, self.start.len(), self.start.tracked()), place })
    }

    /// Copies the elements to `target`, which has as many, rows and layers. Waits until the copy is done.
    ///
    /// CUDA: `cuMemcpy2DAsync_v2` or `cuMemcpy3DAsync_v2`, `cuStreamSynchronize`.
    ///
    /// # Errors
    ///
    /// An argument error if the extents differ; the error of any work of the context that failed before.
    #[doc(alias = "cuMemcpy2D")]
    #[doc(alias = "cuMemcpy3D")]
    #[inline]
    pub fn copy_to_host(&self, target: &mut HostGridMut<'_, T>) -> Result<()>
    where
        T: AnyBitPattern,
    {
        self.stream().expect_captured("Grid::copy_to_host", READ_LATER)?;
        self.copy_to_host_on(self.stream(), target)
    }

    /// As [`Grid::copy_to_host`], on any stream.
    ///
    /// # Errors
    ///
    /// As for [`Grid::copy_to_host`]; an argument error if the stream is being captured.
    #[inline]
    pub fn copy_to_host_on(&self, stream: &Stream, target: &mut HostGridMut<'_, T>) -> Result<()>
    where
        T: AnyBitPattern,
    {
        const OPERATION: &str = "Grid::copy_to_host";
        copies::same_extent(OPERATION, target.place(), &self.place)?;
        if self.place.is_empty() {
            return Ok(());
        }
        let end = self.end();
        stream.refuse_capture(OPERATION, READ_LATER)?;
        let mut guard = AccessGuard::blocking(stream)?;
        end.end.tracked.before_read(OPERATION, &mut guard)?;
        let to = target.as_mut_ptr().cast();
        // SAFETY: the host's end holds these rows and layers, any bytes are valid elements, and it is borrowed until the stream has been
        // waited for below.
        unsafe { copies::to_host(stream, to, target.place(), &end) }?;
        end.end.tracked.after_read(&mut guard);
        drop(guard);
        wait::until_done(stream)
    }

    /// As one end of a copy.
    #[inline]
    pub(crate) fn end(&self) -> copies::End<'a> {
        copies::End { end: self.start.end(), place: self.place }
    }
}

impl<T> Clone for Grid<'_, T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Grid<'_, T> {}

impl<T> fmt::Debug for Grid<'_, T> {
    #[inline]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe::<T>(formatter, "Grid", &self.place, self.as_pointer())
    }
}

#[inline]
fn extent<T>(place: &Place) -> Extent {
    Extent { width: place.width / size_of::<T>().max(1), height: place.height, depth: place.depth }
}

/// A box within a place: where it begins, in bytes, and its own place.
#[inline]
fn part<T>(operation: &'static str, place: &Place, origin: [usize; 3], inner: Extent) -> Result<(usize, Place)> {
    let outer = extent::<T>(place);
    let sizes = [(inner.width, outer.width), (inner.height, outer.height), (inner.depth, outer.depth)];
    let fits =
        |(start, (size, limit)): (usize, (usize, usize))| start.checked_add(size).is_some_and(|end| end <= limit);
    if !origin.into_iter().zip(sizes).all(fits) {
        return Err(Error::argument(operation, format!("part out of bounds ({inner:?} at {origin:?} of {outer:?})")));
    }
    let [x, y, z] = origin;
    // A part without elements has no address: at the end of an empty grid, the offset may exceed the address space.
    let is_empty = inner.width == 0 || inner.height == 0 || inner.depth == 0;
    let offset = if is_empty { 0 } else { (z * place.layer + y) * place.pitch + x * size_of::<T>() };
    let width = inner.width * size_of::<T>();
    Ok((offset, Place { width, height: inner.height, depth: inner.depth, ..*place }))
}

#[inline]
fn describe<T>(
    formatter: &mut fmt::Formatter<'_>,
    name: &str,
    place: &Place,
    pointer: DevicePointer<T>,
) -> fmt::Result {
    let Extent { width, height, depth } = extent::<T>(place);
    let element = std::any::type_name::<T>();
    write!(formatter, "{name}({width} × {height} × {depth} × {element} at {pointer:?}, pitch {} bytes)", place.pitch)
}
