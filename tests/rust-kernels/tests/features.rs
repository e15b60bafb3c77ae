//! Single features, on the simulator with all checks.

use std::sync::Arc;

use curium_driver::Result;
use curium_kernel::host::{Blocks, RowMajor};
use curium_kernel::{
    Bf16, Bf16x2, Divisor, E4m3, E5m2, F16, F16x2, F32x2, F32x4, Float, MulHigh, Rounding,
};
use curium_memory::{
    Array, ArrayFlags, ArrayShape, DeviceBuffer, FilterMode, Surface, Texel, Texture, TextureFlags,
    TextureOptions,
};
use curium_test_kernels::features::{FUNCTIONS, WIDE_FUNCTIONS, all_functions, wide_functions};

use crate::common::on_device;

/// The functions compute on the device what they compute on the host, up to the errors of
/// approximate instructions.
#[test]
fn functions_on_the_device() -> Result<()> {
    let mut x: Vec<f32> = (-60..60_i16).map(|i| f32::from(i) * 0.173).collect();
    x.extend([0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 1e-40, 1e30, -1e30, 3e5, 1e8]);
    x.extend([f32::INFINITY, f32::NEG_INFINITY, f32::NAN]);
    on_device(|kernels, stream| {
        let device_x = DeviceBuffer::from_slice(stream, &x)?;
        let mut y = DeviceBuffer::<f32>::uninit(stream, FUNCTIONS * x.len())?;
        kernels
            .functions_of_f32
            .launch(stream, x.len(), &device_x, &mut y)?;
        let wide: Vec<f64> = x.iter().map(|x| f64::from(*x)).collect();
        let device_wide = DeviceBuffer::from_slice(stream, &wide)?;
        let mut wide_y = DeviceBuffer::<f64>::uninit(stream, WIDE_FUNCTIONS * x.len())?;
        kernels
            .functions_of_f64
            .launch(stream, x.len(), &device_wide, &mut wide_y)?;
        for (x, y) in x.iter().zip(y.to_vec()?.chunks(FUNCTIONS)) {
            for (index, (y, host)) in y.iter().zip(all_functions(*x, 1.7)).enumerate() {
                let is_same = y.to_bits() == host.to_bits() || (y.is_nan() && host.is_nan());
                let tolerance = 4e-7 * host.abs().max(f32::MIN_POSITIVE);
                assert!(
                    is_same || (y - host).abs() <= tolerance,
                    "function {index} of {x} is {y} and not {host}"
                );
            }
        }
        for (x, y) in wide.iter().zip(wide_y.to_vec()?.chunks(WIDE_FUNCTIONS)) {
            for (index, (y, host)) in y.iter().zip(wide_functions(*x)).enumerate() {
                let is_same = y.to_bits() == host.to_bits() || (y.is_nan() && host.is_nan());
                let tolerance = 1e-14 * host.abs().max(f64::MIN_POSITIVE);
                assert!(
                    is_same || (y - host).abs() <= tolerance,
                    "function {index} of {x} is {y} and not {host}"
                );
            }
        }
        Ok(())
    })
}

/// The result of an operation in a rounding mode, from the exact one.
fn rounded(exact: f64, mode: Rounding) -> f32 {
    let nearest = exact as f32;
    let wide = f64::from(nearest);
    match mode {
        Rounding::TowardZero if wide.abs() > exact.abs() => f32::from_bits(nearest.to_bits() - 1),
        Rounding::Down if wide > exact => nearest.next_down(),
        Rounding::Up if wide < exact => nearest.next_up(),
        _ => nearest,
    }
}

