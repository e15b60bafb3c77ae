//! Textures and surfaces.

use core::marker::PhantomData;

use bytemuck::Pod;

use crate::block::{Block, BlockCodeOnly};
use crate::intrinsics::intrinsics;
#[cfg(not(target_arch = "nvptx64"))]
use crate::intrinsics::only_on_the_device;
use crate::launch::Launch;
use crate::parameter::{Description, GridRule, Kind, Parameter, Word};
use crate::thread::{Thread, coordinates, sealed};

intrinsics! {
    sample_1d_f32 = "curium.asm|tex.1d.v4.f32.f32 {$0, $1, $2, $3}, [$4, {$5}];|=f,=f,=f,=f,l,f|pure"(a: *mut f32, b: *mut f32, c: *mut f32, d: *mut f32, texture: u64, x: f32);
    fetch_1d_f32 = "curium.asm|tex.1d.v4.f32.s32 {$0, $1, $2, $3}, [$4, {$5}];|=f,=f,=f,=f,l,r|pure"(a: *mut f32, b: *mut f32, c: *mut f32, d: *mut f32, texture: u64, x: i32);
    sample_2d_f32 = "curium.asm|tex.2d.v4.f32.f32 {$0, $1, $2, $3}, [$4, {$5, $6}];|=f,=f,=f,=f,l,f,f|pure"(a: *mut f32, b: *mut f32, c: *mut f32, d: *mut f32, texture: u64, x: f32, y: f32);
    fetch_2d_f32 = "curium.asm|tex.2d.v4.f32.s32 {$0, $1, $2, $3}, [$4, {$5, $6}];|=f,=f,=f,=f,l,r,r|pure"(a: *mut f32, b: *mut f32, c: *mut f32, d: *mut f32, texture: u64, x: i32, y: i32);
    sample_3d_f32 = "curium.asm|tex.3d.v4.f32.f32 {$0, $1, $2, $3}, [$4, {$5, $6, $7, $7}];|=f,=f,=f,=f,l,f,f,f|pure"(a: *mut f32, b: *mut f32, c: *mut f32, d: *mut f32, texture: u64, x: f32, y: f32, z: f32);
    fetch_3d_f32 = "curium.asm|tex.3d.v4.f32.s32 {$0, $1, $2, $3}, [$4, {$5, $6, $7, $7}];|=f,=f,=f,=f,l,r,r,r|pure"(a: *mut f32, b: *mut f32, c: *mut f32, d: *mut f32, texture: u64, x: i32, y: i32, z: i32);
    sample_a1d_f32 = "curium.asm|tex.a1d.v4.f32.f32 {$0, $1, $2, $3}, [$4, {$5, $6}];|=f,=f,=f,=f,l,r,f|pure"(a: *mut f32, b: *mut f32, c: *mut f32, d: *mut f32, texture: u64, layer: u32, x: f32);
    sample_a2d_f32 = "curium.asm|tex.a2d.v4.f32.f32 {$0, $1, $2, $3}, [$4, {$5, $6, $7, $7}];|=f,=f,=f,=f,l,r,f,f|pure"(a: *mut f32, b: *mut f32, c: *mut f32, d: *mut f32, texture: u64, layer: u32, x: f32, y: f32);
    sample_cube_f32 = "curium.asm|tex.cube.v4.f32.f32 {$0, $1, $2, $3}, [$4, {$5, $6, $7, $7}];|=f,=f,=f,=f,l,f,f,f|pure"(a: *mut f32, b: *mut f32, c: *mut f32, d: *mut f32, texture: u64, x: f32, y: f32, z: f32);
    level_1d_f32 = "curium.asm|tex.level.1d.v4.f32.f32 {$0, $1, $2, $3}, [$4, {$5}], $6;|=f,=f,=f,=f,l,f,f|pure"(a: *mut f32, b: *mut f32, c: *mut f32, d: *mut f32, texture: u64, x: f32, level: f32);
    level_2d_f32 = "curium.asm|tex.level.2d.v4.f32.f32 {$0, $1, $2, $3}, [$4, {$5, $6}], $7;|=f,=f,=f,=f,l,f,f,f|pure"(a: *mut f32, b: *mut f32, c: *mut f32, d: *mut f32, texture: u64, x: f32, y: f32, level: f32);
    level_3d_f32 = "curium.asm|tex.level.3d.v4.f32.f32 {$0, $1, $2, $3}, [$4, {$5, $6, $7, $7}], $8;|=f,=f,=f,=f,l,f,f,f,f|pure"(a: *mut f32, b: *mut f32, c: *mut f32, d: *mut f32, texture: u64, x: f32, y: f32, z: f32, level: f32);
    level_cube_f32 = "curium.asm|tex.level.cube.v4.f32.f32 {$0, $1, $2, $3}, [$4, {$5, $6, $7, $7}], $8;|=f,=f,=f,=f,l,f,f,f,f|pure"(a: *mut f32, b: *mut f32, c: *mut f32, d: *mut f32, texture: u64, x: f32, y: f32, z: f32, level: f32);
    gather_r_f32 = "curium.asm|tld4.r.2d.v4.f32.f32 {$0, $1, $2, $3}, [$4, {$5, $6}];|=f,=f,=f,=f,l,f,f|pure"(a: *mut f32, b: *mut f32, c: *mut f32, d: *mut f32, texture: u64, x: f32, y: f32);
    gather_g_f32 = "curium.asm|tld4.g.2d.v4.f32.f32 {$0, $1, $2, $3}, [$4, {$5, $6}];|=f,=f,=f,=f,l,f,f|pure"(a: *mut f32, b: *mut f32, c: *mut f32, d: *mut f32, texture: u64, x: f32, y: f32);
    gather_b_f32 = "curium.asm|tld4.b.2d.v4.f32.f32 {$0, $1, $2, $3}, [$4, {$5, $6}];|=f,=f,=f,=f,l,f,f|pure"(a: *mut f32, b: *mut f32, c: *mut f32, d: *mut f32, texture: u64, x: f32, y: f32);
    gather_a_f32 = "curium.asm|tld4.a.2d.v4.f32.f32 {$0, $1, $2, $3}, [$4, {$5, $6}];|=f,=f,=f,=f,l,f,f|pure"(a: *mut f32, b: *mut f32, c: *mut f32, d: *mut f32, texture: u64, x: f32, y: f32);
    sample_1d_u32 = "curium.asm|tex.1d.v4.u32.f32 {$0, $1, $2, $3}, [$4, {$5}];|=r,=r,=r,=r,l,f|pure"(a: *mut u32, b: *mut u32, c: *mut u32, d: *mut u32, texture: u64, x: f32);
    fetch_1d_u32 = "curium.asm|tex.1d.v4.u32.s32 {$0, $1, $2, $3}, [$4, {$5}];|=r,=r,=r,=r,l,r|pure"(a: *mut u32, b: *mut u32, c: *mut u32, d: *mut u32, texture: u64, x: i32);
    sample_2d_u32 = "curium.asm|tex.2d.v4.u32.f32 {$0, $1, $2, $3}, [$4, {$5, $6}];|=r,=r,=r,=r,l,f,f|pure"(a: *mut u32, b: *mut u32, c: *mut u32, d: *mut u32, texture: u64, x: f32, y: f32);
    fetch_2d_u32 = "curium.asm|tex.2d.v4.u32.s32 {$0, $1, $2, $3}, [$4, {$5, $6}];|=r,=r,=r,=r,l,r,r|pure"(a: *mut u32, b: *mut u32, c: *mut u32, d: *mut u32, texture: u64, x: i32, y: i32);
    sample_3d_u32 = "curium.asm|tex.3d.v4.u32.f32 {$0, $1, $2, $3}, [$4, {$5, $6, $7, $7}];|=r,=r,=r,=r,l,f,f,f|pure"(a: *mut u32, b: *mut u32, c: *mut u32, d: *mut u32, texture: u64, x: f32, y: f32, z: f32);
    fetch_3d_u32 = "curium.asm|tex.3d.v4.u32.s32 {$0, $1, $2, $3}, [$4, {$5, $6, $7, $7}];|=r,=r,=r,=r,l,r,r,r|pure"(a: *mut u32, b: *mut u32, c: *mut u32, d: *mut u32, texture: u64, x: i32, y: i32, z: i32);
    sample_a1d_u32 = "curium.asm|tex.a1d.v4.u32.f32 {$0, $1, $2, $3}, [$4, {$5, $6}];|=r,=r,=r,=r,l,r,f|pure"(a: *mut u32, b: *mut u32, c: *mut u32, d: *mut u32, texture: u64, layer: u32, x: f32);
    sample_a2d_u32 = "curium.asm|tex.a2d.v4.u32.f32 {$0, $1, $2, $3}, [$4, {$5, $6, $7, $7}];|=r,=r,=r,=r,l,r,f,f|pure"(a: *mut u32, b: *mut u32, c: *mut u32, d: *mut u32, texture: u64, layer: u32, x: f32, y: f32);
    sample_cube_u32 = "curium.asm|tex.cube.v4.u32.f32 {$0, $1, $2, $3}, [$4, {$5, $6, $7, $7}];|=r,=r,=r,=r,l,f,f,f|pure"(a: *mut u32, b: *mut u32, c: *mut u32, d: *mut u32, texture: u64, x: f32, y: f32, z: f32);
    level_1d_u32 = "curium.asm|tex.level.1d.v4.u32.f32 {$0, $1, $2, $3}, [$4, {$5}], $6;|=r,=r,=r,=r,l,f,f|pure"(a: *mut u32, b: *mut u32, c: *mut u32, d: *mut u32, texture: u64, x: f32, level: f32);
    level_2d_u32 = "curium.asm|tex.level.2d.v4.u32.f32 {$0, $1, $2, $3}, [$4, {$5, $6}], $7;|=r,=r,=r,=r,l,f,f,f|pure"(a: *mut u32, b: *mut u32, c: *mut u32, d: *mut u32, texture: u64, x: f32, y: f32, level: f32);
    level_3d_u32 = "curium.asm|tex.level.3d.v4.u32.f32 {$0, $1, $2, $3}, [$4, {$5, $6, $7, $7}], $8;|=r,=r,=r,=r,l,f,f,f,f|pure"(a: *mut u32, b: *mut u32, c: *mut u32, d: *mut u32, texture: u64, x: f32, y: f32, z: f32, level: f32);
    level_cube_u32 = "curium.asm|tex.level.cube.v4.u32.f32 {$0, $1, $2, $3}, [$4, {$5, $6, $7, $7}], $8;|=r,=r,=r,=r,l,f,f,f,f|pure"(a: *mut u32, b: *mut u32, c: *mut u32, d: *mut u32, texture: u64, x: f32, y: f32, z: f32, level: f32);
    gather_r_u32 = "curium.asm|tld4.r.2d.v4.u32.f32 {$0, $1, $2, $3}, [$4, {$5, $6}];|=r,=r,=r,=r,l,f,f|pure"(a: *mut u32, b: *mut u32, c: *mut u32, d: *mut u32, texture: u64, x: f32, y: f32);
    gather_g_u32 = "curium.asm|tld4.g.2d.v4.u32.f32 {$0, $1, $2, $3}, [$4, {$5, $6}];|=r,=r,=r,=r,l,f,f|pure"(a: *mut u32, b: *mut u32, c: *mut u32, d: *mut u32, texture: u64, x: f32, y: f32);
    gather_b_u32 = "curium.asm|tld4.b.2d.v4.u32.f32 {$0, $1, $2, $3}, [$4, {$5, $6}];|=r,=r,=r,=r,l,f,f|pure"(a: *mut u32, b: *mut u32, c: *mut u32, d: *mut u32, texture: u64, x: f32, y: f32);
    gather_a_u32 = "curium.asm|tld4.a.2d.v4.u32.f32 {$0, $1, $2, $3}, [$4, {$5, $6}];|=r,=r,=r,=r,l,f,f|pure"(a: *mut u32, b: *mut u32, c: *mut u32, d: *mut u32, texture: u64, x: f32, y: f32);
    sample_1d_i32 = "curium.asm|tex.1d.v4.s32.f32 {$0, $1, $2, $3}, [$4, {$5}];|=r,=r,=r,=r,l,f|pure"(a: *mut i32, b: *mut i32, c: *mut i32, d: *mut i32, texture: u64, x: f32);
    fetch_1d_i32 = "curium.asm|tex.1d.v4.s32.s32 {$0, $1, $2, $3}, [$4, {$5}];|=r,=r,=r,=r,l,r|pure"(a: *mut i32, b: *mut i32, c: *mut i32, d: *mut i32, texture: u64, x: i32);
    sample_2d_i32 = "curium.asm|tex.2d.v4.s32.f32 {$0, $1, $2, $3}, [$4, {$5, $6}];|=r,=r,=r,=r,l,f,f|pure"(a: *mut i32, b: *mut i32, c: *mut i32, d: *mut i32, texture: u64, x: f32, y: f32);
    fetch_2d_i32 = "curium.asm|tex.2d.v4.s32.s32 {$0, $1, $2, $3}, [$4, {$5, $6}];|=r,=r,=r,=r,l,r,r|pure"(a: *mut i32, b: *mut i32, c: *mut i32, d: *mut i32, texture: u64, x: i32, y: i32);
    sample_3d_i32 = "curium.asm|tex.3d.v4.s32.f32 {$0, $1, $2, $3}, [$4, {$5, $6, $7, $7}];|=r,=r,=r,=r,l,f,f,f|pure"(a: *mut i32, b: *mut i32, c: *mut i32, d: *mut i32, texture: u64, x: f32, y: f32, z: f32);
    fetch_3d_i32 = "curium.asm|tex.3d.v4.s32.s32 {$0, $1, $2, $3}, [$4, {$5, $6, $7, $7}];|=r,=r,=r,=r,l,r,r,r|pure"(a: *mut i32, b: *mut i32, c: *mut i32, d: *mut i32, texture: u64, x: i32, y: i32, z: i32);
    sample_a1d_i32 = "curium.asm|tex.a1d.v4.s32.f32 {$0, $1, $2, $3}, [$4, {$5, $6}];|=r,=r,=r,=r,l,r,f|pure"(a: *mut i32, b: *mut i32, c: *mut i32, d: *mut i32, texture: u64, layer: u32, x: f32);
    sample_a2d_i32 = "curium.asm|tex.a2d.v4.s32.f32 {$0, $1, $2, $3}, [$4, {$5, $6, $7, $7}];|=r,=r,=r,=r,l,r,f,f|pure"(a: *mut i32, b: *mut i32, c: *mut i32, d: *mut i32, texture: u64, layer: u32, x: f32, y: f32);
    sample_cube_i32 = "curium.asm|tex.cube.v4.s32.f32 {$0, $1, $2, $3}, [$4, {$5, $6, $7, $7}];|=r,=r,=r,=r,l,f,f,f|pure"(a: *mut i32, b: *mut i32, c: *mut i32, d: *mut i32, texture: u64, x: f32, y: f32, z: f32);
    level_1d_i32 = "curium.asm|tex.level.1d.v4.s32.f32 {$0, $1, $2, $3}, [$4, {$5}], $6;|=r,=r,=r,=r,l,f,f|pure"(a: *mut i32, b: *mut i32, c: *mut i32, d: *mut i32, texture: u64, x: f32, level: f32);
    level_2d_i32 = "curium.asm|tex.level.2d.v4.s32.f32 {$0, $1, $2, $3}, [$4, {$5, $6}], $7;|=r,=r,=r,=r,l,f,f,f|pure"(a: *mut i32, b: *mut i32, c: *mut i32, d: *mut i32, texture: u64, x: f32, y: f32, level: f32);
    level_3d_i32 = "curium.asm|tex.level.3d.v4.s32.f32 {$0, $1, $2, $3}, [$4, {$5, $6, $7, $7}], $8;|=r,=r,=r,=r,l,f,f,f,f|pure"(a: *mut i32, b: *mut i32, c: *mut i32, d: *mut i32, texture: u64, x: f32, y: f32, z: f32, level: f32);
    level_cube_i32 = "curium.asm|tex.level.cube.v4.s32.f32 {$0, $1, $2, $3}, [$4, {$5, $6, $7, $7}], $8;|=r,=r,=r,=r,l,f,f,f,f|pure"(a: *mut i32, b: *mut i32, c: *mut i32, d: *mut i32, texture: u64, x: f32, y: f32, z: f32, level: f32);
    gather_r_i32 = "curium.asm|tld4.r.2d.v4.s32.f32 {$0, $1, $2, $3}, [$4, {$5, $6}];|=r,=r,=r,=r,l,f,f|pure"(a: *mut i32, b: *mut i32, c: *mut i32, d: *mut i32, texture: u64, x: f32, y: f32);
    gather_g_i32 = "curium.asm|tld4.g.2d.v4.s32.f32 {$0, $1, $2, $3}, [$4, {$5, $6}];|=r,=r,=r,=r,l,f,f|pure"(a: *mut i32, b: *mut i32, c: *mut i32, d: *mut i32, texture: u64, x: f32, y: f32);
    gather_b_i32 = "curium.asm|tld4.b.2d.v4.s32.f32 {$0, $1, $2, $3}, [$4, {$5, $6}];|=r,=r,=r,=r,l,f,f|pure"(a: *mut i32, b: *mut i32, c: *mut i32, d: *mut i32, texture: u64, x: f32, y: f32);
    gather_a_i32 = "curium.asm|tld4.a.2d.v4.s32.f32 {$0, $1, $2, $3}, [$4, {$5, $6}];|=r,=r,=r,=r,l,f,f|pure"(a: *mut i32, b: *mut i32, c: *mut i32, d: *mut i32, texture: u64, x: f32, y: f32);
    surface_load_1 = "curium.asm|suld.b.2d.b8.zero $0, [$1, {$2, $3}];|=h,l,r,r|"(surface: u64, x: u32, y: u32) -> u16;
    surface_store_1 = "curium.asm|sust.b.2d.b8.zero [$0, {$1, $2}], $3;|l,r,r,h|"(surface: u64, x: u32, y: u32, value: u16);
    surface_load_2 = "curium.asm|suld.b.2d.b16.zero $0, [$1, {$2, $3}];|=h,l,r,r|"(surface: u64, x: u32, y: u32) -> u16;
    surface_store_2 = "curium.asm|sust.b.2d.b16.zero [$0, {$1, $2}], $3;|l,r,r,h|"(surface: u64, x: u32, y: u32, value: u16);
    surface_load_4 = "curium.asm|suld.b.2d.b32.zero $0, [$1, {$2, $3}];|=r,l,r,r|"(surface: u64, x: u32, y: u32) -> u32;
    surface_store_4 = "curium.asm|sust.b.2d.b32.zero [$0, {$1, $2}], $3;|l,r,r,r|"(surface: u64, x: u32, y: u32, value: u32);
    surface_load_8 = "curium.asm|suld.b.2d.v2.b32.zero {$0, $1}, [$2, {$3, $4}];|=r,=r,l,r,r|"(a: *mut u32, b: *mut u32, surface: u64, x: u32, y: u32);
    surface_store_8 = "curium.asm|sust.b.2d.v2.b32.zero [$0, {$1, $2}], {$3, $4};|l,r,r,r,r|"(surface: u64, x: u32, y: u32, a: u32, b: u32);
    surface_load_16 = "curium.asm|suld.b.2d.v4.b32.zero {$0, $1, $2, $3}, [$4, {$5, $6}];|=r,=r,=r,=r,l,r,r|"(a: *mut u32, b: *mut u32, c: *mut u32, d: *mut u32, surface: u64, x: u32, y: u32);
    surface_store_16 = "curium.asm|sust.b.2d.v4.b32.zero [$0, {$1, $2}], {$3, $4, $5, $6};|l,r,r,r,r,r,r|"(surface: u64, x: u32, y: u32, a: u32, b: u32, c: u32, d: u32);
}

