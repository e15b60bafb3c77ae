//! Variables of shared and device memory, by address.

use std::fmt::Write as _;

use super::name::demangled;

/// The elements of a variable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    /// The size of an element in bytes.
    pub(crate) element: u64,
    /// The extents of an array, outermost first; empty for a single element.
    pub(crate) dimensions: Vec<u64>,
}

/// A variable in the shared memory of a kernel's blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SharedVariable {
    pub(crate) name: Box<str>,
    pub(crate) offset: u64,
    /// The size in bytes. Dynamic shared memory has no known size.
    pub(crate) size: u64,
    pub(crate) shape: Shape,
}

/// A variable that contains an address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VariableAt<'p> {
    pub(crate) name: &'p str,
    /// The size in bytes.
    pub(crate) size: u64,
    pub(crate) shape: &'p Shape,
    /// The offset of the address in bytes.
    pub(crate) offset: u64,
}

impl VariableAt<'_> {
    /// Returns the name of the element at the address.
    pub(crate) fn element(&self) -> Box<str> {
        self.shape.name_element(self.name, self.offset)
    }
}

impl Shape {
    /// Returns `true` if elements have names, as in arrays of other types than bytes.
    pub(crate) fn has_elements(&self) -> bool {
        self.element > 1 && !self.dimensions.is_empty()
    }

    /// Returns the name of the element at an offset, such as `tile[3][1]`. Compilers declare arrays
    /// of all types as bytes, whose elements are unknown: then `tile + 12`.
    pub(crate) fn name_element(&self, variable: &str, offset: u64) -> Box<str> {
        let mut name = demangled(variable).into_owned();
        let remainder = if self.has_elements() {
            let mut index = offset / self.element;
            let mut indices = Vec::new();
            for (position, extent) in self.dimensions.iter().enumerate().rev() {
                // An unsized array is as long as necessary.
                let is_outermost = position == 0 || *extent == 0;
                indices.push(if is_outermost { index } else { index % extent });
                index = if is_outermost { 0 } else { index / extent };
            }
            for index in indices.iter().rev() {
                write!(name, "[{index}]").unwrap_or_default();
            }
            offset % self.element
        } else {
            offset
        };
        if remainder != 0 {
            write!(name, " + {remainder}").unwrap_or_default();
        }
        name.into()
    }
}

#[cfg(test)]
mod tests {
    use super::Shape;

    #[test]
    fn elements_are_named_by_shape() {
        let shape = |element, dimensions: &[u64]| Shape {
            element,
            dimensions: dimensions.to_vec(),
        };
        for (shape, offset, name) in [
            (shape(4, &[16, 4]), 4 * 57, "tile[14][1]"),
            (shape(4, &[16, 4]), 4 * 57 + 2, "tile[14][1] + 2"),
            (shape(4, &[0]), 400, "tile[100]"),
            (shape(1, &[4096]), 228, "tile + 228"),
            (shape(1, &[4096]), 0, "tile"),
            (shape(8, &[]), 4, "tile + 4"),
        ] {
            assert_eq!(&*shape.name_element("tile", offset), name);
        }
    }
}
