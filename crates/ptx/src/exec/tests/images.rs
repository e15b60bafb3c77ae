//! Textures and surfaces in forms that CUDA C++ compilers do not emit.

use std::sync::Arc;

use super::{BASE, Bench, TestResult, kernel};
use crate::exec::{
    AddressMode, Channel, Element, Image, ReportKind, Surface, Texture, Tiles, lower,
};
use crate::syntax;

/// Returns a texture of the four bytes 1, 2, 4 and 8.
fn texture() -> Texture {
    Texture {
        levels: vec![Image {
            base: BASE,
            width: 4,
            height: 1,
            depth: 1,
            pitch: 4,
        }],
        element: Element {
            channel: Channel::U8,
            channels: 1,
        },
        address_modes: [AddressMode::Border; 3],
        is_linear: false,
        is_linear_in_levels: false,
        has_normalized_coordinates: false,
        reads_integers: true,
        is_srgb: false,
        is_buffer: true,
        level_bias: 0.0,
        level_range: [0.0; 2],
        border: [-7.0; 4],
        tiles: Vec::new(),
    }
}

/// Runs `body` as one thread. Object 0 is the texture above, and surface 0 is its memory, which
/// follows the results.
fn bench(body: &str) -> Bench {
    let mut bench = Bench::body(body, 256);
    bench.memory.write(128, &[1_u8, 2, 4, 8, 0, 0, 0, 0]);
    let mut texture = texture();
    texture.levels[0].base = BASE + 128;
    let image = texture.levels[0];
    bench.host.textures.push(Arc::new(texture));
    bench.host.surfaces.push(Arc::new(Surface {
        image,
        element: Element {
            channel: Channel::U8,
            channels: 1,
        },
    }));
    bench
}

/// Integer coordinates select elements and read zero out of range.
#[test]
fn integer_texture_coordinates() -> TestResult {
    let bench = bench(
        "
    mov.u64 %d1, 0;
    mov.u32 %r1, 2;
    mov.u32 %r2, -1;
    tex.1d.v4.u32.s32 {%r3, %r4, %r5, %r6}, [%d1, {%r1}];
    tex.1d.v4.s32.s32 {%r7, _, _, _}, [%d1, %r2];
    tex.level.1d.v4.s32.s32 {%r10, _, _, _}, [%d1, %r2], 0;
    txq.width.b32 %r8, [%d1];
    txq.normalized_coords.b32 %r9, [%d1];
    st.v4.u32 [%p], {%r3, %r4, %r5, %r6};
    st.v4.u32 [%p+16], {%r7, %r8, %r9, %r10};",
    );
    bench.launch(1, 1)?;
    assert_eq!(
        bench.memory.read::<u32>(0, 4),
        [4, 0, 0, 0],
        "missing channels are zero"
    );
    assert_eq!(
        bench.memory.read::<u32>(16, 4),
        [0, 4, 0, 1],
        "a read of a mipmap level is clamped to the edge"
    );
    Ok(())
}

