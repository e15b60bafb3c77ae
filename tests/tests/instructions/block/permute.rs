//! `prmt` with edge-case selectors: each mode, with an immediate and a register selector, and with
//! registers, immediate values, and the same register twice as operands.

use super::{BlockForm, Output};
use crate::form::Sources;

/// A number whose bytes start with ones and zeros alternately.
const EDGE: u64 = 0x80ff_7f01;

/// Selectors of the default mode: bits above the lowest sixteen are ignored.
const PLAIN: [u32; 13] = [
    0x0000,
    0x3210,
    0x7654,
    0x0123,
    0x8888,
    0xffff,
    0xfedc,
    0xba98,
    0x89ab,
    0xf0f8,
    0x8f0c,
    0xdead_3210,
    0xffff_8765,
];
/// Selectors of the other modes, of which only the two lowest bits are used.
const OF_MODES: [u32; 12] = [
    0,
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    0x8000_0001,
    0xffff_fffc,
    0xffff_fffe,
    0xffff_ffff,
];
/// For each mode, the bytes of the result for selectors 0 to 3, the highest first.
const MODES: [(&str, [[u64; 4]; 4]); 6] = [
    (
        "f4e",
        [[3, 2, 1, 0], [4, 3, 2, 1], [5, 4, 3, 2], [6, 5, 4, 3]],
    ),
    (
        "b4e",
        [[5, 6, 7, 0], [6, 7, 0, 1], [7, 0, 1, 2], [0, 1, 2, 3]],
    ),
    ("rc8", [[0; 4], [1; 4], [2; 4], [3; 4]]),
    ("ecl", [[3, 2, 1, 0], [3, 2, 1, 1], [3, 2, 2, 2], [3; 4]]),
    ("ecr", [[0; 4], [1, 1, 1, 0], [2, 2, 1, 0], [3, 2, 1, 0]]),
    (
        "rc16",
        [[1, 0, 1, 0], [3, 2, 3, 2], [1, 0, 1, 0], [3, 2, 3, 2]],
    ),
];

pub(super) fn forms() -> Vec<BlockForm> {
    let mut selectors = PLAIN.to_vec();
    // Each of the sixteen values at each position.
    selectors.extend((0..4).flat_map(|index| {
        (0..16).map(move |value| 0x7361 & !(0xf << (4 * index)) | value << (4 * index))
    }));
    let mut forms: Vec<BlockForm> = selectors
        .iter()
        .map(|selector| by_number("prmt.b32", *selector, plain))
        .collect();
    forms.push(by_register("prmt.b32", plain));
    for (mode, bytes) in MODES {
        let spelling = format!("prmt.b32.{mode}");
        let permute = move |a: u64, b: u64, selector: u64| {
            let bytes = bytes[(selector & 3) as usize];
            bytes
                .into_iter()
                .fold(0, |result, from| result << 8 | byte(a, b, from))
        };
        forms.extend(
            OF_MODES
                .iter()
                .map(|selector| by_number(&spelling, *selector, permute)),
        );
        forms.push(by_register(&spelling, permute));
    }
    forms
}

/// Returns one of the eight bytes of two operands.
fn byte(a: u64, b: u64, number: u64) -> u64 {
    let operand = if number < 4 { a } else { b };
    operand >> (8 * (number % 4)) & 0xff
}

/// Default mode: each byte of the result has four selector bits, the number of a source byte and a
/// sign-replication bit.
fn plain(a: u64, b: u64, selector: u64) -> u64 {
    (0..4)
        .map(|at: u64| {
            let select = selector >> (4 * at) & 0xf;
            let selected = byte(a, b, select & 7);
            let spread = if selected & 0x80 == 0 { 0 } else { 0xff };
            (if select & 8 == 0 { selected } else { spread }) << (8 * at)
        })
        .sum()
}

/// Stores the four results in `%r8` to `%r11`.
const LEAVE: &str = "\n    st.global.b32 [%out], %r8; st.global.b32 [%out+8], %r9; st.global.b32 [%out+16], %r10; st.global.b32 [%out+24], %r11;";

fn by_number(
    spelling: &str,
    selector: u32,
    permute: impl Fn(u64, u64, u64) -> u64 + Copy + 'static,
) -> BlockForm {
    let code = format!(
        "{spelling} %r8, %r0, %r1, {selector:#x};
    {spelling} %r9, %r1, %r1, {selector:#x};
    {spelling} %r10, {EDGE:#x}, %r0, {selector:#x};
    {spelling} %r11, %r0, {EDGE:#x}, {selector:#x};{LEAVE}"
    );
    BlockForm::new(
        format!("{spelling} by {selector:#x}"),
        code,
        move |all: &[Sources], thread: usize| -> Output {
            let [a, b] = low(&all[thread]);
            let c = selector.into();
            [
                permute(a, b, c),
                permute(b, b, c),
                permute(EDGE, a, c),
                permute(a, EDGE, c),
            ]
        },
    )
}

fn by_register(
    spelling: &str,
    permute: impl Fn(u64, u64, u64) -> u64 + Copy + 'static,
) -> BlockForm {
    let code = format!(
        "mov.b32 %r10, %r2;
    {spelling} %r8, %r0, %r1, %r2;
    {spelling} %r9, %r0, %r0, %r0;
    {spelling} %r10, %r10, %r1, %r10;
    {spelling} %r11, {EDGE:#x}, 0, %r2;{LEAVE}"
    );
    BlockForm::new(
        format!("{spelling} by a register"),
        code,
        move |all: &[Sources], thread: usize| -> Output {
            let [a, b] = low(&all[thread]);
            let c = all[thread][2] & 0xffff_ffff;
            [
                permute(a, b, c),
                permute(a, a, a),
                permute(c, b, c),
                permute(EDGE, 0, c),
            ]
        },
    )
}

fn low(sources: &Sources) -> [u64; 2] {
    [sources[0] & 0xffff_ffff, sources[1] & 0xffff_ffff]
}
