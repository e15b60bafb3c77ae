//! Test kernels for Miri, written by hand because Miri's time grows with each byte and instruction.

/// `fill(&mut [u32], u32, u32)`, `fill_index(&mut [u32], u32)`.
pub(super) const FILL: &str = "\
.version 7.8
.target sm_75
.address_size 64
.visible .entry fill(.param .u64 a, .param .u32 v, .param .u32 n) {
.reg .pred p;
.reg .b32 i, m, t;
.reg .b64 d;
mov.u32 i, %ctaid.x;
mov.u32 m, %ntid.x;
mov.u32 t, %tid.x;
mad.lo.u32 i, i, m, t;
ld.param.u32 m, [n];
setp.lt.u32 p, i, m;
ld.param.u64 d, [a];
mad.wide.u32 d, i, 4, d;
ld.param.u32 m, [v];
@p st.global.u32 [d], m;
ret;
}
.visible .entry fill_index(.param .u64 a, .param .u32 n) {
.reg .pred p;
.reg .b32 i, m, t;
.reg .b64 d;
mov.u32 i, %ctaid.x;
mov.u32 m, %ntid.x;
mov.u32 t, %tid.x;
mad.lo.u32 i, i, m, t;
ld.param.u32 m, [n];
setp.lt.u32 p, i, m;
ld.param.u64 d, [a];
mad.wide.u32 d, i, 4, d;
@p st.global.u32 [d], i;
ret;
}
";
