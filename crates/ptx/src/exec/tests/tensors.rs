//! Copies, reductions and prefetches of parts of tensors, and bulk reductions.

use super::super::ReportKind;
use super::{BASE, Bench, TestResult};
use crate::exec::ops::tensor_map::{Corners, Field, IM2COL, MAGIC, TILED};

/// The addresses of the tensor and the results, after the map.
const TENSOR: u64 = 256;
const LEFT: u64 = 8192;

/// The fields of a matrix of 32-bit words with 5 rows of 12, 64 bytes apart, in boxes of 4 rows of 8.
const MATRIX: [(Field, u64); 13] = [
    (Field::ADDRESS, BASE + TENSOR),
    (Field::DATA_TYPE, 2),
    (Field::RANK, 2),
    (Field::extent(0), 12),
    (Field::extent(1), 5),
    (Field::stride(0), 64),
    (Field::step(0), 1),
    (Field::step(1), 1),
    (Field::step(2), 1),
    (Field::step(3), 1),
    (Field::step(4), 1),
    (Field::boxed(0), 7),
    (Field::boxed(1), 3),
];

/// Returns a tiled map with these fields. Later ones replace earlier ones.
fn encoded_map(fields: &[&[(Field, u64)]]) -> [u64; 16] {
    let mut words = [0; 16];
    words[0] = MAGIC | TILED;
    fields
        .iter()
        .copied()
        .flatten()
        .for_each(|(field, value)| words[field.word()] = field.set(words[field.word()], *value));
    words
}

/// Declares shared memory of 1,024 bytes, its first word in `%r2`, and an mbarrier object in `%r3`.
/// The map is in `%p`.
const PARTS: &str = "
    .shared .align 1024 .b8 tile[1024];
    .shared .align 8 .b64 bar;
    mov.u32 %r2, tile;
    mov.u32 %r3, bar;
    mbarrier.init.shared.b64 [%r3], 1;";
/// Waits for the mbarrier object, and stores the contents of shared memory.
const LEAVE: &str = "
WAIT:
    mbarrier.test_wait.parity.shared.b64 %p1, [%r3], 0;
    @!%p1 bra WAIT;
    mov.u32 %r4, 0;
NEXT:
    add.u32 %r5, %r2, %r4;
    ld.shared.u32 %r6, [%r5];
    cvt.u64.u32 %d2, %r4;
    add.u64 %d2, %d2, %p;
    st.global.u32 [%d2+8192], %r6;
    add.u32 %r4, %r4, 4;
    setp.lt.u32 %p1, %r4, 1024;
    @%p1 bra NEXT;";

/// Returns a bench for a kernel. Its memory begins with the map, and the words of the tensor are
/// numbered from 1.
fn bench(code: &str, map: [u64; 16]) -> Bench {
    let bench = Bench::body(&format!("{PARTS}{code}"), LEFT + 1024);
    bench.memory.write(0, &map);
    bench.memory.write(TENSOR, &(1..=96).collect::<Vec<u32>>());
    bench
}

/// Expects `bytes`, and loads the part of a matrix at these coordinates.
fn load(bytes: u32, coordinates: &str) -> String {
    format!(
        "mbarrier.arrive.expect_tx.shared.b64 %d1, [%r3], {bytes};
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r2], [%p, {{{coordinates}}}], [%r3];{LEAVE}"
    )
}

/// Returns the matrix's word at a position, if it is in bounds.
fn word(column: i64, row: i64) -> Option<u32> {
    ((0..12).contains(&column) && (0..5).contains(&row)).then(|| (16 * row + column + 1) as u32)
}

#[test]
fn tile_is_zero_beyond_edges() -> TestResult {
    for (x, y) in [
        (0, 0),
        (4, 1),
        (8, 3),
        (-4, -2),
        (12, 0),
        (0, -4),
        (-2_147_483_648, 2_147_483_647),
    ] {
        let bench = bench(&load(128, &format!("{x}, {y}")), encoded_map(&[&MATRIX]));
        bench.launch(1, 1)?;
        let expected: Vec<u32> = (0..32)
            .map(|index| word(x + index % 8, y + index / 8).unwrap_or(0))
            .collect();
        assert_eq!(bench.memory.read::<u32>(LEFT, 32), expected, "at {x}, {y}");
    }
    Ok(())
}

