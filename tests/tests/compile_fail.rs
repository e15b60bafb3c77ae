//! Programs that must not compile: each file in `ui/` violates a safe interface, next to the compiler's message.

use curium_tests::uses_cuda;

#[test]
#[cfg_attr(miri, ignore = "Miri runs programs and does not compile them")]
fn misuse_does_not_compile() {
    if uses_cuda() {
        return;
    }
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
