//! Warp-level instructions: shuffles, votes, matches and reductions, by all lanes and by some.

use super::pattern::expand;
use super::{BlockForm, Output};
use crate::form::Sources;

pub(super) fn forms() -> Vec<BlockForm> {
    let mut forms = shuffles();
    forms.extend(votes());
    forms.extend(matches());
    forms.extend(reductions());
    forms.extend(masks());
    forms
}

/// Participating lanes: all, some without the first and the last, one, and every second.
const MEMBERS: [u32; 4] = [u32::MAX, 0x0ff0_1e70, 0x0001_0000, 0x5555_5555];

/// Returns the operands of the lanes of a thread's warp.
fn warp(all: &[Sources], thread: usize) -> &[Sources] {
    &all[thread / 32 * 32..][..32]
}

/// Runs `code` in the lanes of a mask only. The warp reconverges after it.
fn by(members: u32, code: &str) -> String {
    format!(
        "and.b32 %r28, %thread, 31;
    shr.b32 %r28, {members:#x}, %r28;
    and.b32 %r28, %r28, 1;
    setp.eq.u32 %p7, %r28, 0;
    @%p7 bra OUT;
    {code}
OUT:"
    )
}

/// Returns the result of participating lanes; the others write zeros.
fn taking_part(members: u32, thread: usize, left: impl FnOnce() -> Output) -> Output {
    if members >> (thread % 32) & 1 == 1 {
        left()
    } else {
        [0; 4]
    }
}

/// Returns the source lane of a shuffle, and whether it is in range, as the PTX ISA defines it.
fn source(mode: &str, lane: u32, operand: u32, clamp: u32) -> (u32, bool) {
    let b = operand & 31;
    let c = clamp & 31;
    let segments = clamp >> 8 & 31;
    let most = (lane & segments) | (c & !segments);
    let least = lane & segments;
    let (from, holds) = match mode {
        "up" => (
            lane.cast_signed() - b.cast_signed(),
            lane.cast_signed() - b.cast_signed() >= most.cast_signed(),
        ),
        "down" => ((lane + b).cast_signed(), lane + b <= most),
        "bfly" => ((lane ^ b).cast_signed(), lane ^ b <= most),
        _ => (
            (least | b & !segments).cast_signed(),
            least | b & !segments <= most,
        ),
    };
    if holds {
        (from.cast_unsigned(), true)
    } else {
        (lane, false)
    }
}

/// Shuffles of every mode, with clamps and segments, by a common distance and by one that differs
/// between lanes. All lanes participate, because reading from an inactive lane is undefined.
fn shuffles() -> Vec<BlockForm> {
    let clamps = [
        0,
        0x1f,
        7,
        0x1000,
        0x181f,
        0x1c00,
        0x1c1f,
        0x1e1f,
        0x1f00,
        0x1f1f,
        0xffff_e0ff,
    ];
    let distances = ["0", "1", "5", "16", "31", "32", "37", "%r1"];
    let mut forms = Vec::new();
    for mode in ["up", "down", "bfly", "idx"] {
        for (clamp, distance) in clamps
            .iter()
            .flat_map(|clamp| distances.map(|distance| (*clamp, distance)))
        {
            for answers in [true, false] {
                let operand = if answers { "%r8|%p1" } else { "%r8" };
                let name = format!("shfl.sync.{mode}.b32 {operand}, {distance}, {clamp:#x}");
                let code = format!(
                    "mov.b32 %r9, {clamp:#x};
    setp.eq.u32 %p1, %r9, %r9;
    shfl.sync.{mode}.b32 {operand}, %r0, {distance}, %r9, 0xffffffff;
    st.global.b32 [%out], %r8;
    selp.b32 %r8, 1, 0, %p1;
    st.global.b32 [%out+8], %r8;"
                );
                forms.push(BlockForm::new(name, code, move |all, thread| {
                    let lanes = warp(all, thread);
                    let lane = thread as u32 % 32;
                    let operand = distance.parse().unwrap_or(lanes[lane as usize][1] as u32);
                    let (from, holds) = source(mode, lane, operand, clamp);
                    [
                        lanes[from as usize][0] & 0xffff_ffff,
                        u64::from(holds || !answers),
                        0,
                        0,
                    ]
                }));
            }
        }
    }
    forms
}

/// Votes on a predicate that differs between lanes, and on one that is the same in all, for several
/// member masks.
fn votes() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for (mode, members) in expand("{all,any,uni,ballot}")
        .into_iter()
        .flat_map(|mode| MEMBERS.map(|members| (mode.clone(), members)))
    {
        for (bit, not) in [("%r0", ""), ("%r0", "!"), ("1", ""), ("1", "!")] {
            let is_ballot = mode == "ballot";
            let class = if is_ballot { "b32" } else { "pred" };
            let (result, left) = if is_ballot {
                ("%r8", "")
            } else {
                ("%p2", "selp.b32 %r8, 1, 0, %p2;")
            };
            let name = format!("vote.sync.{mode}.{class} {not}{bit} {members:#x}");
            let code = by(
                members,
                &format!(
                    "and.b32 %r9, {bit}, 1;
    setp.ne.u32 %p1, %r9, 0;
    vote.sync.{mode}.{class} {result}, {not}%p1, {members:#x};
    {left}
    st.global.b32 [%out], %r8;"
                ),
            );
            let mode = mode.clone();
            let holds =
                move |source: &Sources| (bit == "1" || source[0] & 1 == 1) == not.is_empty();
            forms.push(BlockForm::new(name, code, move |all, thread| {
                taking_part(members, thread, || {
                    let lanes = warp(all, thread)
                        .iter()
                        .enumerate()
                        .filter(|(lane, _)| members >> lane & 1 == 1);
                    let votes: Vec<(usize, bool)> =
                        lanes.map(|(lane, source)| (lane, holds(source))).collect();
                    let all = votes.iter().all(|vote| vote.1);
                    let none = !votes.iter().any(|vote| vote.1);
                    let answer = match mode.as_str() {
                        "all" => u64::from(all),
                        "any" => u64::from(!none),
                        "uni" => u64::from(all || none),
                        _ => votes
                            .iter()
                            .map(|(lane, vote)| u64::from(*vote) << lane)
                            .sum(),
                    };
                    [answer, 0, 0, 0]
                })
            }));
        }
    }
    forms
}

/// Matches of words shared by few or all lanes.
fn matches() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for (bits, members) in [32, 64]
        .into_iter()
        .flat_map(|bits| MEMBERS.map(|members| (bits, members)))
    {
        let class = if bits == 32 { 'r' } else { 'l' };
        // Only the upper bits of the two 64-bit words may differ.
        for (shared, mask) in [("few", 3_u64 << (bits - 2)), ("all", 0)] {
            let value = move |source: &Sources| source[0] & mask;
            for mode in ["any", "all"] {
                let answers = mode == "all";
                let result = if answers { "%r8|%p1" } else { "%r8" };
                let name = format!("match.{mode}.sync.b{bits} {shared} {members:#x}");
                let code = by(
                    members,
                    &format!(
                        "and.b{bits} %{class}9, %{class}0, {mask:#x};
    setp.ne.u32 %p1, 0, 0;
    match.{mode}.sync.b{bits} {result}, %{class}9, {members:#x};
    st.global.b32 [%out], %r8;
    selp.b32 %r8, 1, 0, %p1;
    st.global.b32 [%out+8], %r8;"
                    ),
                );
                forms.push(BlockForm::new(name, code, move |all, thread| {
                    taking_part(members, thread, || {
                        let value_here = value(&all[thread]);
                        let lanes = warp(all, thread)
                            .iter()
                            .enumerate()
                            .filter(|(lane, _)| members >> lane & 1 == 1);
                        let same: u64 = lanes
                            .filter(|(_, it)| value(it) == value_here)
                            .map(|(lane, _)| 1 << lane)
                            .sum();
                        if !answers {
                            return [same, 0, 0, 0];
                        }
                        let agree = same == u64::from(members);
                        [if agree { same } else { 0 }, u64::from(agree), 0, 0]
                    })
                }));
            }
        }
    }
    forms
}

/// Reductions of each operation and type.
fn reductions() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for spelling in expand("redux.sync.{{add,min,max}.{u32,s32},{and,or,xor}.b32}") {
        for members in MEMBERS {
            let code = by(
                members,
                &format!("{spelling} %r8, %r0, {members:#x};\n    st.global.b32 [%out], %r8;"),
            );
            let form = spelling.clone();
            forms.push(
                BlockForm::new(
                    format!("{spelling} {members:#x}"),
                    code,
                    move |all: &[Sources], thread: usize| {
                        taking_part(members, thread, || {
                            let lanes = warp(all, thread)
                                .iter()
                                .enumerate()
                                .filter(|(lane, _)| members >> lane & 1 == 1);
                            let values = lanes.map(|(_, source)| source[0] as u32);
                            let result = values.reduce(|a, b| match form.as_str() {
                                "redux.sync.min.u32" => a.min(b),
                                "redux.sync.max.u32" => a.max(b),
                                "redux.sync.min.s32" => {
                                    a.cast_signed().min(b.cast_signed()).cast_unsigned()
                                }
                                "redux.sync.max.s32" => {
                                    a.cast_signed().max(b.cast_signed()).cast_unsigned()
                                }
                                "redux.sync.and.b32" => a & b,
                                "redux.sync.or.b32" => a | b,
                                "redux.sync.xor.b32" => a ^ b,
                                _ => a.wrapping_add(b),
                            });
                            [u64::from(result.expect("a lane participates")), 0, 0, 0]
                        })
                    },
                )
                .needs(80),
            );
        }
    }
    forms
}