#[test]
fn short_rows_are_padded() -> TestResult {
    let swizzled = [(Field::SWIZZLE, 3), (Field::DATA_TYPE, 7), (Field::FILL, 1)];
    let bench = bench(&load(128, "8, 2"), encoded_map(&[&MATRIX, &swizzled]));
    bench.launch(1, 1)?;
    let remaining = bench.memory.read::<u32>(LEFT, 256);
    for (at, found) in remaining.iter().enumerate() {
        // The index of a line moves the 16 bytes within it.
        let line = at / 32;
        let part = at / 4 % 8;
        let column = (part ^ (line % 8)) * 4 + at % 4;
        let expected = match column {
            0..8 if line < 4 => word(8 + column as i64, 2 + line as i64).unwrap_or(0x7ff7_7ff7),
            _ => 0,
        };
        assert_eq!(*found, expected, "word {at}");
    }
    Ok(())
}

#[test]
fn strided_tile_is_loaded() -> TestResult {
    let bench = bench(
        &load(64, "0, 1"),
        encoded_map(&[&MATRIX, &[(Field::step(1), 2), (Field::step(0), 3)]]),
    );
    bench.launch(1, 1)?;
    let expected: Vec<u32> = (0..16)
        .map(|index| word(index % 8, 1 + index / 8 * 2).unwrap_or(0))
        .collect();
    assert_eq!(
        bench.memory.read::<u32>(LEFT, 16),
        expected,
        "steps along a row are not taken"
    );
    Ok(())
}

#[test]
fn pixels_between_the_corners() -> TestResult {
    // Three images of 4 pixels with 4 channels. The box contains pixels 1 to 2 of each.
    let corners = Corners::new(3).pack(&[1], &[-1]);
    let fields = [
        (Field::RANK, 3),
        (Field::extent(0), 4),
        (Field::extent(1), 4),
        (Field::extent(2), 3),
        (Field::stride(0), 16),
        (Field::stride(1), 64),
        (Field::TAKEN, corners | 3 << 16 | 5),
    ];
    let mut map = encoded_map(&[&MATRIX, &fields]);
    map[0] = MAGIC | IM2COL;
    let code = format!(
        "mov.b16 %h1, 1; mbarrier.arrive.expect_tx.shared.b64 %d1, [%r3], 80;
    cp.async.bulk.tensor.3d.shared::cta.global.im2col.mbarrier::complete_tx::bytes [%r2], [%p, {{0, 2, 1}}], [%r3], {{%h1}};{LEAVE}"
    );
    let bench = bench(&code, map);
    bench.launch(1, 1)?;
    // Each pixel is one to the right of its position in the box: pixel 3 of image 1, pixels 2 and 3
    // of image 2, and none of image 3.
    let expected: Vec<u32> = [
        first_element(1, 3),
        first_element(2, 2),
        first_element(2, 3),
    ]
    .into_iter()
    .flat_map(|first| first..first + 4)
    .chain([0; 8])
    .collect();
    assert_eq!(bench.memory.read::<u32>(LEFT, 20), expected);
    Ok(())
}

/// Returns the first element of a pixel.
fn first_element(image: u32, pixel: u32) -> u32 {
    16 * image + 4 * pixel + 1
}

/// Fills shared memory with words from 1,001 on, and executes the instruction with it.
fn out(instruction: &str) -> String {
    format!(
        "mov.u32 %r4, 0;
FILL:
    add.u32 %r5, %r2, %r4;
    shr.u32 %r6, %r4, 2;
    add.u32 %r6, %r6, 1001;
    st.shared.u32 [%r5], %r6;
    add.u32 %r4, %r4, 4;
    setp.lt.u32 %p1, %r4, 1024;
    @%p1 bra FILL;
    fence.proxy.async;
    {instruction}
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;"
    )
}

