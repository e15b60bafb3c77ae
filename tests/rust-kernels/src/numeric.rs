//! Sums, prefix sums, random numbers and small matrices.

use core::array;

use curium_kernel::Philox;
use curium_kernel::prelude::*;

/// The sum of all elements: Σ pairs + Σ rest.
///
/// Each block sums parts of 1024 pairs at distances of the grid and stores its sum; the block that
/// finishes last adds the sums of the blocks, in an order that does not depend on the order in
/// which they finish. `finished` is zero before the launch and after it; `sums` has an element for
/// each block.
#[kernel]
pub fn sum_f64(
    block: Block<256>,
    mut scratch: Scratch<f64>,
    pairs: &[F64x2],
    rest: &[f64],
    sums: &[Atomic<f64>],
    finished: &[Atomic<u32>],
    total: &[Atomic<f64>],
) {
    let blocks = block.grid()[0];
    let index = block.index();
    let (parts, last_part) = pairs.as_chunks::<1024>();
    let own = block.threads(|t| {
        let mut sums = [F64x2::default(); 4];
        let mut i = index;
        while let Some(part) = parts.get(i) {
            for j in 0..4 {
                sums[j] += part[t.index_in_block() + 256 * j];
            }
            i += blocks;
        }
        for i in t.grid_stride(last_part.len()) {
            sums[0] += last_part[i];
        }
        for i in t.grid_stride(rest.len()) {
            sums[0].x += rest[i];
        }
        let sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
        sum.x + sum.y
    });
    let sum = block.sum(&own, &mut scratch);
    let is_last = block.threads(|t| {
        if t.index_in_block() > 0 {
            return false;
        }
        sums[index].store(t, sum, Relaxed);
        // Acquires the sums of the blocks that finished earlier.
        finished[0].fetch_add(t, 1, AcqRel) as usize == blocks - 1
    });
    if !block.any(&is_last) {
        return;
    }
    let own = block.threads(|t| {
        let mut sum = 0.0;
        for i in t.block_stride(blocks) {
            sum += sums[i].load(t, Relaxed);
        }
        sum
    });
    let sum = block.sum(&own, &mut scratch);
    block.threads(|t| {
        if t.index_in_block() == 0 {
            total[0].store(t, sum, Relaxed);
            finished[0].store(t, 0, Relaxed);
        }
    });
}

/// The number of vectors in a part of [`prefix_sum`](fn@prefix_sum).
pub const PREFIX_SUM_PART: usize = 1024;

/// In the high word of a state: the low word is the sum of the part.
const SUM_OF_PART: u64 = 1 << 32;
/// In the high word of a state: the low word is the sum of all elements up to the end of the part.
const SUM_UP_TO_PART: u64 = 2 << 32;

