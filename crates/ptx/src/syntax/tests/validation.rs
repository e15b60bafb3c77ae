//! Valid and invalid forms of the common instructions.

use super::{body, refused_body};

#[test]
fn valid_forms_are_accepted() {
    for text in [
        "add.f32 %f1, %f2, %r1;",
        "add.f64 %e1, %e1, 0f3F800000;",
        "mov.b32 %r1, %f1;",
        "mov.b32 %r1, 0f3F800000;",
        "mov.b64 %d1, {%r1, %f1};",
        "mov.b32 %r1, {%h1, %h2};",
        "mov.b32 %r1, {1, 2};",
        "mov.u16 %h1, %tid.x;",
        "mov.pred %p1, !%p2;",
        "ld.global.u8 %d1, [%d2];",
        "ld.global.f32 %d1, [%d2];",
        "ld.shared.u32 %r1, [%r2];",
        "ld.global.v2.u32 {%r1, %f1}, [%d1];",
        "st.global.u8 [%d1], %r1;",
        "cvt.u32.u8 %r1, %d1;",
        "cvt.rn.f32.s32 %d1, %r1;",
        "cvt.f32.f16 %f1, %r1;",
        "cvt.rn.f16x2.f32 %r1, %f1, %f2;",
        "setp.eq.b32 %p1, %f1, %r1;",
        "selp.b32 %r1, 1, %f1, !%p1;",
        "mul.wide.u16 %r1, %h1, %h1;",
        "mad.wide.s32 %d1, %r1, 4, %d1;",
        "shr.u16 %h1, %h1, %r1;",
        "bar.sync 0; bar.sync %r1, %r2; bar.arrive 0, 64; bar.warp.sync -1;",
        "bar.red.popc.u32 %r1, 0, 64, !%p1;",
        "atom.cas.b32 %r1, [%d1], 1, 2;",
        "atom.global.add.v2.f32 {%f1, %f2}, [%d1], {%f3, %f4};",
        "shfl.sync.idx.b32 %f1|%p1, %f1, %r1, 31, %r1;",
    ] {
        body(text);
    }
}

/// Returns a module for sm_100 with a function of one instruction.
fn sm_100_module(instruction: &str) -> String {
    format!(
        ".version 9.0\n.target sm_100\n.address_size 64\n.func f() {{\n.reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; \
         .reg .b64 %d<9>;\n{instruction}\n}}"
    )
}

#[test]
fn asynchronous_semantics() {
    for instruction in [
        "st.async.release.gpu.global.b32 [%d1], %r1;",
        "st.async.b16 [%d1], %h1;",
        "st.async.mmio.release.sys.u64 [%d1], %d2;",
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r1], {%r1, %r2, %r3, %r4}, [%r2];",
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.inc.u32 [%r1], %r2, [%r3];",
        "red.async.relaxed.gpu.global.add.s64 [%d1], %d2;",
        "red.async.release.sys.xor.b32 [%d1], %r2;",
        "ld.global.b32 %r1, [%d1].unified;",
        "ld.v2.b64 {%d1, %d2}, [%d3].unified;",
        "ld.global.L2::evict_last.v4.b64 {%d1, %d2, %d3, %d4}, [%d5];",
        "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r1], 2;",
        "mbarrier.arrive_drop.noComplete.release.cta.b64 %d1, [%d2], 1;",
        "mbarrier.try_wait.parity.acquire.cluster.shared.b64 %p1, [%r1], 0, 1000;",
    ] {
        super::super::parse(&sm_100_module(instruction))
            .unwrap_or_else(|error| panic!("{instruction}: {error}"));
    }
    for instruction in [
        "st.async.release.gpu.shared::cluster.b32 [%r1], %r1;",
        "st.async.release.cluster.b32 [%d1], %r1;",
        "st.async.relaxed.gpu.b32 [%d1], %r1;",
        "st.async.mmio.release.gpu.b32 [%d1], %r1;",
        "st.async.release.gpu.v2.b32 [%d1], {%r1, %r2};",
        "st.async.global.mbarrier::complete_tx::bytes.b32 [%d1], %r1, [%d2];",
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.b16 [%r1], %h1, [%r2];",
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b64 [%r1], {%d1, %d2, %d3, %d4}, [%r2];",
        "red.async.relaxed.cluster.global.add.u32 [%d1], %r1;",
        "red.async.add.u32 [%d1], %r1;",
        "red.async.relaxed.gpu.and.u32 [%d1], %r1;",
        "red.async.relaxed.gpu.min.u64 [%d1], %d2;",
        "red.async.mmio.relaxed.sys.add.u32 [%d1], %r1;",
        "st.global.b32 [%d1].unified, %r1;",
        "ld.global.L2::evict_last.b32 %r1, [%d1];",
        "ld.global.lu.nc.b32 %r1, [%d1];",
        "ldu.global.v4.b64 {%d1, %d2, %d3, %d4}, [%d5];",
        "mbarrier.arrive.release.gpu.b64 %d1, [%d2];",
        "mbarrier.arrive.acquire.cta.b64 %d1, [%d2];",
        "mbarrier.arrive.shared::cluster.b64 %d1, [%r1];",
        "mbarrier.arrive.noComplete.shared::cluster.b64 _, [%r1], 1;",
        "mbarrier.test_wait.shared::cluster.b64 %p1, [%r1], %d1;",
        "mbarrier.try_wait.release.cta.b64 %p1, [%d1], %d2;",
    ] {
        assert!(
            super::super::parse(&sm_100_module(instruction)).is_err(),
            "{instruction}"
        );
    }
}

