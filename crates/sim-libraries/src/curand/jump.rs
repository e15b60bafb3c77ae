//! Jumps ahead in linear sequences: the matrix of one step, to the power of the distance.

/// The state of XORWOW without its counter, as bits.
pub(super) type Bits = [u32; 5];

/// A linear map of [`Bits`]: the image of each bit.
struct BitMatrix(Vec<Bits>);

impl BitMatrix {
    fn of(step: impl Fn(Bits) -> Bits) -> Self {
        let unit = |bit: usize| {
            std::array::from_fn(|word| if bit / 32 == word { 1 << (bit % 32) } else { 0 })
        };
        Self((0..160).map(|bit| step(unit(bit))).collect())
    }

    fn apply(&self, bits: Bits) -> Bits {
        let is_set = |bit: usize| bits[bit / 32] >> (bit % 32) & 1 == 1;
        let images = (0..160).filter(|bit| is_set(*bit)).map(|bit| self.0[bit]);
        images.fold([0; 5], |sum, image| {
            std::array::from_fn(|word| sum[word] ^ image[word])
        })
    }

    fn squared(&self) -> Self {
        Self(self.0.iter().map(|image| self.apply(*image)).collect())
    }
}

/// Applies a linear step `distance` times.
pub(super) fn jump(mut bits: Bits, step: impl Fn(Bits) -> Bits, mut distance: u64) -> Bits {
    let mut matrix = BitMatrix::of(step);
    while distance > 0 {
        if distance & 1 == 1 {
            bits = matrix.apply(bits);
        }
        matrix = matrix.squared();
        distance >>= 1;
    }
    bits
}

/// A linear map of three numbers modulo `modulus`.
#[derive(Clone, Copy)]
pub(super) struct Matrix {
    pub(super) rows: [[u64; 3]; 3],
    pub(super) modulus: u64,
}

impl Matrix {
    pub(super) fn apply(&self, numbers: [u64; 3]) -> [u64; 3] {
        let dot = |row: [u64; 3]| {
            let products = row
                .iter()
                .zip(numbers)
                .map(|(factor, number)| u128::from(*factor) * u128::from(number));
            (products.sum::<u128>() % u128::from(self.modulus)) as u64
        };
        self.rows.map(dot)
    }

    fn squared(&self) -> Self {
        let column = |index: usize| self.apply(std::array::from_fn(|row| self.rows[row][index]));
        let columns = [column(0), column(1), column(2)];
        Self {
            rows: std::array::from_fn(|row| std::array::from_fn(|index| columns[index][row])),
            ..*self
        }
    }

    /// Applies the map `distance` times.
    pub(super) fn jump(mut self, mut numbers: [u64; 3], mut distance: u64) -> [u64; 3] {
        while distance > 0 {
            if distance & 1 == 1 {
                numbers = self.apply(numbers);
            }
            self = self.squared();
            distance >>= 1;
        }
        numbers
    }
}
