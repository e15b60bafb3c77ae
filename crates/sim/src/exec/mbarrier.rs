//! The barrier object in shared memory: arrivals and bytes that a phase waits for.
//!
//! PTX keeps the layout of its 64 bits to itself; this is ours: arrivals expected in each phase (bits 0-19), arrivals
//! pending in this one (20-39), bytes pending, signed (40-62), and the parity of the phase (63).

const COUNT_BITS: u32 = 20;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;
const BYTES_BITS: u32 = 23;
const BYTES_MASK: u64 = (1 << BYTES_BITS) - 1;

/// The state of a barrier object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mbarrier {
    expected: u64,
    pending: u64,
    bytes: u64,
    parity: bool,
}

impl Mbarrier {
    /// Creates a barrier whose phases end when `count` threads have arrived.
    pub(crate) fn new(count: u32) -> Self {
        let count = u64::from(count) & COUNT_MASK;
        Self { expected: count, pending: count, bytes: 0, parity: false }
    }

    /// Returns what the object's bits say.
    pub(crate) fn from_bits(bits: u64) -> Self {
        Self {
            expected: bits & COUNT_MASK,
            pending: bits >> COUNT_BITS & COUNT_MASK,
            bytes: bits >> (2 * COUNT_BITS) & BYTES_MASK,
            parity: bits >> 63 == 1,
        }
    }

    /// Returns the object's bits.
    pub(crate) fn bits(self) -> u64 {
        self.expected
            | self.pending << COUNT_BITS
            | (self.bytes & BYTES_MASK) << (2 * COUNT_BITS)
            | u64::from(self.parity) << 63
    }

    /// After `count` arrivals.
    pub(crate) fn arrive(mut self, count: u32) -> Self {
        self.pending = self.pending.wrapping_sub(u64::from(count)) & COUNT_MASK;
        self.settled()
    }

    /// After `count` arrivals of threads that will not come again.
    pub(crate) fn drop_out(mut self, count: u32) -> Self {
        self.expected = self.expected.wrapping_sub(u64::from(count)) & COUNT_MASK;
        self.arrive(count)
    }

    /// With that many more bytes to wait for.
    pub(crate) fn expect(mut self, bytes: u32) -> Self {
        self.bytes = self.bytes.wrapping_add(u64::from(bytes)) & BYTES_MASK;
        self
    }

    /// After that many bytes have come.
    pub(crate) fn complete(mut self, bytes: u32) -> Self {
        self.bytes = self.bytes.wrapping_sub(u64::from(bytes)) & BYTES_MASK;
        self.settled()
    }

    /// Arrivals that the phase waits for.
    pub(crate) fn pending(self) -> u32 {
        self.pending as u32
    }

    /// Returns the parity of the phase that is on.
    pub(crate) fn parity(self) -> bool {
        self.parity
    }

    fn settled(mut self) -> Self {
        if self.pending == 0 && self.bytes == 0 {
            self.parity = !self.parity;
            self.pending = self.expected;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phase_ends_when_arrivals_and_bytes_are_complete() {
        let barrier = Mbarrier::new(2).expect(64).arrive(2);
        assert_eq!((barrier.parity(), barrier.pending()), (false, 0));
        let barrier = barrier.complete(16).complete(48);
        assert_eq!((barrier.parity(), barrier.pending()), (true, 2));
    }

    #[test]
    fn bytes_may_come_before_they_are_expected() {
        let barrier = Mbarrier::new(1).complete(16);
        assert!(!barrier.parity());
        assert!(barrier.expect(16).arrive(1).parity());
    }

    #[test]
    fn dropped_threads_are_not_expected_in_the_next_phase() {
        let barrier = Mbarrier::new(3).drop_out(1).arrive(2);
        assert_eq!((barrier.parity(), barrier.pending()), (true, 2));
    }

    #[test]
    fn state_survives_its_bits() {
        let barrier = Mbarrier::new(1000).complete(5).arrive(7);
        assert_eq!(Mbarrier::from_bits(barrier.bits()), barrier);
    }
}
