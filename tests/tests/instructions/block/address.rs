//! Addresses and their state spaces, packed and unpacked registers, and special registers.

use super::pattern::expand;
use super::{BlockForm, Output, TABLE};
use crate::form::Sources;

pub(super) fn forms() -> Vec<BlockForm> {
    let mut forms = conversions();
    forms.extend(spaces());
    forms.extend(clusters());
    forms.extend(moves());
    forms.extend(knowledge());
    forms
}

/// A location of each thread by the name a kernel uses in its state space, with its content.
const PLACES: [(&str, &str, bool); 5] = [
    ("global", "%work", true),
    ("shared", "%l10", true),
    ("local", "%local", true),
    ("const", "%l11", false),
    ("param", "%l12", false),
];

/// Loads the addresses of `PLACES` into registers, with a writable word at each.
const PLACED: &str = "cvt.u64.u32 %l10, %shared;
    mov.u64 %l11, words;
    mov.u64 %l12, table;
    st.global.b64 [%work], %l0;
    st.shared.b64 [%shared], %l0;
    st.local.b64 [%local], %l0;
    ";

/// Returns the word at a place.
fn word(all: &[Sources], thread: usize, own: bool) -> u64 {
    if own { all[thread][0] } else { TABLE[0] }
}

/// `cvta` in both directions: the generic address reads the same word, and the converted address
/// equals the original.
fn conversions() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for (space, address, own) in PLACES {
        let code = format!(
            "{PLACED}cvta.{space}.u64 %l13, {address};
    ld.b64 %l14, [%l13];
    cvta.to.{space}.u64 %l15, %l13;
    sub.u64 %l15, %l15, {address};
    st.global.v2.b64 [%out], {{%l14, %l15}};"
        );
        let both = [format!("cvta.{space}.u64"), format!("cvta.to.{space}.u64")];
        forms.extend(both.map(|name| {
            BlockForm::new(name, code.clone(), move |all, thread| {
                [word(all, thread, own), 0, 0, 0]
            })
        }));
    }
    let names = [
        ("shared::cta", "%l10", 75),
        ("shared::cluster", "%l10", 90),
        ("param::entry", "%l12", 75),
    ];
    for (space, address, architecture) in names {
        let is_own_shared = address == "%l10";
        let code = format!(
            "{PLACED}cvta.{space}.u64 %l13, {address};
    ld.b64 %l14, [%l13];
    cvta.to.{space}.u64 %l15, %l13;
    sub.u64 %l15, %l15, {address};
    st.global.v2.b64 [%out], {{%l14, %l15}};"
        );
        forms.push(
            BlockForm::new(
                format!("cvta.{space}.u64"),
                code,
                move |all: &[Sources], thread: usize| [word(all, thread, is_own_shared), 0, 0, 0],
            )
            .needs(architecture),
        );
    }
    forms
}

/// `isspacep`: each location is tested for each state space.
fn spaces() -> Vec<BlockForm> {
    let asked = [
        ("global", 75),
        ("shared", 75),
        ("local", 75),
        ("const", 75),
        ("shared::cta", 75),
        ("shared::cluster", 90),
        ("param", 75),
        ("param::entry", 75),
    ];
    asked
        .map(|(space, architecture): (&'static str, u32)| {
            // Constants and parameters may lie in global memory too: they are tested only for their
            // own state spaces.
            let locations: Vec<_> = PLACES
                .into_iter()
                .filter(|(name, _, is_everywhere)| *is_everywhere || space.starts_with(name))
                .collect();
            let mut code = PLACED.to_owned();
            for (index, (own, address, _)) in locations.iter().enumerate() {
                code += &format!(
                    "cvta.{own}.u64 %l13, {address};
    isspacep.{space} %p1, %l13;
    selp.b64 %l14, 1, 0, %p1;
    shl.b64 %l14, %l14, {index};
    or.b64 %l15, %l15, %l14;
    "
                );
            }
            let code = format!("mov.b64 %l15, 0;\n    {code}st.global.b64 [%out], %l15;");
            let bits = locations
                .iter()
                .enumerate()
                .map(|(index, (own, ..))| u64::from(space.starts_with(own)) << index)
                .sum();
            BlockForm::new(format!("isspacep.{space}"), code, move |_, _| {
                [bits, 0, 0, 0]
            })
            .needs(architecture)
        })
        .into()
}

