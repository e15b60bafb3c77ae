//! Attention on tensor cores.

use curium_kernel::pack_bf16;
use curium_kernel::prelude::*;

/// The number of pairs of bfloat16 in a row of 64 dimensions.
const PAIRS: usize = 32;

/// out = softmax(scale * q * kᵀ) * v, for 64 dimensions in pairs of bfloat16. Each warp computes 16
/// rows.
#[kernel]
pub fn attention(
    block: Block<128>,
    q: &[u32],
    k: &[u32],
    v: &[u16],
    scale: f32,
    mut out: PerWarpTile<f32, 16, 64>,
) {
    block.warps_with(&mut out, |warp, out| {
        let first_row = out.first_row();
        let q: [Lanes<[u32; 4]>; 4] = core::array::from_fn(|step| {
            warp.lanes(|lane| {
                let group = lane.index() / 4;
                let pair = lane.index() % 4;
                core::array::from_fn(|i| {
                    let row = first_row + group + 8 * (i % 2);
                    q.get(row * PAIRS + 8 * step + pair + 4 * (i / 2))
                        .copied()
                        .unwrap_or(0)
                })
            })
        });
        let mut sums: [Lanes<[f32; 4]>; 8] = core::array::from_fn(|_| Lanes::new([0.0; 4]));
        let mut max = Lanes::new([f32::NEG_INFINITY; 2]);
        let mut total = Lanes::new([0.0_f32; 2]);
        for key in (0..k.len() / PAIRS).step_by(16) {
            let k = &k[key * PAIRS..][..16 * PAIRS];
            let v = &v[key * 64..][..16 * 64];
            let mut scores: [Lanes<[f32; 4]>; 2] = core::array::from_fn(|_| Lanes::new([0.0; 4]));
            for (n, scores) in scores.iter_mut().enumerate() {
                for (step, q) in q.iter().enumerate() {
                    let b = warp.lanes(|lane| {
                        let row = 8 * n + lane.index() / 4;
                        core::array::from_fn(|i| {
                            k[row * PAIRS + 8 * step + lane.index() % 4 + 4 * i]
                        })
                    });
                    warp.mma_bf16(q, &b, scores);
                }
            }
            let [first, second] = &mut scores;
            // The new maximum of each row, and the factor for what was summed before.
            let row_max = warp.lanes_with((&*first, &*second), |_, (a, b)| {
                [
                    a[0].max(a[1]).max(b[0]).max(b[1]) * scale,
                    a[2].max(a[3]).max(b[2]).max(b[3]) * scale,
                ]
            });
            let row_max = warp.reduce_fragment_rows(&row_max, f32::max);
            let new_max = warp.lanes_with((&max, &row_max), |_, (a, b)| {
                [a[0].max(b[0]), a[1].max(b[1])]
            });
            let factor = warp.lanes_with((&max, &new_max), |_, (old, new)| {
                [(old[0] - new[0]).exp(), (old[1] - new[1]).exp()]
            });
            max = new_max;
            warp.lanes_with((&mut *first, &mut *second, &new_max), |_, (a, b, max)| {
                *a = core::array::from_fn(|i| a[i].mul_add(scale, -max[i / 2]).exp());
                *b = core::array::from_fn(|i| b[i].mul_add(scale, -max[i / 2]).exp());
            });
            let row_sum = warp.lanes_with((&*first, &*second), |_, (a, b)| {
                [a[0] + a[1] + b[0] + b[1], a[2] + a[3] + b[2] + b[3]]
            });
            let row_sum = warp.reduce_fragment_rows(&row_sum, |a, b| a + b);
            warp.lanes_with(
                (&mut total, &factor, &row_sum),
                |_, (total, factor, sum)| {
                    *total = [
                        total[0].mul_add(factor[0], sum[0]),
                        total[1].mul_add(factor[1], sum[1]),
                    ];
                },
            );
            let p = warp.lanes_with((&*first, &*second), |_, (a, b)| {
                [
                    pack_bf16(a[0], a[1]),
                    pack_bf16(a[2], a[3]),
                    pack_bf16(b[0], b[1]),
                    pack_bf16(b[2], b[3]),
                ]
            });
            for (n, sums) in sums.iter_mut().enumerate() {
                warp.lanes_with((&mut *sums, &factor), |_, (sums, factor)| {
                    *sums = core::array::from_fn(|i| sums[i] * factor[i / 2]);
                });
                let b = warp.lanes(|lane| {
                    let column = 8 * n + lane.index() / 4;
                    let row = 2 * (lane.index() % 4);
                    let element = |row: usize| u32::from(v[row * 64 + column]);
                    core::array::from_fn(|i| element(row + 8 * i) | element(row + 8 * i + 1) << 16)
                });
                warp.mma_bf16(&p, &b, sums);
            }
        }
        for (n, sums) in sums.iter_mut().enumerate() {
            warp.lanes_with((&mut *sums, &total), |_, (sums, total)| {
                *sums = core::array::from_fn(|i| sums[i] / total[i / 2]);
            });
            out.store_accumulators(warp, n, sums);
        }
    });
}
