//! State spaces, vectors, widths and initial values.

use super::super::{Checking, ReportKind};
use super::{Bench, TestResult, kernel};

/// Vectors load and store in order and may overwrite their address.
#[test]
fn vector_accesses() -> TestResult {
    let bench = Bench::body(
        "
    ld.global.v2.u64 {%p, %d2}, [%p];
    add.u64 %d3, %p, %d2;
    ld.global.v4.u16 {%h1, %h2, %h3, %h4}, [%d2];
    mov.b64 %d4, {%h4, %h3, %h2, %h1};
    st.global.v2.b64 [%d2+16], {%d3, %d4};",
        4096,
    );
    bench.memory.write(0, &[5u64, super::BASE + 64]);
    bench.memory.write(64, &[1u16, 2, 3, 4]);
    bench.launch(1, 1)?;
    let stored = bench.memory.read::<u64>(80, 2);
    assert_eq!(stored, [super::BASE + 69, 0x0001_0002_0003_0004]);
    Ok(())
}

#[test]
fn narrow_loads_extend_by_their_type() -> TestResult {
    let bench = Bench::body(
        "
    ld.global.s8 %r2, [%p];
    ld.global.u8 %r3, [%p];
    ld.global.s16 %d2, [%p];
    ld.global.u16 %d3, [%p];
    st.global.u32 [%p+8], %r2;
    st.global.u32 [%p+12], %r3;
    st.global.u64 [%p+16], %d2;
    st.global.u64 [%p+24], %d3;
    st.global.u8 [%p+32], %d2;",
        4096,
    );
    bench.memory.write(0, &[0x80feu16]);
    bench.launch(1, 1)?;
    assert_eq!(bench.memory.read::<u32>(8, 2), [0xffff_fffe, 0xfe]);
    assert_eq!(
        bench.memory.read::<u64>(16, 3),
        [0xffff_ffff_ffff_80fe, 0x80fe, 0xfe]
    );
    Ok(())
}

/// Module variables hold their initial values and each others addresses.
#[test]
fn module_variables_are_initialized() -> TestResult {
    let variables = "
.const .align 4 .f32 weights[3] = { 0f3F800000, 2.5, -1.0 };
.global .align 2 .u16 bytes[4] = { 1, 2, 0xffff };
.global .align 8 .u64 link[2] = { bytes+4, generic(weights) };
";
    let body = kernel(
        "
    ld.const.f32 %f1, [weights+4];
    ld.global.u64 %d1, [link];
    ld.global.u16 %r2, [%d1];
    ld.global.u64 %d2, [link+8];
    ld.f32 %f2, [%d2+8];
    st.global.f32 [%p], %f1;
    st.global.u32 [%p+4], %r2;
    st.global.f32 [%p+8], %f2;",
    );
    let bench = Bench::new(&format!("{variables}{body}"), 4096);
    assert!(bench.program.globals()[0].constant);
    bench.launch(1, 1)?;
    let expected = [2.5f32.to_bits(), 0xffff, (-1.0f32).to_bits()];
    assert_eq!(bench.memory.read::<u32>(0, 3), expected);
    Ok(())
}

#[test]
fn vectors_in_local_memory_are_aligned_as_a_whole() {
    let bench = Bench::body(
        "
    .local .align 16 .b8 depot[32];
    add.u32 %r1, %t, 1;
    st.local.v4.u32 [depot], {%t, %r1, %t, %r1};
    mov.u64 %d1, depot;
    setp.lt.u32 %p1, %t, 16;
    @%p1 st.local.u32 [%d1+12], 7;
    ld.local.v2.u32 {%r2, %r3}, [%d1+8];
    ld.local.v4.u32 {%r4, %r5, %r6, %r7}, [depot];
    mad.lo.u32 %r2, %r3, 100, %r2;
    mad.lo.u32 %r2, %r5, 10000, %r2;
    st.global.u32 [%at4], %r2;",
        4096,
    );
    assert_eq!(
        bench.results::<u32>(32),
        (0..32)
            .map(|tid: u32| tid + 100 * if tid < 16 { 7 } else { tid + 1 } + 10_000 * (tid + 1))
            .collect::<Vec<_>>()
    );
    for (access, offset) in [
        ("ld.local.v4.u32 {%r4, %r5, %r6, %r7}, [depot+8];", 8),
        ("ld.local.u32 %r4, [%d1+32];", 32),
    ] {
        let bench = Bench::body(
            &format!(".local .align 16 .b8 depot[32]; mov.u64 %d1, depot; {access}"),
            128,
        );
        let fault = bench
            .launch(1, 32)
            .expect_err("the access is misaligned or out of bounds");
        assert_eq!(
            (fault.access.map(|access| access.address), fault.thread),
            (Some(offset), [0; 3]),
            "{fault}"
        );
    }
}

