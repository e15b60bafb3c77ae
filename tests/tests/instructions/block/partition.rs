//! Instructions with a member mask, where the lanes of a warp use disjoint masks: tiles and random
//! partitions. The lanes execute the instruction together, one after the other, or at two different
//! instructions.

use super::{BlockForm, Output};
use crate::form::Sources;
use crate::operands::Random;

/// The mask of each lane.
type Masks = [u32; 32];

/// The result of a lane as a function of the operands of its warp, its number and its mask.
type Expected = fn(&[Sources], usize, u32) -> Output;

pub(super) fn forms() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for (number, masks) in partitions().into_iter().enumerate() {
        for (instruction, architecture, code, expected) in INSTRUCTIONS {
            for (path, arrive) in PATHS {
                let name = format!("{instruction} partition {number} {path}");
                let code = format!("{MASK}\n    {}", arrive.replace("CODE", code));
                let form = BlockForm::new(name, code, move |all, thread| {
                    let lane = thread % 32;
                    expected(&all[thread - lane..][..32], lane, masks[lane])
                });
                let words = masks.map(|mask| format!("{mask:#x}")).join(", ");
                forms.push(
                    form.declaring(format!(".const .b32 FNmasks[32] = {{{words}}};"))
                        .needs(*architecture),
                );
            }
        }
    }
    forms
}

/// Tiles of 16, 4 and 1 lanes, and unordered groups.
fn partitions() -> Vec<Masks> {
    let mut random = Random(7);
    let tiles = [16, 4, 1]
        .map(|size| label_masks(std::array::from_fn(|lane| lane / size)))
        .into_iter();
    tiles
        .chain(
            [2, 3, 5, 9].map(|groups| label_masks(std::array::from_fn(|_| random.below(groups)))),
        )
        .collect()
}

/// Returns the lanes with the label of each lane.
fn label_masks(labels: [usize; 32]) -> Masks {
    labels.map(|label| {
        (0..32)
            .filter(|lane| labels[*lane] == label)
            .fold(0, |mask, lane| mask | 1 << lane)
    })
}

/// Loads the lane's mask into `%r20`.
const MASK: &str = "mov.u32 %r20, %laneid;
    mul.wide.u32 %l10, %r20, 4;
    mov.u64 %l11, FNmasks;
    add.u64 %l10, %l10, %l11;
    ld.const.b32 %r20, [%l10];
    and.b32 %r9, %r0, 1;
    setp.ne.u32 %p1, %r9, 0;";

/// The ways lanes reach the instruction.
const PATHS: [(&str, &str); 3] = [
    ("together", "CODE"),
    (
        "in turn",
        "mov.u32 %r21, 0;
    mul.lo.u32 %r22, %thread, 11;
    and.b32 %r22, %r22, 31;
AGAIN:
    add.u32 %r21, %r21, 1;
    setp.lt.u32 %p7, %r21, %r22;
    @%p7 bra AGAIN;
    CODE",
    ),
    (
        // The mask selects one of the two instructions, so that a group is at one of them.
        "at two places",
        "popc.b32 %r21, %r20;
    and.b32 %r21, %r21, 1;
    setp.eq.u32 %p7, %r21, 0;
    @%p7 bra EVEN;
    { CODE }
    bra OUT;
EVEN:
    { CODE }
OUT:",
    ),
];

