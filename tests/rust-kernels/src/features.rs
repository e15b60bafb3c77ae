//! Kernels of single features: functions, halo tiles, pipelines, cache policies, small numbers and
//! integer instructions.

use curium_kernel::prelude::*;
use curium_kernel::{
    Bf16, Bf16x2, Border, Divisor, E4m3x2, E5m2x2, F16, F16x2, HaloRow, HaloTile, LoadPolicy,
    LoadWith, MulHigh, Rounded, Rounding, StorePolicy, StoreWith, Surface2D, Texture1D, Texture2D,
    Texture2DArray, Texture3D, add_saturating, extract_bits_i32, extract_bits_u32, find_nth_set,
    funnel_shift_left, funnel_shift_right, insert_bits, logic3, mul24_low_i32, mul24_low_u32,
    sub_saturating, sum_abs_diff_i32, sum_abs_diff_u32,
};

/// The number of functions in [`functions_of_f32`].
pub const FUNCTIONS: usize = 34;

/// All functions of one number, and those of two with the second one 1.7.
#[kernel]
pub fn functions_of_f32(t: Thread, x: &[f32], mut y: PerThreadChunk<f32, FUNCTIONS>) {
    let Some(&x) = x.get(t.index()) else { return };
    y.get(&t).copy_from_slice(&all_functions(x, 1.7));
}

/// The number of functions in [`functions_of_f64`].
pub const WIDE_FUNCTIONS: usize = 12;

/// Some functions of `f64`.
#[kernel]
pub fn functions_of_f64(t: Thread, x: &[f64], mut y: PerThreadChunk<f64, WIDE_FUNCTIONS>) {
    let Some(&x) = x.get(t.index()) else { return };
    y.get(&t).copy_from_slice(&wide_functions(x));
}

/// The functions, which the test also calls on the host.
#[inline(always)]
pub fn wide_functions(x: f64) -> [f64; WIDE_FUNCTIONS] {
    [
        Float::exp(x),
        Float::ln(x),
        Float::sin(x),
        Float::tanh(x),
        Float::cbrt(x),
        Float::erf(x),
        Float::normcdf(x),
        Float::tgamma(x),
        Float::powf(x, 1.7),
        Float::powi(x, -3),
        Float::sqrt(x),
        Float::rsqrt(x),
    ]
}

/// The functions, which the test also calls on the host.
#[inline(always)]
pub fn all_functions<T: Float>(x: T, second: T) -> [T; FUNCTIONS] {
    let (sine, cosine) = Float::sin_cos(x);
    [
        Float::exp(x),
        Float::exp2(x),
        Float::exp10(x),
        Float::exp_m1(x),
        Float::ln(x),
        Float::log2(x),
        Float::log10(x),
        Float::ln_1p(x),
        Float::sin(x),
        Float::cos(x),
        Float::tan(x),
        Float::sin_pi(x),
        Float::cos_pi(x),
        Float::asin(x),
        Float::acos(x),
        Float::atan(x),
        Float::sinh(x),
        Float::cosh(x),
        Float::tanh(x),
        Float::asinh(x),
        Float::acosh(x),
        Float::atanh(x),
        Float::cbrt(x),
        Float::erf(x),
        Float::erfc(x),
        Float::normcdf(x),
        Float::tgamma(x),
        Float::lgamma(x),
        sine,
        cosine,
        Float::atan2(x, second),
        Float::powf(x, second),
        Float::hypot(x, second),
        Float::rsqrt(x),
    ]
}

/// Sums, products, quotients and roots with all rounding modes.
#[kernel]
pub fn rounding_modes(t: Thread, a: &[f32], b: &[f32], mut y: PerThreadChunk<f32, 20>) {
    let (Some(&a), Some(&b)) = (a.get(t.index()), b.get(t.index())) else {
        return;
    };
    let modes = [
        Rounding::Nearest,
        Rounding::TowardZero,
        Rounding::Down,
        Rounding::Up,
    ];
    let results: [[f32; 5]; 4] = modes.map(|mode| {
        [
            a.add_rounded(b, mode),
            a.mul_rounded(b, mode),
            a.mul_add_rounded(b, 0.1, mode),
            a.div_rounded(b, mode),
            b.sqrt_rounded(mode),
        ]
    });
    y.get(&t).copy_from_slice(results.as_flattened());
}