#[test]
fn dynamic_shared_memory_follows_static_shared_memory() -> TestResult {
    let body = kernel(
        "
    .shared .align 4 .b8 fixed[100];
    mov.u32 %r2, pool;
    st.shared.u32 [pool+4], %r2;
    st.shared.u8 [fixed+99], 7;
    ld.shared.u32 %r3, [pool+4];
    mov.u32 %r4, %dynamic_smem_size;
    mov.u32 %r5, %total_smem_size;
    st.global.v4.u32 [%p], {%r2, %r3, %r4, %r5};",
    );
    let mut bench = Bench::new(
        &format!(".extern .shared .align 16 .b8 pool[];\n{body}"),
        4096,
    );
    bench.dynamic_shared = 8;
    bench.launch(1, 1)?;
    assert_eq!(bench.memory.read::<u32>(0, 4), [112, 112, 8, 120]);
    bench.dynamic_shared = 4;
    bench.launch(1, 1).expect_err("the store is past the end");
    Ok(())
}

#[test]
fn parameters_are_laid_out_by_alignment() -> TestResult {
    let bench = Bench::new(
        "
.visible .entry main(.param .u64 p, .param .u8 small, .param .align 8 .b8 pair[16])
{
    .reg .b32 %r<4>;
    .reg .b64 %d<8>;
    ld.param.u64 %d1, [p];
    ld.param.u8 %r1, [small];
    ld.param.v2.u64 {%d2, %d3}, [pair];
    mov.b64 %d4, pair;
    cvta.param.u64 %d5, %d4;
    ld.u64 %d6, [%d5+8];
    st.global.u32 [%d1], %r1;
    st.global.u64 [%d1+8], %d2;
    st.global.u64 [%d1+16], %d6;
    ret;
}",
        128,
    );
    let kernel = bench.program.kernel("main").ok_or("no kernel `main`")?;
    let layout: Vec<_> = kernel.params.iter().map(|p| (p.offset, p.size)).collect();
    assert_eq!(
        (layout, kernel.param_size),
        (vec![(0, 8), (8, 1), (16, 16)], 32)
    );
    let mut params = super::BASE.to_le_bytes().to_vec();
    params.extend(200u64.to_le_bytes());
    params.extend(11u64.to_le_bytes());
    params.extend(12u64.to_le_bytes());
    bench.launch_with([1, 1, 1], [1, 1, 1], &params)?;
    assert_eq!(bench.memory.read::<u64>(0, 3), [200, 11, 12]);
    Ok(())
}

#[test]
fn special_registers() -> TestResult {
    let bench = Bench::body(
        "
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %nctaid.x;
    mov.u32 %r4, %laneid;
    mov.u32 %r5, %warpid;
    mov.u32 %r6, %lanemask_lt;
    popc.b32 %r6, %r6;
    mad.lo.u32 %r2, %r2, 10, %r3;
    mad.lo.u32 %r2, %r2, 100, %r4;
    mad.lo.u32 %r2, %r2, 10, %r5;
    mad.lo.u32 %r2, %r2, 100, %r6;
    st.global.u32 [%at4], %r2;",
        4096,
    );
    bench.launch(3, 64)?;
    let seen = bench.memory.read::<u32>(0, 192);
    for (index, &value) in seen.iter().enumerate() {
        let block = index as u32 / 64;
        let thread = index as u32 % 64;
        let lane = thread % 32;
        let warp = thread / 32;
        assert_eq!(
            value,
            (((block * 10 + 3) * 100 + lane) * 10 + warp) * 100 + lane
        );
    }
    Ok(())
}

#[test]
fn bulk_store_clears_shared_memory() {
    let expected: Vec<u64> = (0..32)
        .map(|word| {
            if (1..4).contains(&word) || (6..8).contains(&word) {
                0
            } else {
                u64::MAX
            }
        })
        .collect();
    assert_eq!(
        Bench::body(&pattern_body("%d1+48"), 4096).results::<u64>(32),
        expected
    );
    for (address, kind) in [
        ("%p", ReportKind::IllegalAddress),
        ("%d1+4", ReportKind::MisalignedAddress),
        ("%d1+504", ReportKind::IllegalAddress),
    ] {
        let fault = Bench::body(&pattern_body(address), 4096)
            .launch(1, 32)
            .expect_err(address);
        assert_eq!(fault.kind, kind, "{address}");
    }
}

/// Returns a body that accesses a tile at an address.
fn pattern_body(address: &str) -> String {
    format!(
        "
    .shared .align 8 .b64 tile[64];
    mov.u32 %r2, tile;
    mad.lo.u32 %r3, %t, 8, %r2;
    st.shared.b64 [%r3], -1;
    bar.sync 0;
    setp.ne.u32 %p1, %t, 0;
    cvt.u64.u32 %d1, %r2;
    mov.u64 %d2, 24;
    @!%p1 st.bulk.weak.shared::cta [%d1+8], %d2, 0;
    cvta.shared.u64 %d1, %d1;
    @!%p1 st.bulk [{address}], 16, 0;
    bar.sync 0;
    ld.shared.b64 %d3, [%r3];
    st.global.b64 [%at], %d3;"
    )
}