/// Returns forms of a block without a cluster, which is a cluster of one block.
fn clusters() -> Vec<BlockForm> {
    let own_code = |code: &str| format!("{PLACED}mov.u32 %r10, 0;\n    {code}");
    let read = |all: &[Sources], thread: usize| [all[thread][0], 0, 0, 0];
    let forms = [
        (
            "mapa.shared::cluster.u32",
            "mapa.shared::cluster.u32 %r8, %shared, {0,%r10}; ld.shared::cluster.b64 %l8, [%r8];",
        ),
        (
            "mapa.shared::cluster.u64",
            "mapa.shared::cluster.u64 %l9, %l10, {0,%r10}; ld.shared::cluster.b64 %l8, [%l9];",
        ),
        (
            "mapa.u64",
            "mapa.u64 %l9, %generic, {0,%r10}; ld.b64 %l8, [%l9];",
        ),
    ];
    let mut all = Vec::new();
    for (name, pattern) in forms {
        for code in expand(pattern) {
            let rank = if code.contains("%r10") {
                " by a register"
            } else {
                ""
            };
            let code = own_code(&format!("{code} st.global.b64 [%out], %l8;"));
            all.push(BlockForm::new(format!("{name}{rank}"), code, read).needs(90));
        }
    }
    for (name, address) in [
        ("getctarank.shared::cluster.u32", "%shared"),
        ("getctarank.shared::cluster.u64", "%l10"),
        ("getctarank.u64", "%generic"),
    ] {
        let code = own_code(&format!(
            "{name} %r8, {address}; add.u32 %r8, %r8, 7; st.global.b32 [%out], %r8;"
        ));
        all.push(BlockForm::new(name, code, |_, _| [7, 0, 0, 0]).needs(90));
    }
    let barriers = "barrier.cluster.arrive{,.release,.relaxed}{,.aligned};barrier.cluster.wait{,.acquire}{,.aligned}";
    let (arrive, wait) = barriers.split_once(';').expect("there are two");
    for (arrive, wait) in expand(arrive).into_iter().flat_map(|arrive| {
        expand(wait)
            .into_iter()
            .map(move |wait| (arrive.clone(), wait))
    }) {
        let fence = if arrive.contains("relaxed") {
            "fence.acq_rel.cluster; "
        } else {
            ""
        };
        let code = own_code(&format!(
            "xor.b32 %r20, %thread, 32;
    mov.u32 %r21, block;
    mad.lo.u32 %r21, %r20, 64, %r21;
    {fence}{arrive};
    {wait};
    ld.shared.b64 %l8, [%r21];
    st.global.b64 [%out], %l8;"
        ));
        all.push(
            BlockForm::new(
                format!("{arrive} {wait}"),
                code,
                |all: &[Sources], thread: usize| [all[thread ^ 32][0], 0, 0, 0],
            )
            .needs(90),
        );
    }
    all
}

