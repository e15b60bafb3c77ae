//! Ring buffers between the warps of a block.

use core::marker::PhantomData;

use bytemuck::AnyBitPattern;

use crate::address::Address;
use crate::block::{Block, BlockCodeOnly};
use crate::intrinsics::intrinsics;
#[cfg(not(target_arch = "nvptx64"))]
use crate::intrinsics::only_on_the_device;
use crate::shared::{Shared, SharedType};
use crate::warp::{Lane, PerWarp, Warp};

intrinsics! {
    barrier_sync = "curium.asm|barrier.cta.sync.aligned $0, $1;|r,r|"(barrier: u32, threads: u32);
    barrier_arrive = "curium.asm|barrier.cta.arrive.aligned $0, $1;|r,r|"(barrier: u32, threads: u32);
}

/// A part of a ring buffer that the producers fill. See [`Block::ring`].
pub struct RingSlot<'s, T> {
    memory: Address<T>,
    /// The index of the warp's first thread among the producers.
    first: usize,
    /// The number of producing threads.
    threads: usize,
    _memory: PhantomData<&'s mut T>,
    _not_sync: BlockCodeOnly,
}

impl<T: AnyBitPattern, const LEN: usize> RingSlot<'_, [T; LEN]> {
    /// Writes the elements of the warp: each lane of the producers writes those whose index is its
    /// own modulo the number of producing threads. `value` receives the index.
    #[inline(always)]
    pub fn fill(self, warp: &Warp, value: impl Fn(&Lane, usize) -> T + Sync) {
        let elements = Address(self.memory.0.cast::<T>());
        let first = self.first;
        let threads = self.threads;
        warp.lanes(|lane| {
            let mut index = first + lane.index();
            while index < LEN {
                // SAFETY: the index is in bounds, only this lane writes the element, and no thread
                // reads it before the barrier of the slot.
                unsafe { elements.write(index, value(lane, index)) };
                index += threads;
            }
        });
    }
}

/// The barrier of full slots, and that of empty ones. Barrier 0 is that of the block.
const fn full(slot: usize) -> u32 {
    1 + slot as u32
}

const fn empty<const N: usize>(slot: usize) -> u32 {
    1 + (N + slot) as u32
}

impl<const X: u32, const Y: u32, const Z: u32> Block<X, Y, Z> {
    /// Divides the warps into producers, which fill a ring buffer, and consumers, which read it,
    /// for `steps` steps (warp specialization). The first `PRODUCERS` warps are the producers.
    ///
    /// In each step, all producers run `produce` on a slot, and all consumers run `consume` on it,
    /// with a value of their own that begins as `initial`. Producers are up to `N` steps ahead. A
    /// named barrier of each slot passes it to the consumers (`barrier.arrive` and `barrier.sync`),
    /// and another one back. There are at most 7 slots, because a block has 16 barriers. A barrier
    /// of the block stands before and after.
    ///
    /// The result is the value of each consumer, and `None` for producers.
    ///
    /// ```
    /// # use curium_kernel::prelude::*;
    /// /// The sum of all elements, in parts of 96: one warp loads them, and three warps add them up.
    /// #[kernel]
    /// pub fn sum(block: Block<128>, mut ring: Shared<[[f32; 96]; 4]>, x: &[f32], total: &[Atomic<f32>]) {
    ///     let sums = block.ring::<1, _, 4, _>(
    ///         &mut ring,
    ///         x.len().div_ceil(96),
    ///         |warp, step, slot| slot.fill(warp, |_, i| x.get(step * 96 + i).copied().unwrap_or(0.0)),
    ///         |_| Lanes::new(0.0_f32),
    ///         |warp, _, part, sum| {
    ///             let first = 32 * (warp.index() - 1);
    ///             warp.lanes_with(sum, |lane, sum| *sum += part[first + lane.index()]);
    ///         },
    ///     );
    ///     block.warps_with(&sums, |warp, sums| {
    ///         if let Some(sums) = sums {
    ///             let sum = warp.sum(sums);
    ///             warp.lanes(|lane| {
    ///                 if lane.index() == 0 {
    ///                     total[0].fetch_add(lane, sum, Relaxed);
    ///                 }
    ///             });
    ///         }
    ///     });
    /// }
    /// ```
    #[doc(alias = "barrier.arrive")]
    #[doc(alias = "warp specialization")]
    #[inline(always)]
    pub fn ring<const PRODUCERS: usize, T: SharedType, const N: usize, R>(
        &self,
        slots: &mut Shared<[T; N]>,
        steps: usize,
        produce: impl for<'s> Fn(&Warp, usize, RingSlot<'s, T>) + Sync,
        initial: impl Fn(&Warp) -> R + Sync,
        consume: impl for<'s> Fn(&Warp, usize, &'s T, &mut R) + Sync,
    ) -> PerWarp<Option<R>>
    where
        [T; N]: SharedType,
    {
        const {
            assert!(
                PRODUCERS > 0 && PRODUCERS < Self::WARPS,
                "a ring buffer has at least one warp of producers and one of consumers"
            );
            assert!(N > 0 && N <= 7, "a ring buffer has 1 to 7 slots");
        };
        let threads = Self::THREADS as u32;
        let memory = Address(slots.as_ptr().cast::<T>());
        // The owners of elements may have written them.
        self.barrier();
        let result = self.warps(|warp| {
            if warp.index() < PRODUCERS {
                for step in 0..steps {
                    let slot = step % N;
                    if step >= N {
                        // SAFETY: all producers wait here, and all consumers arrive after step
                        // `step - N`.
                        unsafe { barrier_sync(empty::<N>(slot), threads) };
                    }
                    produce(
                        warp,
                        step,
                        RingSlot {
                            // SAFETY: the slot exists.
                            memory: unsafe { memory.add(slot) },
                            first: warp.index() * 32,
                            threads: PRODUCERS * 32,
                            _memory: PhantomData,
                            _not_sync: BlockCodeOnly::NEW,
                        },
                    );
                    // SAFETY: all producers arrive here, and all consumers wait in this step.
                    unsafe { barrier_arrive(full(slot), threads) };
                }
                return None;
            }
            let mut value = initial(warp);
            for step in 0..steps {
                let slot = step % N;
                // SAFETY: all consumers wait here, and all producers arrive in this step.
                unsafe { barrier_sync(full(slot), threads) };
                // SAFETY: the slot exists.
                let view = unsafe { memory.add(slot) }.0;
                // SAFETY: any bytes are a `T`, and producers write the slot after all consumers
                // have arrived below.
                consume(warp, step, unsafe { &*view }, &mut value);
                if steps - step > N {
                    // SAFETY: all consumers arrive here, and all producers wait in step `step + N`.
                    unsafe { barrier_arrive(empty::<N>(slot), threads) };
                }
            }
            Some(value)
        });
        self.barrier();
        result
    }
}