#[test]
fn rounding_modes() -> Result<()> {
    let mut random = fastrand::Rng::with_seed(7);
    let a: Vec<f32> = (0..100).map(|_| random.f32() * 4.0 - 2.0).collect();
    let b: Vec<f32> = (0..100).map(|_| random.f32() + 0.01).collect();
    on_device(|kernels, stream| {
        let device_a = DeviceBuffer::from_slice(stream, &a)?;
        let device_b = DeviceBuffer::from_slice(stream, &b)?;
        let mut y = DeviceBuffer::<f32>::uninit(stream, 2000)?;
        kernels
            .rounding_modes
            .launch(stream, 100, &device_a, &device_b, &mut y)?;
        let modes = [
            Rounding::Nearest,
            Rounding::TowardZero,
            Rounding::Down,
            Rounding::Up,
        ];
        for (i, y) in y.to_vec()?.chunks(20).enumerate() {
            let [a, b] = [f64::from(a[i]), f64::from(b[i])];
            for (y, mode) in y.chunks(5).zip(modes) {
                // The sum of an exact product and 0.1 is not exact in f64, but as good as.
                let exact = [a + b, a * b, a * b + f64::from(0.1_f32), a / b, b.sqrt()];
                let expected = exact.map(|exact| rounded(exact, mode));
                assert_eq!(y, expected, "{a} and {b}, {mode:?}");
            }
        }
        Ok(())
    })
}

/// The element of a matrix with a border.
fn bordered(
    x: &[f32],
    rows: isize,
    columns: isize,
    row: isize,
    column: isize,
    border: usize,
) -> f32 {
    let index = |i: isize, len: isize| match border {
        1 => i.clamp(0, len - 1),
        2 => i.rem_euclid(len),
        _ if i < 0 => -i,
        _ if i >= len => 2 * (len - 1) - i,
        _ => i,
    };
    let is_inside = (0..rows).contains(&row) && (0..columns).contains(&column);
    if border == 0 && !is_inside {
        return -3.0;
    }
    x[(index(row, rows) * columns + index(column, columns)) as usize]
}

#[test]
fn stencils_with_all_borders() -> Result<()> {
    let (rows, columns) = (37, 45);
    let x: Vec<f32> = (0..rows * columns).map(|i| (i * 7 % 31) as f32).collect();
    on_device(|kernels, stream| {
        let device_x = DeviceBuffer::from_slice(stream, &x)?;
        let source = RowMajor::new(&device_x, rows, columns);
        for border in 0..4 {
            let mut y = DeviceBuffer::<f32>::uninit(stream, rows * columns)?;
            let target = RowMajor::new(&mut y, rows, columns);
            let grid = Blocks::new((2, 3));
            match border {
                0 => kernels
                    .stencil_constant
                    .launch(stream, grid, source, target)?,
                1 => kernels.stencil_clamp.launch(stream, grid, source, target)?,
                2 => kernels.stencil_wrap.launch(stream, grid, source, target)?,
                _ => kernels
                    .stencil_mirror
                    .launch(stream, grid, source, target)?,
            }
            let y = y.to_vec()?;
            let (rows, columns) = (rows as isize, columns as isize);
            for row in 0..rows {
                for column in 0..columns {
                    let mut sum = 0.0;
                    for i in -1..=1 {
                        for j in -1..=1 {
                            let weight = (5 + 3 * i + j) as f32;
                            sum +=
                                bordered(&x, rows, columns, row + i, column + j, border) * weight;
                        }
                    }
                    let result = y[(row * columns + column) as usize];
                    assert_eq!(result, sum, "border {border}, row {row}, column {column}");
                }
            }
        }
        Ok(())
    })
}

