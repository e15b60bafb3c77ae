//! Tensor copies to and from shared memory, and bulk reductions: tensor maps of every rank, type,
//! swizzle and interleave, at seeded random coordinates, many of them out of bounds.

mod part;
pub(super) mod reduction;
mod replaced;
pub(super) mod store;

use std::cmp::Ordering;

use self::part::{Part, Piece, ROOM, TYPES, Taken, Wanted};
use super::{BlockForm, Output, THREADS};
use crate::form::Sources;
use crate::operands::hash;

pub(super) fn forms() -> Vec<BlockForm> {
    let mut forms = loads();
    forms.extend(spellings());
    forms.extend(multicasts());
    forms.extend(prefetches());
    forms.extend(gathers());
    forms.extend(replaced::forms());
    forms
}

/// The initial content of shared memory.
const BEFORE: u8 = 0xcd;

/// Fills each thread's 32 bytes of the tile in shared memory at `%r20`; the first thread
/// initializes a barrier object at `%r21`, and the tensor map is at `%l20`.
fn prepared(fill: &str) -> String {
    format!(
        ".shared .align 1024 .b8 part[{ROOM}]; .shared .align 8 .b64 object;
    mov.u32 %r20, part; mov.u32 %r21, object; ld.param.u64 %l20, [table]; ld.param.u64 %l21, [table+8];
    mad.lo.u32 %r22, %thread, 32, %r20;
    {fill}
    setp.eq.u32 %p1, %thread, 0;
    @%p1 mbarrier.init.shared.b64 [%r21], 1;
    @%p1 fence.mbarrier_init.release.cluster;
    fence.proxy.async;
    @%p1 fence.proxy.tensormap::generic.acquire.sys [%l20], 128;
    bar.sync 0;
    "
    )
}

/// Fills with a constant, and with the thread's operands.
const MARK: &str = "mov.b64 %l22, 0xcdcdcdcdcdcdcdcd; st.shared.v2.b64 [%r22], {%l22, %l22}; st.shared.v2.b64 [%r22+16], {%l22, %l22};";
const OWN: &str = "st.shared.v2.b64 [%r22], {%l0, %l1}; st.shared.v2.b64 [%r22+16], {%l2, %l3};";

/// Waits for the barrier object, and writes shared memory to the result.
const LEAVE: &str = "
WAIT:
    mbarrier.test_wait.parity.shared.b64 %p2, [%r21], 0;
    @!%p2 bra WAIT;
    ld.shared.v2.b64 {%l8, %l9}, [%r22]; ld.shared.v2.b64 {%l10, %l11}, [%r22+16];
    st.global.v2.b64 [%out], {%l8, %l9}; st.global.v2.b64 [%out+16], {%l10, %l11};";

/// Waits for the operations of the first thread, and writes the first bytes of the tensor to the
/// result.
const LEAVE_TENSOR: &str = "
    @%p1 cp.async.bulk.commit_group;
    @%p1 cp.async.bulk.wait_group 0;
    bar.sync 0;
    mul.wide.u32 %l23, %thread, 32; add.u64 %l23, %l23, %l21;
    ld.volatile.global.v2.b64 {%l8, %l9}, [%l23]; ld.volatile.global.v2.b64 {%l10, %l11}, [%l23+16];
    st.global.v2.b64 [%out], {%l8, %l9}; st.global.v2.b64 [%out+16], {%l10, %l11};";

/// Returns code that loads coordinates, and the operand; the last coordinate is an immediate value.
fn coordinates(at: &[i32]) -> (String, String) {
    let registers = at
        .iter()
        .enumerate()
        .map(|(index, at)| format!("mov.b32 %r{}, {at};", 24 + index));
    let last = at.len() - 1;
    let names = (0..last)
        .map(|index| format!("%r{}", 24 + index))
        .chain([at[last].to_string()]);
    (registers.collect(), names.collect::<Vec<_>>().join(", "))
}

