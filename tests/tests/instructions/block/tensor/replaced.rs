//! Tensor maps that a kernel modifies in shared memory, copies to global memory, and uses.

use super::part::{Part, Wanted};
use super::{BlockForm, LEAVE, MARK, coordinates, form, left, loaded, prepared};
use crate::operands::hash;

/// Returns the modified fields of a tensor map: the suffix, and the operands after the map's
/// address.
fn changes(part: &Part) -> Vec<(&'static str, String)> {
    let rank = part.extents.len();
    let mut changes = vec![
        ("global_address", "%l21".to_owned()),
        ("rank", format!("{}", rank - 1)),
    ];
    // The instruction numbers `f32` with flushed subnormals before `f64` and `bf16`.
    let number = [0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 8, 11, 12][part.kind];
    changes.push(("elemtype", number.to_string()));
    changes.push(("interleave_layout", part.interleave.to_string()));
    changes.push(("swizzle_mode", part.swizzle.to_string()));
    changes.push(("fill_mode", u32::from(part.fills).to_string()));
    for (dimension, extent) in part.extents.iter().enumerate() {
        changes.push(("global_dim", format!("{dimension}, {extent}")));
    }
    for (dimension, stride) in part.strides().iter().enumerate() {
        changes.push(("global_stride", format!("{dimension}, {stride}")));
    }
    for (dimension, (count, step)) in part.box_and_steps().into_iter().enumerate() {
        changes.push(("box_dim", format!("{dimension}, {count}")));
        changes.push(("element_stride", format!("{dimension}, {step}")));
    }
    changes
}

/// Replaces the tensor map of another tensor by the tile's map.
pub(super) fn forms() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for (seed, (kind, rank)) in [
        (2, 2),
        (6, 3),
        (0, 5),
        (8, 1),
        (9, 4),
        (7, 2),
        (5, 3),
        (10, 2),
    ]
    .into_iter()
    .enumerate()
    {
        let wanted = Wanted {
            kind,
            rank,
            swizzle: seed % 4,
            interleave: 0,
            writes: false,
        };
        let part = Part::boxed(wanted, hash([seed as u8]));
        let (set, at) = coordinates(&part.at);
        let bytes = part.bytes();
        let wide = |suffix: &str| {
            if suffix == "global_address" || suffix == "global_stride" {
                "b64"
            } else {
                "b32"
            }
        };
        let replace: String = changes(&part)
            .into_iter()
            .map(|(suffix, value)| {
                format!(
                    "\n    @%p1 tensormap.replace.tile.{suffix}.shared::cta.b1024.{} [%r23], {value};",
                    wide(suffix)
                )
            })
            .collect();
        // The first warp copies the words of the map, and the modified ones to the location of the
        // map.
        let code = format!(
            ".shared .align 128 .b8 map[128]; mov.u32 %r23, map;
    {}{set}
    setp.ge.u32 %p3, %thread, 32;
    @%p3 bra READY;
    mul.wide.u32 %l25, %thread, 4; add.u64 %l25, %l25, %l20; ld.global.u32 %r8, [%l25];
    mad.lo.u32 %r9, %thread, 4, %r23; st.shared.u32 [%r9], %r8;
    bar.warp.sync -1;{replace}
    bar.warp.sync -1;
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%l20], [%r23], 128;
    @%p1 fence.proxy.tensormap::generic.acquire.gpu [%l20], 128;
    @%p1 mbarrier.arrive.expect_tx.shared.b64 %l24, [%r21], {bytes};
    @%p1 cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r20], [%l20, {{{at}}}], [%r21];
READY:{LEAVE}",
            prepared(MARK)
        );
        let content = part.content();
        let replacement = part.clone();
        let name = format!(
            "tensormap.replace.tile.global_address.shared::cta.b1024.b64 and others {kind} {rank}"
        );
        let other = Part::boxed(
            Wanted {
                kind: 2,
                rank: 3,
                swizzle: 0,
                interleave: 0,
                writes: false,
            },
            7,
        );
        let form = form(name, code, &part, content.clone(), move |_, content| {
            left(&loaded(&replacement, content))
        });
        forms.push(
            form.needs_only(90)
                .with(move |stream| other.prepare(stream, &content)),
        );
    }
    forms
}
