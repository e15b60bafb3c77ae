//! Arguments for tensor maps.

use curium_driver::hazard::Operation;
use curium_driver::{Argument as DriverArgument, DevicePointer, Result};
use curium_memory::{
    DeviceSlice, DeviceView, DeviceViewMut, TensorDataType, TensorLayout,
    TensorMap as DriverTensorMap, TensorRead, TensorSwizzle, TensorView, TensorViewMut,
    TensorWrite,
};

use super::argument::{Argument, PreparedArgument, RowMajor, Words};
use crate::tma::{
    GridConstant, MAX_COORDINATE, PerBlockTensor, TensorElement, TensorMap, TensorMapBytes,
    TensorTile,
};

/// A tensor map of a matrix.
#[doc(hidden)]
pub struct Tensor<V> {
    view: V,
    rows: u32,
    columns: u32,
}

/// Returns the sizes of a matrix, whose coordinates are 32 bits wide, signed.
fn checked_sizes(len: usize, rows: usize, columns: usize) -> Result<(u32, u32), String> {
    if rows.checked_mul(columns) != Some(len) {
        return Err(format!(
            "{rows} rows of {columns} columns are not the buffer's {len} elements"
        ));
    }
    if len == 0 {
        return Err("a tensor map describes at least one element".to_owned());
    }
    if rows.max(columns) > MAX_COORDINATE as usize {
        return Err(format!(
            "{rows} rows of {columns} columns: a size of a tensor map is at most {MAX_COORDINATE}"
        ));
    }
    Ok((rows as u32, columns as u32))
}

/// Returns the layout of a matrix that is copied in boxes of the tile.
fn layout<Tile: TensorTile>(
    pointer: DevicePointer<Tile::Element>,
    rows: u32,
    columns: u32,
) -> Result<TensorLayout, String> {
    let bytes = columns as usize * size_of::<Tile::Element>();
    if !bytes.is_multiple_of(16) {
        return Err(format!(
            "a row has {bytes} bytes, and a tensor map needs a multiple of 16"
        ));
    }
    let extents = [u64::from(columns), u64::from(rows)];
    let layout = TensorLayout::new(data_type::<Tile::Element>(), pointer, &extents);
    Ok(if Tile::IS_SWIZZLED {
        layout.with_swizzle(TensorSwizzle::Bytes128)
    } else {
        layout
    })
}

/// Returns the data type of elements.
fn data_type<T: TensorElement>() -> TensorDataType {
    match T::DATA_TYPE {
        0 => TensorDataType::Uint8,
        1 => TensorDataType::Uint16,
        2 => TensorDataType::Uint32,
        3 => TensorDataType::Int32,
        4 => TensorDataType::Uint64,
        5 => TensorDataType::Int64,
        7 => TensorDataType::Float32,
        _ => TensorDataType::Float64,
    }
}

/// Returns the box of a tile, innermost dimension first.
fn box_dimensions<Tile: TensorTile>() -> [u32; 2] {
    [Tile::COLUMNS as u32, Tile::ROWS as u32]
}

/// Returns the bytes of a map.
fn bytes(map: &DriverTensorMap) -> GridConstant<TensorMapBytes> {
    GridConstant(TensorMapBytes(map.to_words()))
}

macro_rules! tensors {
    ($parameter:ident, $kind:ident, $view:ident, $slice:ident, $trait:ident, $method:ident, $whole:ident, [$($reference:tt)*], [$($mutable:tt)*]) => {
        // SAFETY: the view borrows the memory as the parameter requires, and its map describes
        // boxes of the tile.
        unsafe impl<'b, Tile: TensorTile, B: $trait<DeviceSlice<Tile::Element>> + ?Sized>
            Argument<$parameter<Tile>> for RowMajor<&'b $($reference)* B>
        {
            type Prepared = Tensor<$view<'b>>;

            fn prepare(self) -> Result<Self::Prepared, String> {
                let (buffer, rows, columns) = self.into_parts();
                Argument::<$parameter<Tile>>::prepare(RowMajor::new(buffer.$method().$whole(), rows, columns))
            }
        }

        // SAFETY: the view borrows the memory as the parameter requires, and its map describes
        // boxes of the tile.
        unsafe impl<'b, Tile: TensorTile> Argument<$parameter<Tile>>
            for RowMajor<$slice<'b, Tile::Element>>
        {
            type Prepared = Tensor<$view<'b>>;

            fn prepare(self) -> Result<Self::Prepared, String> {
                let (slice, rows, columns) = self.into_parts();
                let (rows, columns) = checked_sizes(slice.len(), rows, columns)?;
                let layout = layout::<Tile>(slice.as_pointer(), rows, columns)?;
                let view = $view::tiled(slice, &layout, &box_dimensions::<Tile>())
                    .map_err(|error| error.to_string())?;
                Ok(Tensor {
                    view,
                    rows,
                    columns,
                })
            }
        }

        // SAFETY: the words are the map of the view and its sizes.
        unsafe impl<Tile: TensorTile> PreparedArgument<$parameter<Tile>> for Tensor<$view<'_>> {
            unsafe fn bind(
                &mut self,
                operation: &mut Operation<'_>,
            ) -> Result<Words<$parameter<Tile>>> {
                let mut view = &$($mutable)* self.view;
                Ok(Words {
                    // SAFETY: the caller calls `launched` before it uses the tensor again, if the
                    // kernel is enqueued.
                    first: bytes(&unsafe { DriverArgument::<$kind>::bind(&mut view, operation) }?),
                    second: self.rows,
                    third: self.columns,
                })
            }

            unsafe fn launched(&mut self, operation: &mut Operation<'_>) {
                let mut view = &$($mutable)* self.view;
                // SAFETY: the caller has bound the tensor with the same operation, and not used it
                // since.
                unsafe { DriverArgument::<$kind>::launched(&mut view, operation) };
            }
        }
    };
}

tensors!(
    TensorMap,
    TensorRead,
    TensorView,
    DeviceView,
    AsRef,
    as_ref,
    view,
    [],
    []
);
tensors!(PerBlockTensor, TensorWrite, TensorViewMut, DeviceViewMut, AsMut, as_mut, view_mut, [mut], [mut]);
