//! What must not compile: each file in `ui/` is a program that a safe interface refuses, with what the compiler says of it.

use curium_tests::uses_cuda;

#[test]
#[cfg_attr(miri, ignore = "Miri runs programs and does not compile them")]
fn misuse_does_not_compile() {
    if uses_cuda() {
        return;
    }
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