#[test]
fn stencils_in_1d_and_3d() -> Result<()> {
    let x: Vec<u32> = (0..200).map(|i| i * i % 97).collect();
    let (depth, height, width) = (4, 10, 20);
    let volume: Vec<f32> = (0..depth * height * width)
        .map(|i| (i % 13) as f32)
        .collect();
    on_device(|kernels, stream| {
        let device_x = DeviceBuffer::from_slice(stream, &x)?;
        let mut y = DeviceBuffer::<u32>::uninit(stream, 200)?;
        kernels
            .moving_sum
            .launch(stream, Blocks::new(4), &device_x, &mut y)?;
        let element = |i: usize| {
            i.checked_sub(2)
                .and_then(|i| x.get(i))
                .copied()
                .unwrap_or(1000)
        };
        let expected: Vec<u32> = (0..200).map(|i| (i..i + 5).map(element).sum()).collect();
        assert_eq!(y.to_vec()?, expected);

        let device_volume = DeviceBuffer::from_slice(stream, &volume)?;
        let at = |z: usize, y: usize, x: usize| {
            if z < depth && y < height && x < width {
                volume[(z * height + y) * width + x]
            } else {
                0.0
            }
        };
        for z in 0..depth {
            let mut plane = DeviceBuffer::<f32>::uninit(stream, height * width)?;
            kernels.laplace.launch(
                stream,
                Blocks::new((2, 2)),
                RowMajor::new(&device_volume, depth * height, width),
                height as u32,
                z as u32,
                RowMajor::new(&mut plane, height, width),
            )?;
            for (i, result) in plane.to_vec()?.into_iter().enumerate() {
                let (y, x) = (i / width, i % width);
                let expected = at(z.wrapping_sub(1), y, x)
                    + at(z + 1, y, x)
                    + at(z, y.wrapping_sub(1), x)
                    + at(z, y + 1, x)
                    + at(z, y, x.wrapping_sub(1))
                    + at(z, y, x + 1);
                assert_eq!(result, expected, "plane {z}, row {y}, column {x}");
            }
        }
        Ok(())
    })
}

/// A filter of 25 equal weights is a mean. The tile in the middle of the matrix has no border.
#[test]
fn filter_of_means() -> Result<()> {
    let (rows, columns) = (100, 104);
    let x: Vec<f32> = (0..rows * columns).map(|i| (i % 32) as f32).collect();
    on_device(|kernels, stream| {
        let device_x = DeviceBuffer::from_slice(stream, &x)?;
        let mut y = DeviceBuffer::<f32>::uninit(stream, rows * columns)?;
        kernels.filter_5x5.launch(
            stream,
            Blocks::new((4, 4)),
            RowMajor::new(&device_x, rows, columns),
            [0.25; 25],
            RowMajor::new(&mut y, rows, columns),
        )?;
        for (i, result) in y.to_vec()?.into_iter().enumerate() {
            let sum: f32 = (0..25)
                .map(|k| {
                    let row = (i / columns + k / 5).saturating_sub(2).min(rows - 1);
                    let column = (i % columns + k % 5).saturating_sub(2).min(columns - 1);
                    x[row * columns + column]
                })
                .sum();
            assert_eq!(result, sum / 4.0, "element {i}");
        }
        Ok(())
    })
}

/// Sizes with whole groups of 16 bytes, and others; fewer steps than stages, and none.
#[test]
fn pipelines_of_matrices() -> Result<()> {
    on_device(|kernels, stream| {
        for (rows, inner, columns) in [(64, 96, 64), (50, 37, 41), (32, 16, 32), (33, 8, 36)] {
            let a: Vec<f32> = (0..rows * inner).map(|i| (i % 7) as f32 - 3.0).collect();
            let b: Vec<f32> = (0..inner * columns).map(|i| (i % 5) as f32).collect();
            let device_a = DeviceBuffer::from_slice(stream, &a)?;
            let device_b = DeviceBuffer::from_slice(stream, &b)?;
            let mut y = DeviceBuffer::<f32>::uninit(stream, rows * columns)?;
            kernels.pipelined_matmul.launch(
                stream,
                Blocks::new((columns.div_ceil(32) as u32, rows.div_ceil(32) as u32)),
                RowMajor::new(&device_a, rows, inner),
                RowMajor::new(&device_b, inner, columns),
                RowMajor::new(&mut y, rows, columns),
            )?;
            let mut z = DeviceBuffer::<f32>::uninit(stream, rows * columns)?;
            kernels.matmul_stages.launch(
                stream,
                Blocks::new((columns.div_ceil(64) as u32, rows.div_ceil(64) as u32)),
                RowMajor::new(&device_a, rows, inner),
                RowMajor::new(&device_b, inner, columns),
                RowMajor::new(&mut z, rows, columns),
            )?;
            assert_eq!(z.to_vec()?, y.to_vec()?);
            for (i, result) in y.to_vec()?.into_iter().enumerate() {
                let (row, column) = (i / columns, i % columns);
                let product = |k: usize| a[row * inner + k] * b[k * columns + column];
                let expected: f32 = (0..inner).map(product).sum();
                assert_eq!(
                    result, expected,
                    "{rows}×{inner}×{columns}: {row}, {column}"
                );
            }
        }
        Ok(())
    })
}