/// Returns code that loads im2col offsets, and the operand; both are empty for tiles.
fn offsets(part: &Part) -> (String, String) {
    let Taken::Pixels { offsets, .. } = &part.taken else {
        return Default::default();
    };
    let registers = offsets
        .iter()
        .enumerate()
        .map(|(index, offset)| format!("mov.b16 %h{}, {offset};", 24 + index));
    let names: Vec<String> = (0..offsets.len())
        .map(|index| format!("%h{}", 24 + index))
        .collect();
    (registers.collect(), format!(", {{{}}}", names.join(", ")))
}

/// Returns a load by the first thread, with further operands after the others.
fn load(part: &Part, spelling: &str, more: &str) -> String {
    let (set, at) = coordinates(&part.at);
    let (set_offsets, offsets) = offsets(part);
    let bytes = part.bytes();
    format!(
        "{set} {set_offsets}
    @%p1 mbarrier.arrive.expect_tx.shared.b64 %l24, [%r21], {bytes};
    @%p1 {spelling} [%r20], [%l20, {{{at}}}], [%r21]{offsets}{more};"
    )
}

/// Returns shared memory after a tile was loaded from a tensor with this content.
fn loaded(part: &Part, content: &[u8]) -> Vec<u8> {
    let mut shared = vec![BEFORE; ROOM];
    let unit = part.unit();
    for Piece {
        shared: linear,
        tensor,
        ..
    } in part.pieces()
    {
        for byte in 0..unit {
            shared[part.swizzled(linear + byte)] = match tensor {
                Some(position) => rounded(part, &content[position + byte / 4 * 4..], byte),
                None if part.fills => [0xf7, 0x7f][byte % 2],
                None => 0,
            };
        }
    }
    shared
}

/// Returns a byte of a loaded element: TF32 is rounded to nearest even.
fn rounded(part: &Part, from: &[u8], byte: usize) -> u8 {
    if part.kind < 11 {
        return from[byte % 4];
    }
    let bits = u32::from_le_bytes([from[0], from[1], from[2], from[3]]);
    let truncated = bits >> 13 << 13;
    let is_up = match (bits - truncated).cmp(&(1 << 12)) {
        Ordering::Equal => truncated >> 13 & 1 == 1,
        order => order.is_gt(),
    };
    let nearest = truncated + u32::from(is_up) * (1 << 13);
    nearest.to_le_bytes()[byte % 4]
}

/// Returns bytes as the results of the threads.
fn left(bytes: &[u8]) -> Vec<Output> {
    let (words, _) = bytes.as_chunks::<8>();
    let (threads, _) = words.as_chunks::<4>();
    threads
        .iter()
        .map(|words| words.map(u64::from_le_bytes))
        .collect()
}

/// Returns the operands of a block's threads as bytes.
fn operands(all: &[Sources]) -> Vec<u8> {
    all.iter()
        .flatten()
        .flat_map(|word| word.to_le_bytes())
        .collect()
}

/// Returns a form for a tile, with the results of all threads.
fn form(
    name: String,
    code: String,
    part: &Part,
    content: Vec<u8>,
    expected: impl Fn(&[Sources], &[u8]) -> Vec<Output> + 'static,
) -> BlockForm {
    let source = content.clone();
    let part = part.clone();
    let form = BlockForm::new(name, code, |_, _| [0; 4])
        .needs(90)
        .with(move |stream| part.prepare(stream, &content));
    BlockForm {
        expected: Box::new(move |all| expected(all, &source)),
        ..form
    }
}

