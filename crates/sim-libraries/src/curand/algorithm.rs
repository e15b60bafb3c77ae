//! The algorithms of pseudo-random numbers, as they are published. Seeds are expanded by
//! SplitMix64.

use rand_mt::Mt;
use rand_philox::philox4x32_10;

use super::jump::{self, Matrix};

/// The state of an algorithm.
#[derive(Clone)]
pub(super) enum Algorithm {
    Xorwow(Xorwow),
    Philox(Philox),
    Mrg(Mrg),
    Twister(Box<Mt>),
}

impl Algorithm {
    pub(super) fn twister(seed: u64) -> Self {
        Self::Twister(Box::new(Mt::new(SplitMix(seed).next() as u32)))
    }

    /// Returns the next 32 bits.
    pub(super) fn next(&mut self) -> u32 {
        match self {
            Self::Xorwow(state) => state.next(),
            Self::Philox(state) => state.next(),
            Self::Mrg(state) => state.next(),
            Self::Twister(state) => state.next_u32(),
        }
    }

    /// Leaves out `count` numbers. Mersenne Twisters have no offset.
    pub(super) fn skip(&mut self, count: u64) {
        match self {
            Self::Xorwow(state) => state.skip(count),
            Self::Philox(state) => state.position = state.position.wrapping_add(u128::from(count)),
            Self::Mrg(state) => state.skip(count),
            Self::Twister(_) => {}
        }
    }
}

/// Expands a seed.
#[derive(Clone, Copy)]
pub(super) struct SplitMix(pub(super) u64);

impl SplitMix {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// XORWOW: five words of xorshift, and a counter.
#[derive(Clone)]
pub(super) struct Xorwow {
    words: jump::Bits,
    counter: u32,
}

const WEYL: u32 = 362_437;

impl Xorwow {
    pub(super) fn new(seed: u64) -> Self {
        let mut mix = SplitMix(seed);
        // The state of zeros, which is the only bad one, has a bit set.
        let words = std::array::from_fn(|word| (mix.next() >> 32) as u32 | u32::from(word == 0));
        Self {
            words,
            counter: mix.next() as u32,
        }
    }

    fn step([x, y, z, w, v]: jump::Bits) -> jump::Bits {
        let t = x ^ (x >> 2);
        [y, z, w, v, (v ^ (v << 4)) ^ (t ^ (t << 1))]
    }

    fn next(&mut self) -> u32 {
        self.words = Self::step(self.words);
        self.counter = self.counter.wrapping_add(WEYL);
        self.counter.wrapping_add(self.words[4])
    }

    fn skip(&mut self, count: u64) {
        self.words = jump::jump(self.words, Self::step, count);
        self.counter = self.counter.wrapping_add(WEYL.wrapping_mul(count as u32));
    }
}

/// Philox4x32-10: the seed is the key, and the position the counter.
#[derive(Clone)]
pub(super) struct Philox {
    key: [u32; 2],
    position: u128,
}

impl Philox {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            key: [seed as u32, (seed >> 32) as u32],
            position: 0,
        }
    }

    fn next(&mut self) -> u32 {
        let block = self.position / 4;
        let counter = std::array::from_fn(|word| (block >> (32 * word)) as u32);
        let number = philox4x32_10(counter, self.key)[(self.position % 4) as usize];
        self.position = self.position.wrapping_add(1);
        number
    }
}

/// MRG32k3a: two recurrences of order three.
#[derive(Clone)]
pub(super) struct Mrg {
    first: [u64; 3],
    second: [u64; 3],
}

const FIRST: Matrix = Matrix {
    rows: [
        [0, 1, 0],
        [0, 0, 1],
        [4_294_967_087 - 810_728, 1_403_580, 0],
    ],
    modulus: 4_294_967_087,
};
const SECOND: Matrix = Matrix {
    rows: [
        [0, 1, 0],
        [0, 0, 1],
        [4_294_944_443 - 1_370_589, 0, 527_612],
    ],
    modulus: 4_294_944_443,
};

impl Mrg {
    pub(super) fn new(seed: u64) -> Self {
        let mut mix = SplitMix(seed);
        Self {
            first: std::array::from_fn(|_| 1 + mix.next() % (FIRST.modulus - 1)),
            second: std::array::from_fn(|_| 1 + mix.next() % (SECOND.modulus - 1)),
        }
    }

    /// Returns a number below the first modulus, which is a little less than 2³².
    fn next(&mut self) -> u32 {
        self.first = FIRST.apply(self.first);
        self.second = SECOND.apply(self.second);
        ((self.first[2] + FIRST.modulus - self.second[2] % FIRST.modulus) % FIRST.modulus) as u32
    }

    fn skip(&mut self, count: u64) {
        self.first = FIRST.jump(self.first, count);
        self.second = SECOND.jump(self.second, count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first number of the published program, whose seeds are all 12345, is 0.127011122046577.
    #[test]
    fn mrg32k3a_is_the_published_generator() {
        let mut mrg = Mrg {
            first: [12345; 3],
            second: [12345; 3],
        };
        let number = f64::from(mrg.next()) / 4_294_967_088.0;
        assert!((number - 0.127_011_122_046_577).abs() < 1e-12, "{number}");
    }

    /// The paper starts with these words and this counter.
    #[test]
    fn xorwow_is_the_published_generator() {
        let words = [123_456_789, 362_436_069, 521_288_629, 88_675_123, 5_783_321];
        let mut xorwow = Xorwow {
            words,
            counter: 6_615_241,
        };
        let t: u32 = 123_456_789 ^ (123_456_789 >> 2);
        let v: u32 = (5_783_321 ^ (5_783_321 << 4)) ^ (t ^ (t << 1));
        assert_eq!(xorwow.next(), v.wrapping_add(6_615_241 + 362_437));
    }

    #[test]
    fn skipping_is_as_drawing() {
        let seed = 0x0123_4567_89ab_cdef;
        for mut algorithm in [
            Algorithm::Xorwow(Xorwow::new(seed)),
            Algorithm::Philox(Philox::new(seed)),
            Algorithm::Mrg(Mrg::new(seed)),
        ] {
            let mut skipped = algorithm.clone();
            (0..1001).for_each(|_| _ = algorithm.next());
            skipped.skip(1001);
            assert_eq!(
                (algorithm.next(), algorithm.next()),
                (skipped.next(), skipped.next())
            );
            // The largest distance takes no longer.
            skipped.skip(u64::MAX);
            skipped.next();
        }
    }
}
