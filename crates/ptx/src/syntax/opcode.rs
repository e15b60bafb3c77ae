//! The operations of the PTX ISA.

use std::fmt;

use crate::isa::Definition;

/// The table of instructions that are not defined in [`isa`](crate::isa): calls a macro with a row
/// for each opcode, in the order of their spellings.
///
/// A row has the variant of [`Opcode`], the spelling, and
/// 1. the method of `validate::Context` that checks the form; `any_form` leaves the check to the
///    lowering,
/// 2. the method of `exec::lower`'s `Lowerer` that lowers it,
/// 3. the effect on the order of accesses by other threads ([`Effect`]),
/// 4. the method of `Lowerer` that describes the propagation of undefined bytes,
/// 5. the versions of the ISA and the architectures that its forms require, as `validate::since`
///    reads them.
macro_rules! for_each_opcode {
    ($callback:ident) => {
        $callback! {
            Activemask "activemask" any_form warp_wide warp_sync returned_flow "6.2 sm_30";
            Alloca "alloca" any_form stack none returned_flow "7.3 sm_52";
            Applypriority "applypriority" any_form hint none no_flow "7.4 sm_80";
            Atom "atom" atomic returning_atomic fence returned_flow
                "5.0 sm_60: .add.f64 .cta .gpu .sys"
                "6.2 sm_60: .add.f16x2"
                "6.3 sm_70: .add.f16 .cas.b16"
                "7.8: .shared::cta"
                "7.8 sm_90: .bf16 .bf16x2"
                "8.1 sm_90: .v2 .v4 .v8"
                "8.3 sm_90: .b128";
            Bar "bar" barrier flow warp_sync barrier_flow "6.0 sm_30: .warp" "7.8: .cta";
            Barrier "barrier" barrier flow warp_sync barrier_flow
                "6.0 sm_30"
                "7.8 sm_30: .cta"
                "7.8 sm_90: .cluster"
                "8.0 sm_90: .cluster.acquire .cluster.relaxed .cluster.release";
            Bra "bra" branch flow none no_flow;
            Brkpt "brkpt" any_form flow none no_flow;
            Brx "brx" any_form flow none required_flow;
            Call "call" call call none call_flow;
            Clusterlaunchcontrol "clusterlaunchcontrol" any_form control_launch fence returned_flow "8.6 sm_100";
            Cp "cp" any_form copy_asynchronously fence required_flow
                "7.0 sm_80: .async"
                "7.8 sm_80: .async.shared::cta.mbarrier"
                "8.0 sm_90: .async.bulk .reduce"
                "8.6 sm_90: .async.bulk.shared::cta.global.mbarrier::complete_tx::bytes"
                "9.2 sm_90: .async.bulk.ignore_oob";
            Createpolicy "createpolicy" any_form create_policy none result_flow "7.4 sm_80";
            Cvta "cvta" convert_address convert_address none result_flow "7.7 sm_70: .param" "7.8: .shared::cta";
            Discard "discard" any_form hint none no_flow "7.4 sm_80";
            Elect "elect" any_form elect warp_sync vote_flow "8.0 sm_90";
            Exit "exit" any_form flow none no_flow;
            Fence "fence" any_form memory_fence fence no_flow
                "6.0 sm_70"
                "7.5 sm_70: .proxy"
                "8.0 sm_90: .mbarrier_init .proxy.async";
            Getctarank "getctarank" any_form map_address none result_flow "7.8 sm_90";
            Griddepcontrol "griddepcontrol" any_form hint none no_flow "7.8 sm_90";
            Isspacep "isspacep" any_form is_in_space none result_flow "7.7 sm_70: .param" "7.8: .shared::cta";
            Istypep "istypep" any_form is_reference none result_flow;
            Ld "ld" load load none load_flow
                "7.8: .shared::cta"
                "8.8 sm_100: .v4.b64 .v4.f64 .v4.s64 .v4.u64 .v8.b32 .v8.f32 .v8.s32 .v8.u32";
            Ldmatrix "ldmatrix" any_form move_small_matrices warp_sync returned_flow "6.5 sm_75" "7.8: .shared::cta";
            Ldu "ldu" load load none load_flow;
            Mapa "mapa" any_form map_address none result_flow "7.8 sm_90";
            Match "match" any_form warp_wide warp_sync vote_flow "6.0 sm_70";
            Mbarrier "mbarrier" barrier_object barrier_object fence barrier_object_flow
                "7.0 sm_80"
                "7.1 sm_80: .parity"
                "7.8: .shared::cta"
                "7.8 sm_90: .try_wait"
                "8.0 sm_80: .acquire .relaxed .release"
                "8.0 sm_90: .complete_tx .expect_tx .shared::cluster"
                "8.6 sm_90: .arrive.relaxed .test_wait.relaxed .try_wait.relaxed";
            Membar "membar" any_form memory_fence fence no_flow "7.5 sm_60: .proxy";
            Mma "mma" any_form multiply_matrices warp_sync warp_flow
                "6.4 sm_70"
                "6.5 sm_75: .m16n8k8 .m8n8k16 .m8n8k32"
                "7.0 sm_75: .m8n8k128"
                "7.0 sm_80: .f64 .m16n8k128 .m16n8k16 .m16n8k256 .m16n8k32 .m16n8k4 .m16n8k64"
                "7.1 sm_80: .and .sp"
                "7.8 sm_90: .f64.m16n8k16 .f64.m16n8k4 .f64.m16n8k8"
                "8.5 sm_80: .sp::ordered_metadata"
                "8.7 sm_120a: .kind::f8f6f4";
            Mov "mov" mov mov none move_flow;
            Movmatrix "movmatrix" any_form transpose_matrix warp_sync warp_flow "7.8 sm_75";
            Multimem "multimem" multicast multicast fence multicast_flow
                "8.1 sm_90"
                "8.6 sm_100a/110a: .ld_reduce.acc::f16 .e4m3 .e4m3x2 .e4m3x4 .e5m2 .e5m2x2 .e5m2x4"
                "9.1 sm_90: .cp"
                "9.3 sm_90: .cp.weak";
            Nanosleep "nanosleep" any_form hint none no_flow "6.2 sm_70";
            Pmevent "pmevent" any_form hint none no_flow;
            Prefetch "prefetch" any_form hint none no_flow "7.4 sm_80: .L2::evict_last" "8.0 sm_90: .tensormap";
            Prefetchu "prefetchu" any_form hint none no_flow;
            Red "red" reduction any_reduction fence required_flow
                "5.0 sm_60: .add.f64 .cta .gpu .sys"
                "6.2 sm_60: .add.f16x2"
                "6.3 sm_70: .add.f16"
                "7.8: .shared::cta"
                "7.8 sm_90: .bf16 .bf16x2"
                "8.1 sm_90: .async .v2 .v4 .v8"
                "8.7 sm_100: .async.gpu .async.sys";
            Redux "redux" any_form warp_wide warp_sync vote_flow "7.0 sm_80" "8.6 sm_100a: .f32";
            Ret "ret" nothing flow none no_flow;
            Setmaxnreg "setmaxnreg" any_form hint none no_flow "8.0 sm_90";
            Shfl "shfl" shuffle warp_wide warp_sync shuffle_flow "6.0 sm_30: .sync";
            St "st" store any_store none store_flow
                "7.8: .shared::cta"
                "8.1 sm_90: .async"
                "8.6 sm_100: .bulk"
                "8.7 sm_100: .async.global .async.gpu .async.sys"
                "8.8 sm_100: .v4.b64 .v4.f64 .v4.s64 .v4.u64 .v8.b32 .v8.f32 .v8.s32 .v8.u32";
            Stackrestore "stackrestore" any_form stack none required_flow "7.3 sm_52";
            Stacksave "stacksave" any_form stack none returned_flow "7.3 sm_52";
            Stmatrix "stmatrix" any_form move_small_matrices warp_sync required_flow "7.8: .shared::cta" "7.8 sm_90";
            Suld "suld" any_form load_surface none returned_flow;
            Suq "suq" any_form query_image none result_flow;
            Sured "sured" any_form reduce_surface none required_flow;
            Sust "sust" any_form store_surface none required_flow;
            Tcgen05 "tcgen05" tensor_memory tensor_memory none tensor_memory_flow "8.6 sm_100a/110a";
            Tensormap "tensormap" any_form replace_in_tensor_map none required_flow "8.3 sm_90";
            Tex "tex" any_form texture none result_flow "7.1 sm_60: |p";
            Tld4 "tld4" any_form gather_texture none result_flow "7.1 sm_60: |p";
            Trap "trap" any_form flow none no_flow;
            Txq "txq" any_form query_image none result_flow;
            Vabsdiff "vabsdiff" any_form video none result_flow;
            Vabsdiff2 "vabsdiff2" any_form video none result_flow;
            Vabsdiff4 "vabsdiff4" any_form video none result_flow;
            Vadd "vadd" any_form video none result_flow;
            Vadd2 "vadd2" any_form video none result_flow;
            Vadd4 "vadd4" any_form video none result_flow;
            Vavrg2 "vavrg2" any_form video none result_flow;
            Vavrg4 "vavrg4" any_form video none result_flow;
            Vmad "vmad" any_form video none result_flow;
            Vmax "vmax" any_form video none result_flow;
            Vmax2 "vmax2" any_form video none result_flow;
            Vmax4 "vmax4" any_form video none result_flow;
            Vmin "vmin" any_form video none result_flow;
            Vmin2 "vmin2" any_form video none result_flow;
            Vmin4 "vmin4" any_form video none result_flow;
            Vote "vote" vote warp_wide warp_sync vote_flow "6.0 sm_30: .sync";
            Vset "vset" any_form video none result_flow;
            Vset2 "vset2" any_form video none result_flow;
            Vset4 "vset4" any_form video none result_flow;
            Vshl "vshl" any_form video none result_flow;
            Vshr "vshr" any_form video none result_flow;
            Vsub "vsub" any_form video none result_flow;
            Vsub2 "vsub2" any_form video none result_flow;
            Vsub4 "vsub4" any_form video none result_flow;
            Wgmma "wgmma" any_form warpgroup warp_sync no_flow "8.0 sm_90a";
            Wmma "wmma" any_form tile warp_sync tile_flow
                "6.3 sm_70: .aligned"
                "6.3 sm_72: .s32 .s8 .u8"
                "6.3 sm_75: .m8n8k128 .m8n8k32"
                "7.0 sm_80: .f64 .m16n16k8 .m8n8k4"
                "7.1 sm_80: .and";
        }
    };
}