#[test]
fn pipelines_of_slices() -> Result<()> {
    on_device(|kernels, stream| {
        for len in [1, 100, 192, 1920, 1999] {
            let x: Vec<u16> = (0..len).map(|i| (i % 1000) as u16).collect();
            let device_x = DeviceBuffer::from_slice(stream, &x)?;
            let mut y = DeviceBuffer::<u32>::uninit(stream, 192)?;
            kernels
                .pipelined_sums
                .launch(stream, Blocks::new(1), &device_x, &mut y)?;
            let sum = |i: usize| {
                let elements = x.iter().skip(191 - i).step_by(192);
                elements.map(|x| u32::from(*x)).sum::<u32>()
            };
            let expected: Vec<u32> = (0..192).map(sum).collect();
            assert_eq!(y.to_vec()?, expected, "{len} elements");
        }
        for steps in [0, 1, 2, 7] {
            let mut y = DeviceBuffer::<u32>::uninit(stream, 64)?;
            kernels
                .pipelined_values
                .launch(stream, Blocks::new(1), steps, &mut y)?;
            let sum = |i: u32| (0..steps).map(|step| step * 64 + 63 - i).sum::<u32>();
            let expected: Vec<u32> = (0..64).map(sum).collect();
            assert_eq!(y.to_vec()?, expected, "{steps} steps");
        }
        Ok(())
    })
}

#[test]
fn ring_buffers() -> Result<()> {
    on_device(|kernels, stream| {
        for len in [50, 96, 500, 960] {
            let x: Vec<u32> = (0..len).map(|i| i * i % 91).collect();
            let device_x = DeviceBuffer::from_slice(stream, &x)?;
            let mut total = DeviceBuffer::<u32>::zeroed(stream, 1)?;
            kernels
                .ring
                .launch(stream, Blocks::new(1), &device_x, &mut total)?;
            let products = x.iter().zip(0_u32..).map(|(x, i)| x * (i / 96));
            assert_eq!(total.to_vec()?, [products.sum::<u32>()], "{len} elements");
        }
        for steps in [0, 1, 5] {
            let mut total = DeviceBuffer::<u32>::zeroed(stream, 32)?;
            kernels
                .ring_of_two_producers
                .launch(stream, Blocks::new(1), steps, &mut total)?;
            let sum: u32 = (0..steps).map(|step| 100 * step + 4950).sum();
            assert_eq!(total.to_vec()?, [sum; 32], "{steps} steps");
        }
        Ok(())
    })
}

#[test]
fn cache_policies() -> Result<()> {
    let wide: Vec<F32x4> = (0..70_u16)
        .map(|i| F32x4::new(f32::from(i), 1.0, 2.0, -f32::from(i)))
        .collect();
    let word: Vec<u32> = (0..70).map(|i| i * 0x0101_0101).collect();
    let byte: Vec<u8> = (0..70).map(|i| 255 - i).collect();
    on_device(|kernels, stream| {
        let mut wide_out = DeviceBuffer::uninit(stream, 420)?;
        let mut word_out = DeviceBuffer::uninit(stream, 420)?;
        let mut byte_out = DeviceBuffer::uninit(stream, 420)?;
        kernels.cache_policies.launch(
            stream,
            70,
            &DeviceBuffer::from_slice(stream, &wide)?,
            &DeviceBuffer::from_slice(stream, &word)?,
            &DeviceBuffer::from_slice(stream, &byte)?,
            &mut wide_out,
            &mut word_out,
            &mut byte_out,
        )?;
        let wide_out = wide_out.to_vec()?;
        assert!((0..420).all(|i| wide_out[i] == wide[i / 6]));
        let word_out = word_out.to_vec()?;
        assert!((0..420).all(|i| word_out[i] == word[i / 6]));
        let byte_out = byte_out.to_vec()?;
        assert!((0..420).all(|i| byte_out[i] == byte[i / 6]));
        Ok(())
    })
}