const INSTRUCTIONS: &[(&str, u32, &str, Expected)] = &[
    (
        "vote.sync.ballot.b32",
        75,
        "vote.sync.ballot.b32 %r8, %p1, %r20;
    st.global.b32 [%out], %r8;",
        |warp, _, mask| [votes(warp, mask), 0, 0, 0],
    ),
    (
        "vote.sync.pred",
        75,
        "vote.sync.all.pred %p2, %p1, %r20;
    vote.sync.any.pred %p3, %p1, %r20;
    vote.sync.uni.pred %p4, %p1, %r20;
    selp.b32 %r8, 1, 0, %p2;
    st.global.b32 [%out], %r8;
    selp.b32 %r8, 1, 0, %p3;
    st.global.b32 [%out+8], %r8;
    selp.b32 %r8, 1, 0, %p4;
    st.global.b32 [%out+16], %r8;",
        |warp, _, mask| {
            let all = votes(warp, mask) == u64::from(mask);
            let any = votes(warp, mask) != 0;
            [u64::from(all), u64::from(any), u64::from(all || !any), 0]
        },
    ),
    (
        "match.sync",
        75,
        "and.b32 %r8, %r0, 3;
    match.any.sync.b32 %r10, %r8, %r20;
    and.b64 %l12, %l0, 1;
    match.all.sync.b64 %r11|%p2, %l12, %r20;
    selp.b32 %r12, 1, 0, %p2;
    st.global.b32 [%out], %r10;
    st.global.b32 [%out+8], %r11;
    st.global.b32 [%out+16], %r12;",
        |warp, lane, mask| {
            let same = |bits: u64| {
                lanes(mask).filter(move |other| warp[*other][0] & bits == warp[lane][0] & bits)
            };
            let any: u64 = same(3).map(|lane| 1 << lane).sum();
            let agree = same(1).count() == mask.count_ones() as usize;
            [
                any,
                if agree { u64::from(mask) } else { 0 },
                u64::from(agree),
                0,
            ]
        },
    ),
    (
        "redux.sync",
        80,
        "redux.sync.add.s32 %r8, %r0, %r20;
    redux.sync.min.s32 %r10, %r0, %r20;
    redux.sync.max.u32 %r11, %r0, %r20;
    redux.sync.xor.b32 %r12, %r0, %r20;
    st.global.b32 [%out], %r8;
    st.global.b32 [%out+8], %r10;
    st.global.b32 [%out+16], %r11;
    st.global.b32 [%out+24], %r12;",
        |warp, _, mask| {
            let values = || lanes(mask).map(|lane| warp[lane][0] as u32);
            let sum = values().fold(0, u32::wrapping_add);
            let least = values()
                .map(u32::cast_signed)
                .min()
                .unwrap_or_default()
                .cast_unsigned();
            let most = values().max().unwrap_or_default();
            [sum, least, most, values().fold(0, |a, b| a ^ b)].map(u64::from)
        },
    ),
    (
        "elect.sync",
        90,
        "elect.sync %r8|%p2, %r20;
    vote.sync.ballot.b32 %r10, %p2, %r20;
    popc.b32 %r11, %r10;
    shr.b32 %r12, %r20, %r8;
    and.b32 %r12, %r12, 1;
    shr.b32 %r10, %r10, %r8;
    st.global.b32 [%out], %r11;
    st.global.b32 [%out+8], %r12;
    st.global.b32 [%out+16], %r10;",
        |_, _, _| [1, 1, 1, 0],
    ),
    (
        // From the highest and the lowest lane of the mask.
        "shfl.sync.idx.b32",
        75,
        "bfind.u32 %r8, %r20;
    shfl.sync.idx.b32 %r10|%p2, %r0, %r8, 31, %r20;
    brev.b32 %r8, %r20;
    clz.b32 %r8, %r8;
    shfl.sync.idx.b32 %r11, %r0, %r8, 31, %r20;
    selp.b32 %r12, 1, 0, %p2;
    st.global.b32 [%out], %r10;
    st.global.b32 [%out+8], %r11;
    st.global.b32 [%out+16], %r12;",
        |warp, _, mask| {
            let high = 31 - mask.leading_zeros();
            let low = mask.trailing_zeros();
            [
                warp[high as usize][0] & 0xffff_ffff,
                warp[low as usize][0] & 0xffff_ffff,
                1,
                0,
            ]
        },
    ),
    (
        // The value that the highest lane wrote before the barrier.
        "bar.warp.sync",
        75,
        "st.shared.b32 [%shared], %r0;
    bar.warp.sync %r20;
    bfind.u32 %r8, %r20;
    and.b32 %r10, %thread, 31;
    sub.u32 %r8, %r8, %r10;
    mad.lo.u32 %r8, %r8, 64, %shared;
    ld.shared.b32 %r10, [%r8];
    st.global.b32 [%out], %r10;",
        |warp, _, mask| {
            [
                warp[31 - mask.leading_zeros() as usize][0] & 0xffff_ffff,
                0,
                0,
                0,
            ]
        },
    ),
];

/// Returns the lanes of a mask.
fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |lane| mask >> lane & 1 == 1)
}

/// Returns the lanes of a mask whose first operand is odd.
fn votes(warp: &[Sources], mask: u32) -> u64 {
    lanes(mask)
        .filter(|lane| warp[*lane][0] & 1 == 1)
        .map(|lane| 1 << lane)
        .sum()
}