/// A weighted sum of nine elements, with a border.
fn stencil(
    block: &Block<32, 8>,
    tile: &mut Shared<HaloTile<f32, 16, 32, 1>>,
    x: &Matrix<f32>,
    y: &mut PerBlockTile<f32, 16, 32>,
    border: Border<f32>,
) {
    let first = (block.index_y() * 16, block.index_x() * 32);
    tile.fill_from(block, x, first, border);
    tile.synced(block, |tile| {
        y.for_each(block, |position, y| {
            let (row, column) = position.cell();
            let mut sum = 0.0;
            for i in -1..2 {
                for j in -1..2 {
                    sum += tile[(row + i, column + j)] * (1 + 3 * (i + 1) + j + 1) as f32;
                }
            }
            *y = sum;
        });
    });
}

/// A stencil whose border is a constant.
#[kernel]
pub fn stencil_constant(
    block: Block<32, 8>,
    mut tile: Shared<HaloTile<f32, 16, 32, 1>>,
    x: Matrix<f32>,
    mut y: PerBlockTile<f32, 16, 32>,
) {
    stencil(&block, &mut tile, &x, &mut y, Border::Constant(-3.0));
}

/// A stencil whose border repeats the nearest element.
#[kernel]
pub fn stencil_clamp(
    block: Block<32, 8>,
    mut tile: Shared<HaloTile<f32, 16, 32, 1>>,
    x: Matrix<f32>,
    mut y: PerBlockTile<f32, 16, 32>,
) {
    stencil(&block, &mut tile, &x, &mut y, Border::Clamp);
}

/// A stencil on a torus.
#[kernel]
pub fn stencil_wrap(
    block: Block<32, 8>,
    mut tile: Shared<HaloTile<f32, 16, 32, 1>>,
    x: Matrix<f32>,
    mut y: PerBlockTile<f32, 16, 32>,
) {
    stencil(&block, &mut tile, &x, &mut y, Border::Wrap);
}

/// A stencil whose border is mirrored.
#[kernel]
pub fn stencil_mirror(
    block: Block<32, 8>,
    mut tile: Shared<HaloTile<f32, 16, 32, 1>>,
    x: Matrix<f32>,
    mut y: PerBlockTile<f32, 16, 32>,
) {
    stencil(&block, &mut tile, &x, &mut y, Border::Mirror);
}

/// The sum of five adjacent elements of a slice.
#[kernel]
pub fn moving_sum(
    block: Block<64>,
    mut row: Shared<HaloRow<u32, 64, 2>>,
    x: &[u32],
    mut y: PerThread<u32>,
) {
    row.fill_from(&block, x, block.index() * 64, Border::Constant(1000));
    row.synced(&block, |row| {
        block.threads_with(&mut y, |t, y| {
            if let Some(y) = y.first() {
                let i = t.index_in_block() as isize;
                *y = row[i - 2] + row[i - 1] + row[i] + row[i + 1] + row[i + 2];
            }
        });
    });
}

/// The sum of each element's six neighbors in three dimensions, plane by plane, with zeros around.
/// A block computes a column of tiles.
#[kernel]
pub fn laplace(
    block: Block<16, 8>,
    mut below: Shared<HaloTile<f32, 8, 16, 1>>,
    mut middle: Shared<HaloTile<f32, 8, 16, 1>>,
    mut above: Shared<HaloTile<f32, 8, 16, 1>>,
    x: Matrix<f32>,
    height: u32,
    index: u32,
    mut y: PerBlockTile<f32, 8, 16>,
) {
    let height = height as usize;
    let index = index as usize;
    let first = (block.index_y() * 8, block.index_x() * 16);
    let planes = [
        (&mut below, index.wrapping_sub(1)),
        (&mut middle, index),
        (&mut above, index + 1),
    ];
    for (tile, index) in planes {
        match x.plane(index, height) {
            Some(plane) => tile.fill_from(&block, &plane, first, Border::Constant(0.0)),
            None => tile.fill(&block, |_, _| 0.0),
        }
    }
    (&mut below, &mut middle, &mut above).synced(&block, |(below, middle, above)| {
        y.for_each(&block, |position, y| {
            let (row, column) = position.cell();
            *y = below[(row, column)]
                + above[(row, column)]
                + middle[(row - 1, column)]
                + middle[(row + 1, column)]
                + middle[(row, column - 1)]
                + middle[(row, column + 1)];
        });
    });
}

