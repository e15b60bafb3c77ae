//! Barrier objects of the next block: arrivals, and stores, reductions and copies that complete on
//! them.

use super::{MEET, NEXT, before, exchange};
use crate::block::atomic::Target;
use crate::block::pattern::expand;
use crate::block::{BlockForm, THREADS, output_from_bytes};

pub(super) fn forms() -> Vec<BlockForm> {
    let mut forms = arrivals();
    forms.extend(stores());
    forms.extend(copies());
    forms
}

/// Initializes a barrier object at `%r10` in each block (the next block's is at `%r11`) for all
/// threads of a block; then the cluster synchronizes.
fn objects(count: usize) -> String {
    format!(
        ".shared .align 8 .b64 object;
    {NEXT}mov.u32 %r10, object;
    mapa.shared::cluster.u32 %r11, %r10, %r20;
    cvt.u64.u32 %l22, %r10;
    cvta.shared.u64 %l22, %l22;
    mapa.u64 %l22, %l22, %r20;
    setp.eq.u32 %p1, %thread, 0;
    @%p1 mbarrier.init.shared::cta.b64 [%r10], {count};
    fence.mbarrier_init.release.cluster;
    fence.proxy.async.shared::cta;
    {MEET}"
    )
}

/// Waits for the first phase of the block's own barrier object.
const AWAIT: &str = "
WAIT:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r10], 0;
    @!%p2 bra WAIT;
    ";

/// Orders a word before an arrival without cluster scope, which orders accesses only within its
/// block.
const FENCE: &str = "fence.acq_rel.cluster;\n    ";

/// Arrivals at the next block's barrier object, which order a word.
fn arrivals() -> Vec<BlockForm> {
    let patterns = [
        (
            "mbarrier.arrive.shared::cluster.b64 _, [%r11]",
            FENCE,
            THREADS,
        ),
        (
            "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r11]",
            "",
            THREADS,
        ),
        (
            "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r11]+ 2",
            "",
            2 * THREADS,
        ),
        (
            "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r11]",
            FENCE,
            THREADS,
        ),
        (
            "mbarrier.arrive_drop.shared::cluster.b64 _, [%r11]",
            FENCE,
            THREADS,
        ),
        (
            "mbarrier.arrive_drop.release.cluster.shared::cluster.b64 _, [%r11]",
            "",
            THREADS,
        ),
        (
            "mbarrier.arrive.expect_tx.shared::cluster.b64 _, [%r11]+ 0",
            FENCE,
            THREADS,
        ),
        (
            "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%r11]+ 0",
            "",
            THREADS,
        ),
        (
            "mbarrier.arrive_drop.expect_tx.release.cluster.shared::cluster.b64 _, [%r11]+ 0",
            "",
            THREADS,
        ),
    ];
    let mut forms = Vec::new();
    for (pattern, fence, count) in patterns {
        for spelling in expand(pattern)
            .iter()
            .map(|spelling| spelling.replace('+', ","))
        {
            let code = format!(
                "{}st.shared::cluster.b64 [%r21+8], %l0;
    {fence}{spelling};{AWAIT}ld.shared.b64 %l8, [%shared+8];
    st.global.b64 [%out], %l8;
    {MEET}",
                objects(count)
            );
            let name = spelling.replace("[%r11]", "[next]");
            forms.push(exchange(&name, code, 4, |all, position| {
                [all[before(position, 4)][0], 0, 0, 0]
            }));
        }
    }
    // Transaction bytes that the next block's object expects and receives.
    let code = format!(
        "{}@%p1 mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%r11], 640;
    {MEET}mbarrier.arrive.shared::cta.b64 _, [%r10];
    mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r11], 10;{AWAIT}st.global.b64 [%out], 1;
    {MEET}",
        objects(THREADS)
    );
    forms.push(exchange(
        "mbarrier.complete_tx of the next block",
        code,
        4,
        |_, _| [1, 0, 0, 0],
    ));
    forms
}

