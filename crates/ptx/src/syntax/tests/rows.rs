//! Forms of instructions that the assembler accepts or refuses by a rule: suffixes with types,
//! immediates, spaces of variables and packs.

use super::super::parse;
use super::TestResult;

/// Returns the error for an instruction that follows the declarations of a module, if any.
fn error(declared: &str, instruction: &str) -> Option<String> {
    let text = format!(
        ".version 9.0\n.target sm_100\n.address_size 64\n.global .u32 g; .global .u32 a[4]; .shared .u32 s;\n\
         .const .u32 c; {declared}\n.entry main(.param .u64 P) {{ .reg .pred %p<9>; .reg .b8 %c<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; \
         .reg .u32 %u<9>; .reg .b64 %d<9>; .reg .f32 %f<9>; .reg .f64 %e<9>; .reg .b128 %q<9>; .local .u32 l; {instruction} }}"
    );
    parse(&text).err().map(|error| error.to_string())
}

/// Checks instructions, one a line, of which the first are accepted, and those after an empty line
/// are refused.
fn check(text: &str) -> TestResult {
    let (accepted, refused) = text
        .split_once("\n\n")
        .ok_or("no empty line between accepted and refused forms")?;
    for line in accepted.lines().filter(|line| !line.is_empty()) {
        assert_eq!(error("", line), None, "{line}");
    }
    for line in refused.lines().filter(|line| !line.is_empty()) {
        assert!(error("", line).is_some(), "{line}");
    }
    Ok(())
}

#[test]
fn suffixes_depend_on_the_type() -> TestResult {
    check(
        "
rcp.rn.ftz.f64 %e1, %e2;
rcp.approx.ftz.f64 %e1, %e2;
rsqrt.approx.f64 %e1, %e2;
abs.ftz.f16x2 %r1, %r2;
addc.u16 %h1, %h2, %h3;
madc.hi.cc.s64 %d1, %d2, %d3, %d4;
mad.hi.sat.s32 %r1, %r2, %r3, %r4;
mad.lo.cc.u64 %d1, %d2, %d3, %d4;
ex2.approx.ftz.bf16 %h1, %h2;
barrier.cluster.arrive.aligned.release;
barrier.cluster.wait.acquire;
ld.weak.global.ca.u8 %h1, [%d1];
st.weak.wt.u32 [%d1], %r1;
setp.eq.ftz.f16x2 %p1|%p2, %r1, %r2;
set.ltu.s16.f16 %h1, %h2, %h3;

rcp.approx.f64 %e1, %e2;
sqrt.rn.ftz.f64 %e1, %e2;
abs.ftz.bf16 %h1, %h2;
abs.s16x2 %r1, %r2;
rem.ftz.u32 %r1, %r2, %r3;
cnot.u32 %r1, %r2;
add.cc.u16 %h1, %h2, %h3;
add.cc.sat.s32 %r1, %r2, %r3;
sub.sat.u32 %r1, %r2, %r3;
mad.wide.cc.s32 %d1, %r1, %r2, %d2;
mad.wide.sat.u32 %d1, %r1, %r2, %d2;
mad.lo.sat.s32 %r1, %r2, %r3, %r4;
mul.lo.cc.s32 %r1, %r2, %r3;
ex2.approx.bf16 %h1, %h2;
barrier.cluster.arrive.acquire;
barrier.cluster.wait.release;
ld.weak.global.nc.u8 %h1, [%d1];
ld.volatile.global.ca.u8 %h1, [%d1];
setp.eq.ftz.s32 %p1, %r1, %r2;
setp.eq.f16 %p1|%p2, %h1, %h2;
set.eq.b32.u32 %r1, %r2, %r3;
set.eq.ftz.bf16.f32 %h1, %f1, %f2;
set.eq.f16.bf16 %h1, %h2, %h3;",
    )?;
    Ok(())
}

