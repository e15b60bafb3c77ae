//! Accepted spellings of tensor copies and bulk reductions, with their first version and target.

use super::{kernel, lower, syntax};

/// Returns `true` if an instruction is accepted for a version and a target.
fn is_taken(instruction: &str, version: &str, target: &str) -> bool {
    let text = format!(
        ".version {version}\n.target {target}\n.address_size 64\n{}",
        kernel(instruction)
    );
    syntax::parse(&text).is_ok_and(|module| lower(&module).is_ok())
}

#[test]
fn spellings_match_the_assembler() {
    const LOAD: &str =
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes";
    let wide = [
        "[%r1], [%d1, {%r0, %r0}], [%r2]",
        "[%d1, {%r0, %r0}], [%r1]",
    ];
    for (spelling, operands, is_right) in [
        (LOAD, wide[0], true),
        (
            "cp.async.bulk.tensor.2d.tile.shared::cta.global.mbarrier::complete_tx::bytes",
            wide[0],
            true,
        ),
        (
            "cp.async.bulk.tensor.2d.shared.global.tile.mbarrier::complete_tx::bytes",
            wide[0],
            false,
        ),
        (
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile.tile.mbarrier::complete_tx::bytes",
            wide[0],
            false,
        ),
        (
            "cp.async.bulk.tensor.2d.shared::cluster.global.bulk_group",
            wide[0],
            false,
        ),
        (
            "cp.async.bulk.tensor.shared::cluster.global.mbarrier::complete_tx::bytes",
            wide[0],
            false,
        ),
        (LOAD, "[%r1], [%d1, {%r0}], [%r2]", false),
        (LOAD, "[%r1], [%d1, {%d0, %r0}], [%r2]", false),
        (LOAD, "[%r1], [%d1, {%f0, %r0}], [%r2]", false),
        (LOAD, "[%r1], [%d1+64, {%r0, %r0}], [%r2]", false),
        (LOAD, "[%r1], [%d1, {%r0, -3}], [%r2], %d3", false),
        (LOAD, "[%r1], [p, {%r0, %r0}], [%r2]", false),
        (
            "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint",
            "[%r1], [%d1, {%r0, -3}], [%r2], %h0, %d3",
            true,
        ),
        (
            "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster",
            "[%r1], [%d1, {%r0, %r0}], [%r2], %r0",
            false,
        ),
        (
            "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes.multicast::cluster",
            "[%r1], [%d1, {%r0, %r0}], [%r2], %h0",
            false,
        ),
        (
            "cp.async.bulk.tensor.3d.shared::cta.global.im2col.mbarrier::complete_tx::bytes",
            "[%r1], [%d1, {%r0, %r0, %r0}], [%r2], {%h0}",
            true,
        ),
        (
            "cp.async.bulk.tensor.3d.shared::cta.global.im2col.mbarrier::complete_tx::bytes",
            "[%r1], [%d1, {%r0, %r0, %r0}], [%r2], {%h0, %h0}",
            false,
        ),
        (
            "cp.async.bulk.tensor.3d.shared::cta.global.im2col.mbarrier::complete_tx::bytes",
            "[%r1], [%d1, {%r0, %r0, %r0}], [%r2]",
            false,
        ),
        (
            "cp.async.bulk.tensor.2d.shared::cta.global.im2col.mbarrier::complete_tx::bytes",
            wide[0],
            false,
        ),
        (
            "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes",
            "[%r1], [%d1, {%r0, %r0, %r0, %r0, %r0}], [%r2]",
            true,
        ),
        (
            "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes",
            wide[0],
            false,
        ),
        (
            "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group.L2::cache_hint",
            "[%d1, {%r0, %r0}], [%r1], %d3",
            true,
        ),
        (
            "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group",
            wide[1],
            true,
        ),
        (
            "cp.async.bulk.tensor.2d.global.shared::cluster.bulk_group",
            wide[1],
            false,
        ),
        (
            "cp.async.bulk.tensor.2d.global.shared::cta.im2col.bulk_group",
            wide[1],
            false,
        ),
        ("cp.async.bulk.tensor.2d.global.shared::cta", wide[1], false),
        (
            "cp.reduce.async.bulk.tensor.2d.global.shared::cta.xor.tile.bulk_group",
            wide[1],
            true,
        ),
        (
            "cp.reduce.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group",
            wide[1],
            false,
        ),
        (
            "cp.async.bulk.prefetch.tensor.2d.L2.global.tile",
            "[%d1, {%r0, %r0}]",
            true,
        ),
        (
            "cp.async.bulk.prefetch.tensor.2d.global.tile",
            "[%d1, {%r0, %r0}]",
            false,
        ),
        (
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16",
            "[%d1], [%r1], 16",
            true,
        ),
        (
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f16",
            "[%d1], [%r1], 16",
            false,
        ),
        (
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f32",
            "[%d1], [%r1], 16",
            false,
        ),
        (
            "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.min.u64",
            "[%r1], [%r1], 16, [%r2]",
            false,
        ),
        (
            "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.cp_mask",
            "[%r1], [%d1], 16, [%r2], %h0",
            false,
        ),
        (
            "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.sys.sync.aligned",
            "[%d1], [%r1], 128",
            true,
        ),
        (
            "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.sys.sync.aligned",
            "[%d1], [%r1], 64",
            false,
        ),
        (
            "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.acquire.sys.sync.aligned",
            "[%d1], [%r1], 128",
            false,
        ),
    ] {
        let text = format!("{spelling} {operands};");
        assert_eq!(is_taken(&text, "8.8", "sm_100"), is_right, "{text}");
    }
}

#[test]
fn spellings_have_a_first_version() {
    let load = "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d1, {%r0}], [%r2];";
    let own_block = load.replace("shared::cluster", "shared::cta");
    let paired = load.replace("bytes [", "bytes.cta_group::2 [");
    let masked = "cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%d1], [%r1], 16, %h0;";
    let partial = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob [%r1], [%d1], 16, 1, 2, [%r2];";
    for (instruction, [old, new]) in [
        (load, [("7.8", "sm_90"), ("8.0", "sm_90")]),
        (load, [("8.8", "sm_89"), ("8.0", "sm_90")]),
        (&*own_block, [("8.5", "sm_90"), ("8.6", "sm_90")]),
        (&*paired, [("8.6", "sm_90"), ("8.6", "sm_100")]),
        (partial, [("9.1", "sm_90"), ("9.2", "sm_90")]),
        (masked, [("8.5", "sm_100"), ("8.6", "sm_100")]),
        (masked, [("8.8", "sm_90"), ("8.8", "sm_100")]),
    ] {
        assert!(
            !is_taken(instruction, old.0, old.1),
            "{instruction} {old:?}"
        );
        assert!(is_taken(instruction, new.0, new.1), "{instruction} {new:?}");
    }
}