const STORE: &str =
    "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%p, {8, 3}], [%r2];";

#[test]
fn stored_tile_ends_at_edges() -> TestResult {
    let bench = bench(&out(STORE), encoded_map(&[&MATRIX]));
    bench.launch(1, 1)?;
    let mut expected: Vec<u32> = (1..=96).collect();
    for (row, column) in (0..2).flat_map(|row| (0..4).map(move |column| (row, column))) {
        expected[(3 + row) * 16 + 8 + column] = (1001 + 8 * row + column) as u32;
    }
    assert_eq!(bench.memory.read::<u32>(TENSOR, 96), expected);
    Ok(())
}

/// Stored tile writes whole granules at the edge of a row.
#[test]
fn stored_tile_is_whole_granules() -> TestResult {
    let bench = bench(
        &out(STORE),
        encoded_map(&[&MATRIX, &[(Field::extent(0), 9), (Field::extent(1), 4)]]),
    );
    bench.launch(1, 1)?;
    let row = bench.memory.read::<u32>(TENSOR + 3 * 64 + 32, 8);
    assert_eq!(
        row,
        [1001, 1002, 1003, 1004, 61, 62, 63, 64],
        "three of the four are beyond the edge"
    );
    Ok(())
}

#[test]
fn tile_is_added_to_a_tensor() -> TestResult {
    let add = "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%p, {4, 1}], [%r2];";
    let bench = bench(&out(add), encoded_map(&[&MATRIX]));
    bench.launch(1, 1)?;
    let row = bench.memory.read::<u32>(TENSOR + 2 * 64 + 16, 8);
    assert_eq!(
        row,
        (0..8)
            .map(|column| 37 + column + 1009 + column)
            .collect::<Vec<u32>>()
    );
    Ok(())
}

#[test]
fn invalid_tensor_accesses() {
    let fault = |code: &str, fields: &[(Field, u64)]| {
        let fault = bench(code, encoded_map(&[&MATRIX, fields]))
            .launch(1, 1)
            .expect_err(code);
        fault.kind.to_string()
    };
    let load_at = |coordinates: &str| load(128, coordinates);
    let shifted = load_at("0, 0").replace("[%r2], [%p", "[%r2+64], [%p");
    let elsewhere = load_at("0, 0").replace("[%p, ", "[%d9, ");
    let one = |offset: u32| format!("add.u64 %d9, %p, {offset}; {elsewhere}");
    let line = load_at("0").replace(".2d", ".1d");
    let negative = out(&STORE.replace("{8, 3}", "{0, -1}"));
    let reduced = out(
        "cp.reduce.async.bulk.tensor.2d.global.shared::cta.inc.bulk_group [%p, {0, 0}], [%r2];",
    );
    let images = "mov.b16 %h1, 0;
    cp.async.bulk.tensor.3d.shared::cta.global.im2col.mbarrier::complete_tx::bytes [%r2], [%p, {0, 2, 1}], [%r3], {%h1};";
    for (code, fields, reason) in [
        (
            &load_at("2, 0"),
            &[][..],
            "illegal instruction: the first coordinate is not a multiple of 16 bytes",
        ),
        (&shifted, &[], "misaligned address"),
        (&one(32), &[], "misaligned address"),
        (
            &one(128),
            &[],
            "illegal instruction: no tensor map at the address",
        ),
        (
            &line,
            &[],
            "illegal instruction: the rank of the tensor map differs from that of the instruction",
        ),
        (
            &load_at("0, 0"),
            &[(Field::DATA_TYPE, 13)],
            "illegal instruction: tensor maps of packed elements are not supported",
        ),
        (
            &load_at("0, 0"),
            &[(Field::SWIZZLE, 7)],
            "illegal instruction: the tensor map has an invalid interleaving or swizzle",
        ),
        (
            &load_at("0, 0"),
            &[(Field::step(1), 0)],
            "illegal instruction: the element strides of the tensor map are not between 1 and 8",
        ),
        (
            &load_at("0, 0"),
            &[(Field::boxed(0), 6)],
            "illegal instruction: the address, strides or box of the tensor map are not multiples of 16 bytes",
        ),
        (
            &load_at("0, 0"),
            &[(Field::extent(0), u64::MAX >> 1)],
            "illegal instruction: the tensor map has more than 2^32 elements along a dimension",
        ),
        (
            &load_at("0, 0"),
            &[(Field::boxed(1), 200)],
            "illegal address",
        ),
        (
            &load_at("0, 0"),
            &[(Field::ADDRESS, BASE + (1 << 30))],
            "illegal address",
        ),
        (
            &negative,
            &[],
            "illegal instruction: a write to a tensor has a negative coordinate",
        ),
        (
            &reduced,
            &[(Field::DATA_TYPE, 7)],
            "illegal instruction: a reduction that the tensor's type does not support",
        ),
        (
            &images.to_owned(),
            &[(Field::RANK, 3)],
            "illegal instruction: the mode of the tensor map differs from that of the instruction (tiled, im2col)",
        ),
    ] {
        assert_eq!(fault(code, fields), reason, "{code}");
    }
    let mut map = encoded_map(&[&MATRIX, &[(Field::RANK, 3), (Field::TAKEN, 3 << 16 | 1)]]);
    map[0] = MAGIC | IM2COL;
    let fault = bench(&images.replace("{0, 2, 1}", "{0, 5, 0}"), map)
        .launch(1, 1)
        .expect_err("5 is beyond the corner");
    assert_eq!(
        fault.kind,
        ReportKind::IllegalInstruction("the first pixel is outside the corners of the tensor map")
    );
}