/// y = a * b, in steps of 16 through three stages.
#[kernel]
pub fn pipelined_matmul(
    block: Block<16, 16>,
    mut a_stages: Shared<[Tile<f32, 32, 16>; 3]>,
    mut b_stages: Shared<[Tile<f32, 16, 32, 4>; 3]>,
    a: Matrix<f32>,
    b: Matrix<f32>,
    mut y: PerBlockTile<f32, 32, 32>,
) {
    let first_row = block.index_y() * 32;
    let first_column = block.index_x() * 32;
    let mut sums = Registers::new([[0.0_f32; 2]; 2]);
    block.pipeline(
        (&mut a_stages, &mut b_stages),
        a.columns().div_ceil(16),
        |step, (a_slot, b_slot)| {
            a_slot.copy(&block, &a, (first_row, step * 16));
            b_slot.copy(&block, &b, (step * 16, first_column));
        },
        |_, (a_tile, b_tile)| {
            block.threads_with(&mut sums, |t, sums| {
                for k in 0..16 {
                    for (i, row) in sums.iter_mut().enumerate() {
                        for (j, sum) in row.iter_mut().enumerate() {
                            let a = a_tile[t.y() + 16 * i][k];
                            let b = b_tile[k][t.x() + 16 * j];
                            *sum = a.mul_add(b, *sum);
                        }
                    }
                }
            });
        },
    );
    y.for_each_with(&block, &sums, |position, y, sums| {
        *y = sums[position.i][position.j];
    });
}

/// The sum of the parts of a slice, for each position in a part, through four stages of elements of
/// two bytes.
#[kernel]
pub fn pipelined_sums(
    block: Block<96>,
    mut stages: Shared<[[u16; 192]; 4]>,
    x: &[u16],
    mut y: PerThreadChunk<u32, 2>,
) {
    let mut sums = Registers::new([0_u32; 2]);
    block.pipeline(
        &mut stages,
        x.len().div_ceil(192),
        |step, slot| slot.copy(&block, x, step * 192),
        |_, part| {
            block.threads_with(&mut sums, |t, sums| {
                for (i, sum) in sums.iter_mut().enumerate() {
                    *sum += u32::from(part[191 - 2 * t.index_in_block() - i]);
                }
            });
        },
    );
    block.threads_with((&mut y, &sums), |_, (y, sums)| y.copy_from_slice(sums));
}

/// A pipeline whose stages are computed.
#[kernel]
pub fn pipelined_values(
    block: Block<64>,
    mut stages: Shared<[[u32; 64]; 2]>,
    steps: u32,
    mut y: PerThread<u32>,
) {
    let mut sums = Registers::new(0_u32);
    block.pipeline(
        &mut stages,
        steps as usize,
        |step, slot| slot.fill(&block, |_, i| (step * 64 + i) as u32),
        |_, part| {
            block.threads_with(&mut sums, |t, sum| *sum += part[63 - t.index_in_block()]);
        },
    );
    block.threads_with((&mut y, &sums), |_, (y, sum)| {
        if let Some(y) = y.first() {
            *y = *sum;
        }
    });
}

/// Copies with each policy.
#[kernel]
pub fn cache_policies(
    t: Thread,
    wide: &[F32x4],
    word: &[u32],
    byte: &[u8],
    mut wide_out: PerThreadChunk<F32x4, 6>,
    mut word_out: PerThreadChunk<u32, 6>,
    mut byte_out: PerThreadChunk<u8, 6>,
) {
    let i = t.index();
    if i >= wide.len() {
        return;
    }
    wide.prefetch(i + 1);
    word.prefetch_l1(i + 1);
    let policies = [
        LoadPolicy::Streaming,
        LoadPolicy::LastUse,
        LoadPolicy::SkipL1,
        LoadPolicy::EvictFirst,
        LoadPolicy::EvictLast,
        LoadPolicy::Prefetch128,
    ];
    let stores = [
        StorePolicy::Streaming,
        StorePolicy::SkipL1,
        StorePolicy::EvictFirst,
        StorePolicy::EvictLast,
        StorePolicy::Streaming,
        StorePolicy::SkipL1,
    ];
    for k in 0..6 {
        wide_out.get(&t)[k].store_with(wide.load_with(i, policies[k]), stores[k]);
        word_out.get(&t)[k].store_with(word.load_with(i, policies[k]), stores[k]);
        byte_out.get(&t)[k].store_with(byte.load_with(i, policies[k]), stores[k]);
    }
}

