//! Jumps ahead in linear sequences: the matrix of one step, to the power of the distance.

/// The state of XORWOW without its counter, as bits.
pub(super) type Bits = [u32; 5];

/// A linear map of [`Bits`]: the image of each bit.
struct BitMatrix(Vec<Bits>);

impl BitMatrix {
    fn from_step(step: impl Fn(Bits) -> Bits) -> Self {
        let mut images = Vec::with_capacity(160);
        for bit in 0..160 {
            let mut unit = [0; 5];
            unit[bit / 32] = 1 << (bit % 32);
            images.push(step(unit));
        }
        Self(images)
    }

    fn apply(&self, bits: Bits) -> Bits {
        let mut sum = [0; 5];
        for (bit, image) in self.0.iter().enumerate() {
            if bits[bit / 32] >> (bit % 32) & 1 == 1 {
                sum = std::array::from_fn(|word| sum[word] ^ image[word]);
            }
        }
        sum
    }

    fn squared(&self) -> Self {
        Self(self.0.iter().map(|image| self.apply(*image)).collect())
    }
}

/// Applies a linear step `distance` times.
pub(super) fn jump(mut bits: Bits, step: impl Fn(Bits) -> Bits, mut distance: u64) -> Bits {
    let mut matrix = BitMatrix::from_step(step);
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
        self.rows.map(|row| {
            let products = row
                .iter()
                .zip(numbers)
                .map(|(factor, number)| u128::from(*factor) * u128::from(number));
            (products.sum::<u128>() % u128::from(self.modulus)) as u64
        })
    }

    fn squared(&self) -> Self {
        let columns = [0, 1, 2].map(|index: usize| self.apply(self.rows.map(|row| row[index])));
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
