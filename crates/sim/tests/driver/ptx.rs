//! The kernels of the tests.

use std::ffi::CStr;

/// `y[i] = a * x[i] + y[i]` for `i < n`, a variable, and a constant that points to it.
pub(crate) const SAXPY: &CStr = cr#"
.version 8.0
.target sm_75
.address_size 64

.visible .global .align 4 .u32 counter = 7;
.visible .global .align 8 .u64 address_of_counter = counter;

.visible .entry saxpy(
    .param .u64 x,
    .param .u64 y,
    .param .f32 a,
    .param .u32 n
)
{
    .reg .pred %p<2>;
    .reg .f32 %f<5>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<8>;

    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    ld.param.f32 %f1, [a];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra done;
    cvta.to.global.u64 %rd3, %rd1;
    cvta.to.global.u64 %rd4, %rd2;
    mul.wide.u32 %rd5, %r5, 4;
    add.s64 %rd6, %rd3, %rd5;
    add.s64 %rd7, %rd4, %rd5;
    ld.global.f32 %f2, [%rd6];
    ld.global.f32 %f3, [%rd7];
    fma.rn.f32 %f4, %f1, %f2, %f3;
    st.global.f32 [%rd7], %f4;
done:
    ret;
}

.visible .entry count()
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    mov.u64 %rd1, counter;
    atom.global.add.u32 %r1, [%rd1], 1;
    ret;
}

.visible .entry limited() .maxntid 64, 1, 1
{
    .shared .align 4 .b8 buffer[1024];
    ret;
}
"#;

/// Writes 4 bytes at its argument.
pub(crate) const POKE: &CStr = cr#"
.version 8.0
.target sm_75
.address_size 64

.visible .entry poke(.param .u64 address)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [address];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r1, 42;
    st.global.u32 [%rd2], %r1;
    ret;
}

.visible .entry stop()
{
    trap;
    ret;
}
"#;