/// The numbers of a pair of binary16 or bfloat16.
fn numbers(bits: u32, is_wide: bool) -> [f32; 2] {
    if is_wide {
        Bf16x2::from_bits(bits).to_f32s()
    } else {
        F16x2::from_bits(bits).to_f32s()
    }
}

/// Rounds to binary16 or bfloat16, on the host.
fn half(number: f32, is_wide: bool) -> f32 {
    if is_wide {
        Bf16::from_f32(number).to_f32()
    } else {
        F16::from_f32(number).to_f32()
    }
}

#[test]
fn pairs_of_halves() -> Result<()> {
    let mut random = fastrand::Rng::with_seed(3);
    let mut pairs = || -> Vec<F32x2> {
        let mut number = || (random.f32() * 8.0 - 4.0) * 0.01_f32.powi(random.i32(0..2));
        (0..100).map(|_| F32x2::new(number(), number())).collect()
    };
    let a = pairs();
    let b = pairs();
    on_device(|kernels, stream| {
        let device_a = DeviceBuffer::from_slice(stream, &a)?;
        let device_b = DeviceBuffer::from_slice(stream, &b)?;
        let mut y = DeviceBuffer::<u32>::uninit(stream, 2200)?;
        kernels
            .pairs_of_halves
            .launch(stream, 100, &device_a, &device_b, &mut y)?;
        for (i, y) in y.to_vec()?.chunks(22).enumerate() {
            for lane in 0..2 {
                let [a, b] = [[a[i].x, a[i].y][lane], [b[i].x, b[i].y][lane]];
                for is_wide in [false, true] {
                    let [x, z] = [half(a, is_wide), half(b, is_wide)];
                    let fused = |x: f32, z: f32, y: f32| {
                        // Products of such numbers are exact in f32, and sums in f64.
                        let exact = f64::from(x) * f64::from(z) + f64::from(y);
                        half(exact as f32, is_wide)
                    };
                    let expected = [
                        half(x + z, is_wide),
                        half(x - z, is_wide),
                        half(x * z, is_wide),
                        fused(x, z, x),
                        fused(x, z, -x).max(0.0),
                        x.min(z),
                        x.max(z),
                    ];
                    let first = if is_wide { 13 } else { 0 };
                    for (k, expected) in expected.into_iter().enumerate() {
                        let result = numbers(y[first + k], is_wide)[lane];
                        // Two roundings can differ from one in the last bit.
                        let tolerance = if k == 3 || k == 4 {
                            expected.abs() * 0.01
                        } else {
                            0.0
                        };
                        let is_near = (result - expected).abs() <= tolerance;
                        assert!(
                            is_near,
                            "operation {k} of {x} and {z} is {result}, not {expected}"
                        );
                    }
                }
                let x = half(a, false);
                assert_eq!(numbers(y[7], false)[lane] == 1.0, x < half(b, false));
                assert_eq!(numbers(y[8], false)[lane], 1.0);
                assert_eq!(numbers(y[9], false)[1 - lane], -x.abs());
                let zero = F16::from_f32_toward_zero(a).to_f32();
                assert_eq!(numbers(y[10], false)[lane], zero);
                let power = numbers(y[11], false)[lane];
                assert!((power - (x * 0.01).exp2()).abs() < 3e-3, "{power}");
                let tangent = numbers(y[12], false)[lane];
                assert!((tangent - x.tanh()).abs() < 2e-3, "{tangent}");
                let zero = Bf16::from_f32_toward_zero(a).to_f32();
                assert_eq!(numbers(y[20], true)[lane], zero);
            }
            let scalars = [F16::from_f32(a[i].x).to_bits(), (y[21] >> 16) as u16];
            assert_eq!(y[21] as u16, scalars[0]);
            assert_eq!(scalars[1], Bf16::from_f32_toward_zero(a[i].y).to_bits());
        }
        Ok(())
    })
}

