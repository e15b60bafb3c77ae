//! Products of matrices, compared with the definition. Operands are loaded in the layout of the
//! ISA.

use super::{Bench, TestResult};
use crate::exec::ops::handler::with_baseline_handlers;

/// The addresses of the operands and the result in memory.
const B: u64 = 4096;
const C: u64 = 8192;

/// A product: the instruction without operands, its inner extent in 32-bit words of a row, and the
/// registers of A and B.
struct Form {
    text: &'static str,
    /// The number of rows of A, and of 32-bit words in a row of A and a column of B.
    rows: u64,
    words: u64,
}

/// Multiplies row-major A with column-major B, each given as 32-bit words. The result is row-major,
/// in 32-bit words.
fn multiply(form: &Form, a: &[u32], b: &[u32]) -> Vec<u32> {
    let Form { text, rows, words } = form;
    let halves = rows / 8;
    let parts = words / 4;
    let mut body = "
    shr.u32 %r2, %t, 2;
    and.b32 %r3, %t, 3;
    "
    .to_owned();
    // Each lane has word `t + 4 part` of row `g` and, for A, of row `g + 8`.
    let mut a_registers = Vec::new();
    let mut b_registers = Vec::new();
    for part in 0..parts {
        for half in 0..halves {
            let register = 10 + a_registers.len();
            body += &format!(
                "mad.lo.u32 %r4, %r2, {words}, {}; add.u32 %r4, %r4, %r3; mul.wide.u32 %d2, %r4, 4;
                add.u64 %d2, %d2, %p; ld.global.b32 %r{register}, [%d2];\n",
                half * 8 * words + part * 4
            );
            a_registers.push(format!("%r{register}"));
        }
        let register = 20 + b_registers.len();
        body += &format!(
            "mad.lo.u32 %r4, %r2, {words}, {}; add.u32 %r4, %r4, %r3; mul.wide.u32 %d2, %r4, 4;
            add.u64 %d2, %d2, %p; ld.global.b32 %r{register}, [%d2+{B}];\n",
            part * 4
        );
        b_registers.push(format!("%r{register}"));
    }
    let results: Vec<String> = (0..2 * halves)
        .map(|index| format!("%r{}", 30 + index))
        .collect();
    let zeros = vec!["%r40"; results.len()].join(", ");
    body += &format!(
        "mov.b32 %r40, 0;
        {text} {{{}}}, {{{}}}, {{{}}}, {{{zeros}}};
        shl.b32 %r5, %t, 3; cvt.u64.u32 %d3, %r5; add.u64 %d3, %d3, %p;\n",
        results.join(", "),
        a_registers.join(", "),
        b_registers.join(", ")
    );
    for (half, pair) in results.chunks(2).enumerate() {
        body += &format!(
            "st.global.v2.b32 [%d3+{}], {{{}, {}}};\n",
            C + 256 * half as u64,
            pair[0],
            pair[1]
        );
    }
    let bench = Bench::body(&body, 16384);
    bench.memory.write(0, a);
    bench.memory.write(B, b);
    bench
        .launch(1, 32)
        .unwrap_or_else(|fault| panic!("{text}: {fault}"));
    bench.memory.read(C, (rows * 8) as usize)
}

/// Packs elements of `bits` bits, the lowest first.
fn pack(elements: &[u32], bits: u32) -> Vec<u32> {
    let each = (32 / bits) as usize;
    let mask = u32::MAX >> (32 - bits);
    elements
        .chunks(each)
        .map(|chunk: &[u32]| {
            chunk.iter().rev().fold(0, |word, element| {
                (u64::from(word) << bits) as u32 | element & mask
            })
        })
        .collect()
}

/// Returns small integers, so that every sum is exact in every format.
fn numbers(seed: u32, count: usize, bound: i32) -> Vec<i32> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16).cast_signed() % (2 * bound + 1) - bound
    })
    .take(count)
    .collect()
}

fn product(
    a: &[i32],
    b: &[i32],
    rows: usize,
    inner: usize,
    f: impl Fn(i32, i32) -> i32,
) -> Vec<i32> {
    let element = |row: usize, column: usize| {
        (0..inner)
            .map(|k| f(a[row * inner + k], b[column * inner + k]))
            .sum()
    };
    (0..rows * 8)
        .map(|index| element(index / 8, index % 8))
        .collect()
}

fn half(value: i32) -> u32 {
    // Integers below 2048 are exact in f16: the fraction moves from 23 to 10 bits, the bias from
    // 127 to 15.
    let bits = (value as f32).to_bits();
    if value == 0 {
        0
    } else {
        (bits >> 16 & 0x8000) | ((bits & 0x7fff_ffff) - (112 << 23)) >> 13
    }
}

fn brain(value: i32) -> u32 {
    (value as f32).to_bits() >> 16
}

#[test]
fn floating_point_products_equal_the_definition() {
    type Encode = fn(i32) -> u32;
    let forms: [(&str, usize, usize, u32, Encode); 6] = [
        (
            "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32",
            16,
            8,
            16,
            half,
        ),
        (
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
            16,
            16,
            16,
            half,
        ),
        (
            "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32",
            16,
            8,
            16,
            brain,
        ),
        (
            "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
            16,
            16,
            16,
            brain,
        ),
        (
            "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32",
            16,
            4,
            32,
            |value| (value as f32).to_bits(),
        ),
        (
            "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
            16,
            8,
            32,
            |value| (value as f32).to_bits(),
        ),
    ];
    for (text, rows, inner, bits, encode) in forms {
        let a = numbers(1, rows * inner, 20);
        let b = numbers(2, 8 * inner, 20);
        let encoded = |values: &[i32]| {
            pack(
                &values
                    .iter()
                    .map(|value| encode(*value))
                    .collect::<Vec<_>>(),
                bits,
            )
        };
        let form = Form {
            text,
            rows: rows as u64,
            words: (inner as u64) * u64::from(bits) / 32,
        };
        let compute = || multiply(&form, &encoded(&a), &encoded(&b));
        let expected: Vec<u32> = product(&a, &b, rows, inner, |a, b| a * b)
            .into_iter()
            .map(|value| (value as f32).to_bits())
            .collect();
        for result in [compute(), with_baseline_handlers(compute)] {
            assert_eq!(result, expected, "{text}");
        }
    }
}

