//! Kernels as compilers emit them, compared with Rust.

use super::{BASE, Bench};
#[cfg(all(target_os = "linux", not(miri)))]
use crate::exec::Checking;
use crate::exec::Statistics;
use crate::exec::values::fused::Fused as _;

/// A launch that can be repeated.
pub(super) struct Run {
    pub(super) bench: Bench,
    grid: [u32; 3],
    block: [u32; 3],
    params: Vec<u8>,
}

impl Run {
    /// Returns the launch with checks, but without a watcher, which would keep every access. All of
    /// its memory counts as written.
    #[cfg(all(target_os = "linux", not(miri)))]
    pub(super) fn with_checks(self, checking: Checking) -> Self {
        let mut bench = self.bench.with_checks(checking, 0..u64::MAX);
        bench.memory.is_watched = false;
        Self { bench, ..self }
    }

    /// Launches the kernel, and waits for it.
    pub(super) fn launch(&self) -> Statistics {
        self.bench
            .launch_with(self.grid, self.block, &self.params)
            .expect("no fault")
    }
}

const SAXPY: &str = "
.visible .entry main(.param .u32 n, .param .f32 a, .param .u64 x, .param .u64 y)
{
    .reg .pred %p<2>;
    .reg .b32 %r<6>;
    .reg .f32 %f<5>;
    .reg .b64 %rd<8>;
    ld.param.u32 %r2, [n];
    ld.param.f32 %f1, [a];
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mov.u32 %r5, %tid.x;
    mad.lo.s32 %r1, %r3, %r4, %r5;
    setp.ge.s32 %p1, %r1, %r2;
    @%p1 bra DONE;
    cvta.to.global.u64 %rd3, %rd1;
    mul.wide.s32 %rd4, %r1, 4;
    add.s64 %rd5, %rd3, %rd4;
    cvta.to.global.u64 %rd6, %rd2;
    add.s64 %rd7, %rd6, %rd4;
    ld.global.f32 %f2, [%rd5];
    ld.global.f32 %f3, [%rd7];
    fma.rn.f32 %f4, %f1, %f2, %f3;
    st.global.f32 [%rd7], %f4;
DONE:
    ret;
}";

fn saxpy_params(n: u32, a: f32) -> Vec<u8> {
    let mut params = Vec::new();
    params.extend(n.to_le_bytes());
    params.extend(a.to_le_bytes());
    params.extend(BASE.to_le_bytes());
    params.extend((BASE + u64::from(n) * 4).to_le_bytes());
    params
}

/// Returns a launch of `y += 2.5 x` on `n` elements, and the expected `y`.
pub(super) fn saxpy(n: u32) -> (Run, Vec<u32>) {
    let mut bench = Bench::new(SAXPY, u64::from(n) * 8);
    bench.workers = 2;
    let x: Vec<u32> = (0..n).map(|i| (i as f32 * 0.37).to_bits()).collect();
    let y: Vec<u32> = (0..n).map(|i| (1.0 - i as f32).to_bits()).collect();
    bench.memory.write(0, &x);
    bench.memory.write(u64::from(n) * 4, &y);
    let expected = x.iter().zip(&y);
    let expected = expected
        .map(|(&x, &y)| 2.5f32.fused(f32::from_bits(x), f32::from_bits(y)).to_bits())
        .collect();
    let params = saxpy_params(n, 2.5);
    (
        Run {
            bench,
            grid: [n.div_ceil(256), 1, 1],
            block: [256, 1, 1],
            params,
        },
        expected,
    )
}

#[test]
fn saxpy_agrees_with_rust_bit_for_bit() {
    // The last block is partly out of bounds.
    let n = 10_007;
    let (run, expected) = saxpy(n);
    run.launch();
    assert_eq!(
        run.bench.memory.read::<u32>(u64::from(n) * 4, n as usize),
        expected
    );
}

const MANDELBROT: &str = "
.visible .entry main(.param .u64 out, .param .u32 width, .param .u32 height, .param .u32 limit)
{
    .reg .pred %p<4>;
    .reg .b32 %r<16>;
    .reg .f32 %f<24>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [width];
    ld.param.u32 %r2, [height];
    ld.param.u32 %r3, [limit];
    mov.u32 %r4, %ctaid.x;
    mov.u32 %r5, %ntid.x;
    mov.u32 %r6, %tid.x;
    mad.lo.s32 %r7, %r4, %r5, %r6;
    mov.u32 %r8, %ctaid.y;
    setp.ge.u32 %p1, %r7, %r1;
    @%p1 bra END;
    cvt.rn.f32.u32 %f1, %r7;
    cvt.rn.f32.u32 %f2, %r1;
    div.rn.f32 %f3, %f1, %f2;
    fma.rn.f32 %f4, %f3, 0f40400000, 0fC0000000;
    cvt.rn.f32.u32 %f5, %r8;
    cvt.rn.f32.u32 %f6, %r2;
    div.rn.f32 %f7, %f5, %f6;
    fma.rn.f32 %f8, %f7, 0f40000000, 0fBF800000;
    mov.f32 %f9, 0f00000000;
    mov.f32 %f10, %f9;
    mov.u32 %r9, 0;
LOOP:
    mul.rn.f32 %f11, %f9, %f9;
    mul.rn.f32 %f12, %f10, %f10;
    add.rn.f32 %f13, %f11, %f12;
    setp.gt.f32 %p2, %f13, 0f40800000;
    @%p2 bra STORE;
    sub.rn.f32 %f14, %f11, %f12;
    add.rn.f32 %f15, %f14, %f4;
    add.rn.f32 %f16, %f9, %f9;
    fma.rn.f32 %f10, %f16, %f10, %f8;
    mov.f32 %f9, %f15;
    add.s32 %r9, %r9, 1;
    setp.lt.u32 %p3, %r9, %r3;
    @%p3 bra LOOP;
STORE:
    mad.lo.s32 %r10, %r8, %r1, %r7;
    mul.wide.u32 %rd2, %r10, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r9;
END:
    ret;
}";