/// Declares the functions of [`Component`] and implements them for the three types.
macro_rules! components {
    ($($name:ident($($argument:ident: $argument_ty:ty),*) = $f32:ident, $u32:ident, $i32:ident;)*) => {
        /// A component of the elements that a texture returns: `f32`, `u32` or `i32`.
        pub trait Component: sealed::Sealed + Copy + Default {
            /// The number of the type.
            #[doc(hidden)]
            const NUMBER: u32;

            $(
                #[doc(hidden)]
                fn $name(texture: u64 $(, $argument: $argument_ty)*) -> [Self; 4];
            )*
        }

        components! { @implement f32, 0: $($name = $f32($($argument: $argument_ty),*);)* }
        components! { @implement u32, 1: $($name = $u32($($argument: $argument_ty),*);)* }
        components! { @implement i32, 2: $($name = $i32($($argument: $argument_ty),*);)* }
    };
    (@implement $ty:ty, $number:literal: $($name:ident = $intrinsic:ident($($argument:ident: $argument_ty:ty),*);)*) => {
        impl Component for $ty {
            const NUMBER: u32 = $number;

            $(
                #[inline(always)]
                fn $name(texture: u64 $(, $argument: $argument_ty)*) -> [Self; 4] {
                    let [mut a, mut b, mut c, mut d] = [<$ty>::default(); 4];
                    // SAFETY: the launcher passed the object, and nobody writes its memory during
                    // the launch.
                    unsafe {
                        $intrinsic(&raw mut a, &raw mut b, &raw mut c, &raw mut d, texture $(, $argument)*);
                    };
                    [a, b, c, d]
                }
            )*
        }
    };
}

