//! What came later: the instructions, suffixes and special registers that need a version of the ISA or an architecture.
//!
//! What is not named here is older than the devices that are simulated, or passes whatever the module says.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::Context;
use crate::ptx::ast::{Instruction, Module, Target, TargetVariant, Version};
use crate::ptx::error::Error;
use crate::ptx::modifier::Modifier;
use crate::ptx::opcode::Opcode;
use crate::ptx::operand::Operand;
use crate::ptx::special::SpecialRegister;

/// The version of the ISA, the architecture, or 0 for any, and what needs both: an instruction that has all of these suffixes, in whatever
/// order; a suffix of any instruction; a special register; a vector of results with a predicate.
#[rustfmt::skip]
const SINCE: &[(u32, u32, u32, &str)] = &[
    (5, 0, 0, "%clock_hi"),
    (5, 0, 60, "atom.add.f64 atom.cta atom.gpu atom.sys red.add.f64 red.cta red.gpu red.sys"),
    (5, 0, 61, "dp2a dp4a"),
    (6, 0, 30, "bar.warp barrier fns shfl.sync vote.sync"),
    (6, 0, 53, "neg.f16 neg.f16x2"),
    (6, 0, 70, "cvt.satfinite fence match .acq_rel .acquire .relaxed .release .sc .weak"),
    (6, 2, 30, "activemask"),
    (6, 2, 60, "atom.add.f16x2 red.add.f16x2"),
    (6, 2, 70, "nanosleep"),
    (6, 3, 70, "atom.add.f16 atom.cas.b16 red.add.f16 wmma.aligned"),
    (6, 3, 72, "wmma.s32 wmma.s8 wmma.u8"),
    (6, 3, 75, "wmma.m8n8k128 wmma.m8n8k32 .b1 .s4 .u4"),
    (6, 4, 70, "mma"),
    (6, 5, 53, "abs.f16 abs.f16x2 set.s16.f16 set.s32.f16 set.s32.f16x2 set.u16.f16 set.u32.f16 set.u32.f16x2"),
    (6, 5, 72, "cvt.pack"),
    (6, 5, 75, "cvt.s2 cvt.u2 ldmatrix mma.m16n8k8 mma.m8n8k16 mma.m8n8k32"),
    (7, 0, 75, "ex2.f16 ex2.f16x2 mma.m8n8k128 tanh"),
    (7, 0, 80, "cp.async cvt.f16x2.f32 max.f16 max.f16x2 mbarrier min.f16 min.f16x2 mma.f64 mma.m16n8k128 mma.m16n8k16 \
        mma.m16n8k256 mma.m16n8k32 mma.m16n8k4 mma.m16n8k64 redux wmma.f64 wmma.m16n16k8 wmma.m8n8k4 .NaN .bf16 .bf16x2 .relu .tf32"),
    (7, 1, 60, "tex|p tld4|p"),
    (7, 1, 80, "mbarrier.parity mma.and mma.sp wmma.and"),
    (7, 2, 86, ".xorsign"),
    (7, 3, 52, "alloca stackrestore stacksave"),
    (7, 4, 70, ".L1::evict_first .L1::evict_last .L1::evict_normal .L1::evict_unchanged .L1::no_allocate"),
    (7, 4, 75, ".L2::128B .L2::64B"),
    (7, 4, 80, "applypriority createpolicy discard prefetch.L2::evict_last .L2::256B .L2::cache_hint .L2::evict_first \
        .L2::evict_last .L2::evict_normal .L2::evict_unchanged"),
    (7, 5, 60, "membar.proxy"),
    (7, 5, 70, "fence.proxy"),
    (7, 6, 70, "bmsk szext"),
    (7, 6, 80, "%reserved_smem_offset_begin %reserved_smem_offset_end"),
    (7, 7, 70, "cvta.param isspacep.param"),
    (7, 8, 0, "atom.shared::cta bar.cta cvta.shared::cta isspacep.shared::cta ld.shared::cta ldmatrix.shared::cta \
        mbarrier.shared::cta red.shared::cta st.shared::cta stmatrix.shared::cta"),
    (7, 8, 30, "barrier.cta"),
    (7, 8, 75, "movmatrix"),
    (7, 8, 80, "cp.async.shared::cta.mbarrier"),
    (7, 8, 89, "cvt.e4m3x2 cvt.e5m2x2"),
    (7, 8, 90, "add.bf16 add.bf16x2 atom.bf16 atom.bf16x2 barrier.cluster cvt.f16.bf16 cvt.f64.bf16 cvt.rn.tf32 cvt.rz.tf32 \
        cvt.s16.bf16 cvt.s32.bf16 cvt.s64.bf16 cvt.u16.bf16 cvt.u32.bf16 cvt.u64.bf16 ex2.bf16 ex2.bf16x2 getctarank griddepcontrol \
        mapa mbarrier.try_wait mma.f64.m16n8k16 mma.f64.m16n8k4 mma.f64.m16n8k8 mul.bf16 mul.bf16x2 red.bf16 red.bf16x2 set.bf16 \
        set.bf16x2 setp.bf16 setp.bf16x2 stmatrix sub.bf16 sub.bf16x2 tanh.bf16 tanh.bf16x2 %cluster_ctaid %cluster_ctarank \
        %cluster_nctaid %cluster_nctarank %clusterid %is_explicit_cluster %nclusterid .cluster .shared::cluster"),
    (8, 0, 50, "%current_graph_exec"),
    (8, 0, 80, "mbarrier.acquire mbarrier.relaxed mbarrier.release"),
    (8, 0, 90, "add.s16x2 add.u16x2 barrier.cluster.acquire barrier.cluster.relaxed barrier.cluster.release cp.async.bulk cp.reduce \
        elect fence.mbarrier_init fence.proxy.async max.relu.s16x2 max.relu.s32 max.s16x2 max.u16x2 mbarrier.complete_tx \
        mbarrier.expect_tx mbarrier.shared::cluster min.relu.s16x2 min.relu.s32 min.s16x2 min.u16x2 prefetch.tensormap setmaxnreg"),
    (8, 1, 0, "cvt.satfinite.f16.f32 cvt.satfinite.f16x2.f32"),
    (8, 1, 80, "cvt.satfinite.bf16.f32 cvt.satfinite.bf16x2.f32 cvt.satfinite.tf32"),
    (8, 1, 90, "atom.v2 atom.v4 atom.v8 multimem red.async red.v2 red.v4 red.v8 st.async %aggr_smem_size"),
    (8, 2, 70, "lop3.and lop3.or .mmio"),
    (8, 3, 0, ".param::entry"),
    (8, 3, 70, ".b128"),
    (8, 3, 90, "atom.b128 tensormap"),
    (8, 4, 89, ".e4m3 .e5m2"),
    (8, 5, 80, "mma.sp::ordered_metadata"),
    (8, 6, 0, ".e2m1x2 .e2m3x2 .e3m2x2"),
    (8, 6, 90, "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes mbarrier.arrive.relaxed mbarrier.test_wait.relaxed mbarrier.try_wait.relaxed"),
    (8, 6, 100, ".cp_mask .cta_group::1 .cta_group::2 .im2col::w .im2col::w::128 .tile::gather4 .tile::scatter4 add.f32x2 clusterlaunchcontrol cvt.rn.satfinite.tf32 cvt.rz.satfinite.tf32 cvt.ue8m0x2 fma.f32x2 mul.f32x2 st.bulk sub.f32x2 tcgen05"),
    (8, 7, 100, "cvt.rs red.async.gpu red.async.sys st.async.global st.async.gpu st.async.sys"),
    (8, 8, 100, "ld.v4.b64 ld.v4.f64 ld.v4.s64 ld.v4.u64 ld.v8.b32 ld.v8.f32 ld.v8.s32 ld.v8.u32 st.v4.b64 st.v4.f64 st.v4.s64 \
        st.v4.u64 st.v8.b32 st.v8.f32 st.v8.s32 st.v8.u32"),
];