/// `mov`: every type, vectors, and registers to and from their parts.
fn moves() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    for (kind, class) in expand("{b16,u16,s16,b32,u32,s32,f32,b64,u64,s64,f64}")
        .into_iter()
        .map(|kind| {
            let class = match &kind[1..] {
                "16" => 'h',
                "32" => 'r',
                _ => 'l',
            };
            (kind, class)
        })
    {
        let bits: u32 = kind[1..].parse().expect("the type has a width");
        let code = format!("mov.{kind} %{class}8, %{class}0; st.global.b{bits} [%out], %{class}8;");
        forms.push(BlockForm::new(
            format!("mov.{kind}"),
            code,
            move |all: &[Sources], thread: usize| {
                [all[thread][0] & u64::MAX >> (64 - bits), 0, 0, 0]
            },
        ));
    }
    let low = |all: &[Sources], thread: usize, bits: u32| {
        all[thread].map(|word| word & u64::MAX >> (64 - bits))
    };
    type Packed = (&'static str, &'static str, fn([u64; 4]) -> u64, u32);
    let packed: [Packed; 3] = [
        (
            "mov.b32 packed",
            "mov.b32 %r8, {%h0, %h1}; st.global.b32 [%out], %r8;",
            |w| w[0] | w[1] << 16,
            16,
        ),
        (
            "mov.b64 packed of two",
            "mov.b64 %l8, {%r0, %r1}; st.global.b64 [%out], %l8;",
            |w| w[0] | w[1] << 32,
            32,
        ),
        (
            "mov.b64 packed of four",
            "mov.b64 %l8, {%h0, %h1, %h2, %h3}; st.global.b64 [%out], %l8;",
            |w| w[0] | w[1] << 16 | w[2] << 32 | w[3] << 48,
            16,
        ),
    ];
    for (name, code, value, bits) in packed {
        forms.push(BlockForm::new(name, code, move |all, thread| {
            [value(low(all, thread, bits)), 0, 0, 0]
        }));
    }
    // Each part receives the bits of its own width; a part may be discarded, or be the register
    // itself.
    let unpacked = [
        ("mov.b32 unpacked", "mov.b32 {%h8, %h9}, %r0;", 'h', 16, 2),
        (
            "mov.b64 unpacked into two",
            "mov.b64 {%r8, %r9}, %l0;",
            'r',
            32,
            2,
        ),
        (
            "mov.b64 unpacked into four",
            "mov.b64 {%h8, %h9, %h10, %h11}, %l0;",
            'h',
            16,
            4,
        ),
        (
            "mov.b64 unpacked in part",
            "mov.b32 %r8, 0; mov.b64 {_, %r9}, %l0;",
            'r',
            32,
            2,
        ),
    ];
    for (name, code, class, bits, parts) in unpacked {
        let stores: String = (0..parts)
            .map(|part| {
                format!(
                    " st.global.b{bits} [%out+{}], %{class}{};",
                    8 * part,
                    8 + part
                )
            })
            .collect();
        let in_part = name.ends_with("in part");
        forms.push(BlockForm::new(
            name,
            format!("{code}{stores}"),
            move |all, thread| {
                std::array::from_fn(|index: usize| {
                    let is_thrown_away = index >= parts || in_part && index == 0;
                    if is_thrown_away {
                        0
                    } else {
                        all[thread][0] >> (bits * index) & u64::MAX >> (64 - bits)
                    }
                })
            },
        ));
    }
    let quad = "mov.b128 %q0, {%l0, %l1}; mov.b128 %q1, %q0; mov.b128 {%l1, %l0}, %q1; st.global.v2.b64 [%out], {%l0, %l1};";
    forms.push(BlockForm::new("mov.b128", quad, |all, thread| {
        [all[thread][1], all[thread][0], 0, 0]
    }));
    let predicate = "setp.lt.u64 %p1, %l0, %l1; mov.pred %p2, %p1; selp.b64 %l8, 1, 0, %p2; st.global.b64 [%out], %l8;";
    let less =
        |all: &[Sources], thread: usize| [u64::from(all[thread][0] < all[thread][1]), 0, 0, 0];
    forms.push(BlockForm::new("mov.pred", predicate, less));
    forms
}

/// Special registers: exact values if the launch determines them, otherwise the relations between
/// them.
fn knowledge() -> Vec<BlockForm> {
    type Value = fn(u64) -> u64;
    let exact: [(&str, u32, Value); 34] = [
        ("tid.x", 75, |thread| thread),
        ("tid.y", 75, |_| 0),
        ("tid.z", 75, |_| 0),
        ("ntid.x", 75, |_| 64),
        ("ntid.y", 75, |_| 1),
        ("ntid.z", 75, |_| 1),
        ("ctaid.x", 75, |_| 0),
        ("ctaid.y", 75, |_| 0),
        ("ctaid.z", 75, |_| 0),
        ("nctaid.x", 75, |_| 1),
        ("nctaid.y", 75, |_| 1),
        ("nctaid.z", 75, |_| 1),
        ("laneid", 75, |thread| thread % 32),
        ("lanemask_eq", 75, |thread| 1 << (thread % 32)),
        ("lanemask_lt", 75, |thread| (1 << (thread % 32)) - 1),
        ("lanemask_le", 75, |thread| (2 << (thread % 32)) - 1),
        ("lanemask_gt", 75, |thread| {
            0xffff_ffff & !((2 << (thread % 32)) - 1)
        }),
        ("lanemask_ge", 75, |thread| {
            0xffff_ffff & !((1 << (thread % 32)) - 1)
        }),
        ("clusterid.x", 90, |_| 0),
        ("clusterid.y", 90, |_| 0),
        ("clusterid.z", 90, |_| 0),
        ("nclusterid.x", 90, |_| 1),
        ("nclusterid.y", 90, |_| 1),
        ("nclusterid.z", 90, |_| 1),
        ("cluster_ctaid.x", 90, |_| 0),
        ("cluster_ctaid.y", 90, |_| 0),
        ("cluster_ctaid.z", 90, |_| 0),
        ("cluster_nctaid.x", 90, |_| 1),
        ("cluster_nctaid.y", 90, |_| 1),
        ("cluster_nctaid.z", 90, |_| 1),
        ("cluster_ctarank", 90, |_| 0),
        ("cluster_nctarank", 90, |_| 1),
        ("dynamic_smem_size", 75, |_| 0),
        // The 4096 bytes of the block, and the reserved bytes of the device.
        ("total_smem_size/4096*4096", 75, |_| 4096),
    ];
    let mut forms: Vec<BlockForm> = exact
        .into_iter()
        .map(|(register, architecture, value)| {
            let (name, rounded) = register
                .split_once('/')
                .map_or((register, ""), |(name, _)| {
                    (name, "and.b32 %r8, %r8, -4096; ")
                });
            let code = format!("mov.u32 %r8, %{name}; {rounded}st.global.b32 [%out], %r8;");
            BlockForm::new(
                format!("mov.u32 %{name}"),
                code,
                move |_: &[Sources], thread: usize| [value(thread as u64), 0, 0, 0],
            )
            .needs(architecture)
        })
        .collect();
    forms.extend(relations());
    forms
}

