//! Requirements for a module's version and target.

use super::super::parse;

/// Parses a module with a version, a target, and an instruction on line 6.
fn module(version: &str, target: &str, instruction: &str) -> Result<(), String> {
    let registers = ".reg .pred %p<9>; .reg .b8 %c<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .f32 %f<9>;";
    let text = format!(
        ".version {version}\n.target {target}\n.address_size 64\n.entry k() {{\n{registers} .shared .b64 s;\n{instruction}\n}}\n"
    );
    parse(&text).map(|_| ()).map_err(|error| error.to_string())
}

/// Instructions, and the first version and target for which an assembler accepts them.
const FIRST: &[(&str, &str, &str)] = &[
    ("dp4a.s32.s32 %r1, %r2, %r3, %r4;", "5.0", "sm_61"),
    ("atom.global.gpu.add.u32 %r1, [%d1], 1;", "5.0", "sm_60"),
    ("ld.acquire.gpu.u32 %r1, [%d1];", "6.0", "sm_70"),
    ("nanosleep.u32 5;", "6.2", "sm_70"),
    ("atom.add.noftz.f16 %h1, [%d1], %h2;", "6.3", "sm_70"),
    (
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [s];",
        "6.5",
        "sm_75",
    ),
    ("tanh.approx.f32 %f1, %f2;", "7.0", "sm_75"),
    (
        "tex.2d.v4.f32.f32 {%r1, %r2, %r3, %r4}|%p1, [%d1, {%f1, %f2}];",
        "7.1",
        "sm_60",
    ),
    ("redux.sync.add.s32 %r1, %r2, -1;", "7.0", "sm_80"),
    ("fma.rn.bf16 %h1, %h2, %h3, %h4;", "7.0", "sm_80"),
    ("max.NaN.f32 %f1, %f2, %f3;", "7.0", "sm_80"),
    ("cp.async.wait_all;", "7.0", "sm_80"),
    (
        "mma.sp.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2}, {%r3,%r4}, {%f1,%f2,%f3,%f4}, %r5, 0;",
        "7.1",
        "sm_80",
    ),
    (
        "ld.global.L2::cache_hint.u32 %r1, [%d1], %d2;",
        "7.4",
        "sm_80",
    ),
    ("ld.global.L1::no_allocate.u32 %r1, [%d1];", "7.4", "sm_70"),
    ("add.bf16 %h1, %h2, %h3;", "7.8", "sm_90"),
    ("cvt.rzi.s8.bf16 %c1, %h2;", "7.8", "sm_90"),
    ("cvt.rn.bf16.u8 %h1, %c2;", "7.8", "sm_90"),
    ("mapa.u64 %d1, %d2, 0;", "7.8", "sm_90"),
    ("mov.u32 %r1, %clusterid.y;", "7.8", "sm_90"),
    ("griddepcontrol.wait;", "7.8", "sm_90"),
    (
        "mbarrier.try_wait.shared.b64 %p1, [s], %d1;",
        "7.8",
        "sm_90",
    ),
    ("elect.sync %r1|%p1, -1;", "8.0", "sm_90"),
    ("cp.async.bulk.commit_group;", "8.0", "sm_90"),
    (
        "atom.global.add.v2.f32 {%f1, %f2}, [%d1], {%f3, %f4};",
        "8.1",
        "sm_90",
    ),
    ("mov.u32 %r1, %aggr_smem_size;", "8.1", "sm_90"),
    ("multimem.st.global.u32 [%d1], %r1;", "8.1", "sm_90"),
    (
        "multimem.cp.async.bulk.global.shared::cta.bulk_group [%d1], [s], 16;",
        "9.1",
        "sm_90",
    ),
    ("cvt.rn.satfinite.f16.f32 %h1, %f1;", "8.1", "sm_70"),
    ("cvt.rz.satfinite.bf16x2.f32 %r1, %f1, %f2;", "8.1", "sm_80"),
    ("add.rn.f32x2 %d1, %d2, %d3;", "8.6", "sm_100"),
    (
        "clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytes.b128 [%d1], [%d2];",
        "8.6",
        "sm_100",
    ),
    ("cvt.rs.f16x2.f32 %r1, %f1, %f2, %r2;", "8.7", "sm_100"),
    (
        "st.async.release.gpu.global.b32 [%d1], %r1;",
        "8.7",
        "sm_100",
    ),
];

#[test]
fn instructions_have_a_version() {
    for &(instruction, version, target) in FIRST {
        assert_eq!(
            module(version, target, instruction),
            Ok(()),
            "{instruction}"
        );
        assert_eq!(
            module("9.1", "sm_110", instruction),
            Ok(()),
            "{instruction}"
        );
    }
}