components! {
    sample_1d(x: f32) = sample_1d_f32, sample_1d_u32, sample_1d_i32;
    fetch_1d(x: i32) = fetch_1d_f32, fetch_1d_u32, fetch_1d_i32;
    sample_2d(x: f32, y: f32) = sample_2d_f32, sample_2d_u32, sample_2d_i32;
    fetch_2d(x: i32, y: i32) = fetch_2d_f32, fetch_2d_u32, fetch_2d_i32;
    sample_3d(x: f32, y: f32, z: f32) = sample_3d_f32, sample_3d_u32, sample_3d_i32;
    fetch_3d(x: i32, y: i32, z: i32) = fetch_3d_f32, fetch_3d_u32, fetch_3d_i32;
    sample_a1d(layer: u32, x: f32) = sample_a1d_f32, sample_a1d_u32, sample_a1d_i32;
    sample_a2d(layer: u32, x: f32, y: f32) = sample_a2d_f32, sample_a2d_u32, sample_a2d_i32;
    sample_cube(x: f32, y: f32, z: f32) = sample_cube_f32, sample_cube_u32, sample_cube_i32;
    level_1d(x: f32, level: f32) = level_1d_f32, level_1d_u32, level_1d_i32;
    level_2d(x: f32, y: f32, level: f32) = level_2d_f32, level_2d_u32, level_2d_i32;
    level_3d(x: f32, y: f32, z: f32, level: f32) = level_3d_f32, level_3d_u32, level_3d_i32;
    level_cube(x: f32, y: f32, z: f32, level: f32) = level_cube_f32, level_cube_u32, level_cube_i32;
    gather_r(x: f32, y: f32) = gather_r_f32, gather_r_u32, gather_r_i32;
    gather_g(x: f32, y: f32) = gather_g_f32, gather_g_u32, gather_g_i32;
    gather_b(x: f32, y: f32) = gather_b_f32, gather_b_u32, gather_b_i32;
    gather_a(x: f32, y: f32) = gather_a_f32, gather_a_u32, gather_a_i32;
}

