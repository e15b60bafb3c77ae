//! Tensor stores from shared memory.

use super::part::{Part, Piece, TYPES, Taken};
use super::{
    BlockForm, LEAVE_TENSOR, OWN, coordinates, form, long_content, operands, parts, prepared,
    tensor_outputs,
};
use crate::operands::hash;

pub(in crate::block) fn forms() -> Vec<BlockForm> {
    let mut forms = stores();
    forms.extend(scatters());
    forms
}

/// Applies `change` to each stored element: to the old element of the tensor and the element of the
/// tile. Stores that exceed a row write its elements up to the next multiple of 16 bytes too.
pub(super) fn written(
    part: &Part,
    content: &[u8],
    shared: &[u8],
    change: impl Fn(&[u8], &[u8]) -> Vec<u8>,
) -> Vec<u8> {
    let size = TYPES[part.kind].1;
    let mut after = content.to_vec();
    for Piece {
        shared: linear,
        tensor,
        is_last,
    } in part.pieces()
    {
        let Some(position) = tensor else { continue };
        // The last in-bounds element of a row extends to the next multiple of 16 bytes.
        let end = if is_last && part.interleave == 0 {
            (position + size).next_multiple_of(16)
        } else {
            position + part.unit()
        };
        for (index, at) in (position..end).step_by(size).enumerate() {
            let from: Vec<u8> = (0..size)
                .map(|byte| shared[part.swizzled(linear + index * size + byte)])
                .collect();
            let new = change(&content[at..at + size], &from);
            after[at..at + size].copy_from_slice(&new);
        }
    }
    after
}

/// Stores of tiles of every kind.
fn stores() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    let (boxes, pixels): (Vec<_>, Vec<_>) = parts(true, 1)
        .into_iter()
        .partition(|(_, part)| matches!(part.taken, Taken::Box(_)));
    for (index, (name, part)) in boxes.into_iter().chain(pixels).enumerate() {
        let mode = if matches!(part.taken, Taken::Box(_)) {
            ["", ".tile"][index % 2]
        } else {
            ".im2col_no_offs"
        };
        let hint = ["", ".L2::cache_hint"][index / 2 % 2];
        let rank = part.at.len();
        let spelling =
            format!("cp.async.bulk.tensor.{rank}d.global.shared::cta{mode}.bulk_group{hint}");
        let part = part.without_offsets();
        let what = name;
        let (set, at) = coordinates(&part.at);
        let policy = if hint.is_empty() { "" } else { ", %l31" };
        let code = format!(
            "createpolicy.fractional.L2::evict_last.b64 %l31, 1.0;{}{set}
    @%p1 {spelling} [%l20, {{{at}}}], [%r20]{policy};{LEAVE_TENSOR}",
            prepared(OWN)
        );
        let content = long_content(&part);
        forms.push(form(
            format!("{spelling} {what}"),
            code,
            &part.clone(),
            content,
            move |all, content| {
                tensor_outputs(&written(&part, content, &operands(all), |_, new| {
                    new.to_vec()
                }))
            },
        ));
    }
    forms
}

/// Scatters of four rows.
fn scatters() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for seed in 0..6 {
        let (part, rows) = Part::four_rows(hash([seed]));
        let all = part.clone().beginning_at(rows);
        let spelling = "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group";
        let (set, at) = coordinates(&all.at);
        let code = format!(
            "{}{set}\n    @%p1 {spelling} [%l20, {{{at}}}], [%r20];{LEAVE_TENSOR}",
            prepared(OWN)
        );
        let scatter = form(
            format!("{spelling} {seed}"),
            code,
            &part,
            long_content(&part),
            move |operands_of, content| {
                tensor_outputs(&written(&all, content, &operands(operands_of), |_, new| {
                    new.to_vec()
                }))
            },
        );
        forms.push(scatter.needs(100));
    }
    forms
}