#[test]
fn earlier_version_is_refused() {
    for &(instruction, version, target) in FIRST {
        let error = module("4.3", "sm_50", instruction).expect_err(instruction);
        let expected =
            format!("requires PTX ISA version {version} or later (found '.version 4.3')");
        assert!(
            error.starts_with("line 6, column 1: ") && error.ends_with(&expected),
            "{instruction} {error}"
        );
        let error = module("9.1", "sm_53", instruction).expect_err(instruction);
        let expected = format!("requires target {target} or higher (found '.target sm_53')");
        assert!(
            error.starts_with("line 6, column 1: ") && error.ends_with(&expected),
            "{instruction} {error}"
        );
    }
}

#[test]
fn highest_requirement_is_named() {
    let error = module("6.0", "sm_70", "add.bf16 %h1, %h2, %h3;").expect_err("both are too old");
    assert_eq!(
        error,
        "line 6, column 1: add: '.bf16' requires PTX ISA version 7.8 or later (found '.version 6.0')"
    );
    let error = module("7.0", "sm_75", "redux.sync.add.s32 %r1, %r2, -1;")
        .expect_err("the target is too old");
    assert_eq!(
        error,
        "line 6, column 1: redux: requires target sm_80 or higher (found '.target sm_75')"
    );
}

#[test]
fn target_needs_its_version() {
    for (target, before, first) in [
        ("sm_70", "5.0", "6.0"),
        ("sm_75", "6.2", "6.3"),
        ("sm_80", "6.5", "7.0"),
        ("sm_88", "8.8", "9.0"),
        ("sm_90", "7.7", "7.8"),
        ("sm_90a", "7.8", "8.0"),
        ("sm_100", "8.5", "8.6"),
        ("sm_100a", "8.5", "8.6"),
        ("sm_100f", "8.7", "8.8"),
        ("sm_107", "9.3", "9.4"),
        ("sm_110", "8.8", "9.0"),
    ] {
        let error = module(before, target, "ret;").expect_err(target);
        assert_eq!(
            error,
            format!(
                "line 2, column 9: target '{target}' requires PTX ISA version {first} or later \
                 (found '.version {before}')"
            )
        );
        assert_eq!(module(first, target, "ret;"), Ok(()), "{target}");
    }
}

#[test]
fn specific_instructions() {
    for (instruction, target, others) in [
        (
            "wgmma.fence.sync.aligned;",
            "sm_90a",
            &["sm_90", "sm_100", "sm_100a"][..],
        ),
        (
            "redux.sync.min.f32 %f1, %f2, -1;",
            "sm_100a",
            &["sm_100", "sm_120a"],
        ),
    ] {
        assert_eq!(module("8.8", target, instruction), Ok(()), "{instruction}");
        for other in others {
            let error = module("8.8", other, instruction).expect_err(instruction);
            let expected = format!("requires target {target} (found '.target {other}')");
            assert!(error.ends_with(&expected), "{error}");
        }
    }
    assert_eq!(
        module("8.8", "sm_103f", "redux.sync.min.f32 %f1, %f2, -1;"),
        Ok(())
    );
    module("7.8", "sm_90", "wgmma.fence.sync.aligned;").expect_err("too old");
}

/// Targets with `ptxas`'s answers for instructions of tensor memory: a wait, products of every
/// kind, a scale, and a shift.
#[test]
fn tensor_memory_requires_specific_targets() {
    const INSTRUCTIONS: [&str; 5] = [
        "tcgen05.wait::ld.sync.aligned;",
        "tcgen05.mma.cta_group::1.kind::f16 [%r1], %d1, %d2, %r2, %p1;",
        "tcgen05.mma.cta_group::1.kind::i8 [%r1], %d1, %d2, %r2, %p1;",
        "tcgen05.mma.cta_group::1.kind::f16 [%r1], %d1, %d2, %r2, %p1, 3;",
        "tcgen05.shift.cta_group::1.down [%r1];",
    ];
    for (target, answers) in [
        ("sm_90a", "-----"),
        ("sm_100", "-----"),
        ("sm_100a", "+++++"),
        ("sm_100f", "++-+-"),
        ("sm_103a", "++-++"),
        ("sm_103f", "++-+-"),
        ("sm_110", "-----"),
        ("sm_110a", "+++-+"),
        ("sm_110f", "++---"),
        ("sm_120a", "-----"),
        ("sm_121a", "-----"),
    ] {
        for (instruction, answer) in INSTRUCTIONS.into_iter().zip(answers.chars()) {
            let result = module("9.2", target, instruction);
            assert_eq!(
                result.is_ok(),
                answer == '+',
                "{target}: {instruction} {result:?}"
            );
        }
    }
    let error = module("8.5", "sm_100a", INSTRUCTIONS[0]).err();
    assert!(error.is_some_and(|error| error.contains("8.6")));
    let error = module("8.8", "sm_100", INSTRUCTIONS[0]).err();
    assert!(error.is_some_and(|error| error.contains("sm_100a or sm_110a")));
}