/// Returns forms for the active mask and the elected lane, which may be any.
fn masks() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for members in MEMBERS {
        let code = by(
            members,
            &format!("bar.warp.sync {members:#x};\n    st.global.b32 [%out], {members:#x};"),
        );
        let expected = move |_: &[Sources], thread: usize| {
            taking_part(members, thread, || [u64::from(members), 0, 0, 0])
        };
        forms.push(BlockForm::new(
            format!("bar.warp.sync {members:#x}"),
            code,
            expected,
        ));
        // The mask contains this lane and no lane that branched away.
        let code = by(
            members,
            &format!(
                "activemask.b32 %r8;
    and.b32 %r9, %r8, {:#x};
    mov.u32 %r10, %lanemask_eq;
    and.b32 %r10, %r10, %r8;
    setp.ne.u32 %p1, %r10, 0;
    selp.b32 %r10, 1, 0, %p1;
    st.global.b32 [%out], %r9;
    st.global.b32 [%out+8], %r10;",
                !members
            ),
        );
        let expected =
            move |_: &[Sources], thread: usize| taking_part(members, thread, || [0, 1, 0, 0]);
        forms.push(BlockForm::new(
            format!("activemask.b32 {members:#x}"),
            code,
            expected,
        ));
        let code = by(
            members,
            &format!(
                "elect.sync %r8|%p1, {members:#x};
    vote.sync.ballot.b32 %r9, %p1, {members:#x};
    popc.b32 %r10, %r9;
    shr.b32 %r11, {members:#x}, %r8;
    and.b32 %r11, %r11, 1;
    shr.b32 %r9, %r9, %r8;
    st.global.b32 [%out], %r10;
    st.global.b32 [%out+8], %r11;
    st.global.b32 [%out+16], %r9;"
            ),
        );
        let expected =
            move |_: &[Sources], thread: usize| taking_part(members, thread, || [1, 1, 1, 0]);
        forms.push(BlockForm::new(format!("elect.sync {members:#x}"), code, expected).needs(90));
    }
    forms
}