pub(crate) use for_each_opcode;

/// The effect of an instruction on the order of accesses by other threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// No effect beyond that of the instruction's own load or store.
    None,
    /// It may order the thread's earlier accesses before its later ones.
    Fence,
    /// The threads of a warp execute the instruction together.
    WarpSync,
}

macro_rules! define {
    ($($variant:ident $text:literal $check:ident $lower:ident $effect:ident $flow:ident $($requirement:literal)*;)*) => {
        /// The operation of an instruction: the first word of its mnemonic.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub(crate) enum Opcode {
            $(#[doc = concat!("`", $text, "`")] $variant,)*
            /// An instruction with a definition.
            Defined(&'static Definition),
        }

        /// Every opcode without a definition by its spelling, sorted for the search.
        const OPCODES: &[(&str, Opcode)] = &[$(($text, Opcode::$variant),)*];

        impl Opcode {
            /// Returns the opcode as written.
            #[must_use]
            pub(crate) const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                    Self::Defined(definition) => definition.name,
                }
            }

            /// Returns the versions and architectures that its forms require.
            #[must_use]
            pub(crate) const fn requirements(self) -> &'static [&'static str] {
                match self {
                    $(Self::$variant => &[$($requirement),*],)*
                    Self::Defined(definition) => definition.requires,
                }
            }

            /// Returns the effect on the order of accesses.
            #[must_use]
            pub(crate) const fn effect(self) -> Effect {
                match self {
                    $(Self::$variant => effect!($effect),)*
                    Self::Defined(_) => Effect::None,
                }
            }
        }
    };
}