/// Pairs of numbers of 16 bits.
#[kernel]
pub fn pairs_of_halves(t: Thread, a: &[F32x2], b: &[F32x2], mut y: PerThreadChunk<u32, 22>) {
    let (Some(&a), Some(&b)) = (a.get(t.index()), b.get(t.index())) else {
        return;
    };
    let [x, z] = [F16x2::new(a.x, a.y), F16x2::new(b.x, b.y)];
    let [u, v] = [Bf16x2::new(a.x, a.y), Bf16x2::new(b.x, b.y)];
    let scalars = u32::from(F16::from_f32(a.x).to_bits())
        | u32::from(Bf16::from_f32_toward_zero(a.y).to_bits()) << 16;
    let results = [
        x + z,
        x - z,
        x * z,
        x.mul_add(z, x),
        x.mul_add_relu(z, -x),
        x.min(z),
        x.max(z),
        x.less(z),
        x.equal(x),
        -x.abs().swap(),
        F16x2::new_rounded(a.x, a.y, Rounding::TowardZero),
        (x * F16x2::splat(0.01)).fast_exp2(),
        x.fast_tanh(),
    ];
    let wide = [
        u + v,
        u - v,
        u * v,
        u.mul_add(v, u),
        u.mul_add_relu(v, -u),
        u.min(v),
        u.max(v),
        Bf16x2::new_rounded(a.x, a.y, Rounding::TowardZero),
    ];
    let y = y.get(&t);
    for (y, result) in y.iter_mut().zip(results) {
        *y = result.to_bits();
    }
    for (y, result) in y[13..].iter_mut().zip(wide) {
        *y = result.to_bits();
    }
    y[21] = scalars;
}

/// FP8 by integer arithmetic.
#[kernel]
pub fn fp8(
    t: Thread,
    x: &[F32x2],
    mut codes: PerThreadChunk<u16, 2>,
    mut back: PerThreadChunk<f32, 4>,
) {
    let Some(x) = x.get(t.index()) else { return };
    let e4m3 = E4m3x2::new(x.x, x.y);
    let e5m2 = E5m2x2::new(x.x, x.y);
    codes
        .get(&t)
        .copy_from_slice(&[e4m3.to_bits(), e5m2.to_bits()]);
    let [a, b] = e4m3.to_f32s();
    let [c, d] = e5m2.to_f32s();
    back.get(&t).copy_from_slice(&[a, b, c, d]);
}

/// Integer instructions.
#[kernel]
pub fn integers(
    t: Thread,
    a: &[u32],
    b: &[u32],
    width: Divisor,
    mut y: PerThreadChunk<u32, 20>,
    mut wide: PerThreadChunk<u64, 2>,
) {
    let (Some(&a), Some(&b)) = (a.get(t.index()), b.get(t.index())) else {
        return;
    };
    let [signed_a, signed_b] = [a.cast_signed(), b.cast_signed()];
    let shift = b % 40;
    let (quotient, remainder) = width.divide_with_remainder(a);
    y.get(&t).copy_from_slice(&[
        a.mul_high(b),
        signed_a.mul_high(signed_b).cast_unsigned(),
        sum_abs_diff_u32(a, b, 5),
        sum_abs_diff_i32(signed_a, signed_b, 5),
        mul24_low_u32(a, b),
        mul24_low_i32(signed_a, signed_b).cast_unsigned(),
        funnel_shift_left(a, b, shift),
        funnel_shift_right(a, b, shift),
        extract_bits_u32(a, 5, 9),
        extract_bits_i32(signed_a, 5, 9).cast_unsigned(),
        insert_bits(b, a, 5, 9),
        find_nth_set(a, 4, 2),
        logic3::<0x96>(a, b, 0x5555_5555),
        quotient,
        remainder,
        add_saturating(signed_a, signed_b).cast_unsigned(),
        sub_saturating(signed_a, signed_b).cast_unsigned(),
        a.abs_diff(b),
        a.rotate_left(b % 32),
        a.reverse_bits().leading_zeros(),
    ]);
    let [wide_a, wide_b] = [
        u64::from(a) << 32 | u64::from(b),
        u64::from(b) << 32 | u64::from(a),
    ];
    wide.get(&t).copy_from_slice(&[
        wide_a.mul_high(wide_b),
        wide_a
            .cast_signed()
            .mul_high(wide_b.cast_signed())
            .cast_unsigned(),
    ]);
}