#[test]
fn double_precision_product_equals_the_definition() -> TestResult {
    let bench = Bench::body(
        "
    shr.u32 %r2, %t, 2;
    and.b32 %r3, %t, 3;
    mad.lo.u32 %r4, %r2, 4, %r3;
    mul.wide.u32 %d2, %r4, 8;
    add.u64 %d2, %d2, %p;
    ld.global.f64 %e1, [%d2];
    ld.global.f64 %e2, [%d2+256];
    mov.f64 %e3, 0d3FF0000000000000;
    mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%e4, %e5}, {%e1}, {%e2}, {%e3, %e3};
    mul.wide.u32 %d3, %t, 16;
    add.u64 %d3, %d3, %p;
    st.global.v2.f64 [%d3+512], {%e4, %e5};",
        4096,
    );
    let a = numbers(7, 32, 9);
    let b = numbers(8, 32, 9);
    let bits = |values: &[i32]| {
        values
            .iter()
            .map(|value| f64::from(*value).to_bits())
            .collect::<Vec<u64>>()
    };
    bench.memory.write(0, &bits(&a));
    bench.memory.write(256, &bits(&b));
    bench.launch(1, 32)?;
    let expected: Vec<i32> = product(&a, &b, 8, 4, |a, b| a * b)
        .into_iter()
        .map(|bits| bits + 1)
        .collect();
    assert_eq!(bench.memory.read::<u64>(512, 64), bits(&expected));
    Ok(())
}

#[test]
fn small_matrices_are_loaded_transposed_and_stored() -> TestResult {
    let bench = Bench::body(
        "
    .shared .align 16 .b8 tile[512];
    mov.u32 %r2, tile;
    mad.lo.u32 %r3, %t, 16, %r2;
    mad.lo.u32 %r4, %t, 16, 0;
    cvt.u64.u32 %d2, %r4;
    add.u64 %d2, %d2, %p;
    ld.global.v4.b32 {%r5, %r6, %r7, %r8}, [%d2];
    st.shared.v4.b32 [%r3], {%r5, %r6, %r7, %r8};
    bar.warp.sync -1;
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r3];
    ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r14}, [%r3];
    movmatrix.sync.aligned.m8n8.trans.b16 %r15, %r10;
    st.global.b32 [%at4+512], %r11;
    st.global.b32 [%at4+640], %r14;
    st.global.b32 [%at4+768], %r15;
    stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%r3], {%r10, %r11};
    bar.warp.sync -1;
    ld.shared.v4.b32 {%r5, %r6, %r7, %r8}, [%r3];
    st.global.v4.b32 [%d2+1024], {%r5, %r6, %r7, %r8};",
        4096,
    );
    let halves: Vec<u16> = (0..256).collect();
    bench.memory.write(0, &halves);
    bench.launch(1, 32)?;
    // The second matrix starts at element 64. Each lane has two neighbors.
    assert_eq!(
        bench.memory.read::<u16>(512, 64),
        (64..128).collect::<Vec<u16>>()
    );
    let transposed: Vec<u16> = (0..64).map(|index| index % 8 * 8 + index / 8).collect();
    assert_eq!(bench.memory.read::<u16>(640, 64), transposed);
    assert_eq!(bench.memory.read::<u16>(768, 64), transposed);
    assert_eq!(bench.memory.read::<u16>(1024, 64), transposed);
    Ok(())
}

#[test]
fn wmma_layouts() -> TestResult {
    // D = A B + C with row-major A, column-major B, and different strides.
    let bench = Bench::body(
        "
    wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9}, [%p], 20;
    wmma.load.b.sync.aligned.col.m16n16k16.global.f16 {%r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17}, [%p+1024];
    wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8}, [%p+2048], 16;
    wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32
        {%f11, %f12, %f13, %f14, %f15, %f16, %f17, %f18},
        {%r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9},
        {%r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17},
        {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8};
    wmma.store.d.sync.aligned.col.m16n16k16.global.f32 [%p+4096],
        {%f11, %f12, %f13, %f14, %f15, %f16, %f17, %f18}, 16;",
        8192,
    );
    let a = numbers(9, 256, 9);
    let b = numbers(10, 256, 9);
    let c = numbers(11, 256, 99);
    for row in 0..16_usize {
        let bits: Vec<u16> = a[row * 16..][..16]
            .iter()
            .map(|value| half(*value) as u16)
            .collect();
        bench.memory.write(row as u64 * 40, &bits);
    }
    bench.memory.write(
        1024,
        &b.iter()
            .map(|value| half(*value) as u16)
            .collect::<Vec<_>>(),
    );
    bench.memory.write(
        2048,
        &c.iter()
            .map(|value| (*value as f32).to_bits())
            .collect::<Vec<_>>(),
    );
    bench.launch(1, 32)?;
    let element = |row: usize, column: usize| {
        c[row * 16 + column]
            + (0..16)
                .map(|k| a[row * 16 + k] * b[column * 16 + k])
                .sum::<i32>()
    };
    let expected: Vec<u32> = (0..256)
        .map(|index| (element(index % 16, index / 16) as f32).to_bits())
        .collect();
    assert_eq!(bench.memory.read::<u32>(4096, 256), expected);
    Ok(())
}
