//! Forms of hand-written PTX that compilers do not emit.

use super::{Bench, kernel};

/// Runs a kernel after some declarations, and returns each thread's word at `%at4`.
fn run(declared: &str, body: &str) -> Vec<u32> {
    Bench::new(&format!("{declared}\n{}", kernel(body)), 4096).results::<u32>(32)
}

#[test]
fn vector_registers_are_operands() {
    let body = ".reg .v2 .u32 v; .reg .v4 .u32 w; .reg .v2 .b16 h;
        mov.v4.u32 w, %tid;
        mov.v2.u32 v, {w.x, 5};
        mov.v2.u32 v, {v.y, v.x};
        add.u32 w.y, v.x, v.y;
        mov.b64 %d1, v;
        shr.u64 %d1, %d1, 32;
        cvt.u32.u64 w.z, %d1;
        mov.b32 h, 0x20001;
        cvt.u32.u16 w.a, h.y;
        mad.lo.u32 w.y, w.z, 1000, w.y;
        mad.lo.u32 w.g, w.w, 1000000, w.g;
        st.global.u32 [%at4], w.y;";
    let expected: Vec<u32> = (0..32)
        .map(|tid| tid + 5 + 1000 * tid + 2_000_000)
        .collect();
    assert_eq!(run("", body), expected);
    let body = ".reg .v2 .u32 v; mul.lo.u32 %r2, %t, 8; cvt.u64.u32 %d1, %r2; add.u64 %d1, %d1, %p; mov.v2.u32 v, {%t, 7};
        st.global.v2.u32 [%d1+1024], v; ld.global.v2.u32 v, [%d1+1024]; mad.lo.u32 %r3, v.y, 100, v.x; st.global.u32 [%at4], %r3;";
    assert_eq!(run("", body), (700..732).collect::<Vec<_>>());
}

#[test]
fn module_variables_are_scoped() {
    let body = ".global .u32 g[2] = {3, 4}; .const .u32 c = 10;
        { .global .u32 g = 5; .global .u64 at = g; ld.global.u64 %d1, [at]; ld.global.u32 %r4, [%d1]; }
        ld.global.u32 %r2, [g+4]; ld.const.u32 %r3, [c]; ld.global.u32 %r5, g[0];
        mad.lo.u32 %r2, %r2, %r3, %r4; mad.lo.u32 %r2, %r5, 100, %r2; st.global.u32 [%at4], %r2;";
    assert_eq!(run(".global .u32 g = 1000;", body), [345; 32]);
}

#[test]
fn wide_parameters_and_results() {
    let declared =
        ".func (.reg .v2 .u32 out) swap(.reg .v2 .u32 in) { mov.v2.u32 out, {in.y, in.x}; ret; }
        .func (.reg .b128 out) same(.reg .b128 in) { mov.b128 out, in; ret; }";
    let body = ".reg .v2 .u32 v; .reg .b128 %x; mov.v2.u32 v, {%t, 9}; call (v), swap, (v); mul.lo.u32 %r2, v.x, 10;
        mov.u64 %d1, 7; mov.u64 %d2, 8; mov.b128 %x, {%d1, %d2}; call (%x), same, (%x); mov.b128 {%d1, %d2}, %x;
        cvt.u32.u64 %r3, %d2; mad.lo.u32 %r2, %r3, 100, %r2; mad.lo.u32 %r2, v.y, 1000, %r2; st.global.u32 [%at4], %r2;";
    let expected: Vec<u32> = (0..32).map(|tid| 90 + 800 + 1000 * tid).collect();
    assert_eq!(run(declared, body), expected);
}

#[test]
fn initial_values_mask_addresses() {
    let declared = ".global .u32 g = 5; .global .u8 parts[8] = {0xFF(g), 0xFF00(g), 0xFF0000(g), 0xFF000000(g),
        0xFF00000000(g), 0xFF0000000000(g), 0, 0};";
    let body = "ld.global.u64 %d1, [parts]; ld.global.u32 %r2, [%d1]; st.global.u32 [%at4], %r2;";
    assert_eq!(run(declared, body), [5; 32]);
}

/// The operand `%r1 + 4` is a register plus an immediate, in any instruction but as its result.
#[test]
fn sums_are_operands() {
    let body = "mov.u32 %r2, %t; add.u32 %r3, %r2 + 7, %r2; st.global.u32 [%at4], %r3 + 100;";
    let expected: Vec<u32> = (0..32).map(|tid| 2 * tid + 107).collect();
    assert_eq!(run("", body), expected);
}

/// An index is the low half of an integer register, without sign, plus a constant; it counts scalar
/// elements, also of a matrix.
#[test]
fn registers_index_arrays() {
    let declared = ".global .u32 g[40]; .const .u16 c[3] = {5, 6, 7}; .global .u32 m[2][3] = {{1, 2, 3}, {4, 5, 6}};";
    let body = ".reg .u16 %half<2>; .reg .s64 %wide; .shared .u32 s[32]; .local .u64 l[4]; mov.u32 %r2, %t;
        add.u32 %r3, %r2, 1; st.global.u32 g[%r2+1], %r3; ld.global.u32 %r3, g[%r3];
        st.shared.u32 s[%r2], %r3; ld.shared.u32 %r3, s[%r2];
        mov.u16 %half0, 2; cvt.u64.u32 %d1, %r3; st.local.u64 l[%half0], %d1; ld.local.u64 %d1, l[%half0]; cvt.u32.u64 %r3, %d1;
        mov.s64 %wide, 0x100000001; mov.u64 %d2, m[%wide+3]; ld.global.u32 %r4, [%d2]; mad.lo.u32 %r3, %r4, 100, %r3;
        ld.const.u16 %r4, c[%half0]; mad.lo.u32 %r3, %r4, 1000, %r3; ld.global.u32 %r4, m[3]; mad.lo.u32 %r3, %r4, 10000, %r3;
        st.global.u32 [%at4], %r3;";
    let expected: Vec<u32> = (0..32).map(|tid| tid + 1 + 500 + 7_000 + 40_000).collect();
    assert_eq!(run(declared, body), expected);
}

#[test]
fn single_element_vectors() {
    let body =
        "st.global.b32 [%at4+1024], {%t}; ld.global.b32 {%r2}, [%at4+1024]; mov.b32 {%r3}, {%r2};
        st.global.u32 [%at4], {%r3};";
    assert_eq!(run("", body), (0..32).collect::<Vec<_>>());
}

/// Newer compilers keep volatile variables of a thread in memory.
#[test]
fn volatile_local_memory() {
    let body = ".local .align 8 .u32 l[2]; mov.u32 %r2, %t; st.volatile.local.v2.u32 [l], {%r2, 5};
        ld.volatile.local.u32 %r3, [l+4]; ld.volatile.local.u32 %r4, [l]; mad.lo.u32 %r2, %r3, 100, %r4;
        st.global.u32 [%at4], %r2;";
    let bench = Bench::for_version("9.1", "sm_90", &kernel(body), 4096);
    let expected: Vec<u32> = (500..532).collect();
    assert_eq!(bench.results::<u32>(32), expected);
}
