//! Sorting and selection.

use core::array;

use curium_kernel::prelude::*;

/// The number of keys in a part of the radix sort.
pub const RADIX_PART: usize = 4096;

/// The number of values of a digit.
pub const RADIX: usize = 256;

/// The first step of a pass of a radix sort by eight bits from `shift` on: the number of keys of
/// each part of 4096 with each digit.
///
/// `counts` has an element for each digit and part, with the parts of a digit next to each other.
/// Their exclusive prefix sums are the positions for [`radix_scatter`](fn@radix_scatter).
#[kernel]
pub fn radix_count(
    block: Block<256>,
    mut bins: Counters<RADIX>,
    keys: &[u32],
    shift: u32,
    counts: &[Atomic<u32>],
) {
    let part = block.index();
    let parts = block.grid()[0];
    let keys = part_of(keys, part);
    bins.fill(&block, |_, _| 0);
    bins.synced(&block, |bins| {
        block.threads(|t| match keys.first_chunk::<RADIX_PART>() {
            Some(keys) => {
                let own: [u32; 16] = array::from_fn(|j| keys[256 * j + t.index_in_block()]);
                for key in own {
                    bins[digit(key, shift)].fetch_add(t, 1, Relaxed);
                }
            }
            None => {
                for i in t.block_stride(keys.len()) {
                    bins[digit(keys[i], shift)].fetch_add(t, 1, Relaxed);
                }
            }
        });
    });
    block.threads_with(&mut bins, |t, bins| {
        for (i, bin) in bins {
            counts[i * parts + part].store(t, *bin.get_mut(), Relaxed);
        }
    });
}

/// Returns the keys of a part, of which the last can be shorter.
fn part_of(keys: &[u32], part: usize) -> &[u32] {
    let start = (part * RADIX_PART).min(keys.len());
    let end = (start + RADIX_PART).min(keys.len());
    &keys[start..end]
}

fn digit(key: u32, shift: u32) -> usize {
    (key >> (shift & 31)) as usize % RADIX
}

/// The second step of a pass of a radix sort: moves each key to its position, in the order of
/// digits and, within a digit, of the input.
///
/// A warp ranks 512 adjacent keys in 16 rounds: the lanes with the same digit find each other by
/// eight votes, and the first of them advances the warp's counter of the digit. The block then
/// sorts its part in shared memory, so that keys with one digit are written together. `positions`
/// are the exclusive prefix sums of the counts of [`radix_count`](fn@radix_count). Positions are
/// data, so the compiler cannot see that they differ: the output is atomic, with relaxed stores.
#[kernel]
pub fn radix_scatter(
    block: Block<256>,
    mut counters: Shared<[Atomic<u32, BlockScope>; 2048]>,
    mut first_of_digit: Shared<[u32; RADIX]>,
    mut part_sorted: Shared<[Atomic<u32, BlockScope>; RADIX_PART]>,
    mut scratch: Scratch<u32>,
    keys: &[u32],
    shift: u32,
    positions: &[u32],
    sorted: &[Atomic<u32>],
) {
    let part = block.index();
    let parts = block.grid()[0];
    let keys = part_of(keys, part);
    counters.fill(&block, |_, _| 0);
    // The keys of each thread, and their ranks among the keys of its warp with the same digit.
    let ranked: Registers<([u32; 16], [u32; 16])> = counters
        .synced(&block, |counters| {
            block.warps(|warp| {
                let first = 512 * warp.index();
                let counters: &[Atomic<u32, BlockScope>; RADIX] =
                    &counters.as_chunks().0[warp.index()];
                // Missing keys are ranked behind the keys of the last digit.
                let own: Lanes<[u32; 16]> = warp.lanes(|lane| {
                    let first = first + lane.index();
                    match keys.first_chunk::<RADIX_PART>() {
                        Some(keys) => array::from_fn(|j| keys[first + 32 * j]),
                        None => array::from_fn(|j| {
                            keys.get(first + 32 * j).copied().unwrap_or(u32::MAX)
                        }),
                    }
                });
                let mut ranked = warp.lanes_with(&own, |_, own| (*own, [0; 16]));
                unroll!(j in 0..16 {
                    let digits = warp.lanes_with(&own, |_, own| digit(own[j], shift));
                    let rank = rank(warp, &digits, counters);
                    warp.lanes_with((&mut ranked, &rank), |_, (ranked, rank)| {
                        ranked.1[j] = *rank;
                    });
                });
                ranked
            })
        })
        .into_registers();
    // Each thread sums the counters of a digit. A counter becomes the position of the warp's first
    // key with the digit, in the part.
    let totals = block.threads_with(&mut counters, |_, counters| {
        let mut total = 0;
        let mut counters = counters.into_iter();
        for _ in 0..8 {
            if let Some((_, counter)) = counters.next() {
                let counter = counter.get_mut();
                let count = *counter;
                *counter = total;
                total += count;
            }
        }
        total
    });
    let (before, _) = block.exclusive_scan(&totals, 0, &mut scratch, |a, b| a + b);
    block.threads_with(
        (&mut counters, &mut first_of_digit, &before),
        |_, (counters, first_of_digit, before)| {
            let mut counters = counters.into_iter();
            for _ in 0..8 {
                if let Some((_, counter)) = counters.next() {
                    *counter.get_mut() += *before;
                }
            }
            if let Some((digit, first)) = first_of_digit.into_iter().next() {
                *first = positions[digit * parts + part].wrapping_sub(*before);
            }
        },
    );
    (&mut counters, &mut first_of_digit, &mut part_sorted).synced(
        &block,
        |(counters, first_of_digit, part_sorted)| {
            block.threads_with(&ranked, |t, (own, ranks)| {
                let counters: &[Atomic<u32, BlockScope>; RADIX] =
                    &counters.as_chunks().0[t.index_in_block() / 32];
                for (key, rank) in own.iter().zip(ranks) {
                    let first = counters[digit(*key, shift)].load(t, Relaxed);
                    part_sorted[(first + rank) as usize].store(t, *key, Relaxed);
                }
            });
            block.sync();
            block.threads(|t| {
                for j in 0..16 {
                    let i = 256 * j + t.index_in_block();
                    if i < keys.len() {
                        let key = part_sorted[i].load(t, Relaxed);
                        let first = first_of_digit[digit(key, shift)];
                        let position = first.wrapping_add(i as u32) as usize;
                        sorted[position].store(t, key, Relaxed);
                    }
                }
            });
        },
    );
}