/// Special registers for which a kernel checks a relation.
fn relations() -> Vec<BlockForm> {
    let leave = "selp.b64 %l8, 1, 0, %p1; st.global.b64 [%out], %l8;";
    let relations = [
        ("%warpid below %nwarpid", "mov.u32 %r8, %warpid; mov.u32 %r9, %nwarpid; setp.lt.u32 %p1, %r8, %r9;"),
        ("%smid below %nsmid", "mov.u32 %r8, %smid; mov.u32 %r9, %nsmid; setp.lt.u32 %p1, %r8, %r9;"),
        ("%clock64 goes on", "mov.u64 %l9, %clock64; nanosleep.u32 1000; mov.u64 %l10, %clock64; setp.lt.u64 %p1, %l9, %l10;"),
        (
            "%clock goes on as %clock64 does",
            "mov.u32 %r8, %clock; mov.u64 %l9, %clock64; cvt.u32.u64 %r9, %l9; sub.u32 %r9, %r9, %r8;
    setp.lt.u32 %p1, %r9, 1000000000;",
        ),
        (
            "%clock_hi is the upper half",
            "mov.u64 %l9, %clock64; mov.u32 %r8, %clock_hi; shr.u64 %l9, %l9, 32; cvt.u32.u64 %r9, %l9; sub.u32 %r9, %r8, %r9;
    setp.le.u32 %p1, %r9, 1;",
        ),
        (
            "%globaltimer goes on",
            "mov.u64 %l9, %globaltimer;
AGAIN:
    nanosleep.u32 1000;
    mov.u64 %l10, %globaltimer;
    setp.le.u64 %p2, %l10, %l9;
    @%p2 bra AGAIN;
    setp.lt.u64 %p1, %l9, %l10;",
        ),
        (
            "%globaltimer_lo and %globaltimer_hi are its halves",
            "mov.u64 %l9, %globaltimer; mov.u32 %r8, %globaltimer_lo; mov.u32 %r9, %globaltimer_hi;
    mov.b64 %l10, {%r8, %r9}; sub.u64 %l10, %l10, %l9; setp.lt.u64 %p1, %l10, 5000000000;",
        ),
        ("%gridid is read", "mov.u64 %l9, %gridid; setp.eq.u64 %p1, %l9, %l9;"),
        ("%envreg0 is read", "mov.b32 %r8, %envreg0; setp.eq.u32 %p1, %r8, %r8;"),
        ("%pm0 is read", "mov.u32 %r8, %pm0; setp.eq.u32 %p1, %r8, %r8;"),
    ];
    let newer = [
        (
            "%is_explicit_cluster is false",
            "mov.pred %p2, %is_explicit_cluster; not.pred %p1, %p2;",
        ),
        (
            "%aggr_smem_size is that of the block",
            "mov.u32 %r8, %aggr_smem_size; setp.ge.u32 %p1, %r8, 4096;",
        ),
        (
            "%current_graph_exec is none",
            "mov.u64 %l9, %current_graph_exec; setp.eq.u64 %p1, %l9, 0;",
        ),
        (
            "%reserved_smem_offset_begin is not behind its end",
            "mov.b32 %r8, %reserved_smem_offset_begin; mov.b32 %r9, %reserved_smem_offset_end; setp.le.u32 %p1, %r8, %r9;",
        ),
    ];
    let form = |(name, code): (&str, &str), architecture| {
        BlockForm::new(
            format!("mov {name}"),
            format!("{code} {leave}"),
            |_: &[Sources], _: usize| -> Output { [1, 0, 0, 0] },
        )
        .needs(architecture)
    };
    relations
        .map(|spelling| form(spelling, 75))
        .into_iter()
        .chain(newer.map(|spelling| form(spelling, 90)))
        .collect()
}
