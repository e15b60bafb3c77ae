//! The sizes of a block, and its parameters.

use super::Result;
use super::attention::HEAD;

/// The sizes of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) batch: usize,
    pub(crate) sequence: usize,
    pub(crate) width: usize,
    pub(crate) heads: usize,
    /// `true` if positions see only themselves and earlier ones.
    pub(crate) is_causal: bool,
}

/// The greatest width of a row that a warp keeps in registers.
const WIDEST: usize = 1024;

impl Shape {
    /// Returns the number of rows of activations.
    pub(crate) fn rows(self) -> usize {
        self.batch * self.sequence
    }

    /// Returns the number of heads of all samples.
    pub(crate) fn all_heads(self) -> usize {
        self.batch * self.heads
    }

    /// Returns the width of a head.
    pub(crate) fn head(self) -> usize {
        self.width / self.heads
    }

    /// Returns the number of hidden elements of the perceptron.
    pub(crate) fn hidden(self) -> usize {
        4 * self.width
    }

    /// Returns the numbers of elements of the parameters.
    pub(crate) fn lengths(self) -> Parameters<usize> {
        let width = self.width;
        let hidden = self.hidden();
        Parameters {
            norm1_gain: width,
            norm1_bias: width,
            qkv_weight: 3 * width * width,
            qkv_bias: 3 * width,
            projection_weight: width * width,
            projection_bias: width,
            norm2_gain: width,
            norm2_bias: width,
            up_weight: hidden * width,
            up_bias: hidden,
            down_weight: width * hidden,
            down_bias: width,
        }
    }

    /// Checks that there are kernels for the sizes.
    pub(super) fn check(self) -> Result<()> {
        let Self {
            batch,
            sequence,
            width,
            heads,
            ..
        } = self;
        if [batch, sequence, width, heads].contains(&0) {
            return Err(format!("block: a size is 0 ({self:?})").into());
        }
        if width != heads * HEAD {
            return Err(format!("block: the width of a head must be {HEAD} ({self:?})").into());
        }
        if width > WIDEST {
            return Err(format!("block: the width is at most {WIDEST} ({self:?})").into());
        }
        Ok(())
    }
}

macro_rules! parameters {
    ($($(#[$attribute:meta])* $name:ident,)*) => {
        /// A value for each parameter of a block. Weights have a row for each output.
        #[derive(Clone, Debug)]
        pub(crate) struct Parameters<T> {
            $($(#[$attribute])* pub(crate) $name: T,)*
        }

        impl<T> Parameters<T> {
            /// Converts each value.
            pub(crate) fn try_map<U, E>(&self, mut convert: impl FnMut(&T) -> Result<U, E>) -> Result<Parameters<U>, E> {
                Ok(Parameters { $($name: convert(&self.$name)?,)* })
            }

            /// Returns the values with their names.
            pub(crate) fn named(&self) -> Vec<(&'static str, &T)> {
                vec![$((stringify!($name), &self.$name),)*]
            }
        }
    };
}

parameters! {
    norm1_gain,
    norm1_bias,
    /// For each head the rows of queries, of keys, and of values.
    qkv_weight,
    qkv_bias,
    projection_weight,
    projection_bias,
    norm2_gain,
    norm2_bias,
    up_weight,
    up_bias,
    down_weight,
    down_bias,
}