/// What a texture returns: one, two or four numbers of type `f32`, `u32` or `i32`.
pub trait Sample: sealed::Sealed + Copy {
    /// The type of the numbers.
    type Component: Component;

    /// The number of components.
    #[doc(hidden)]
    const CHANNELS: u32;

    #[doc(hidden)]
    fn from_components(components: [Self::Component; 4]) -> Self;
}

macro_rules! sample {
    ($($ty:ty)*) => {
        $(
            impl Sample for $ty {
                type Component = $ty;

                const CHANNELS: u32 = 1;

                #[inline(always)]
                fn from_components([first, ..]: [$ty; 4]) -> Self {
                    first
                }
            }

            impl sealed::Sealed for [$ty; 2] {}
            impl Sample for [$ty; 2] {
                type Component = $ty;

                const CHANNELS: u32 = 2;

                #[inline(always)]
                fn from_components([first, second, ..]: [$ty; 4]) -> Self {
                    [first, second]
                }
            }

            impl sealed::Sealed for [$ty; 4] {}
            impl Sample for [$ty; 4] {
                type Component = $ty;

                const CHANNELS: u32 = 4;

                #[inline(always)]
                fn from_components(components: [$ty; 4]) -> Self {
                    components
                }
            }
        )*
    };
}

sample!(f32 u32 i32);