#[test]
fn surface_reductions() -> TestResult {
    let cases = [
        ("add.1d.u32", 0x0804_0201_u32, 0x1000_0000_u32, 0x1804_0201),
        ("min.1d.u32", 0x0804_0201, 5, 5),
        ("min.1d.s32", 0x0804_0201, 0xffff_ffff, 0xffff_ffff),
        ("max.1d.s32", 0x0804_0201, 0xffff_ffff, 0x0804_0201),
        ("and.1d.b32", 0x0804_0201, 0x00ff_00ff, 0x0004_0001),
        ("or.1d.b32", 0x0804_0201, 0x1010_1010, 0x1814_1211),
    ];
    for (operation, before, operand, after) in cases {
        let bench = bench(&format!(
            "
    mov.u64 %d1, 0;
    mov.u32 %r1, 0;
    mov.u32 %r2, {operand:#x};
    sured.b.{operation}.trap [%d1, {{%r1}}], %r2;"
        ));
        assert_eq!(bench.memory.read::<u32>(128, 1), [before]);
        bench.launch(1, 1)?;
        assert_eq!(bench.memory.read::<u32>(128, 1), [after], "{operation}");
    }
    Ok(())
}

#[test]
fn access_across_a_surface_edge_is_a_fault() -> TestResult {
    let bench = bench(
        "
    mov.u64 %d1, 0;
    mov.u32 %r1, 3;
    suld.b.1d.b16.zero %r2, [%d1, {%r1}];
    suld.b.1d.v2.b8.clamp {%r3, %r4}, [%d1, {%r1}];
    st.u32 [%p], %r2;
    st.v2.u32 [%p+8], {%r3, %r4};",
    );
    bench.launch(1, 1)?;
    assert_eq!(bench.memory.read::<u32>(0, 1), [0]);
    assert_eq!(
        bench.memory.read::<u32>(8, 2),
        [4, 8],
        "the access is clamped to the last two bytes"
    );
    Ok(())
}

/// Offset is added to the coordinate and wraps at four bits.
#[test]
fn texture_offset_wraps_at_four_bits() -> TestResult {
    let bench = bench(
        "
    mov.u64 %d1, 0;
    mov.u32 %r1, 1;
    mov.u32 %r2, 2;
    mov.u32 %r3, -3;
    mov.u32 %r4, 18;
    tex.1d.v4.u32.s32 {%r5, _, _, _}, [%d1, {%r1}], {%r2};
    tex.1d.v4.u32.s32 {%r6, _, _, _}, [%d1, {%r1}], {%r3};
    tex.1d.v4.u32.s32 {%r7, _, _, _}, [%d1, {%r1}], %r4;
    tex.level.1d.v4.u32.s32 {%r8, _, _, _}, [%d1, {%r1}], 0, {-5};
    st.v4.u32 [%p], {%r5, %r6, %r7, %r8};",
    );
    bench.launch(1, 1)?;
    assert_eq!(bench.memory.read::<u32>(0, 4), [8, 0, 8, 1]);
    Ok(())
}

#[test]
fn unmapped_tiles_read_as_zero_and_not_resident() -> TestResult {
    let body = "
    mov.u64 %d1, 0;
    mov.u32 %r1, %t;
    tex.1d.v4.u32.s32 {%r3, _, _, _}|%p1, [%d1, {%r1}];
    selp.u32 %r4, 16, 0, %p1;
    add.u32 %r3, %r3, %r4;
    st.global.u32 [%at4], %r3;";
    let mut bench = bench(body);
    bench.launch(1, 5)?;
    assert_eq!(
        bench.memory.read::<u32>(0, 5),
        [17, 18, 20, 24, 16],
        "no tile is read beyond the edge"
    );
    let mut sparse = Texture::clone(&bench.host.textures[0]);
    let tiles = Tiles::new(sparse.levels[0], 1, [2, 1, 1]);
    tiles.set([2, 0, 0], [2, 1, 1], true);
    sparse.tiles.push(Arc::new(tiles));
    bench.host.textures[0] = Arc::new(sparse);
    bench.launch(1, 5)?;
    assert_eq!(bench.memory.read::<u32>(0, 5), [0, 0, 20, 24, 16]);
    Ok(())
}

#[test]
fn object_is_not_a_texture_or_surface_reference() -> TestResult {
    let bench = bench(
        "
    mov.u64 %d1, 0;
    setp.eq.u32 %p1, 1, 1;
    istypep.texref %p1, %d1;
    selp.u32 %r2, 1, 2, %p1;
    istypep.surfref %p1, %d1;
    selp.u32 %r3, 1, 2, %p1;
    st.v2.u32 [%p], {%r2, %r3};",
    );
    bench.launch(1, 1)?;
    assert_eq!(bench.memory.read::<u32>(0, 2), [2, 2]);
    Ok(())
}

#[test]
fn object_that_does_not_exist_faults() {
    for body in [
        "mov.u64 %d1, 9; mov.u32 %r1, 0; tex.1d.v4.u32.s32 {%r3, %r4, %r5, %r6}, [%d1, {%r1}];",
        "mov.u64 %d1, 9; mov.u32 %r1, 0; suld.b.1d.b8.trap %r2, [%d1, {%r1}];",
        "mov.u64 %d1, 9; suq.width.b32 %r2, [%d1];",
    ] {
        let fault = bench(body)
            .launch(1, 1)
            .expect_err("the object does not exist");
        assert_eq!(fault.kind, ReportKind::IllegalAddress, "{body}");
    }
}

#[test]
fn texture_references_are_refused() {
    let refused = |text: &str| {
        let text = format!(".version 8.8\n.target sm_100\n.address_size 64\n{text}");
        let module = syntax::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        lower(&module).expect_err("it is refused").to_string()
    };
    let reference = format!(
        ".global .texref t;\n{}",
        kernel("mov.u32 %r1, 0; tex.1d.v4.u32.s32 {%r3, %r4, %r5, %r6}, [t, {%r1}];")
    );
    assert!(
        refused(&reference).contains("texture, sampler and surface references are not supported")
    );
    let sampler =
        kernel("mov.u64 %d1, 0; tex.1d.v4.u32.s32 {%r3, %r4, %r5, %r6}, [%d1, %d1, {%r1}];");
    let apart =
        format!(".version 8.8\n.target sm_100, texmode_independent\n.address_size 64\n{sampler}");
    let module = syntax::parse(&apart).unwrap_or_else(|error| panic!("{error}\n{apart}"));
    let error = lower(&module).expect_err("it is refused").to_string();
    assert!(
        error.contains("separate samplers are not supported"),
        "{error}"
    );
    let formatted = kernel("mov.u64 %d1, 0; sust.p.1d.b64.trap [%d1, {%r1}], %d2;");
    assert!(refused(&formatted).contains("`sust.p.1d.b64.trap`"));
}
