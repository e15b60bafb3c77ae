//! Wrong kernels, which must not compile: each file in `ui/` violates a rule of the model, next to the compiler's message.

#[test]
#[cfg_attr(miri, ignore = "Miri runs programs and does not compile them")]
fn wrong_kernels_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