/// Returns the rank of each lane's digit among the equal digits of the warp, after those that
/// `counters` has counted, and counts them.
fn rank(
    warp: &Warp,
    digits: &Lanes<usize>,
    counters: &[Atomic<u32, BlockScope>; RADIX],
) -> Lanes<u32> {
    // The lanes with the same digit.
    let mut equal = Lanes::new(!0_u32);
    for bit in 0..8 {
        let is_set = warp.lanes_with(digits, |_, digit| digit >> bit & 1 == 1);
        let lanes = warp.ballot(&is_set);
        warp.lanes_with((&mut equal, &is_set), |_, (equal, is_set)| {
            *equal &= if *is_set { lanes } else { !lanes };
        });
    }
    let before = warp.lanes_with((digits, &equal), |lane, (digit, equal)| {
        if equal.trailing_zeros() as usize == lane.index() {
            counters[digit % RADIX].fetch_add(lane, equal.count_ones(), Relaxed)
        } else {
            0
        }
    });
    let first = warp.lanes_with(&equal, |_, equal| equal.trailing_zeros() as usize);
    let before = warp.shuffle(&before, &first);
    warp.lanes_with((&before, &equal), |lane, (before, equal)| {
        before + (equal & ((1 << lane.index()) - 1)).count_ones()
    })
}

/// The number of elements that [`top_k`](fn@top_k) selects.
pub const TOP: usize = 32;

/// The 32 largest numbers of each row and their columns, in descending order; of equal numbers,
/// those of lower columns.
///
/// A warp selects from a row (after WarpSelect: Johnson, Douze and Jégou, 2017). It holds the 32
/// largest so far, one in each lane. Numbers that are larger than the least of them wait in shared
/// memory; when there are 32, the warp sorts them and merges both lists. Missing numbers of a short
/// row are `f32::NEG_INFINITY` in the column `u32::MAX`.
#[kernel]
pub fn top_k(
    block: Block<256>,
    mut waiting: Shared<[Atomic<u64, BlockScope>; 512]>,
    x: Matrix<f32>,
    mut values: PerWarpChunk<f32, TOP>,
    mut columns: PerWarpChunk<u32, TOP>,
) {
    let first_row = block.index() * 8;
    waiting.synced(&block, |waiting| {
        block.warps_with(
            (&mut values, &mut columns),
            |warp, (mut values, mut columns)| {
                let Some(row) = x.row(first_row + warp.index()) else {
                    return;
                };
                let waiting: &[Atomic<u64, BlockScope>; 64] = &waiting.as_chunks().0[warp.index()];
                let selected = select(warp, row, waiting);
                warp.lanes_with(
                    (&mut values, &mut columns, &selected),
                    |_, (values, columns, selected)| {
                        if let Some(value) = values.first() {
                            *value = value_of(*selected);
                        }
                        if let Some(column) = columns.first() {
                            *column = !(*selected as u32);
                        }
                    },
                );
            },
        );
    });
}