/// Returns tiles of all ranks, types, swizzles, interleaves and modes, each with its own seed.
fn parts(writes: bool, tries: u64) -> Vec<(String, Part)> {
    let mut parts = Vec::new();
    for (kind, rank) in (0..TYPES.len()).flat_map(|kind| (1..=5).map(move |rank| (kind, rank))) {
        for (swizzle, interleave) in [
            (0, 0),
            (1, 0),
            (2, 0),
            (3, 0),
            (0, 1),
            (1, 1),
            (3, 1),
            (1, 2),
        ] {
            let wanted = Wanted {
                kind,
                rank,
                swizzle,
                interleave,
                writes,
            };
            let what = format!(
                "{:?} {rank} swizzle {swizzle} interleave {interleave}",
                TYPES[kind].0
            );
            // The layout of interleaved tensors does not depend on the type.
            if interleave > 0 && (rank < 3 || (kind + rank + swizzle) % 4 != 0) {
                continue;
            }
            for seed in 0..tries {
                let box_seed = hash(format!("{what} {seed}").bytes());
                parts.push((format!("box {what} {seed}"), Part::boxed(wanted, box_seed)));
                if rank >= 3 && (kind + rank) % 2 == 0 {
                    let pixel_seed = hash(format!("{what} {seed} pixels").bytes());
                    parts.push((
                        format!("pixels {what} {seed}"),
                        Part::pixels(wanted, pixel_seed),
                    ));
                }
            }
        }
    }
    parts
}

/// Loads of tiles of every kind.
fn loads() -> Vec<BlockForm> {
    parts(false, 2).into_iter().map(|(name, part): (String, Part)| {
        let mode = if matches!(part.taken, Taken::Box(_)) {
            "tile"
        } else {
            "im2col"
        };
        let rank = part.at.len();
        let spelling = format!(
            "cp.async.bulk.tensor.{rank}d.shared::cluster.global.{mode}.mbarrier::complete_tx::bytes"
        );
        let code = format!("{}{}{LEAVE}", prepared(MARK), load(&part, &spelling, ""));
        let content = part.content();
        form(
            format!("{spelling} {name}"),
            code,
            &part.clone(),
            content,
            move |_, content| left(&loaded(&part, content)),
        )
    }).collect()
}

/// Returns a tile of a matrix, for tests that do not depend on the tile.
fn matrix(seed: u64) -> Part {
    Part::boxed(
        Wanted {
            kind: 2,
            rank: 2,
            swizzle: 3,
            interleave: 0,
            writes: false,
        },
        hash(seed.to_le_bytes()),
    )
}

/// Returns each spelling of a load.
fn spellings() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for (index, spelling) in super::pattern::expand(
        "cp.async.bulk.tensor.2d.shared::{cluster,cta}.global{,.tile}.mbarrier::complete_tx::bytes{,.L2::cache_hint}",
    )
    .into_iter()
    .enumerate()
    {
        let part = matrix(index as u64);
        let hint = if spelling.contains("cache_hint") { ", %l31" } else { "" };
        let policy = "createpolicy.fractional.L2::evict_last.b64 %l31, 1.0;";
        let code = format!("{policy}{}{}{LEAVE}", prepared(MARK), load(&part, &spelling, hint));
        let content = part.content();
        forms.push(form(format!("{spelling} each"), code, &part.clone(), content, move |_, content| {
            left(&loaded(&part, content))
        }));
    }
    for (index, group) in ["cta_group::1", "cta_group::2"].into_iter().enumerate() {
        let part = matrix(20 + index as u64);
        let spelling = format!(
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.{group}"
        );
        let code = format!("{}{}{LEAVE}", prepared(MARK), load(&part, &spelling, ""));
        let content = part.content();
        let form = form(
            spelling,
            code,
            &part.clone(),
            content,
            move |all, content| left(&loaded(&part, content)).repeat(all.len() / THREADS),
        );
        forms.push(form.needs(100).in_clusters([2, 1, 1], [2, 1, 1]));
    }
    forms
}