#[test]
fn fp8_by_integers() -> Result<()> {
    let mut random = fastrand::Rng::with_seed(5);
    let mut x: Vec<F32x2> = (0..200)
        .map(|_| F32x2::new(random.f32() * 900.0 - 450.0, random.f32() * 0.02))
        .collect();
    x.push(F32x2::new(f32::INFINITY, -1e9));
    x.push(F32x2::new(-0.0, 448.0));
    on_device(|kernels, stream| {
        let device_x = DeviceBuffer::from_slice(stream, &x)?;
        let mut codes = DeviceBuffer::<u16>::uninit(stream, 2 * x.len())?;
        let mut back = DeviceBuffer::<f32>::uninit(stream, 4 * x.len())?;
        kernels
            .fp8
            .launch(stream, x.len(), &device_x, &mut codes, &mut back)?;
        let codes = codes.to_vec()?;
        let back = back.to_vec()?;
        for (i, (x, codes)) in x.iter().zip(codes.chunks(2)).enumerate() {
            let e4m3 = [x.x, x.y].map(|x| u16::from(E4m3::from_f32(x).to_bits()));
            let e5m2 = [x.x, x.y].map(|x| u16::from(E5m2::from_f32(x).to_bits()));
            assert_eq!(codes[0], e4m3[0] | e4m3[1] << 8);
            assert_eq!(codes[1], e5m2[0] | e5m2[1] << 8);
            let narrow = [x.x, x.y].map(|x| E4m3::from_f32(x).to_f32());
            let wide = [x.x, x.y].map(|x| E5m2::from_f32(x).to_f32());
            assert_eq!(back[4 * i..4 * i + 4], [narrow, wide].concat());
        }
        Ok(())
    })
}

#[test]
fn integer_instructions() -> Result<()> {
    let mut random = fastrand::Rng::with_seed(11);
    let a: Vec<u32> = (0..200).map(|_| random.u32(..)).collect();
    let b: Vec<u32> = (0..200).map(|_| random.u32(..)).collect();
    on_device(|kernels, stream| {
        let mut y = DeviceBuffer::<u32>::uninit(stream, 4000)?;
        let mut wide = DeviceBuffer::<u64>::uninit(stream, 400)?;
        kernels.integers.launch(
            stream,
            200,
            &DeviceBuffer::from_slice(stream, &a)?,
            &DeviceBuffer::from_slice(stream, &b)?,
            Divisor::new(1920),
            &mut y,
            &mut wide,
        )?;
        let wide = wide.to_vec()?;
        for (i, y) in y.to_vec()?.chunks(20).enumerate() {
            let [a, b] = [a[i], b[i]];
            let [signed_a, signed_b] = [a.cast_signed(), b.cast_signed()];
            let both = u64::from(b) << 32 | u64::from(a);
            let shift = (b % 40).min(32);
            let bit = (4..32).filter(|bit| a >> bit & 1 == 1).nth(1);
            let low = |x: i32| x << 8 >> 8;
            let expected = [
                a.mul_high(b),
                signed_a.mul_high(signed_b).cast_unsigned(),
                a.abs_diff(b).wrapping_add(5),
                signed_a.abs_diff(signed_b).wrapping_add(5),
                (a & 0xff_ffff).wrapping_mul(b & 0xff_ffff),
                low(signed_a).wrapping_mul(low(signed_b)).cast_unsigned(),
                ((u128::from(both) << shift) >> 32) as u32,
                (both >> shift) as u32,
                a >> 5 & 0x1ff,
                (signed_a << 18 >> 23).cast_unsigned(),
                a & !(0x1ff << 5) | (b & 0x1ff) << 5,
                bit.unwrap_or(u32::MAX),
                a ^ b ^ 0x5555_5555,
                a / 1920,
                a % 1920,
                signed_a.saturating_add(signed_b).cast_unsigned(),
                signed_a.saturating_sub(signed_b).cast_unsigned(),
                a.abs_diff(b),
                a.rotate_left(b % 32),
                a.trailing_zeros(),
            ];
            assert_eq!(y, expected, "{a:#x} and {b:#x}");
            let swapped = both.rotate_left(32);
            assert_eq!(wide[2 * i], swapped.mul_high(both));
            let product = swapped.cast_signed().mul_high(both.cast_signed());
            assert_eq!(wide[2 * i + 1], product.cast_unsigned());
        }
        Ok(())
    })
}