macro_rules! effect {
    (none) => {
        Effect::None
    };
    (fence) => {
        Effect::Fence
    };
    (warp_sync) => {
        Effect::WarpSync
    };
}

for_each_opcode!(define);

impl Opcode {
    /// Returns every opcode.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let defined = Definition::all().map(Self::Defined);
        OPCODES.iter().map(|entry| entry.1).chain(defined)
    }

    /// Returns `true` if the instruction compares, so that `.lo` and `.hi` are relations.
    pub(crate) fn compares(self) -> bool {
        match self {
            Self::Vset | Self::Vset2 | Self::Vset4 => true,
            Self::Defined(definition) => definition.compares(),
            _ => false,
        }
    }

    /// Returns the opcode spelled `text`.
    #[must_use]
    pub(crate) fn from_name(text: &str) -> Option<Self> {
        match OPCODES.binary_search_by_key(&text, |entry| entry.0) {
            Ok(index) => Some(OPCODES[index].1),
            Err(_) => Definition::find(text).map(Self::Defined),
        }
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::{OPCODES, Opcode};

    /// The search requires sorted opcodes, and finds no definition of the same name.
    #[test]
    fn every_opcode_is_found() {
        assert!(OPCODES.is_sorted_by(|a, b| a.0 < b.0));
        for opcode in Opcode::all() {
            assert_eq!(Opcode::from_name(opcode.name()), Some(opcode));
        }
        assert_eq!(Opcode::from_name("frobnicate"), None);
    }
}