/// Bytes that a load does not use may lie beyond the allocation.
#[test]
fn unused_bytes_of_loads() {
    for load in [
        ".pragma \"used_bytes_mask 0xfff\"; ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%p+4080];",
        ".pragma \"used_bytes_mask 4095\"; ld.global.v4.u32 {%r2, %r3, %r4, _}, [%p+4080];",
        ".pragma \"used_bytes_mask 0x3ff\"; ld.v4.u32 {%r2, %r3, %r4, %r5}, [%p+4080];",
        // Half of an element, into the address register.
        "add.u64 %d2, %p, 4080; .pragma \"used_bytes_mask 0x0fff\"; ld.global.v2.b64 {%d3, %d2}, [%d2];
        mov.b64 {%r2, %r3}, %d3; cvt.u32.u64 %r4, %d2;",
    ] {
        let code = format!("{load} st.global.u32 [%p], %r2; st.global.u32 [%p+4], %r3; st.global.u32 [%p+8], %r4;");
        let launch = |code: &str, checking| {
            let mut bench = Bench::body(code, 4096).with_checks(checking, 4080..4090);
            bench.memory.write(4080, &[1_u32, 2, 3]);
            bench.memory.cut(4092);
            bench.launch(1, 32).map(|_| bench.memory.read::<u32>(0, 3))
        };
        assert_eq!(launch(&code, Checking::nothing()).expect(load), [1, 2, 3]);
        assert_eq!(launch(&code, Checking::nothing().with_races(true)).expect(load), [1, 2, 3]);
        let fault = launch(&code.replace("used_bytes_mask", "nounroll"), Checking::nothing()).expect_err(load);
        assert_eq!(fault.kind, ReportKind::IllegalAddress, "the bytes that are used are beyond it");
    }
}

#[test]
fn unused_load_bytes_do_not_race() -> TestResult {
    // The last thread of each 16 bytes writes the bytes that the others do not use.
    let launch = |mask| {
        Bench::body(&masked_load_body(mask), 4096)
            .with_checks(Checking::nothing().with_races(true), 0..0)
            .launch(1, 64)
    };
    launch("used_bytes_mask 0xfff")?;
    let fault = launch("used_bytes_mask 0xffff").expect_err("a race");
    assert!(matches!(fault.kind, ReportKind::Race { .. }), "{fault}");
    Ok(())
}

/// Returns a body whose second warp stores, and whose first loads with a mask of used bytes.
fn masked_load_body(mask: &str) -> String {
    format!(
        ".shared .align 16 .b32 s[64];
            setp.eq.u32 %p1, %t, 32; @%p1 st.shared.u32 [s+12], 1;
            setp.ne.u32 %p1, %t, 0; @%p1 bra OUT;
            .pragma \"{mask}\"; ld.shared.v4.u32 {{%r2, %r3, %r4, %r5}}, [s];
            OUT:"
    )
}

#[test]
fn changed_addresses() {
    // Each thread loads by one register, in runs and not, before and after it changes, on every
    // turn of a loop.
    let bench = Bench::body(
        "
    mov.u32 %r2, 0;
    mov.u32 %r3, 0;
    mov.u64 %d1, %at4;
L:
    ld.global.u32 %r4, [%d1];
    ld.global.u32 %r5, [%d1+4];
    add.u32 %r3, %r3, %r4;
    mad.lo.u32 %r3, %r5, 3, %r3;
    setp.eq.u32 %p1, %r2, 1;
    @%p1 add.u64 %d1, %p, 8;
    ld.global.u32 %r6, [%d1];
    mad.lo.u32 %r3, %r6, 5, %r3;
    and.b32 %r7, %t, 3;
    mad.wide.u32 %d1, %r7, 12, %p;
    ld.global.u32 %r8, [%d1+8];
    mad.lo.u32 %r3, %r8, 7, %r3;
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p2, %r2, 3;
    @%p2 bra L;
    st.global.u32 [%at4+1024], %r3;",
        4096,
    );
    let numbers: Vec<u32> = (0..64).map(|number: u32| number * number + 1).collect();
    bench.memory.write(0, &numbers);
    bench
        .launch(1, 32)
        .unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(
        bench.memory.read::<u32>(1024, 32),
        (0..32)
            .map(|thread: usize| {
                let mut address = thread;
                let mut sum = 0;
                for turn in 0..3 {
                    sum += numbers[address] + 3 * numbers[address + 1];
                    address = if turn == 1 { 2 } else { address };
                    sum += 5 * numbers[address];
                    address = thread % 4 * 3;
                    sum += 7 * numbers[address + 2];
                }
                sum
            })
            .collect::<Vec<_>>()
    );
}