/// Operands have the type, and results are registers.
#[test]
fn operands_have_the_type() -> TestResult {
    check(
        "
madc.lo.u32 %r1, %r2, 1, 2;
cnot.b32 %f1, 0f3F800000;
cnot.b64 %d1, 1.5;
rem.u16 %h1, 1, 2;
lop3.b32 _, %r1, 0f3F800000, 3, 256;
lop3.and.b32 _|%p1, %r1, %r2, %r3, 1, !%p2;
popc.b64 %r1, %e1;
slct.b32.f32 %r1, %f1, 5, 1.5;
bfe.u32 %r1, %r2, 1, 255;
bfi.b64 %d1, %d2, %d3, %r1, 2;

madc.lo.u32 %r1, %r2, 1, 1.5;
madc.hi.s32 %r1, %r2, 1, %c1;
madc.hi.s32 %r1, %r2, 1, %f1;
addc.u64 _, %d1, %d2;
cnot.b32 %r1, 1.5;
rem.u16 %h1, %r1, 1;
rem.u16 _, 1, 2;
lop3.b32 %c1, %r1, %r2, %r3, 1;
lop3.b32 %r1, %r2, %r3, %r4, %r5;
lop3.and.b32 %r1, %r2, %r3, %r4, 1, %p1;
lop3.b32 %r1|%p1, %r2, %r3, %r4, 1;
popc.b32 %f1, %r1;
bfe.u32 %r1, %r2, %f1, 2;
bfe.s64 %d1, %d2, -1, 2;
bfi.b32 %r1, %r2, %r3, 1, 256;
slct.b32.s32 %r1, %r2, %r3, %f1;
tanh.approx.f16 %h1, 1.5;
add.f16x2 %r1, %r2, %f1;
setp.eq.f16x2 %p1|%p2, %f1, %r1;",
    )?;
    Ok(())
}

#[test]
fn barriers_are_below_16() -> TestResult {
    check(
        "
bar.sync 15, 64;
bar.sync %r1, 0;
bar.red.or.pred %p1, 15, 32, %p2;
barrier.sync 0;

bar.sync 16;
bar.sync -1;
bar.sync 0, 33;
bar.arrive 0, 0;
bar.red.or.pred %p1, -1, %p2;
barrier.sync %r1, 31;
barrier.sync 31;",
    )?;
    Ok(())
}

#[test]
fn variables_have_a_space() -> TestResult {
    check(
        "
ld.global.u32 %r1, [g];
ld.u32 %r1, [s];
ld.u32 %r1, [l];
ld.shared::cta.u32 %r1, [s];
ld.const.u32 %r1, [c];
ld.param.u32 %r1, [P];
ld.global.u32 %r1, a[1];
atom.shared.add.u32 %r1, [s], 1;
cvta.shared.u64 %d1, s+4;
cvta.to.shared.u64 %d1, g+4;
cvta.to.global.u64 %d1, main;
cvta.param.u64 %d1, P;

ld.global.u32 %r1, [s];
ld.local.u32 %r1, [g];
ld.u32 %r1, [c];
ld.u32 %r1, [P];
ld.shared.u32 %r1, [l];
ld.global.u32 %r1, [main];
ld.global.u32 %r1, g[0];
st.shared.u32 [g], 1;
atom.shared.add.u32 %r1, [g], 1;
red.global.add.u32 [s], 1;
cvta.shared.u64 %d1, g;
cvta.global.u64 %d1, s+4;
cvta.global.u64 %d1, main;",
    )?;
    Ok(())
}

#[test]
fn offset_addresses_are_integers() -> TestResult {
    check(
        "
mov.u32 %r1, g+4;
mov.b32 %f1, g+4;
mov.u16 %h1, g;
mov.u32 %r1, main;
mov.u32 %r1, s;
mov.u64 %d1, a[2];
add.u32 %r1, %r2, g+4;
st.u8 [%d1], s+4;

mov.u32 %r1, g;
mov.f64 %e1, g+4;
mov.u64 %d1, main+4;
mov.u64 %d1, main[2];
mov.u64 %d1, P[2];
add.u64 %d1, %d2, g;
add.f32 %f1, %f1, g+4;",
    )?;
    Ok(())
}