/// Values that differ between threads: times that do not decrease, and a multiprocessor of the
/// device.
#[kernel]
pub fn clocks(t: Thread, mut y: PerThreadChunk<u64, 3>) {
    let before = t.global_time();
    t.sleep(100);
    let after = t.global_time();
    let values = [
        u64::from(after >= before),
        u64::from(t.multiprocessor()),
        u64::from(t.clock() > 0),
    ];
    for (y, value) in y.get(&t).iter_mut().zip(values) {
        *y = value;
    }
}

/// Blocks and grids of three dimensions, with an element for each thread of the block in shared
/// memory.
#[kernel]
pub fn three_dimensions(block: Block<4, 3, 2>, mut tile: Shared<[u32; 24]>, total: &[Atomic<u32>]) {
    let [x, y, z] = [block.index_x(), block.index_y(), block.index_z()];
    let [width, height, _] = block.grid();
    let number = (z * height + y) * width + x;
    tile.fill(&block, |t, _| (t.z() * 100 + t.y() * 10 + t.x()) as u32);
    tile.synced(&block, |tile| {
        block.threads(|t| {
            let value = tile[23 - t.index_in_block()];
            total[number].fetch_add(t, value, Relaxed);
        });
    });
}

/// All reads of a two-dimensional texture: by coordinates, by indices and of four elements.
#[kernel]
pub fn texture_2d(
    block: Block<8, 4>,
    image: Texture2D<f32>,
    mut sampled: PerBlockTile<f32, 4, 8>,
    mut fetched: PerBlockTile<f32, 4, 8>,
    mut gathered: PerBlockTile<[f32; 4], 4, 8>,
) {
    sampled.for_each(&block, |position, y| {
        *y = image.sample(position.column as f32 + 1.0, position.row as f32 + 0.5);
    });
    fetched.for_each(&block, |position, y| {
        *y = image.fetch(position.column as i32, position.row as i32);
    });
    gathered.for_each(&block, |position, y| {
        *y = image.gather::<0>(position.column as f32 + 1.0, position.row as f32 + 1.0);
    });
}

/// Reads of textures of other dimensions and elements.
#[kernel]
pub fn textures(
    t: Thread,
    line: Texture1D<u32>,
    volume: Texture3D<[f32; 2]>,
    layers: Texture2DArray<i32>,
    mut y: PerThreadChunk<f32, 4>,
) {
    let i = t.index();
    let [first, second] = volume.sample(
        (i % 4) as f32 + 0.5,
        (i / 4 % 3) as f32 + 0.5,
        (i / 12) as f32 + 0.5,
    );
    let pixel = layers.sample(
        (i / 12) as u32,
        (i % 4) as f32 + 0.5,
        (i / 4 % 3) as f32 + 0.5,
    );
    let values = [line.fetch(i as i32) as f32, first, second, pixel as f32];
    for (y, value) in y.get(&t).iter_mut().zip(values) {
        *y = value;
    }
}

/// Writes a surface from its cells' positions.
#[kernel]
pub fn surface_store(block: Block<8, 4>, image: Surface2D<[u16; 4]>) {
    image.store(&block, |_, (row, column)| [row as u16, column as u16, 7, 9]);
}

/// Changes the elements of a surface.
#[kernel]
pub fn surface_update(block: Block<8, 4>, image: Surface2D<u8>) {
    image.update(&block, |_, (row, _), old| {
        old.wrapping_mul(2).wrapping_add(row as u8)
    });
}

/// Reads an array and writes another.
#[kernel]
pub fn texture_to_surface(block: Block<8, 4>, image: Texture2D<f32>, target: Surface2D<f32>) {
    target.store(&block, |_, (row, column)| {
        -image.fetch(column as i32, row as i32)
    });
}

/// The sum of each element's products with the step, which one warp loads and three warps compute.
#[kernel]
pub fn ring(
    block: Block<128>,
    mut slots: Shared<[[u32; 96]; 3]>,
    x: &[u32],
    total: &[Atomic<u32>],
) {
    let sums = block.ring::<1, _, 3, _>(
        &mut slots,
        x.len().div_ceil(96),
        |warp, step, slot| slot.fill(warp, |_, i| x.get(step * 96 + i).copied().unwrap_or(0)),
        |_| Lanes::new(0_u32),
        |warp, step, part, sum| {
            let first = 32 * (warp.index() - 1);
            warp.lanes_with(sum, |lane, sum| {
                *sum += part[95 - first - lane.index()] * step as u32;
            });
        },
    );
    block.warps_with(&sums, |warp, sums| {
        if let Some(sums) = sums {
            let sum = warp.sum(sums);
            warp.lanes(|lane| {
                if lane.index() == 0 {
                    total[0].fetch_add(lane, sum, Relaxed);
                }
            });
        }
    });
}