/// Stores and reductions that complete on the next block's barrier object.
fn stores() -> Vec<BlockForm> {
    let mut forms = Vec::new();
    let wait =
        |bytes: usize| format!("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r10], {bytes};");
    for (kind, registers, bytes) in [
        ("b32", "%r1", 4),
        ("u32", "%r1", 4),
        ("s32", "%r1", 4),
        ("f32", "%r1", 4),
        ("b64", "%l1", 8),
        ("u64", "%l1", 8),
        ("s64", "%l1", 8),
        ("f64", "%l1", 8),
        ("v2.b32", "{%r1, %r2}", 8),
        ("v4.b32", "{%r1, %r2, %r3, %r0}", 16),
        ("v2.b64", "{%l1, %l2}", 16),
    ] {
        let spelling = format!("st.async.shared::cluster.mbarrier::complete_tx::bytes.{kind}");
        let code = format!(
            "{}{}
    {spelling} [%r21], {registers}, [%r11];{AWAIT}ld.shared.v2.b64 {{%l8, %l9}}, [%shared];
    st.global.v2.b64 [%out], {{%l8, %l9}};
    {MEET}",
            objects(THREADS),
            wait(bytes)
        );
        let width = if kind.ends_with("32") { 4 } else { 8 };
        forms.push(exchange(&spelling, code, 4, move |all, position| {
            let from = &all[before(position, 4)];
            let sources = &all[position];
            output_from_bytes(|index| match index {
                _ if index < bytes => from[(1 + index / width) % 4].to_le_bytes()[index % width],
                _ if index < 16 => sources[index / 8].to_le_bytes()[index % 8],
                _ => 0,
            })
        }));
    }
    let operations = "{{inc,dec}.u32,{min,max}.{u32,s32},add.{u32,s32,u64},{and,or,xor}.b32}";
    for spelling in expand(&format!(
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{operations}"
    )) {
        let target = Target::parse(&spelling, true);
        let class = target.class();
        let bits = target.bits;
        let code = format!(
            "{}{}
    {spelling} [%r21], %{class}1, [%r11];{AWAIT}ld.shared.b{bits} %{class}8, [%shared];
    st.global.b{bits} [%out], %{class}8;
    {MEET}",
            objects(THREADS),
            wait(bits as usize / 8)
        );
        forms.push(exchange(&spelling, code, 4, move |all, position| {
            let mask = u64::MAX >> (64 - bits);
            let previous = all[position][0] & mask;
            let from = all[before(position, 4)][1] & mask;
            [
                target.value(previous.into(), from.into(), 0) as u64,
                0,
                0,
                0,
            ]
        }));
    }
    forms
}

/// Loads the 32 bytes at the thread's own location.
const READ: &str = "ld.shared.v2.b64 {%l8, %l9}, [%shared];
    ld.shared.v2.b64 {%l10, %l11}, [%shared+16];
    st.global.v2.b64 [%out], {%l8, %l9};
    st.global.v2.b64 [%out+16], {%l10, %l11};
    ";

/// Bulk copies to the next block, from shared and from global memory, and to several blocks at
/// once.
fn copies() -> Vec<BlockForm> {
    let object = objects(THREADS);
    let expect = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r10], 32;\n    ";
    let within = "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes";
    // The source is located where the previous block's copy does not write.
    let code = format!(
        "{object}{expect}st.shared.v2.b64 [%shared+32], {{%l0, %l1}};
    st.shared.v2.b64 [%shared+48], {{%l2, %l3}};
    fence.proxy.async.shared::cta;
    add.u32 %r12, %shared, 32;
    {within} [%r21], [%r12], 32, [%r11];{AWAIT}{READ}{MEET}"
    );
    let mut forms = vec![exchange(within, code, 4, |all, position| {
        all[before(position, 4)]
    })];
    let from_device = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes";
    for hint in ["", ".L2::cache_hint"] {
        let (make, operand) = if hint.is_empty() {
            ("", "")
        } else {
            (
                "createpolicy.fractional.L2::evict_first.b64 %l31, 1.0;\n    ",
                ", %l31",
            )
        };
        let spelling = format!("{from_device}{hint}");
        let code = format!(
            "{object}{make}{expect}{spelling} [%r21], [%in], 32, [%r11]{operand};{AWAIT}{READ}{MEET}"
        );
        forms.push(exchange(&spelling, code, 4, |all, position| {
            all[before(position, 4)]
        }));
        // The first block copies its words to the blocks of a mask; the others wait for the data.
        let many = format!("{from_device}.multicast::cluster{hint}");
        for mask in [0b1111_u32, 0b0001, 0b1010, 0b0110] {
            let code = format!(
                "{object}{make}mov.b16 %h20, {mask};
    mov.u32 %r13, %cluster_ctarank;
    setp.eq.u32 %p3, %r13, 0;
    shr.u32 %r14, {mask}, %r13;
    and.b32 %r14, %r14, 1;
    setp.eq.u32 %p4, %r14, 1;
    @!%p4 bra SEND;
    {expect}SEND:
    @%p3 {many} [%shared], [%in], 32, [%r10], %h20{operand};
    @!%p4 bra TAKE;{AWAIT}TAKE:
    {READ}{MEET}"
            );
            forms.push(exchange(
                &format!("{many} by {mask:#06b}"),
                code,
                4,
                move |all, position| {
                    let rank = position / THREADS % 4;
                    if mask >> rank & 1 == 1 {
                        all[position - rank * THREADS]
                    } else {
                        all[position]
                    }
                },
            ));
        }
    }
    forms
}
