//! Images of modules.

/// Kernels that access no memory if their parameters are zero, with a global variable, a managed
/// one and a texture.
pub(crate) const VALID: &str = "\
.version 7.0
.target sm_52
.address_size 64

.visible .global .align 4 .u32 counter;
.visible .global .attribute(.managed) .align 4 .u32 managed_counter;

.visible .entry empty()
{
    ret;
}

.visible .entry fill(.param .u64 target, .param .u32 value)
{
    .reg .pred %p;
    .reg .b64 %target;
    .reg .b32 %value;
    ld.param.u64 %target, [target];
    setp.eq.u64 %p, %target, 0;
    @%p ret;
    cvta.to.global.u64 %target, %target;
    ld.param.u32 %value, [value];
    st.global.u32 [%target], %value;
    ret;
}
";

/// Invalid images, by what is wrong with them.
pub(crate) const INVALID: &[(&str, &str)] = &[
    ("empty", ""),
    ("garbage", "no image of a module"),
    (
        "without target",
        ".version 7.0\n.visible .entry empty() { ret; }\n",
    ),
    (
        "syntax error",
        ".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry empty() { nothing; }\n",
    ),
    (
        "version too new",
        ".version 99.0\n.target sm_52\n.address_size 64\n.visible .entry empty() { ret; }\n",
    ),
    (
        "unresolved",
        ".version 7.0\n.target sm_52\n.address_size 64\n.extern .func missing;\n.visible .entry empty() { call missing; ret; }\n",
    ),
];
