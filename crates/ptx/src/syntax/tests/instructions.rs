//! Guards, suffixes and the shapes of operands.

use super::{TestResult, body, instruction, operands, refused_body};
use crate::syntax::{
    Address, Base, CacheLevel, Compare, Eviction, Modifier, Opcode, Operand, Operation, Predicate,
    RegisterId, Rounding, ScalarType, Scope, Semantics, Shape, Space, Span,
};

const R0: RegisterId = RegisterId(0);
const R1: RegisterId = RegisterId(1);

#[test]
fn guards_may_be_negated() -> TestResult {
    let plain = instruction("@%p1 ret;")?;
    assert_eq!(
        plain.predicate,
        Some(Predicate {
            register: R0,
            negated: false
        })
    );
    let negated = instruction("  @!%p1 ret;")?;
    assert_eq!(
        negated.predicate,
        Some(Predicate {
            register: R0,
            negated: true
        })
    );
    assert_eq!(negated.span, Span { line: 6, column: 9 });
    Ok(())
}

fn opcode(name: &str) -> TestResult<Opcode> {
    Ok(Opcode::from_name(name).ok_or(name)?)
}

#[test]
fn suffixes_are_parsed_by_opcode() -> TestResult {
    use Modifier as M;
    for (text, opcode, expected) in [
        (
            "add.rn.ftz.sat.f32 %f1, %f1, %f1;",
            opcode("add")?,
            vec![
                M::Round(Rounding::NearestEven),
                M::FlushToZero,
                M::Saturate,
                M::Type(ScalarType::F32),
            ],
        ),
        (
            "mul.lo.s32 %r1, %r1, %r1;",
            opcode("mul")?,
            vec![M::Lo, M::Type(ScalarType::S32)],
        ),
        (
            "setp.lo.u32 %p1, %r1, %r1;",
            opcode("setp")?,
            vec![M::Compare(Compare::Lower), M::Type(ScalarType::U32)],
        ),
        (
            "setp.geu.and.f32 %p1, %f1, %f1, %p1;",
            opcode("setp")?,
            vec![
                M::Compare(Compare::GreaterEqualUnordered),
                M::Operation(Operation::And),
                M::Type(ScalarType::F32),
            ],
        ),
        (
            "ld.acquire.gpu.global.L1::evict_last.L2::128B.v2.u32 {%r1, %r2}, [%d1];",
            Opcode::Ld,
            vec![
                M::Semantics(Semantics::Acquire),
                M::Scope(Scope::Gpu),
                M::Space(Space::Global),
                M::Evict(CacheLevel::L1, Eviction::Last),
                M::PrefetchSize(128),
                M::Vector(2),
                M::Type(ScalarType::U32),
            ],
        ),
        ("membar.gl;", Opcode::Membar, vec![M::Scope(Scope::Gpu)]),
        (
            "st.shared::cluster.u32 [%r1], %r1;",
            Opcode::St,
            vec![M::Space(Space::SharedCluster), M::Type(ScalarType::U32)],
        ),
    ] {
        let parsed = instruction(text)?;
        assert_eq!(
            (parsed.opcode, parsed.modifiers),
            (opcode, expected),
            "{text}"
        );
    }
    Ok(())
}

#[test]
fn matrix_shapes_are_read() -> TestResult {
    let parsed = instruction(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f1,%f2,%f3,%f4};",
    )?;
    assert!(parsed.has(Modifier::Shape(Shape { m: 16, n: 8, k: 16 })));
    assert_eq!(parsed.types().count(), 4);
    assert!(
        instruction("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1,%r2}, [%r3];")?
            .has(Modifier::Shape(Shape { m: 8, n: 8, k: 0 }))
    );
    Ok(())
}

/// Returns the base and the offset of the address that a load has as its source.
fn address(text: &str) -> TestResult<(Base, i64)> {
    Ok(match operands(&format!("ld.shared.u32 %r1, {text};"))?[1] {
        Operand::Address(address) => (address.base, address.offset),
        ref other => panic!("{other:?}"),
    })
}

#[test]
fn addresses_have_an_offset() -> TestResult {
    assert_eq!(address("[%d1]")?, (Base::Register(R1), 0));
    assert_eq!(address("[%d1+8]")?, (Base::Register(R1), 8));
    assert_eq!(address("[%d1+-8]")?, (Base::Register(R1), -8));
    assert_eq!(address("[%d1+4*2-16]")?, (Base::Register(R1), -8));
    assert_eq!(address("[0x10]")?, (Base::Absolute, 16));
    assert_eq!(address("[16+4*2]")?, (Base::Absolute, 24));
    Ok(())
}