/// Loads multicast to several blocks of a cluster, by one of them or by all in turn.
fn multicasts() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for (size, mask, by) in [
        (2, 3_u32, 0),
        (2, 2, 0),
        (2, 1, 1),
        (4, 15, 0),
        (4, 10, 2),
        (4, 7, 3),
        (4, 8, 0),
    ] {
        for (seed, hint) in [(40, ""), (41, ".L2::cache_hint")] {
            let part = matrix(seed + u64::from(mask) * 8);
            let spelling = format!(
                "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster{hint}"
            );
            let (set, at) = coordinates(&part.at);
            let bytes = part.bytes();
            let policy = if hint.is_empty() { "" } else { ", %l31" };
            // Blocks that receive no data complete their own phase.
            let code = format!(
                "createpolicy.fractional.L2::evict_last.b64 %l31, 1.0;{}{set}
    mov.u32 %r8, %cluster_ctarank; mov.b16 %h24, {mask};
    shr.u32 %r9, {mask}, %r8; and.b32 %r9, %r9, 1; mul.lo.u32 %r9, %r9, {bytes};
    @%p1 mbarrier.arrive.expect_tx.shared.b64 %l24, [%r21], %r9;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    setp.eq.and.u32 %p3, %r8, {by}, %p1;
    @%p3 {spelling} [%r20], [%l20, {{{at}}}], [%r21], %h24{policy};
    {LEAVE}
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
                prepared(MARK)
            );
            let content = part.content();
            let name = format!("{spelling} mask {mask} by {by} of {size}");
            let form = form(name, code, &part.clone(), content, move |all, content| {
                let came = left(&loaded(&part, content));
                let nothing = left(&[BEFORE; ROOM]);
                (0..all.len() / THREADS)
                    .flat_map(|block| {
                        let is_selected = mask >> (block % size) & 1 == 1;
                        if is_selected {
                            came.clone()
                        } else {
                            nothing.clone()
                        }
                    })
                    .collect()
            });
            forms.push(form.in_clusters([2 * size as u32, 1, 1], [size as u32, 1, 1]));
        }
    }
    forms
}

/// Returns the first bytes of a tensor as the results of the threads.
fn tensor_outputs(content: &[u8]) -> Vec<Output> {
    let mut bytes = content[..content.len().min(ROOM)].to_vec();
    bytes.resize(ROOM, 0);
    left(&bytes)
}

/// Returns the content of a tile's tensor, with at least 32 bytes for each thread.
fn long_content(part: &Part) -> Vec<u8> {
    let mut content = part.content();
    content.resize(content.len().max(ROOM), 0);
    content
}

/// Prefetches, which change nothing.
fn prefetches() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    let spellings = super::pattern::expand(
        "cp.async.bulk.prefetch.tensor.{2,3}d.L2.global{,.tile,.im2col}{,.L2::cache_hint}",
    );
    for (index, spelling) in spellings.into_iter().enumerate() {
        let rank = if spelling.contains(".2d") { 2 } else { 3 };
        let wanted = Wanted {
            kind: 2,
            rank,
            swizzle: 0,
            interleave: 0,
            writes: false,
        };
        let part = match spelling.contains("im2col") {
            true if rank == 2 => continue,
            true => Part::pixels(wanted, index as u64),
            false => Part::boxed(wanted, index as u64),
        };
        let (set, at) = coordinates(&part.at);
        let (set_offsets, offsets) = offsets(&part);
        let policy = if spelling.contains("hint") {
            ", %l31"
        } else {
            ""
        };
        let code = format!(
            "createpolicy.fractional.L2::evict_last.b64 %l31, 1.0;{}{set} {set_offsets}
    @%p1 {spelling} [%l20, {{{at}}}]{offsets}{policy};{LEAVE_TENSOR}",
            prepared(MARK)
        );
        let content = long_content(&part);
        forms.push(form(spelling, code, &part, content, |_, content| {
            tensor_outputs(content)
        }));
    }
    forms
}

/// Gathers of four rows of a matrix.
fn gathers() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for seed in 0..6 {
        let (part, rows) = Part::four_rows(hash([seed]));
        let spelling =
            "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes";
        let all = part.clone().beginning_at(rows);
        let code = format!("{}{}{LEAVE}", prepared(MARK), load(&all, spelling, ""));
        let content = part.content();
        let inputs = all.clone();
        let gather = form(
            format!("{spelling} {seed}"),
            code,
            &part,
            content,
            move |_, content| left(&loaded(&inputs, content)),
        );
        forms.push(gather.needs(100));
    }
    forms
}