#[test]
fn clocks() -> Result<()> {
    on_device(|kernels, stream| {
        let mut y = DeviceBuffer::<u64>::uninit(stream, 300)?;
        kernels.clocks.launch(stream, 100, &mut y)?;
        for y in y.to_vec()?.chunks(3) {
            assert_eq!((y[0], y[2]), (1, 1));
            assert!(y[1] < 1024, "multiprocessor {}", y[1]);
        }
        Ok(())
    })
}

#[test]
fn grids_of_three_dimensions() -> Result<()> {
    on_device(|kernels, stream| {
        let mut total = DeviceBuffer::<u32>::zeroed(stream, 30)?;
        kernels
            .three_dimensions
            .launch(stream, Blocks::new((5, 3, 2)), &mut total)?;
        let mut expected = 0;
        for z in 0..2 {
            for y in 0..3 {
                for x in 0..4 {
                    expected += z * 100 + y * 10 + x;
                }
            }
        }
        assert_eq!(total.to_vec()?, [expected; 30]);
        Ok(())
    })
}

/// A function on the host is that of `curium-kernel`, also where `std` has another.
#[test]
fn functions_on_the_host() {
    assert_eq!(Float::exp(0.0_f32), 1.0);
    assert_eq!(Float::powf(2.0_f32, 10.0), 1024.0);
    assert_eq!(Float::sin_pi(1.5_f64), -1.0);
}

#[track_caller]
fn assert_error<T>(result: Result<T>, parts: &[&str]) {
    let Err(error) = result else {
        panic!("no error, expected {parts:?}")
    };
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "{text} without {part}");
    }
}

/// Returns the elements of an array.
fn elements<T: Texel>(array: &Array<T>) -> Result<Vec<T>> {
    let mut elements = vec![T::zeroed(); array.len()];
    array.copy_to_slice(&mut elements)?;
    Ok(elements)
}

#[test]
fn textures_of_two_dimensions() -> Result<()> {
    let (width, height) = (13, 6);
    let x: Vec<f32> = (0..width * height).map(|i| (i * i % 50) as f32).collect();
    let element =
        |row: usize, column: usize| x[row.min(height - 1) * width + column.min(width - 1)];
    on_device(|kernels, stream| {
        let shape = ArrayShape::new_2d(width, height);
        let array = Arc::new(Array::from_slice(stream, &x, shape, ArrayFlags::GATHER)?);
        let options = TextureOptions::new()
            .with_filter(FilterMode::Linear)
            .with_flags(TextureFlags::empty());
        let texture = Texture::from_array(&array, &options)?;
        let mut sampled = DeviceBuffer::<f32>::uninit(stream, x.len())?;
        let mut fetched = DeviceBuffer::<f32>::uninit(stream, x.len())?;
        let mut gathered = DeviceBuffer::<[f32; 4]>::uninit(stream, x.len())?;
        kernels.texture_2d.launch(
            stream,
            Blocks::new((2, 2)),
            &texture,
            RowMajor::new(&mut sampled, height, width),
            RowMajor::new(&mut fetched, height, width),
            RowMajor::new(&mut gathered, height, width),
        )?;
        assert_eq!(fetched.to_vec()?, x);
        let sampled = sampled.to_vec()?;
        let gathered = gathered.to_vec()?;
        for row in 0..height {
            for column in 0..width {
                let i = row * width + column;
                let middle = (element(row, column) + element(row, column + 1)) / 2.0;
                assert_eq!(sampled[i], middle, "{row}, {column}");
                let corners = [
                    element(row + 1, column),
                    element(row + 1, column + 1),
                    element(row, column + 1),
                    element(row, column),
                ];
                assert_eq!(gathered[i], corners, "{row}, {column}");
            }
        }
        Ok(())
    })
}

