//! Programs that must not compile: each file in `host/` violates a safe interface, and each file in `kernels/` a rule of the model of
//! kernels, next to the compiler's message.

#[test]
#[cfg_attr(miri, ignore = "Miri runs programs and does not compile them")]
fn misuse_does_not_compile() {
    let programs = trybuild::TestCases::new();
    programs.compile_fail("tests/host/*.rs");
    programs.compile_fail("tests/kernels/*.rs");
}