/// A ring buffer with two warps of producers and one slot.
#[kernel]
pub fn ring_of_two_producers(
    block: Block<96>,
    mut slots: Shared<[[u32; 100]; 1]>,
    steps: u32,
    total: &[Atomic<u32>],
) {
    let sums = block.ring::<2, _, 1, _>(
        &mut slots,
        steps as usize,
        |warp, step, slot| slot.fill(warp, |_, i| (step + i) as u32),
        |_| 0_u32,
        |_, _, part, sum| *sum += part.iter().sum::<u32>(),
    );
    block.warps_with(&sums, |warp, sum| {
        if let Some(sum) = sum {
            warp.lanes(|lane| total[lane.index()].fetch_add(lane, *sum, Relaxed));
        }
    });
}

/// c = a * b like `algorithms::matmul_async`, in three stages and by copies of 16 bytes.
#[kernel]
pub fn matmul_stages(
    block: Block<16, 16>,
    mut a_stages: Shared<[Tile<f32, 64, 16, 4>; 3]>,
    mut b_stages: Shared<[Tile<f32, 16, 64>; 3]>,
    a: Matrix<f32>,
    b: Matrix<f32>,
    mut c: PerBlockTile<f32, 64, 64>,
) {
    let first_row = block.index_y() * 64;
    let first_column = block.index_x() * 64;
    let mut sums = Registers::new([[0.0_f32; 4]; 4]);
    block.pipeline(
        (&mut a_stages, &mut b_stages),
        a.columns().div_ceil(16),
        |step, (a_slot, b_slot)| {
            a_slot.copy(&block, &a, (first_row, step * 16));
            b_slot.copy(&block, &b, (step * 16, first_column));
        },
        |_, (a, b)| {
            block.threads_with(&mut sums, |t, sums| {
                for k in 0..16 {
                    let a: [f32; 4] = core::array::from_fn(|i| a[t.y() + 16 * i][k]);
                    let b: [f32; 4] = core::array::from_fn(|j| b[k][t.x() + 16 * j]);
                    for i in 0..4 {
                        for j in 0..4 {
                            sums[i][j] = a[i].mul_add(b[j], sums[i][j]);
                        }
                    }
                }
            });
        },
    );
    c.for_each_with(&block, &sums, |position, element, sums| {
        *element = sums[position.i][position.j];
    });
}

/// A weighted sum of 5 × 5 elements, with the nearest ones beyond the edges.
#[kernel]
pub fn filter_5x5(
    block: Block<32, 8>,
    mut tile: Shared<HaloTile<f32, 32, 32, 2>>,
    x: Matrix<f32>,
    weights: [f32; 25],
    mut y: PerBlockTile<f32, 32, 32>,
) {
    let first = (block.index_y() * 32, block.index_x() * 32);
    tile.fill_from(&block, &x, first, Border::Clamp);
    tile.synced(&block, |tile| {
        y.for_each(&block, |position, y| {
            let (row, column) = position.cell();
            let mut sum = 0.0;
            for i in 0..5 {
                for j in 0..5 {
                    let cell = tile[(row + i as isize - 2, column + j as isize - 2)];
                    sum = cell.mul_add(weights[5 * i + j], sum);
                }
            }
            *y = sum;
        });
    });
}

/// Accurate functions of each element.
#[kernel]
pub fn special_functions(t: Thread, x: &[f32], mut y: PerThread<f32>) {
    if let Some(y) = y.get(&t) {
        let x = x[t.index()];
        let square = x * x;
        *y = x.sin() * x.exp()
            + (square + 1.0).ln()
            + Float::erf(x)
            + x.tanh()
            + square.powf(1.3)
            + x.atan();
    }
}

/// y = 2 x + 1, for data that passes through the caches once.
#[kernel]
pub fn streaming(t: Thread, x: &[F32x4], mut y: PerThread<F32x4>) {
    if let Some(y) = y.get(&t) {
        let x = x.load_streaming(t.index());
        y.store_streaming(x * 2.0 + F32x4::new(1.0, 1.0, 1.0, 1.0));
    }
}
