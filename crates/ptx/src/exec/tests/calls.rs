//! Functions: parameters, recursion, function pointers.

use super::super::ReportKind;
use super::{Bench, kernel};

const FACTORIAL: &str = "
.func (.param .b64 out) factorial(.param .b32 n)
{
    .reg .pred %p;
    .reg .b32 %r<4>;
    .reg .b64 %d<6>;
    ld.param.u32 %r1, [n];
    setp.gt.u32 %p, %r1, 1;
    @%p bra MORE;
    mov.u64 %d1, 1;
    st.param.b64 [out], %d1;
    ret;
MORE:
    sub.u32 %r2, %r1, 1;
    {
        .param .b32 arg;
        .param .b64 result;
        st.param.b32 [arg], %r2;
        call.uni (result), factorial, (arg);
        ld.param.b64 %d2, [result];
    }
    cvt.u64.u32 %d3, %r1;
    mul.lo.u64 %d4, %d2, %d3;
    st.param.b64 [out], %d4;
    ret;
}
";

#[test]
fn recursion_to_a_depth_per_lane_returns_to_each_caller() {
    let body = kernel(
        "
    and.b32 %r2, %t, 15;
    {
        .param .b32 arg;
        .param .b64 result;
        st.param.b32 [arg], %r2;
        call.uni (result), factorial, (arg);
        ld.param.b64 %d2, [result];
    }
    st.global.u64 [%at], %d2;",
    );
    let bench = Bench::new(&format!("{FACTORIAL}{body}"), 4096);
    let expected: Vec<u64> = (0..32u64).map(|tid| (1..=tid & 15).product()).collect();
    assert_eq!(bench.results::<u64>(32), expected);
}

#[test]
fn shared_variables_of_functions_overlap_neither_each_other_nor_those_of_the_kernel() {
    let keep = |name: &str| {
        format!(
            ".func (.param .b32 out) {name}(.param .b32 x) {{ .reg .pred %p; .reg .b32 %r<3>; .shared .align 4 .b32 kept;
            ld.param.u32 %r1, [x]; setp.ne.u32 %p, %r1, 0; @%p st.shared.u32 [kept], %r1; ld.shared.u32 %r2, [kept];
            st.param.u32 [out], %r2; ret; }}\n"
        )
    };
    let call = |name: &str, x: u32, result: &str| {
        format!(
            "{{ .param .b32 x; .param .b32 out; st.param.u32 [x], {x}; call (out), {name}, (x); ld.param.u32 {result}, [out]; }}\n"
        )
    };
    let calls = [
        call("one", 7, "%r2"),
        call("two", 9, "%r2"),
        call("one", 0, "%r2"),
        call("two", 0, "%r3"),
    ]
    .concat();
    let body = kernel(&format!(
        ".shared .align 4 .b32 own; st.shared.u32 [own], 5;\n{calls}ld.shared.u32 %r4, [own];
        mad.lo.u32 %r2, %r2, 100, %r3; mad.lo.u32 %r2, %r2, 100, %r4; st.global.u32 [%at4], %r2;"
    ));
    let bench = Bench::new(&format!("{}{}{body}", keep("one"), keep("two")), 4096);
    assert_eq!(bench.results::<u32>(32), [70_905; 32]);
}

/// A module can have more shared variables than a block has memory: each kernel has those that it accesses.
#[test]
fn shared_variables_overlap_in_different_kernels() {
    let text = "
.shared .align 4 .b8 first[400];
.shared .align 16 .b8 both[64];
.shared .align 4 .b8 second[300];
.func use() { .reg .b32 %r<2>; ld.shared.u32 %r1, [both]; ret; }
.entry a() { .reg .b32 %r<2>; ld.shared.u32 %r1, [first]; call use; ret; }
.entry b() { .reg .b32 %r<2>; .reg .b64 %d<2>; mov.u64 %d1, second; ld.shared.u32 %r1, [both]; ret; }
.entry c() { ret; }
";
    let sizes = |text: &str| -> Vec<u32> {
        let bench = Bench::new(text, 4096);
        let kernels = bench.program.kernels.iter();
        kernels.map(|kernel| kernel.static_shared).collect()
    };
    assert_eq!(sizes(text), [464, 764, 0]);
    // A kernel can load the address of a variable from memory.
    let table = ".global .align 8 .u64 table[1] = { generic(first) };";
    assert_eq!(sizes(&format!("{text}{table}")), [464, 764, 400]);
}

#[test]
fn function_pointers_call_a_different_function_in_each_lane() {
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
fn structures_are_passed_by_value_and_local_addresses_by_pointer() {
    let function = "
.func (.param .align 8 .b8 out[16]) swap(.param .align 8 .b8 in[16], .param .b64 pointer)
{
    .reg .b64 %d<4>;
    .reg .b32 %r<2>;
    ld.param.b64 %d1, [in];
    ld.param.b64 %d2, [in+8];
    st.param.b64 [out], %d2;
    st.param.b64 [out+8], %d1;
    ld.param.b64 %d3, [pointer];
    ld.u32 %r1, [%d3];
    add.u32 %r1, %r1, 1;
    st.u32 [%d3], %r1;
    ret;
}
";
    let body = kernel(
        "
    .local .align 4 .b32 cell;
    st.local.u32 [cell], %t;
    mov.u64 %d9, cell;
    cvta.local.u64 %d8, %d9;
    {
        .param .align 8 .b8 a[16];
        .param .b64 b;
        .param .align 8 .b8 c[16];
        st.param.b64 [a], 3;
        st.param.b64 [a+8], 40;
        st.param.b64 [b], %d8;
        call (c), swap, (a, b);
        ld.param.b64 %d2, [c];
        ld.param.b64 %d3, [c+8];
    }
    mad.lo.u64 %d2, %d2, 1000, %d3;
    ld.local.u32 %r2, [%d9];
    cvt.u64.u32 %d4, %r2;
    mad.lo.u64 %d2, %d2, 1000, %d4;
    st.global.u64 [%at], %d2;",
    );
    let bench = Bench::new(&format!("{function}{body}"), 4096);
    let expected: Vec<u64> = (0..32).map(|tid| 40_003_001 + tid).collect();
    assert_eq!(bench.results::<u64>(32), expected);
}

#[test]
fn endless_recursion_is_a_stack_fault() {
    let body = kernel("call endless, ();");
    let bench = Bench::new(
        &format!(".func endless() {{ .local .b8 room[64]; call endless, (); ret; }}\n{body}"),
        4096,
    );
    let fault = bench.launch(1, 1).expect_err("the stack ends");
    assert_eq!(fault.kind, ReportKind::HardwareStackError);
    assert_eq!(&*fault.function, "endless");
}

#[test]
fn a_bad_function_pointer_is_a_fault() {
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
fn discarded_results_of_any_size_overwrite_no_other_values() {
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