/// Pairs, sinks, negations and vectors are read.
#[test]
fn operand_kinds_are_read() -> TestResult {
    assert_eq!(
        operands("setp.eq.s32 %p1|%p2, 1, 2;")?[0],
        Operand::Pair(Some(R0), Some(R1))
    );
    assert_eq!(
        operands("setp.eq.s32 _|%p2, 1, 2;")?[0],
        Operand::Pair(None, Some(R0))
    );
    assert_eq!(
        operands("setp.eq.s32 %p2|_, 1, 2;")?[0],
        Operand::Pair(Some(R0), None)
    );
    assert_eq!(operands("atom.add.u32 _, [%d1], 1;")?[0], Operand::Sink);
    assert_eq!(operands("not.pred %p1, !%p2;")?[1], Operand::Not(R1));
    let vector = operands("mov.b64 {%r1, _}, %d1;")?;
    assert_eq!(
        vector[0],
        Operand::Vector([Operand::Register(R0), Operand::Sink].into())
    );
    let negative = operands("mov.b32 %r1, -1;")?;
    assert!(matches!(negative[1], Operand::Integer(integer) if integer.value() == -1));
    Ok(())
}

#[test]
fn texture_coordinates() -> TestResult {
    let parsed = operands("tex.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%d1, {%f5, %f6}];")?;
    let Operand::Tensor(tensor) = &parsed[1] else {
        panic!("{parsed:?}")
    };
    assert!(matches!(
        tensor.handle,
        Address {
            base: Base::Register(_),
            offset: 0
        }
    ));
    assert_eq!((tensor.sampler, tensor.coordinates.len()), (None, 2));
    let parsed = operands("tex.1d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%d1, %d2, {%f5}];")?;
    let Operand::Tensor(tensor) = &parsed[1] else {
        panic!("{parsed:?}")
    };
    assert!(tensor.sampler.is_some());
    Ok(())
}

#[test]
fn video_selectors_are_read() -> TestResult {
    let parsed = operands("vadd2.s32.u32.u32 %r1, %r1.h10, %r2.h32, %r1;")?;
    assert!(
        matches!(parsed[1], Operand::Select(_, selector) if selector.halves && selector.indices[..2] == [1, 0])
    );
    assert!(refused_body("vadd2.s32.u32.u32 %r1, %r1.h90, %r2, %r1;").contains("found '.h90'"));
    Ok(())
}

#[test]
fn opcodes_parse() {
    body(
        "cp.async.cg.shared.global.L2::128B [%r1], [%d1], 16;\ncp.async.wait_group 0;\nmbarrier.init.shared::cta.b64 [%r1], 1;\n\
         mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], %r2;\nbarrier.cluster.arrive.release.aligned;\nfence.acq_rel.gpu;\n\
         fence.proxy.async.shared::cta;\nvote.sync.ballot.b32 %r1, %p1, -1;\nmatch.any.sync.b32 %r1, %r2, -1;\nredux.sync.add.u32 %r1, %r2, -1;\n\
         activemask.b32 %r1;\nlop3.b32 %r1, %r1, %r2, %r3, 0x96;\nprmt.b32 %r1, %r2, %r3, 0x3210;\nshf.l.wrap.b32 %r1, %r2, %r3, 4;\n\
         elect.sync _|%p1, -1;\nsetmaxnreg.inc.sync.aligned.u32 240;\ngriddepcontrol.wait;\nnanosleep.u32 40;\ntrap;\nexit;\n\
         wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2,%f3,%f4}, %d1, %d2, 1, 1, 1, 0, 0;\nisspacep.shared %p1, %d1;\n\
         cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%d1, {%r2, %r3}], [%r4];\n\
         dp4a.u32.u32 %r1, %r2, %r3, %r4;\ntestp.finite.f32 %p1, %f1;\nclz.b32 %r1, %r2;\nmapa.shared::cluster.u32 %r1, %r2, %r3;",
    );
}

#[test]
fn unknown_opcodes_are_named() {
    assert_eq!(
        refused_body("frobnicate.u32 %r1;"),
        "line 6, column 1: expected an instruction, found 'frobnicate'"
    );
    assert_eq!(
        refused_body("add.u33 %r1, %r1, 1;"),
        "line 6, column 4: add: unknown suffix '.u33'"
    );
    assert_eq!(
        refused_body("ld.global.L2::7B.u32 %r1, [%d1];"),
        "line 6, column 10: ld: unknown suffix '.L2::7B'"
    );
}