/// The sum of all elements before each: y[i] = Σ x[..i].
///
/// A block scans a part of 4096 elements, in one launch (decoupled look-back: Merrill and Garland,
/// 2016). It publishes the sum of the part in `states`, adds the sums of earlier parts up to one
/// whose prefix is known, and publishes its own prefix. `states` has a zero for each part. Like the
/// best kernels in CUDA C++ it relies on blocks that start in the order of their indices; otherwise
/// it would hang.
#[kernel]
pub fn prefix_sum(
    block: Block<256>,
    mut sums: Shared<[Atomic<u32, BlockScope>; 33]>,
    x: &[U32x4],
    states: &[Atomic<u64>],
    mut y: PerBlockChunk<U32x4, PREFIX_SUM_PART>,
) {
    let part = block.index();
    let start = part * PREFIX_SUM_PART;
    let mut y = y.chunk(&block);
    let vectors: Registers<[U32x4; 4]> = match x.as_chunks::<PREFIX_SUM_PART>().0.get(part) {
        Some(x) => block.threads(|t| array::from_fn(|r| x[256 * r + t.index_in_block()])),
        None => block.threads(|t| {
            array::from_fn(|r| {
                x.get(start + 256 * r + t.index_in_block())
                    .copied()
                    .unwrap_or_default()
            })
        }),
    };
    sums.synced(&block, |sums| {
        // The sums of the vectors of a round before each, in its warp. The order of rounds and
        // warps is that of the elements.
        let before_in_warp = block.warps_with(&vectors, |warp, vectors| {
            let index = warp.index();
            let inclusive: [Lanes<[u32; 2]>; 4] = array::from_fn(|r| {
                let own = warp.lanes_with(vectors, |_, vectors| sum_of_vector(vectors[r]));
                let inclusive = warp.inclusive_scan(&own, u32::wrapping_add);
                warp.lanes_with((&own, &inclusive), |_, (own, inclusive)| [*own, *inclusive])
            });
            let [a, b, c, d] = &inclusive;
            warp.lanes_with((a, b, c, d), |lane, (a, b, c, d)| {
                let rounds = [*a, *b, *c, *d];
                if lane.index() == 31 {
                    for (r, [_, inclusive]) in rounds.into_iter().enumerate() {
                        sums[8 * r + index].store(lane, inclusive, Relaxed);
                    }
                }
                rounds.map(|[own, inclusive]| inclusive.wrapping_sub(own))
            })
        });
        block.sync();
        let before_warp = block.warps(|warp| {
            let of_warps = warp.lanes(|lane| sums[lane.index()].load(lane, Relaxed));
            let inclusive = warp.inclusive_scan(&of_warps, u32::wrapping_add);
            if warp.index() == 0 {
                let sum = warp.broadcast(&inclusive, 31);
                let before = look_back(warp, states, part, sum);
                warp.lanes(|lane| {
                    if lane.index() == 0 {
                        sums[32].store(lane, before, Relaxed);
                    }
                });
            }
            let exclusive = warp.lanes_with((&of_warps, &inclusive), |_, (own, inclusive)| {
                inclusive.wrapping_sub(*own)
            });
            let rounds: [u32; 4] =
                array::from_fn(|r| warp.broadcast(&exclusive, 8 * r + warp.index()));
            warp.lanes(|_| rounds)
        });
        block.sync();
        let before_in_warp = before_in_warp.into_registers();
        let before_warp = before_warp.into_registers();
        block.threads_with(
            (&mut y, &vectors, &before_in_warp, &before_warp),
            |t, (y, vectors, before_in_warp, before_warp)| {
                let before_part = sums[32].load(t, Relaxed);
                let mut y = y.into_iter();
                for r in 0..4 {
                    if let Some((_, y)) = y.next() {
                        let before = before_part
                            .wrapping_add(before_warp[r])
                            .wrapping_add(before_in_warp[r]);
                        *y = exclusive_sums(vectors[r], before);
                    }
                }
            },
        );
    });
}

fn sum_of_vector(v: U32x4) -> u32 {
    v.x.wrapping_add(v.y).wrapping_add(v.z.wrapping_add(v.w))
}

fn exclusive_sums(v: U32x4, before: u32) -> U32x4 {
    let y = before.wrapping_add(v.x);
    let z = y.wrapping_add(v.y);
    U32x4::new(before, y, z, z.wrapping_add(v.z))
}

/// Publishes the sum of a part, and returns the sum of all elements before it.
fn look_back(warp: &Warp, states: &[Atomic<u64>], part: usize, sum: u32) -> u32 {
    let publish = |state: u64| {
        warp.lanes(|lane| {
            if lane.index() == 0 {
                states[part].store(lane, state, Relaxed);
            }
        });
    };
    if part == 0 {
        publish(SUM_UP_TO_PART | u64::from(sum));
        return 0;
    }
    publish(SUM_OF_PART | u64::from(sum));
    let mut before = 0_u32;
    let mut end = part;
    loop {
        // Lane l waits for the part `end - 1 - l`.
        let window = warp.lanes(|lane| {
            let Some(part) = end.checked_sub(1 + lane.index()) else {
                return SUM_UP_TO_PART;
            };
            let state = &states[part];
            loop {
                let state = state.load(lane, Relaxed);
                if state >= SUM_OF_PART {
                    return state;
                }
            }
        });
        let is_prefix = warp.lanes_with(&window, |_, state| *state >= SUM_UP_TO_PART);
        let prefixes = warp.ballot(&is_prefix);
        let nearest = prefixes.trailing_zeros() as usize;
        let values = warp.lanes_with(&window, |lane, state| {
            if lane.index() <= nearest {
                *state as u32
            } else {
                0
            }
        });
        before = before.wrapping_add(warp.reduce(&values, u32::wrapping_add));
        if prefixes != 0 {
            break;
        }
        end -= 32;
    }
    publish(SUM_UP_TO_PART | u64::from(before.wrapping_add(sum)));
    before
}