/// A number and its column, as an integer whose order is that of the selection.
fn entry(value: f32, column: usize) -> u64 {
    let bits = value.to_bits();
    let ordered = if bits >> 31 == 1 {
        !bits
    } else {
        bits | 1 << 31
    };
    u64::from(ordered) << 32 | u64::from(!(column as u32))
}

/// The entry below all others: `f32::NEG_INFINITY` in the column `u32::MAX`.
const NOTHING: u64 = (!f32::NEG_INFINITY.to_bits() as u64) << 32;

fn value_of(entry: u64) -> f32 {
    let ordered = (entry >> 32) as u32;
    f32::from_bits(if ordered >> 31 == 1 {
        ordered & !(1 << 31)
    } else {
        !ordered
    })
}

/// Returns the largest entries of a row, in descending order.
fn select(warp: &Warp, row: &[f32], waiting: &[Atomic<u64, BlockScope>; 64]) -> Lanes<u64> {
    let mut selected = Lanes::new(NOTHING);
    let mut least = NOTHING;
    let mut count = 0;
    let mut first = 0;
    while first < row.len() {
        // Four loads at a time. Most numbers are less than all that were selected.
        let values: Lanes<[f32; 4]> = warp.lanes(|lane| match row[first..].first_chunk::<128>() {
            Some(row) => array::from_fn(|j| row[32 * j + lane.index()]),
            None => array::from_fn(|j| {
                row.get(first + 32 * j + lane.index())
                    .copied()
                    .unwrap_or(f32::NEG_INFINITY)
            }),
        });
        let bound = value_of(least);
        let is_any_larger = warp.lanes_with(&values, |_, values| {
            !values.iter().all(|value| *value < bound)
        });
        if warp.any(&is_any_larger) {
            unroll!(j in 0..4 {
                let candidates = warp.lanes_with(&values, |lane, values| {
                    let column = first + 32 * j + lane.index();
                    if column < row.len() {
                        entry(values[j], column)
                    } else {
                        NOTHING
                    }
                });
                let is_larger = warp.lanes_with(&candidates, |_, candidate| *candidate > least);
                let larger = warp.ballot(&is_larger);
                warp.lanes_with((&candidates, &is_larger), |lane, (candidate, is_larger)| {
                    if *is_larger {
                        let rank = (larger & ((1 << lane.index()) - 1)).count_ones() as usize;
                        waiting[(count + rank) % 64].store(lane, *candidate, Relaxed);
                    }
                });
                count += larger.count_ones() as usize;
                if count >= 32 {
                    warp.sync();
                    count -= 32;
                    let batch = warp.lanes(|lane| {
                        waiting[(count + lane.index()) % 64].load(lane, Relaxed)
                    });
                    selected = merge(warp, &selected, &batch);
                    least = warp.broadcast(&selected, 31);
                    warp.sync();
                }
            });
        }
        first += 128;
    }
    warp.sync();
    let batch = warp.lanes(|lane| {
        if lane.index() < count {
            waiting[lane.index()].load(lane, Relaxed)
        } else {
            NOTHING
        }
    });
    merge(warp, &selected, &batch)
}

/// Returns the 32 largest of 32 entries in descending order and 32 others, in descending order.
///
/// Not inlined, because the compiler would hold the directions of its steps in registers.
#[inline(never)]
fn merge(warp: &Warp, sorted: &Lanes<u64>, batch: &Lanes<u64>) -> Lanes<u64> {
    // Sorts the batch in ascending order (Batcher's bitonic network).
    let mut batch = *batch;
    let mut size = 2;
    while size <= 32 {
        let mut stride = size / 2;
        while stride > 0 {
            batch = exchange(warp, &batch, stride, |lane| lane & size != 0);
            stride /= 2;
        }
        size *= 2;
    }
    // The larger of each pair is one of the 32 largest. The result falls and rises, so five steps
    // sort it.
    let mut result = warp.lanes_with((sorted, &batch), |_, (a, b)| *a.max(b));
    let mut stride = 16;
    while stride > 0 {
        result = exchange(warp, &result, stride, |_| true);
        stride /= 2;
    }
    result
}

/// Orders each pair of lanes at a distance of `stride`: descending if the condition holds for the
/// lower lane.
fn exchange(
    warp: &Warp,
    entries: &Lanes<u64>,
    stride: usize,
    is_descending: impl Fn(usize) -> bool + Sync,
) -> Lanes<u64> {
    let others = warp.shuffle_xor(entries, stride);
    warp.lanes_with((entries, &others), |lane, (own, other)| {
        let is_lower = lane.index() & stride == 0;
        if is_lower == is_descending(lane.index()) {
            *own.max(other)
        } else {
            *own.min(other)
        }
    })
}