#[test]
fn invalid_forms_name_valid_ones() {
    for (text, column, problem) in [
        (
            "add.f32 %f1, %f2, 1;",
            19,
            "add: invalid operand 3 (expected a 32-bit register for .f32 or an immediate of type .f32, found the integer 1)",
        ),
        (
            "add.s32 %f1, %r1, %r1;",
            9,
            "add: invalid operand 1 (expected a 32-bit register for .s32, found '%f1' of type .f32)",
        ),
        (
            "add.s32 %r1, %r1;",
            17,
            "add: wrong number of operands (expected 3, found 2)",
        ),
        (
            "neg.s32 %r1, %r1, %r2;",
            19,
            "neg: wrong number of operands (expected 2, found 3)",
        ),
        (
            "add.u32 %r1, %tid.x, 1;",
            14,
            "add: invalid operand 2 (expected a 32-bit register for .u32 or an immediate of type .u32, found a special register)",
        ),
        (
            "add %r1, %r1, 1;",
            1,
            "add: missing type (expected .u16, .u32, .u64, .s16, .s32, .s64, .u16x2, .s16x2, .f16, .f16x2, .bf16, .bf16x2, .f32, .f32x2 or .f64)",
        ),
        (
            "and.u32 %r1, %r1, 1;",
            1,
            "and: unsupported type .u32 (expected .pred, .b16, .b32 or .b64)",
        ),
        (
            "mul.s32 %r1, %r1, 4;",
            1,
            "mul: unsupported suffixes (expected 'mul.lo.s32', 'mul.hi.s32' or 'mul.wide.s32')",
        ),
        (
            "mul.lo.f32 %f1, %f1, %f1;",
            1,
            "mul: unsupported suffixes (expected 'mul{.rnd}{.ftz}{.sat}.f32')",
        ),
        (
            "mul.wide.s32 %r1, %r1, 4;",
            14,
            "mul: invalid operand 1 (expected a 64-bit register for .s64, found '%r1' of type .b32)",
        ),
        (
            "mul.wide.u64 %d1, %d1, 4;",
            1,
            "mul: unsupported suffixes (expected 'mul.lo.u64' or 'mul.hi.u64')",
        ),
        (
            "slct.f32.u32 %f1, %f2, %f3, %r1;",
            1,
            "slct: unsupported combination of types (.f32, .u32)",
        ),
        (
            "fma.f32 %f1, %f1, %f1, %f1;",
            1,
            "fma: unsupported suffixes (expected 'fma.rnd{.ftz}{.sat}.f32')",
        ),
        (
            "div.f32 %f1, %f1, %f1;",
            1,
            "div: unsupported suffixes (expected 'div.approx{.ftz}.f32', 'div.full{.ftz}.f32' or 'div.rnd{.ftz}.f32')",
        ),
        (
            "ex2.f32 %f1, %f1;",
            1,
            "ex2: unsupported suffixes (expected 'ex2.approx{.ftz}.f32')",
        ),
        (
            "sqrt.f64 %e1, %e1;",
            1,
            "sqrt: unsupported suffixes (expected 'sqrt.rnd.f64')",
        ),
        (
            "shl.b64 %d1, %d1, %d2;",
            19,
            "shl: invalid operand 3 (expected a 32-bit register for .u32 or an immediate of type .u32, found '%d2' of type .b64)",
        ),
        (
            "setp.s32 %p1, %r1, 1;",
            1,
            "setp: unsupported suffixes (expected 'setp.eq|ne|lt|le|gt|ge.s32' or 'setp.eq|ne|lt|le|gt|ge.and|or|xor.s32')",
        ),
        (
            "setp.ltu.s32 %p1, %r1, 1;",
            1,
            "setp: unsupported suffixes (expected 'setp.eq|ne|lt|le|gt|ge.s32' or 'setp.eq|ne|lt|le|gt|ge.and|or|xor.s32')",
        ),
        (
            "setp.lt.and.s32 %p1, %r1, 1;",
            28,
            "setp: wrong number of operands (expected 4, found 3)",
        ),
        (
            "setp.lt.s32 %r1, %r1, 1;",
            13,
            "setp: invalid operand 1 (expected a predicate register, found '%r1' of type .b32)",
        ),
        (
            "selp.b32 %r1, 1, 2, %r1;",
            21,
            "selp: invalid operand 4 (expected a predicate register or an immediate of type .pred, found '%r1' of type .b32)",
        ),
        (
            "mov.u64 %d1, %tid.x;",
            14,
            "mov: invalid operand 2 (expected a special register as wide as .u64, found one of 32 bits)",
        ),
        (
            "mov.u64 %d1, {%r1, %r2};",
            14,
            "mov: invalid operand 2 (expected 2 or 4 elements that fill .u64, found a vector of 2)",
        ),
        (
            "mov.b64 %d1, {%r1, %h1};",
            14,
            "mov: invalid operand 2 (expected 2 or 4 elements that fill .b64, found a vector of 2)",
        ),
        (
            "ld.global.u32 %h1, [%d1];",
            15,
            "ld: invalid operand 1 (expected a register for .u32 of at least 32 bits, found '%h1' of type .b16)",
        ),
        (
            "ld.global.u32 %r1, [%r1];",
            20,
            "ld: invalid operand 2 (expected an address in a register of 64 bits, found '%r1' of type .b32)",
        ),
        (
            "ld.global.u32 %r1, %d1;",
            20,
            "ld: invalid operand 2 (expected an address in brackets, found '%d1' of type .b64)",
        ),
        (
            "ld.global.v4.u32 {%r1, %r2}, [%d1];",
            18,
            "ld: invalid operand 1 (expected a vector of 4 registers for .u32, found a vector of 2)",
        ),
        (
            "st.global.f32 [%d1], 5;",
            22,
            "st: invalid operand 2 (expected a register for .f32 of at least 32 bits or an immediate of type .f32, found the integer 5)",
        ),
        (
            "cvt.u32 %r1, %r1;",
            1,
            "cvt: the types of the result and of the source are required",
        ),
        (
            "cvt.f32.s32 %f1, %r1;",
            1,
            "cvt: unsupported suffixes (expected 'cvt.rnd{.ftz}{.sat}.f32.s32')",
        ),
        (
            "cvt.s32.f32 %r1, %f1;",
            1,
            "cvt: unsupported suffixes (expected 'cvt.irnd{.ftz}{.sat}.s32.f32')",
        ),
        (
            "cvta.u64 %d1, %d1;",
            1,
            "cvta: missing state space, such as '.global'",
        ),
        (
            "shfl.idx.b32 %r1, %r1, 1, 31;",
            1,
            "shfl: '.sync' is required from sm_70 on",
        ),
        (
            "atom.u32 %r1, [%d1], 1;",
            1,
            "atom: missing operation, such as '.add'",
        ),
        (
            "atom.inc.s32 %r1, [%d1], 1;",
            1,
            "atom: unsupported type .s32 (expected .u32)",
        ),
        (
            "bar 0;",
            1,
            "bar: missing '.sync', '.arrive', '.red' or '.warp.sync'",
        ),
        (
            "bar.arrive 0;",
            13,
            "bar: wrong number of operands (expected 2, found 1)",
        ),
        ("@%r1 ret;", 2, "expected a predicate register, found '%r1'"),
        (
            "ret 5;",
            5,
            "ret: wrong number of operands (expected 0, found 1)",
        ),
    ] {
        assert_eq!(
            refused_body(text),
            format!("line 6, column {column}: {problem}"),
            "{text}"
        );
    }
}

#[test]
fn uncommon_opcodes() {
    body("vadd.u32.u32.u32 %r1;");
}