/// Returns the numbers of Philox4x32-10 for a vector: the counter is its index, and the key the
/// seed.
fn numbers(seed: u64, index: usize) -> [u32; 4] {
    let index = index as u64;
    let counter = [index as u32, (index >> 32) as u32, 0, 0];
    Philox::generate([seed as u32, (seed >> 32) as u32], counter)
}

/// Uniform random numbers from 0 to 1, without 1: multiples of 2⁻²⁴ by Philox4x32-10 (Salmon,
/// Moraes, Dror and Shaw, 2011).
#[kernel]
pub fn random_uniform(t: Thread, seed: u64, mut y: PerThread<F32x4>) {
    for (i, y) in y.iter_mut(&t) {
        let [x, y_, z, w] = numbers(seed, i).map(|n| (n >> 8) as f32 * (1.0 / 16_777_216.0));
        *y = F32x4::new(x, y_, z, w);
    }
}

/// Random numbers of the normal distribution: √(-2 ln u) · (cos 2πv, sin 2πv), for two uniform
/// numbers u > 0 and v (Box and Muller, 1958).
#[kernel]
pub fn random_normal(t: Thread, seed: u64, mut y: PerThread<F32x4>) {
    for (i, y) in y.iter_mut(&t) {
        let [a, b, c, d] = numbers(seed, i);
        let first = box_muller(a, b);
        let second = box_muller(c, d);
        *y = F32x4::new(first.x, first.y, second.x, second.y);
    }
}

fn box_muller(a: u32, b: u32) -> F32x2 {
    let u = ((a >> 8) + 1) as f32 * (1.0 / 16_777_216.0);
    let angle = (b >> 8) as f32 * (core::f32::consts::TAU / 16_777_216.0);
    let radius = Float::sqrt(-2.0 * u.fast_ln());
    F32x2::new(radius * angle.fast_cos(), radius * angle.fast_sin())
}

/// c = a * b, for many matrices of 16 × 16 elements, stored one after another.
///
/// Each warp multiplies a pair of matrices in shared memory. A lane computes four columns of two
/// rows: Σₖ a[r][k] · b[k][c].
#[kernel]
pub fn small_matmul(
    block: Block<256>,
    mut a_tile: Shared<[F32x4; 512]>,
    mut b_tile: Shared<[F32x4; 512]>,
    a: &[F32x4],
    b: &[F32x4],
    mut c: PerWarpChunk<F32x4, 64>,
) {
    let first = block.index() * 512;
    a_tile.fill(&block, |_, i| a.get(first + i).copied().unwrap_or_default());
    b_tile.fill(&block, |_, i| b.get(first + i).copied().unwrap_or_default());
    (&mut a_tile, &mut b_tile).synced(&block, |(a, b)| {
        block.warps_with(&mut c, |warp, mut c| {
            let index = warp.index();
            let sums: Lanes<[F32x4; 2]> = warp.lanes(|lane| {
                let a: &[F32x4; 64] = &a.as_chunks().0[index];
                let b: &[F32x4; 64] = &b.as_chunks().0[index];
                let row = lane.index() / 4;
                let column = lane.index() % 4;
                let mut sums = [F32x4::default(); 2];
                for k in 0..4 {
                    let b: [F32x4; 4] = array::from_fn(|i| b[4 * (4 * k + i) + column]);
                    for (half, sum) in sums.iter_mut().enumerate() {
                        let a = a[4 * (row + 8 * half) + k];
                        *sum = add_product(a.x, b[0], *sum);
                        *sum = add_product(a.y, b[1], *sum);
                        *sum = add_product(a.z, b[2], *sum);
                        *sum = add_product(a.w, b[3], *sum);
                    }
                }
                sums
            });
            warp.lanes_with((&mut c, &sums), |_, (c, sums)| {
                let mut c = c.into_iter();
                for sum in sums {
                    if let Some((_, c)) = c.next() {
                        *c = *sum;
                    }
                }
            });
        });
    });
}

/// Returns `a * b + sum`.
fn add_product(a: f32, b: F32x4, sum: F32x4) -> F32x4 {
    F32x4::new(
        a.mul_add(b.x, sum.x),
        a.mul_add(b.y, sum.y),
        a.mul_add(b.z, sum.z),
        a.mul_add(b.w, sum.w),
    )
}
