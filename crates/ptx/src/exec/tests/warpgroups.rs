//! Products of matrices by warpgroups.

use super::{Bench, TestResult, kernel};

/// Returns a kernel for sm_90a.
fn bench(body: &str, bytes: u64) -> Bench {
    Bench::for_target("sm_90a", &kernel(body), bytes)
}

/// Copies a matrix of 16-bit numbers into shared memory, in rows of eight by eight without
/// swizzling. Its descriptor is in `%d10` for the first 64 rows and in `%d11` for the others.
const COPY: &str = "
    .shared .align 128 .b8 tile[4096];
    mul.wide.u32 %d2, %t, 16;
    add.u64 %d2, %d2, %p;
    mov.u32 %r2, tile;
    mad.lo.u32 %r3, %t, 16, %r2;
    ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%d2];
    st.shared.v4.b32 [%r3], {%r4, %r5, %r6, %r7};
    ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%d2+2048];
    st.shared.v4.b32 [%r3+2048], {%r4, %r5, %r6, %r7};
    bar.sync 0;
    shr.u32 %r2, %r2, 4;
    cvt.u64.u32 %d10, %r2;
    // The second eight of a row are 128 bytes further, the next eight rows 256.
    or.b64 %d10, %d10, 0x1000080000;
    add.u64 %d11, %d10, 128;
";

/// Product of halves from shared memory is added to registers.
#[test]
fn f16_product_is_accumulated() -> TestResult {
    let body = format!(
        "{COPY}
    mov.f32 %f0, 0f41200000;
    mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%f0, %f1, %f2, %f3}}, %d10, %d11, 1, -1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    mul.wide.u32 %d3, %t, 16;
    add.u64 %d3, %d3, %p;
    st.global.v4.f32 [%d3+8192], {{%f0, %f1, %f2, %f3}};"
    );
    let bench = bench(&body, 16384);
    // A row is its index in the first column and one in the last. B has ones in the first row, and
    // its column index in the last.
    let mut image = vec![0_u16; 2048];
    let mut set = |row: usize, column: usize, value: u16| {
        image[row / 8 * 128 + column / 8 * 64 + row % 8 * 8 + column % 8] = f16_bits(value);
    };
    for row in 0..64 {
        set(row, 0, row as u16);
        set(row, 15, 1);
    }
    for column in 0..8 {
        set(64 + column, 0, 1);
        set(64 + column, 15, column as u16);
    }
    bench.memory.write(0, &image);
    bench.launch(1, 128)?;
    let results = bench.memory.read::<u32>(8192, 512);
    for (thread, registers) in results.as_chunks::<4>().0.iter().enumerate() {
        let row = thread / 32 * 16 + thread % 32 / 4;
        let column = thread % 4 * 2;
        let expected = [(0, 0), (0, 1), (8, 0), (8, 1)]
            .map(|(down, right)| 10 - (row + down + column + right) as i32);
        assert_eq!(
            *registers,
            expected.map(|value| (value as f32).to_bits()),
            "thread {thread}"
        );
    }
    Ok(())
}

/// Returns the bits of a small integer as an f16.
fn f16_bits(value: u16) -> u16 {
    if value == 0 {
        0
    } else {
        (15 + value.ilog2() as u16) << 10 | value << (10 - value.ilog2()) & 0x3ff
    }
}

#[test]
fn warp_waits_for_its_warpgroup() -> TestResult {
    // The first warp releases the tile as soon as its wait is over, and the last warp arrives late.
    let body = format!(
        "{COPY}
    mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;
    mov.u32 %r10, 0;
    setp.lt.u32 %p1, %t, 96;
    @%p1 bra READY;
DELAY:
    add.u32 %r10, %r10, 1;
    setp.lt.u32 %p2, %r10, 5000;
    @%p2 bra DELAY;
READY:
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {{%f0, %f1, %f2, %f3}}, %d10, %d11, 0, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    setp.ge.u32 %p1, %t, 32;
    @%p1 bra KEEP;
    mov.u32 %r4, 0;
    st.shared.v4.b32 [%r3+1536], {{%r4, %r4, %r4, %r4}};
    st.shared.v4.b32 [%r3+2048], {{%r4, %r4, %r4, %r4}};
KEEP:
    st.global.f32 [%at4+8192], %f0;"
    );
    let bench = bench(&body, 16384);
    bench.memory.write(0, &vec![0x3f80_u16; 2048]);
    bench.launch(1, 128)?;
    assert_eq!(
        bench.memory.read::<u32>(8192, 128),
        [16.0_f32.to_bits(); 128]
    );
    Ok(())
}

#[test]
fn invalid_forms_are_refused() {
    let d = "{%f0, %f1, %f2, %f3}";
    let r = "{%r0, %r1, %r2, %r3}";
    for form in [
        product_text(&format!(
            "m64n8k16.f32.f16.f16 {d}, %d1, %d2, 1, 1, 2, 0, 0"
        )),
        product_text(&format!(
            "m64n8k16.f32.f16.f16 {d}, %d1, %d2, 1, 1, 1, 0, 2"
        )),
        product_text(&format!("m64n8k16.f32.f16.f16 {d}, %d1, %d2, 1, 1, 1")),
        product_text(&format!(
            "m64n8k16.f32.f16.f16 {d}, {r}, %d2, 1, 1, 1, 0, 0"
        )),
        product_text(&format!(
            "m64n8k16.f32.f16.bf16 {d}, %d1, %d2, 1, 1, 1, 0, 0"
        )),
        product_text(&format!(
            "m64n16k16.f32.f16.f16 {d}, %d1, %d2, 1, 1, 1, 0, 0"
        )),
        product_text(&format!(
            "m64n8k8.f32.tf32.tf32 {d}, %d1, %d2, 1, 1, 1, 0, 0"
        )),
        product_text("m64n8k16.f16.bf16.bf16 {%r0, %r1}, %d1, %d2, 1, 1, 1, 0, 0"),
        product_text(&format!("m64n8k32.s32.s8.s8 {r}, %d1, %d2, 1, 1, 1")),
        product_text(&format!("m64n8k256.s32.b1.b1.xor.popc {r}, %d1, %d2, 1")),
        product_text(&format!(
            "m64n8k256.s32.b1.b1.and.popc.satfinite {r}, %d1, %d2, 1"
        )),
        product_text(&format!(
            "m64n8k32.f32.f16.f16 {d}, %d1, %d2, %r1, 0, 1, 1, 1, 0, 0"
        )),
        format!(
            "wgmma.mma_async.sp.sync.aligned.m64n8k64.f32.e4m3.e4m3 {d}, %d1, %d2, %r1, 1, 1, 1, 1;"
        ),
        "wgmma.wait_group.sync.aligned %r1;".to_owned(),
        "wgmma.fence.aligned;".to_owned(),
    ] {
        let text = format!(
            ".version 8.8\n.target sm_90a\n.address_size 64\n.entry k()\n{{\n.reg .b32 %r<9>; .reg .b64 %d<4>; .reg .f32 %f<9>;\n{form}\nret;\n}}"
        );
        let module = crate::syntax::parse(&text).unwrap_or_else(|error| panic!("{form}: {error}"));
        super::lower(&module).expect_err(&form);
    }
}

/// Returns an asynchronous product with these suffixes and operands.
fn product_text(rest: &str) -> String {
    format!("wgmma.mma_async.sync.aligned.{rest};")
}