/// The same for what the architectures of one generation have, of which a module must name one with a suffix, such as `sm_90a`.
const ONLY_ON: &[(u32, u32, u32, &str)] =
    &[(8, 0, 90, "wgmma"), (8, 6, 100, "redux.f32"), (8, 7, 120, "mma.kind::f8f6f4")];

static NEEDS: LazyLock<Vec<Need>> = LazyLock::new(|| {
    let all = |table: &'static [(u32, u32, u32, &'static str)], is_specific| {
        table.iter().flat_map(move |&(major, minor, architecture, names)| {
            let version = Version { major, minor };
            names.split(' ').filter_map(move |name| Need::new(name, version, architecture, is_specific))
        })
    };
    all(SINCE, false).chain(all(ONLY_ON, true)).collect()
});

/// Something that a module can use from a version of the ISA and an architecture on.
#[derive(Debug)]
struct Need {
    name: &'static str,
    what: What,
    version: Version,
    architecture: u32,
    /// `true` if only the architectures of that generation have it.
    is_specific: bool,
}

#[derive(Debug)]
enum What {
    Form(Option<Opcode>, Vec<Modifier>),
    Register(Vec<SpecialRegister>),
    /// A vector of results with a predicate.
    Pair(Opcode),
}

/// What a module cannot use.
#[derive(Default)]
pub(in crate::ptx) struct Unmet {
    forms: HashMap<Option<Opcode>, Vec<&'static Need>>,
    registers: Vec<&'static Need>,
}