#[test]
fn uninitialized_tensor() {
    let bench = bench(&load(128, "0, 0"), encoded_map(&[&MATRIX]))
        .with_uninitialized_checks(0..TENSOR + 64);
    bench.memory.write(0, &encoded_map(&[&MATRIX]));
    assert_eq!(
        bench
            .launch(1, 1)
            .expect_err("the second row was not written")
            .kind,
        ReportKind::Uninitialized
    );
}

/// A tensor map is copied from shared to device memory.
#[test]
fn tensor_map_is_copied() -> TestResult {
    let code = out("setp.ne.u32 %p2, %t, 0; bar.warp.sync -1; add.u64 %d9, %p, 8192;
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d9], [%r2], 128;");
    let bench = bench(&code, encoded_map(&[]));
    bench.launch(1, 32)?;
    assert_eq!(
        bench.memory.read::<u32>(LEFT, 33),
        (1001..1033).chain([0]).collect::<Vec<_>>()
    );
    Ok(())
}

#[test]
fn reduced_and_masked_bytes() -> TestResult {
    let code = out("add.u64 %d9, %p, 256; mov.b16 %h1, 0xf00;
    cp.reduce.async.bulk.global.shared::cta.bulk_group.max.s32 [%d9], [%r2], 16;
    cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%d9+16], [%r2], 32, %h1;
    cp.async.bulk.prefetch.L2.global [%d9], 32;
    mbarrier.arrive.expect_tx.shared.b64 %d1, [%r3], 16;
    cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%r2+16], [%r2], 16, [%r3];
    ld.shared.u32 %r7, [%r2+20]; st.global.u32 [%p+8192], %r7;");
    let bench = bench(&code, encoded_map(&[]));
    bench.launch(1, 1)?;
    assert_eq!(
        bench.memory.read::<u32>(TENSOR, 12),
        [1001, 1002, 1003, 1004, 5, 6, 1003, 8, 9, 10, 1007, 12]
    );
    assert_eq!(bench.memory.read::<u32>(LEFT, 1), [1002 + 1006]);
    for wrong in ["[%p+8], 16", "[%p], 8", "[%p+1048576], 16"] {
        let bench = Bench::body(
            &format!("mov.u32 %r1, 8; cp.async.bulk.prefetch.L2.global {wrong};"),
            256,
        );
        bench.launch(1, 1).expect_err(wrong);
    }
    Ok(())
}