#[test]
fn packed_elements() -> TestResult {
    check(
        "
mov.b16 %h1, {%c1, %c2};
mov.b16 %h1, {%c1, 1};
mov.b16 {%c1, _}, %h1;
mov.b32 %r1, {_, %h2};
mov.b32 %r1, {%c1, 1, %c1, _};
mov.b32 {%h1, %h2}, %tid.x;
mov.b64 %d1, {%tid.x, %tid.y};
mov.b64 %d1, {%f1, %r1};
mov.b64 %d1, {1.5, %f1};
mov.b64 {%r1, %r2}, g;
mov.b64 {%u1, %r1}, %d1;

mov.b16 %h1, {%c1};
mov.b16 %h1, {%c1, %c2, %c1, %c2};
mov.b16 %h1, {_, %c1};
mov.b32 %r1, {%c1, %c2};
mov.b32 %r1, {%h1, %c1};
mov.b32 %r1, {_, _};
mov.b32 {_, _}, %r1;
mov.b64 {_, _}, %d1;
mov.b64 %d1, {_, %r1};
mov.b64 {%f1, %u1}, %d1;
mov.b64 %d1, {%u1, %f1};
mov.u32 %r1, {%h1, %h2};",
    )?;
    Ok(())
}

#[test]
fn calls_pass_no_small_values() {
    for (function, call) in [
        (".func f(.param .b16 a) { ret; }", "call f, (%h1);"),
        (".func f(.param .f16 a) { ret; }", "call f, (1.5);"),
        (".func f(.reg .b8 a) { ret; }", "call f, (%c1);"),
        (
            ".func f(.param .u16 a[2]) { ret; }",
            "{ .param .u16 x[2]; call f, (x); }",
        ),
        (".func (.param .b8 o) f() { ret; }", "call (_), f;"),
        (".func f(.reg .pred a) { ret; }", "ret;"),
        (".func f(.reg .f16x2 a) { ret; }", "call f, (%f1);"),
    ] {
        assert_eq!(error(function, call), None, "{function} {call}");
    }
    for (function, call) in [
        (".func f(.param .u16 a) { ret; }", "call f, (%h1);"),
        (
            ".func f(.param .u16 a) { ret; }",
            "{ .param .u16 x; call f, (x); }",
        ),
        (".func f(.reg .s8 a) { ret; }", "call f, (5);"),
        (".func f(.reg .pred a) { ret; }", "call f, (%p1);"),
        (".func (.param .u8 o) f() { ret; }", "call (_), f;"),
        (".func (.reg .pred o) f() { ret; }", "call (_), f;"),
        (".func f(.param .u32 a) { ret; }", "call f, (_);"),
    ] {
        assert!(error(function, call).is_some(), "{function} {call}");
    }
}

#[test]
fn vectors_have_at_most_128_bits() {
    for declared in [
        ".global .v4 .f32 v;",
        ".shared .v2 .f64 v[4];",
        ".global .v4 .f16x2 v;",
    ] {
        assert_eq!(error(declared, "ret;"), None, "{declared}");
    }
    for declared in [
        ".shared .v4 .s64 v[4];",
        ".global .v2 .b128 v;",
        ".global .v8 .u16 v;",
        ".const .v4 .f64 v;",
    ] {
        assert!(error(declared, "ret;").is_some(), "{declared}");
    }
}

#[test]
fn vector_parameters_are_arrays() {
    assert_eq!(
        error(
            ".func f(.param .v2 .u32 a[4]) { ret; }",
            ".param .f16x2 x[2]; ret;"
        ),
        None
    );
    assert_eq!(
        error(".func f(.param .b128 a) { ret; }", ".param .f16 x; ret;"),
        None
    );
    assert!(error("", ".param .v4 .u32 x; ret;").is_some());
    assert!(error("", ".param .f16x2 x; ret;").is_some());
    assert!(error(".entry k(.param .v2 .f32 a) { ret; }", "ret;").is_some());
    assert!(error(".func (.param .f16x2 o) f() { ret; }", "ret;").is_some());
}