/// The dimensions of a texture, as a launch checks them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub(crate) enum Geometry {
    Line,
    Plane,
    Volume,
    Lines,
    Planes,
    Cube,
}

macro_rules! texture {
    ($(#[$attribute:meta])* $name:ident, $geometry:ident) => {
        $(#[$attribute])*
        ///
        /// `T` is what reads return: `f32`, `u32` or `i32`, or an array of two or four of them. A
        /// launch passes a `&Texture`, and checks its dimensions, and that its elements are
        /// returned as `T`. Coordinates and filters are those of the texture's options; elements
        /// beyond the edges depend on its address modes.
        pub struct $name<T> {
            texture: u64,
            _element: PhantomData<fn() -> T>,
        }

        impl<T> Clone for $name<T> {
            #[inline(always)]
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<T> Copy for $name<T> {}

        // SAFETY: the launcher passes a texture of these dimensions with elements of this type,
        // whose memory nobody writes during the launch.
        unsafe impl<T: Sample> Parameter for $name<T> {
            type In<'k> = $name<T>;
            type First = u64;
            type Second = ();
            type Third = ();

            const DESCRIPTION: Description = Description::new::<T>(
                Kind::Texture,
                [Word::value::<u64>(), Word::ABSENT, Word::ABSENT],
            )
            .with_sizes([Geometry::$geometry as u32, T::Component::NUMBER, T::CHANNELS]);

            #[inline(always)]
            unsafe fn from_words(_: &Launch, texture: u64, (): (), (): ()) -> $name<T> {
                $name {
                    texture,
                    _element: PhantomData,
                }
            }
        }
    };
}

texture! {
    /// A one-dimensional texture (`tex1D`).
    #[doc(alias = "tex1D")]
    Texture1D, Line
}
texture! {
    /// A two-dimensional texture (`tex2D`).
    ///
    /// ```
    /// # use curium_kernel::prelude::*;
    /// use curium_kernel::Texture2D;
    ///
    /// /// Scales an image to the size of `y`, with coordinates from 0 to 1.
    /// #[kernel]
    /// pub fn scale(block: Block<32, 8>, image: Texture2D<f32>, mut y: PerBlockTile<f32, 8, 32>) {
    ///     let height = y.rows() as f32;
    ///     let width = y.columns() as f32;
    ///     y.for_each(&block, |position, y| {
    ///         let row = (position.row as f32 + 0.5) / height;
    ///         let column = (position.column as f32 + 0.5) / width;
    ///         *y = image.sample(column, row);
    ///     });
    /// }
    /// ```
    #[doc(alias = "tex2D")]
    Texture2D, Plane
}
texture! {
    /// A three-dimensional texture (`tex3D`).
    #[doc(alias = "tex3D")]
    Texture3D, Volume
}
texture! {
    /// A layered one-dimensional texture (`tex1DLayered`).
    #[doc(alias = "tex1DLayered")]
    Texture1DArray, Lines
}
texture! {
    /// A layered two-dimensional texture (`tex2DLayered`).
    #[doc(alias = "tex2DLayered")]
    Texture2DArray, Planes
}
texture! {
    /// A cubemap (`texCubemap`).
    #[doc(alias = "texCubemap")]
    TextureCube, Cube
}

macro_rules! reads {
    ($name:ident: $($(#[$attribute:meta])* $method:ident($($argument:ident: $ty:ty),*) = $function:ident;)*) => {
        impl<T: Sample> $name<T> {
            $(
                $(#[$attribute])*
                #[inline(always)]
                #[must_use]
                pub fn $method(&self, $($argument: $ty),*) -> T {
                    T::from_components(T::Component::$function(self.texture, $($argument),*))
                }
            )*
        }
    };
}

reads! { Texture1D:
    /// Reads at a coordinate (`tex.1d`). The center of element `i` is `i + 0.5`, unless coordinates
    /// are normalized.
    sample(x: f32) = sample_1d;
    /// Reads the element with an index, of a texture of a buffer or without normalized coordinates
    /// (`tex1Dfetch`).
    #[doc(alias = "tex1Dfetch")]
    fetch(x: i32) = fetch_1d;
    /// Reads at a coordinate in a mipmap level (`tex.level.1d`).
    #[doc(alias = "tex1DLod")]
    sample_level(x: f32, level: f32) = level_1d;
}
reads! { Texture2D:
    /// Reads at coordinates (`tex.2d`). The center of the element in column `i` is at
    /// `x = i + 0.5`, unless coordinates are normalized.
    sample(x: f32, y: f32) = sample_2d;
    /// Reads the element in a column and a row, without normalized coordinates (`tex.2d` with
    /// integers).
    fetch(x: i32, y: i32) = fetch_2d;
    /// Reads at coordinates in a mipmap level (`tex.level.2d`).
    #[doc(alias = "tex2DLod")]
    sample_level(x: f32, y: f32, level: f32) = level_2d;
}
reads! { Texture3D:
    /// Reads at coordinates (`tex.3d`).
    sample(x: f32, y: f32, z: f32) = sample_3d;
    /// Reads the element in a column, a row and a plane, without normalized coordinates (`tex.3d`
    /// with integers).
    fetch(x: i32, y: i32, z: i32) = fetch_3d;
    /// Reads at coordinates in a mipmap level (`tex.level.3d`).
    #[doc(alias = "tex3DLod")]
    sample_level(x: f32, y: f32, z: f32, level: f32) = level_3d;
}
reads! { Texture1DArray:
    /// Reads at a coordinate of a layer (`tex.a1d`).
    sample(layer: u32, x: f32) = sample_a1d;
}
reads! { Texture2DArray:
    /// Reads at coordinates of a layer (`tex.a2d`).
    sample(layer: u32, x: f32, y: f32) = sample_a2d;
}
reads! { TextureCube:
    /// Reads in a direction (`tex.cube`).
    sample(x: f32, y: f32, z: f32) = sample_cube;
    /// Reads in a direction in a mipmap level (`tex.level.cube`).
    #[doc(alias = "texCubemapLod")]
    sample_level(x: f32, y: f32, z: f32, level: f32) = level_cube;
}

impl<T: Sample> Texture2D<T> {
    /// Returns the component `COMPONENT` of the four elements that a linear filter would read,
    /// counterclockwise from the lower left (`tld4`):
    /// `[(x, y + 1), (x + 1, y + 1), (x + 1, y), (x, y)]`. The array has the flag `GATHER`.
    #[doc(alias = "tex2Dgather")]
    #[inline(always)]
    #[must_use]
    pub fn gather<const COMPONENT: u32>(&self, x: f32, y: f32) -> [T::Component; 4] {
        const {
            assert!(
                COMPONENT < T::CHANNELS,
                "the elements have no such component"
            );
        };
        match COMPONENT {
            0 => T::Component::gather_r(self.texture, x, y),
            1 => T::Component::gather_g(self.texture, x, y),
            2 => T::Component::gather_b(self.texture, x, y),
            _ => T::Component::gather_a(self.texture, x, y),
        }
    }
}

/// A two-dimensional surface, which a kernel writes. The thread with the coordinates (x, y) in a
/// grid along x and y owns the cell in column x and row y.
///
/// `T` is the type of the array's elements. A launch passes a `&Surface` of a two-dimensional
/// array. Cells beyond the array are left out (`.zero`).
///
/// Each thread writes its cell once: surfaces are cached, and a thread would not read what it
/// wrote.
///
/// ```
/// # use curium_kernel::prelude::*;
/// use curium_kernel::Surface2D;
///
/// /// Inverts an image.
/// #[kernel]
/// pub fn invert(block: Block<32, 8>, image: Surface2D<[u8; 4]>) {
///     image.update(&block, |_, _, [r, g, b, a]| [255 - r, 255 - g, 255 - b, a]);
/// }
/// ```
#[doc(alias = "surf2Dwrite")]
pub struct Surface2D<T> {
    surface: u64,
    _element: PhantomData<fn() -> T>,
    _not_sync: BlockCodeOnly,
}

// SAFETY: the launcher passes a surface of a two-dimensional array with elements of this type,
// which nobody else accesses during the launch, and a grid along x and y.
unsafe impl<T: Pod> Parameter for Surface2D<T> {
    type In<'k> = Surface2D<T>;
    type First = u64;
    type Second = ();
    type Third = ();

    const DESCRIPTION: Description = {
        assert!(
            matches!(size_of::<T>(), 1 | 2 | 4 | 8 | 16),
            "an element of a surface has 1, 2, 4, 8 or 16 bytes"
        );
        Description::new::<T>(
            Kind::Surface,
            [Word::value::<u64>(), Word::ABSENT, Word::ABSENT],
        )
        .on(GridRule::Plane)
    };

    #[inline(always)]
    unsafe fn from_words(_: &Launch, surface: u64, (): (), (): ()) -> Surface2D<T> {
        Surface2D {
            surface,
            _element: PhantomData,
            _not_sync: BlockCodeOnly::NEW,
        }
    }
}

impl<T: Pod> Surface2D<T> {
    /// Writes the cell of each thread. `value` receives its row and column in the array. No
    /// barrier.
    #[inline(always)]
    pub fn store<const X: u32, const Y: u32, const Z: u32>(
        self,
        block: &Block<X, Y, Z>,
        value: impl Fn(&Thread, (usize, usize)) -> T + Sync,
    ) {
        if let Some((row, column)) = cell(block) {
            // SAFETY: the thread is passed to its own code.
            let value = value(&unsafe { block.thread() }, (row, column));
            self.write(row, column, value);
        }
    }

    /// Replaces the cell of each thread. `value` receives its row and column in the array, and the
    /// element. No barrier.
    #[inline(always)]
    pub fn update<const X: u32, const Y: u32, const Z: u32>(
        self,
        block: &Block<X, Y, Z>,
        value: impl Fn(&Thread, (usize, usize), T) -> T + Sync,
    ) {
        if let Some((row, column)) = cell(block) {
            let element = self.read(row, column);
            // SAFETY: the thread is passed to its own code.
            let value = value(&unsafe { block.thread() }, (row, column), element);
            self.write(row, column, value);
        }
    }

    #[inline(always)]
    fn read(&self, row: usize, column: usize) -> T {
        let mut words = [0_u32; 4];
        let x = (column * size_of::<T>()) as u32;
        let y = row as u32;
        let [a, b, c, d] = &mut words;
        match size_of::<T>() {
            // SAFETY: the cell belongs to this thread.
            1 => *a = u32::from(unsafe { surface_load_1(self.surface, x, y) }),
            // SAFETY: the cell belongs to this thread.
            2 => *a = u32::from(unsafe { surface_load_2(self.surface, x, y) }),
            // SAFETY: the cell belongs to this thread.
            4 => *a = unsafe { surface_load_4(self.surface, x, y) },
            // SAFETY: the cell belongs to this thread.
            8 => unsafe { surface_load_8(a, b, self.surface, x, y) },
            // SAFETY: the cell belongs to this thread.
            _ => unsafe { surface_load_16(a, b, c, d, self.surface, x, y) },
        }
        let mut value = T::zeroed();
        let bytes = bytemuck::bytes_of_mut(&mut value);
        bytes.copy_from_slice(&bytemuck::bytes_of(&words)[..size_of::<T>()]);
        value
    }

    #[inline(always)]
    fn write(&self, row: usize, column: usize, value: T) {
        let mut words = [0_u32; 4];
        bytemuck::bytes_of_mut(&mut words)[..size_of::<T>()]
            .copy_from_slice(bytemuck::bytes_of(&value));
        let x = (column * size_of::<T>()) as u32;
        let y = row as u32;
        let [a, b, c, d] = words;
        match size_of::<T>() {
            // SAFETY: the cell belongs to this thread.
            1 => unsafe { surface_store_1(self.surface, x, y, a as u16) },
            // SAFETY: the cell belongs to this thread.
            2 => unsafe { surface_store_2(self.surface, x, y, a as u16) },
            // SAFETY: the cell belongs to this thread.
            4 => unsafe { surface_store_4(self.surface, x, y, a) },
            // SAFETY: the cell belongs to this thread.
            8 => unsafe { surface_store_8(self.surface, x, y, a, b) },
            // SAFETY: the cell belongs to this thread.
            _ => unsafe { surface_store_16(self.surface, x, y, a, b, c, d) },
        }
    }
}

/// Returns the row and the column of the running thread in a grid along x and y, unless no array
/// has them.
#[inline(always)]
fn cell<const X: u32, const Y: u32, const Z: u32>(
    block: &Block<X, Y, Z>,
) -> Option<(usize, usize)> {
    const {
        assert!(
            Z == 1,
            "a block that writes a surface has no threads along z"
        );
    };
    // SAFETY: the block has these dimensions.
    let [x, y, _] = unsafe { coordinates::<X, Y, Z>() };
    let row = block.index_y() * Y as usize + y as usize;
    let column = block.index_x() * X as usize + x as usize;
    // Positions in bytes have 32 bits, and must not wrap.
    (row < 1 << 20 && column < 1 << 20).then_some((row, column))
}