impl Need {
    /// Returns what a name of the table stands for; `None` if it is no name.
    fn new(name: &'static str, version: Version, architecture: u32, is_specific: bool) -> Option<Self> {
        let what = if let Some(opcode) = name.strip_suffix("|p") {
            Opcode::from_name(opcode).map(What::Pair)
        } else if name.starts_with('%') {
            let parts = ["", ".x", ".y", ".z"];
            let registers = parts.iter().filter_map(|part| SpecialRegister::from_name(&format!("{name}{part}")));
            Some(What::Register(registers.collect()))
                .filter(|what| !matches!(what, What::Register(all) if all.is_empty()))
        } else {
            form(name)
        };
        Some(Self { name, what: what?, version, architecture, is_specific })
    }

    fn is_met(&self, module: &Module) -> bool {
        let Target { architecture, variant, .. } = module.target;
        let is_there = if self.is_specific {
            variant != TargetVariant::Baseline && architecture / 10 == self.architecture / 10
        } else {
            architecture >= self.architecture
        };
        module.version >= self.version && is_there
    }

    /// Returns `true` if an instruction is of the opcode that this is about, and has all the suffixes.
    fn concerns(&self, instruction: &Instruction) -> bool {
        match &self.what {
            What::Form(_, modifiers) => modifiers.iter().all(|modifier| instruction.modifiers.contains(modifier)),
            What::Register(registers) => instruction
                .operands
                .iter()
                .any(|operand| matches!(operand, Operand::Special(register) if registers.contains(register))),
            What::Pair(opcode) => {
                *opcode == instruction.opcode && matches!(instruction.operands.first(), Some(Operand::VectorPair(..)))
            }
        }
    }
}

impl Unmet {
    /// Returns what a module with this header cannot use.
    pub(in crate::ptx) fn of(module: &Module) -> Self {
        let mut unmet = Self::default();
        for need in NEEDS.iter().filter(|need| !need.is_met(module)) {
            match need.what {
                What::Form(opcode, _) => unmet.forms.entry(opcode).or_default().push(need),
                What::Register(_) | What::Pair(_) => unmet.registers.push(need),
            }
        }
        unmet
    }

    /// Returns what an instruction uses of it: the newest, so that whoever heeds the error need not come again.
    fn newest(&self, instruction: &Instruction) -> Option<&'static Need> {
        let forms = [None, Some(instruction.opcode)].into_iter().filter_map(|opcode| self.forms.get(&opcode)).flatten();
        let used = forms.chain(&self.registers).filter(|need| need.concerns(instruction));
        used.copied().max_by_key(|need| (need.version, need.architecture))
    }
}

impl Context<'_> {
    /// Checks that the module is of a version and for an architecture that have the instruction.
    pub(super) fn age(&self) -> Result<(), Error> {
        let Some(need) = self.unmet.newest(self.instruction) else { return Ok(()) };
        let (name, Version { major, minor }) = (need.name, need.version);
        let Module { version, target, .. } = self.module;
        let (expected, found) = if *version < need.version {
            let expected = format!("PTX ISA version {major}.{minor} or later for '{name}'");
            (expected, format!("'.version {}.{}'", version.major, version.minor))
        } else {
            let range = if need.is_specific { "a" } else { " or higher" };
            let expected = format!("target sm_{}{range} for '{name}'", need.architecture);
            let suffix = match target.variant {
                TargetVariant::Baseline => "",
                TargetVariant::Architecture => "a",
                TargetVariant::Family => "f",
            };
            (expected, format!("'.target sm_{}{suffix}'", target.architecture))
        };
        Err(Error::syntax(self.instruction.span, expected, found))
    }
}

/// Returns an instruction with suffixes, or suffixes of any instruction.
fn form(name: &str) -> Option<What> {
    let mut words = name.split('.');
    let opcode = words.next().filter(|word| !word.is_empty()).map(Opcode::from_name);
    let opcode = if name.starts_with('.') { None } else { Some(opcode??) };
    // How an opcode reads a suffix makes a difference only to comparisons, none of which is in the table.
    let suffixes = words.map(|word| Modifier::parse(word, opcode.unwrap_or(Opcode::Mov)));
    Some(What::Form(opcode, suffixes.collect::<Option<_>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_the_table_is_one_of_the_language() {
        for &(major, minor, architecture, names) in SINCE.iter().chain(ONLY_ON) {
            for name in names.split(' ') {
                assert!(Need::new(name, Version { major, minor }, architecture, false).is_some(), "{name}");
            }
        }
        assert!(SINCE.is_sorted_by(|a, b| (a.0, a.1, a.2) < (b.0, b.1, b.2)));
        for name in ["frobnicate", "add.frobnicate", "%frobnicate", ".frobnicate", ""] {
            assert!(Need::new(name, Version { major: 1, minor: 0 }, 0, false).is_none(), "{name}");
        }
    }
}