fn escape_time(x: u32, y: u32, width: u32, height: u32, limit: u32) -> u32 {
    let cx = (x as f32 / width as f32).fused(3.0, -2.0);
    let cy = (y as f32 / height as f32).fused(2.0, -1.0);
    let mut a = 0.0f32;
    let mut b = 0.0f32;
    for step in 0..limit {
        if a * a + b * b > 4.0 {
            return step;
        }
        (a, b) = (a * a - b * b + cx, (a + a).fused(b, cy));
    }
    limit
}

/// Computes which points escape, and when.
pub(super) fn mandelbrot(width: u32, height: u32, limit: u32) -> Run {
    let mut bench = Bench::new(MANDELBROT, u64::from(width * height) * 4);
    bench.workers = 2;
    let mut params = BASE.to_le_bytes().to_vec();
    for value in [width, height, limit] {
        params.extend(value.to_le_bytes());
    }
    let grid = [width.div_ceil(64), height, 1];
    Run {
        bench,
        grid,
        block: [64, 1, 1],
        params,
    }
}

#[test]
fn mandelbrot_agrees_with_rust_pixel_for_pixel() {
    let width = 150;
    let height = 64;
    let limit = 200;
    let run = mandelbrot(width, height, limit);
    run.launch();
    let pixels = run.bench.memory.read::<u32>(0, (width * height) as usize);
    for y in 0..height {
        for x in 0..width {
            let pixel = pixels[(y * width + x) as usize];
            assert_eq!(pixel, escape_time(x, y, width, height, limit), "({x}, {y})");
        }
    }
}

/// Multiplies two matrices of `n` by `n` in tiles of 16 by 16.
pub(super) fn matmul(n: u32) -> Run {
    let bytes = u64::from(n * n) * 4;
    let mut bench = Bench::new(include_str!("matmul.ptx"), 3 * bytes);
    bench.workers = 2;
    let values: Vec<u32> = (0..2 * n * n)
        .map(|index| ((index % 13) as f32).to_bits())
        .collect();
    bench.memory.write(0, &values);
    let mut params: Vec<u8> = (0..3)
        .flat_map(|matrix| (BASE + matrix * bytes).to_le_bytes())
        .collect();
    params.extend(n.to_le_bytes());
    Run {
        bench,
        grid: [n / 16, n / 16, 1],
        block: [16, 16, 1],
        params,
    }
}

#[test]
fn tiled_product_agrees_with_rust_bit_for_bit() {
    let n = 48;
    let run = matmul(n);
    run.launch();
    let value = |index: u32| (index % 13) as f32;
    let products = run
        .bench
        .memory
        .read::<u32>(u64::from(2 * n * n) * 4, (n * n) as usize);
    for at in 0..n * n {
        let row = at / n;
        let column = at % n;
        let sum = (0..n).fold(0.0_f32, |sum, k| {
            value(row * n + k).fused(value(n * n + k * n + column), sum)
        });
        assert_eq!(
            f32::from_bits(products[at as usize]),
            sum,
            "({row}, {column})"
        );
    }
}

/// Computes the forces between `n` bodies, a multiple of 256.
pub(super) fn bodies(n: u32) -> Run {
    let mut bench = Bench::new(include_str!("bodies.ptx"), u64::from(n) * 32);
    bench.workers = 2;
    let values: Vec<u32> = (0..4 * n)
        .map(|index| ((index * 7 % 101) as f32 * 0.1).to_bits())
        .collect();
    bench.memory.write(0, &values);
    let mut params = BASE.to_le_bytes().to_vec();
    params.extend((BASE + u64::from(n) * 16).to_le_bytes());
    params.extend(n.to_le_bytes());
    Run {
        bench,
        grid: [n / 256, 1, 1],
        block: [256, 1, 1],
        params,
    }
}

#[test]
fn n_body_forces_match_rust() {
    let n = 512;
    let run = bodies(n);
    run.launch();
    let value = |index: u32| f64::from((index * 7 % 101) as f32 * 0.1);
    let forces = run
        .bench
        .memory
        .read::<u32>(u64::from(n) * 16, 4 * n as usize);
    for body in (0..n).step_by(37) {
        let mut force = [0.0; 3];
        for other in 0..n {
            let distance = [0, 1, 2].map(|axis| value(4 * other + axis) - value(4 * body + axis));
            let square = distance
                .iter()
                .map(|component| component * component)
                .sum::<f64>()
                + 0.01;
            let scale = value(4 * other + 3) / (square * square.sqrt());
            force
                .iter_mut()
                .zip(distance)
                .for_each(|(sum, distance)| *sum += distance * scale);
        }
        for (axis, expected) in force.into_iter().enumerate() {
            let force = f64::from(f32::from_bits(forces[4 * body as usize + axis]));
            assert!(
                (force - expected).abs() <= expected.abs() * 1e-4 + 1e-2,
                "{body}: {force} {expected}"
            );
        }
    }
}
