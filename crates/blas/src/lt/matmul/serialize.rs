//! Descriptions as bytes.

use super::{Matmul, Scales, TypedLayout};
use crate::layout::{MatrixLayout, Order};
use crate::lt::{Compute, ElementType, Epilogue};
use crate::sys::{cublasComputeType_t, cublasLtEpilogue_t, cudaDataType_t};

/// Reads the numbers of a record; `None` at its end.
pub(in crate::lt) struct Reader<'a>(pub(in crate::lt) &'a [u8]);

impl Reader<'_> {
    pub(in crate::lt) fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    pub(in crate::lt) fn size(&mut self) -> Option<usize> {
        self.number()?.try_into().ok()
    }

    fn flag(&mut self) -> Option<bool> {
        match self.number()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    /// Reads an optional number, which is stored one greater than it is.
    fn option(&mut self) -> Option<Option<u64>> {
        Some(self.number()?.checked_sub(1))
    }
}

impl TypedLayout {
    fn to_numbers(self) -> [u64; 6] {
        let Self {
            element,
            layout,
            stride,
        } = self;
        let is_row_major = u64::from(layout.order() == Order::RowMajor);
        let sizes = [
            layout.rows(),
            layout.columns(),
            layout.leading_dimension(),
            stride,
        ]
        .map(|size| size as u64);
        [
            u64::from(element.to_raw().0),
            is_row_major,
            sizes[0],
            sizes[1],
            sizes[2],
            sizes[3],
        ]
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let element = element(reader.number()?)?;
        let is_row_major = reader.flag()?;
        let rows = reader.size()?;
        let columns = reader.size()?;
        let layout = if is_row_major {
            MatrixLayout::row_major(rows, columns)
        } else {
            MatrixLayout::column_major(rows, columns)
        };
        Some(Self {
            element,
            layout: layout.with_leading_dimension(reader.size()?),
            stride: reader.size()?,
        })
    }
}

impl Matmul {
    /// Returns the description as bytes, which [`Matmul::read`] turns back.
    pub(in crate::lt) fn to_bytes(self) -> Vec<u8> {
        let mut numbers = Vec::new();
        for matrix in [self.a, self.b, self.d] {
            numbers.extend(matrix.to_numbers());
        }
        numbers.push(self.c.is_some().into());
        numbers.extend(self.c.into_iter().flat_map(TypedLayout::to_numbers));
        numbers.extend([
            self.batch_count as u64,
            u64::from(self.compute.to_raw().0),
            self.has_device_factors.into(),
        ]);
        numbers.push(u64::from(self.epilogue.to_raw().0));
        numbers.push(self.bias.map_or(0, |bias| u64::from(bias.to_raw().0) + 1));
        numbers.push(
            self.auxiliary_leading_dimension
                .map_or(0, |leading| leading as u64 + 1),
        );
        numbers.extend([
            self.scales.bits().into(),
            self.is_accumulated_fast.into(),
            self.alignment as u64,
        ]);
        numbers.into_iter().flat_map(u64::to_le_bytes).collect()
    }

    /// Reads a description; `None` for other bytes.
    pub(in crate::lt) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let a = TypedLayout::read(reader)?;
        let b = TypedLayout::read(reader)?;
        let d = TypedLayout::read(reader)?;
        let c = if reader.flag()? {
            Some(TypedLayout::read(reader)?)
        } else {
            None
        };
        Some(Self {
            a,
            b,
            c,
            d,
            batch_count: reader.size()?,
            compute: Compute::from_raw(cublasComputeType_t(reader.number()?.try_into().ok()?))?,
            has_device_factors: reader.flag()?,
            epilogue: Epilogue::from_raw(cublasLtEpilogue_t(reader.number()?.try_into().ok()?))?,
            bias: match reader.option()? {
                Some(bias) => Some(element(bias)?),
                None => None,
            },
            auxiliary_leading_dimension: match reader.option()? {
                Some(leading) => Some(leading.try_into().ok()?),
                None => None,
            },
            scales: Scales::from_bits(reader.number()?.try_into().ok()?)?,
            is_accumulated_fast: reader.flag()?,
            alignment: reader.size()?,
        })
    }
}

fn element(number: u64) -> Option<ElementType> {
    ElementType::from_raw(cudaDataType_t(number.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(rows: usize, columns: usize) -> TypedLayout {
        TypedLayout::new::<f32>(MatrixLayout::row_major(rows, columns)).with_stride(rows * columns)
    }

    #[test]
    fn description_is_parsed_as_written() {
        let plain = Matmul::new(layout(2, 3), layout(3, 4), layout(2, 4));
        let all = plain
            .with_c(layout(2, 4))
            .with_batches(5)
            .with_compute(Compute::Tf32)
            .with_epilogue(Epilogue::GeluAuxiliaryBias)
            .with_bias_type(ElementType::F16)
            .with_auxiliary_leading_dimension(0)
            .with_device_factors()
            .with_scales(Scales::A | Scales::AMAX_D)
            .with_fast_accumulation(true)
            .with_alignment(16);
        for matmul in [plain, all] {
            let bytes = matmul.to_bytes();
            let mut reader = Reader(&bytes);
            assert_eq!(Matmul::read(&mut reader), Some(matmul));
            assert!(reader.0.is_empty());
            for end in 0..bytes.len() {
                assert_eq!(
                    Matmul::read(&mut Reader(&bytes[..end])),
                    None,
                    "{end} bytes"
                );
            }
        }
    }
}
