//! The sizes of a block, and its parameters.

use std::ops::Range;

use super::Result;

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

/// The greatest length of a row that a warp keeps in registers.
const LONGEST_ROW: usize = 2048;

/// The number of elements of a 16-byte access.
const GROUP: usize = 8;

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

    /// Returns the places of the queries, the keys and the values of a head in those of all heads.
    pub(super) fn parts_of_head(self, head: usize) -> [usize; 3] {
        [0, 1, 2].map(|part| (3 * head + part) * self.head())
    }

    /// Returns the place of a position in a matrix with rows of this many widths for each sample.
    pub(super) fn position(self, position: usize, widths: usize) -> usize {
        position * self.batch * widths * self.width
    }

    /// Returns the first positions of the parts of the sequence.
    pub(super) fn begins(self, parts: usize) -> impl Iterator<Item = usize> {
        (0..parts).map(move |part| part * self.part(parts))
    }

    /// Returns the number of positions of each of some parts of the sequence.
    pub(super) fn part(self, parts: usize) -> usize {
        self.sequence / parts
    }

    /// Returns the place of the scores of some heads in those of all heads.
    pub(super) fn scores_of_heads(self, first: usize, count: usize) -> Range<usize> {
        let scores = self.sequence * self.sequence;
        first * scores..(first + count) * scores
    }

    /// Returns the numbers of elements of the parameters.
    pub(crate) fn lengths(self) -> Parameters<usize> {
        let (width, hidden) = (self.width, self.hidden());
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

    /// Checks the sizes for attention on groups of heads and parts of the sequence.
    pub(super) fn check(self, group: usize, parts: usize) -> Result<()> {
        let Self { batch, sequence, width, heads, .. } = self;
        if [batch, sequence, width, heads, group, parts].contains(&0) {
            return Err(format!("block: a size is 0 ({self:?}, group {group}, {parts} parts)").into());
        }
        if !sequence.is_multiple_of(GROUP * parts) || parts > 1 && !self.is_causal {
            let problem = "parts of the sequence are for a causal mask, and have a multiple of 8 positions";
            return Err(format!("block: {problem} ({self:?}, {parts} parts)").into());
        }
        if !width.is_multiple_of(GROUP * heads) {
            return Err(format!("block: the width of a head must be a multiple of 8 ({self:?})").into());
        }
        if sequence.max(width) > LONGEST_ROW {
            return Err(format!("block: sequence and width are at most {LONGEST_ROW} ({self:?})").into());
        }
        if !self.all_heads().is_multiple_of(group) {
            return Err(
                format!("block: group {group} does not divide the {} heads of all samples", self.all_heads()).into()
            );
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