/// Textures of a buffer, of a volume and of layers, and those of the wrong dimensions or elements.
#[test]
fn textures_of_other_dimensions() -> Result<()> {
    let line: Vec<u8> = (0..24).map(|i| i * 3).collect();
    let volume: Vec<[f32; 2]> = (0..24_u8).map(|i| [f32::from(i), -f32::from(i)]).collect();
    let layers: Vec<i32> = (0..24).map(|i| 100 - i).collect();
    on_device(|kernels, stream| {
        let options = TextureOptions::new();
        let buffer = Arc::new(DeviceBuffer::from_slice(stream, &line)?);
        let line_texture = Texture::from_buffer(&buffer, &options)?;
        let none = ArrayFlags::empty();
        let array = Array::from_slice(stream, &volume, ArrayShape::new_3d(4, 3, 2), none)?;
        let volume_texture = Texture::from_array(&Arc::new(array), &options)?;
        let array = Array::from_slice(stream, &layers, ArrayShape::layered_2d(4, 3, 2), none)?;
        let layers_texture = Texture::from_array(&Arc::new(array), &options)?;
        let mut y = DeviceBuffer::<f32>::uninit(stream, 96)?;
        kernels.textures.launch(
            stream,
            24,
            &line_texture,
            &volume_texture,
            &layers_texture,
            &mut y,
        )?;
        for (i, y) in y.to_vec()?.chunks(4).enumerate() {
            let expected = [
                f32::from(line[i]),
                volume[i][0],
                volume[i][1],
                layers[i] as f32,
            ];
            assert_eq!(y, expected, "{i}");
        }

        let flat = Array::from_slice(stream, &volume, ArrayShape::new_2d(4, 6), none)?;
        let flat = Texture::from_array(&Arc::new(flat), &options)?;
        let launch =
            kernels
                .textures
                .launch(stream, 24, &line_texture, &flat, &layers_texture, &mut y);
        assert_error(
            launch,
            &["textures", "`volume`", "a three-dimensional texture"],
        );
        let normalized = options.with_flags(TextureFlags::empty());
        let normalized = Texture::from_buffer(&buffer, &normalized)?;
        let launch = kernels.textures.launch(
            stream,
            24,
            &normalized,
            &volume_texture,
            &layers_texture,
            &mut y,
        );
        assert_error(launch, &["`line`", "READ_AS_INTEGER"]);
        Ok(())
    })
}

#[test]
fn surfaces() -> Result<()> {
    let (width, height) = (13, 6);
    let shape = ArrayShape::new_2d(width, height);
    on_device(|kernels, stream| {
        let flags = ArrayFlags::SURFACE;
        let array = Arc::new(Array::<[u16; 4]>::new(stream, shape, flags)?);
        let surface = Surface::new(&array)?;
        let grid = Blocks::new((2, 2));
        kernels.surface_store.launch(stream, grid, &surface)?;
        let cells = elements(&array)?;
        for (i, cell) in cells.into_iter().enumerate() {
            assert_eq!(cell, [(i / width) as u16, (i % width) as u16, 7, 9]);
        }

        let x: Vec<u8> = (0..78).collect();
        let array = Arc::new(Array::from_slice(stream, &x, shape, flags)?);
        let surface = Surface::new(&array)?;
        kernels.surface_update.launch(stream, grid, &surface)?;
        let cells = elements(&array)?;
        for (i, cell) in cells.into_iter().enumerate() {
            assert_eq!(usize::from(cell), i * 2 + i / width);
        }

        let x: Vec<f32> = (0..78_u8).map(f32::from).collect();
        let source = Arc::new(Array::from_slice(stream, &x, shape, flags)?);
        let target = Arc::new(Array::<f32>::new(stream, shape, flags)?);
        let texture = Texture::from_array(&source, &TextureOptions::new())?;
        let surface = Surface::new(&target)?;
        kernels
            .texture_to_surface
            .launch(stream, grid, &texture, &surface)?;
        let negative: Vec<f32> = x.iter().map(|x| -x).collect();
        assert_eq!(elements(&target)?, negative);
        // The kernel would read what it writes.
        let surface = Surface::new(&source)?;
        let launch = kernels
            .texture_to_surface
            .launch(stream, grid, &texture, &surface);
        assert_error(launch, &["`target`", "the same array", "`image`"]);
        Ok(())
    })
}
