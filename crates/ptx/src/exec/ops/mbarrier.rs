//! The mbarrier object in shared memory: pending arrivals and bytes of a phase.
//!
//! PTX leaves the layout of its 64 bits opaque. Here bits 0-19 hold the expected arrivals of each
//! phase, bits 20-39 the pending arrivals of the current phase, bits 40-62 the pending bytes,
//! signed, and bit 63 the parity of the phase.

const COUNT_BITS: u32 = 20;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;
const BYTES_BITS: u32 = 23;
const BYTES_MASK: u64 = (1 << BYTES_BITS) - 1;

/// The state of an mbarrier object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mbarrier {
    expected: u64,
    pending: u64,
    bytes: u64,
    parity: bool,
}

impl Mbarrier {
    /// Creates an object whose phases complete after `count` arrivals.
    pub(crate) fn new(count: u32) -> Self {
        let count = u64::from(count) & COUNT_MASK;
        Self {
            expected: count,
            pending: count,
            bytes: 0,
            parity: false,
        }
    }

    /// Decodes the object's bits.
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

    /// Returns the state after `count` arrivals.
    pub(crate) fn arrive(mut self, count: u32) -> Self {
        self.pending = self.pending.wrapping_sub(u64::from(count)) & COUNT_MASK;
        self.settled()
    }

    /// Returns the state after `count` arrivals, which the later phases do not expect.
    pub(crate) fn drop_out(mut self, count: u32) -> Self {
        self.expected = self.expected.wrapping_sub(u64::from(count)) & COUNT_MASK;
        self.arrive(count)
    }

    /// Returns the state with `bytes` more pending bytes.
    pub(crate) fn expect(mut self, bytes: u32) -> Self {
        self.bytes = self.bytes.wrapping_add(u64::from(bytes)) & BYTES_MASK;
        self
    }

    /// Returns the state after `bytes` bytes have arrived.
    pub(crate) fn complete(mut self, bytes: u32) -> Self {
        self.bytes = self.bytes.wrapping_sub(u64::from(bytes)) & BYTES_MASK;
        self.settled()
    }

    /// Returns the number of pending arrivals.
    pub(crate) fn pending(self) -> u32 {
        self.pending as u32
    }

    /// Returns the parity of the current phase.
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
    fn bytes_may_complete_before_they_are_expected() {
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
