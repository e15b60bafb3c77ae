//! Functions: parameters, recursion, function pointers.

use super::super::ReportKind;
use super::{Bench, kernel};

/// Returns a function that keeps a value in shared memory.
fn keeper(name: &str) -> String {
    format!(
        ".func (.param .b32 out) {name}(.param .b32 x) {{ .reg .pred %p; .reg .b32 %r<3>; .shared .align 4 .b32 kept;
            ld.param.u32 %r1, [x]; setp.ne.u32 %p, %r1, 0; @%p st.shared.u32 [kept], %r1; ld.shared.u32 %r2, [kept];
            st.param.u32 [out], %r2; ret; }}\n"
    )
}

/// Returns a call of a function with one parameter and one result.
fn call_text(name: &str, x: u32, result: &str) -> String {
    format!(
        "{{ .param .b32 x; .param .b32 out; st.param.u32 [x], {x}; call (out), {name}, (x); ld.param.u32 {result}, [out]; }}\n"
    )
}

/// Shared variables of functions overlap neither each other nor those of the kernel.
#[test]
fn functions_share_no_variables() {
    let calls = [
        call_text("one", 7, "%r2"),
        call_text("two", 9, "%r2"),
        call_text("one", 0, "%r2"),
        call_text("two", 0, "%r3"),
    ]
    .concat();
    let body = kernel(&format!(
        ".shared .align 4 .b32 own; st.shared.u32 [own], 5;\n{calls}ld.shared.u32 %r4, [own];
        mad.lo.u32 %r2, %r2, 100, %r3; mad.lo.u32 %r2, %r2, 100, %r4; st.global.u32 [%at4], %r2;"
    ));
    let bench = Bench::new(&format!("{}{}{body}", keeper("one"), keeper("two")), 4096);
    assert_eq!(bench.results::<u32>(32), [70_905; 32]);
}

/// Returns the sizes of the shared memory of the kernels.
fn shared_sizes(text: &str) -> Vec<u32> {
    let bench = Bench::new(text, 4096);
    let kernels = bench.program.kernels.iter();
    kernels.map(|kernel| kernel.static_shared).collect()
}

/// A module can have more shared variables than a block has memory: each kernel has those that it
/// accesses.
#[test]
fn kernels_overlap_variables() {
    let text = "
.shared .align 4 .b8 first[400];
.shared .align 16 .b8 both[64];
.shared .align 4 .b8 second[300];
.func use() { .reg .b32 %r<2>; ld.shared.u32 %r1, [both]; ret; }
.entry a() { .reg .b32 %r<2>; ld.shared.u32 %r1, [first]; call use; ret; }
.entry b() { .reg .b32 %r<2>; .reg .b64 %d<2>; mov.u64 %d1, second; ld.shared.u32 %r1, [both]; ret; }
.entry c() { ret; }
";
    assert_eq!(shared_sizes(text), [464, 764, 0]);
    // A kernel can load the address of a variable from memory.
    let table = ".global .align 8 .u64 table[1] = { generic(first) };";
    assert_eq!(shared_sizes(&format!("{text}{table}")), [464, 764, 400]);
}

#[test]
fn divergent_function_pointers() {
    let functions = "
.func (.reg .u32 out) twice(.reg .u32 x)
{
    add.u32 out, x, x;
    ret;
}
.func (.reg .u32 out) square(.reg .u32 x)
{
    mul.lo.u32 out, x, x;
    ret;
}
.global .align 8 .u64 table[2] = { twice, square };
";
    let body = kernel(
        "
    and.b32 %r2, %t, 1;
    mov.u64 %d2, table;
    mad.wide.u32 %d3, %r2, 8, %d2;
    ld.global.u64 %d4, [%d3];
    proto: .callprototype (.reg .u32 _) _ (.reg .u32 _);
    call (%r3), %d4, (%t), proto;
    st.global.u32 [%at4], %r3;",
    );
    let bench = Bench::new(&format!("{functions}{body}"), 4096);
    let expected: Vec<u32> = (0..32)
        .map(|tid| if tid % 2 == 0 { tid + tid } else { tid * tid })
        .collect();
    assert_eq!(bench.results::<u32>(32), expected);
}

#[test]
fn endless_recursion_is_a_fault() {
    let body = kernel("call endless, ();");
    let bench = Bench::new(
        &format!(".func endless() {{ .local .b8 room[64]; call endless, (); ret; }}\n{body}"),
        4096,
    );
    let fault = bench.launch(1, 1).expect_err("the stack ends");
    assert_eq!(fault.kind, ReportKind::HardwareStackError);
    assert_eq!(&*fault.location.function, "endless");
}

#[test]
fn bad_function_pointer_is_a_fault() {
    let body = kernel(
        "
    mov.u64 %d1, 4096;
    proto: .callprototype _ ();
    call %d1, (), proto;",
    );
    let fault = Bench::new(&body, 4096)
        .launch(1, 1)
        .expect_err("no function is there");
    assert_eq!(fault.kind, ReportKind::InvalidProgramCounter);
}

#[test]
fn discarded_results() {
    let callee = ".func (.param .align 8 .b8 out[64]) many(.param .b32 x) { .reg .b64 %d<2>; mov.u64 %d1, -1;
        st.param.b64 [out], %d1; st.param.b64 [out+8], %d1; st.param.b64 [out+56], %d1; ret; }
        .func (.reg .v4 .b32 o, .reg .b32 p) both() { mov.v4.b32 o, {1, 2, 3, 4}; mov.u32 p, 5; ret; }
        .func (.reg .b32 p, .reg .v4 .b32 o) swapped() { mov.v4.b32 o, {1, 2, 3, 4}; mov.u32 p, 6; ret; }\n";
    let body = kernel(
        "
    call (_), many, (7);
    call (_, %r2), both;
    call (%r3, _), swapped;
    add.u32 %r2, %r2, %r3;
    st.global.u32 [%at4], %r2;",
    );
    let bench = Bench::new(&format!("{callee}{body}"), 4096);
    assert_eq!(bench.results::<u32>(32), vec![11; 32]);
}

/// A product of dimensions above 32 bits limits nothing.
#[test]
fn huge_maxntid_does_not_limit_blocks() {
    let body = kernel("st.global.u32 [%at4], %t;").replace(
        "(.param .u64 p)\n",
        "(.param .u64 p)\n.maxntid 65536, 65536, 1\n",
    );
    let bench = Bench::new(&body, 4096);
    assert_eq!(bench.results::<u32>(2), [0, 1]);
}
