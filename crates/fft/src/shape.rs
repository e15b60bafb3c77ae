//! The shape of a transform: lengths, batches, and the layout of both sides in memory.

/// The shape of a transform of 1 to 3 dimensions: the lengths, slowest first, the number of
/// batches, and the layout in memory.
///
/// By default, the elements of all batches follow each other. The complex side of a real transform
/// has `n / 2 + 1` numbers for `n` real ones in the last dimension.
///
/// ```
/// use curium_fft::{Embedding, Shape};
///
/// // 8 images of 480 × 640.
/// let images = Shape::new([480, 640]).with_batches(8);
/// // The same, in the upper left corner of images of 512 × 1024.
/// let corners = images.with_input(Embedding::new([512, 1024]));
/// // The columns of a matrix of 100 × 30.
/// let columns = Embedding::new([100]).with_stride(30).with_distance(1);
/// let columns = Shape::new([100]).with_batches(30).with_input(columns.clone()).with_output(columns);
/// ```
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Shape {
    pub(crate) lengths: Vec<usize>,
    pub(crate) batches: usize,
    pub(crate) input: Option<Embedding>,
    pub(crate) output: Option<Embedding>,
    pub(crate) is_in_place: bool,
}

/// The layout of one side of a transform: its elements are a part of a larger array, at equal
/// distances (cuFFT's advanced data layout).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Embedding {
    pub(crate) lengths: Vec<usize>,
    pub(crate) stride: usize,
    pub(crate) distance: Option<usize>,
}

impl Shape {
    /// Creates a shape of 1 to 3 dimensions. Other numbers of dimensions do not compile.
    #[must_use]
    pub fn new<const RANK: usize>(lengths: [usize; RANK]) -> Self {
        const {
            assert!(
                RANK >= 1 && RANK <= 3,
                "cuFFT has transforms of 1 to 3 dimensions"
            );
        };
        Self {
            lengths: lengths.into(),
            batches: 1,
            input: None,
            output: None,
            is_in_place: false,
        }
    }

    /// Sets the number of transforms in a batch.
    #[must_use]
    pub fn with_batches(self, batches: usize) -> Self {
        Self { batches, ..self }
    }

    /// Sets the layout of the input.
    #[must_use]
    pub fn with_input(self, embedding: Embedding) -> Self {
        Self {
            input: Some(embedding),
            ..self
        }
    }

    /// Sets the layout of the output.
    #[must_use]
    pub fn with_output(self, embedding: Embedding) -> Self {
        Self {
            output: Some(embedding),
            ..self
        }
    }

    /// Pads the rows of the real side to `2 * (n / 2 + 1)` numbers, as an in-place real transform
    /// requires. Complex transforms need no padding.
    #[must_use]
    pub fn in_place(self) -> Self {
        Self {
            is_in_place: true,
            ..self
        }
    }
}

impl Embedding {
    /// Creates the layout of data at the start of an array of these lengths, slowest first. The
    /// elements of the array, and the arrays of several batches, are contiguous.
    #[must_use]
    pub fn new<const RANK: usize>(lengths: [usize; RANK]) -> Self {
        const {
            assert!(
                RANK >= 1 && RANK <= 3,
                "cuFFT has transforms of 1 to 3 dimensions"
            );
        };
        Self {
            lengths: lengths.into(),
            stride: 1,
            distance: None,
        }
    }

    /// Sets the distance between the elements of the last dimension.
    #[must_use]
    pub fn with_stride(self, stride: usize) -> Self {
        Self { stride, ..self }
    }

    /// Sets the distance between the first elements of two batches.
    #[must_use]
    pub fn with_distance(self, distance: usize) -> Self {
        Self {
            distance: Some(distance),
            ..self
        }
    }
}
