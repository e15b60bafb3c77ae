//! Device runtime functions.

use super::super::ReportKind;
use super::{Bench, kernel};

const DECLARATIONS: &str = "
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.extern .func (.param .b64 r) malloc(.param .b64 n);
.extern .func free(.param .b64 p);
.extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 g, .param .b64 c);
.global .align 1 .b8 format[22] = {37, 100, 58, 32, 37, 46, 50, 102, 32, 37, 115, 32, 37, 108, 108, 100, 10, 0};
.global .align 1 .b8 word[6] = {104, 101, 108, 108, 111, 0};
";

fn bench(body: &str) -> Bench {
    Bench::new(&format!("{DECLARATIONS}{}", kernel(body)), 4096)
}

#[test]
fn printed_text_has_its_arguments() {
    let bench = bench(
        "
    .local .align 8 .b8 args[32];
    mov.u64 %d2, args;
    cvta.local.u64 %d2, %d2;
    st.u32 [%d2], %t;
    mov.f64 %e1, 0d3FF8000000000000;
    st.f64 [%d2+8], %e1;
    mov.u64 %d3, word;
    cvta.global.u64 %d3, %d3;
    st.u64 [%d2+16], %d3;
    st.u64 [%d2+24], -5;
    mov.u64 %d4, format;
    cvta.global.u64 %d4, %d4;
    {
        .param .b64 f;
        st.param.b64 [f], %d4;
        .param .b64 a;
        st.param.b64 [a], %d2;
        .param .b32 r;
        call.uni (r), vprintf, (f, a);
        ld.param.b32 %r2, [r];
    }
    st.global.u32 [%at4], %r2;",
    );
    assert_eq!(bench.results::<u32>(2), [4, 4]);
    assert_eq!(bench.host.printed(), "0: 1.50 hello -5\n1: 1.50 hello -5\n");
}

/// Allocated memory keeps stored values and null means failure.
#[test]
fn device_malloc() {
    let bench = bench(
        "
    setp.lt.u32 %p1, %t, 2;
    selp.b64 %d2, 8, 100, %p1;
    {
        .param .b64 n;
        st.param.b64 [n], %d2;
        .param .b64 q;
        call.uni (q), malloc, (n);
        ld.param.b64 %d3, [q];
    }
    setp.eq.u64 %p2, %d3, 0;
    @%p2 bra NONE;
    add.u32 %r2, %t, 50;
    st.u32 [%d3], %r2;
    ld.u32 %r3, [%d3];
    {
        .param .b64 q;
        st.param.b64 [q], %d3;
        call.uni free, (q);
    }
NONE:
    st.global.u32 [%at4], %r3;",
    );
    assert_eq!(bench.results::<u32>(4), [50, 51, 0, 0]);
}

#[test]
fn failed_assertion_names_its_line() {
    let bench = bench(
        "
    mov.u64 %d2, word;
    cvta.global.u64 %d2, %d2;
    setp.gt.u32 %p1, %t, 1;
    @!%p1 bra FINE;
    {
        .param .b64 m; st.param.b64 [m], %d2;
        .param .b64 f; st.param.b64 [f], %d2;
        .param .b32 l; st.param.b32 [l], 17;
        .param .b64 g; st.param.b64 [g], %d2;
        .param .b64 c; st.param.b64 [c], 1;
        call.uni __assertfail, (m, f, l, g, c);
    }
FINE:",
    );
    let fault = bench.launch(1, 4).expect_err("two threads fail");
    assert_eq!((fault.kind, fault.thread), (ReportKind::Assert, [2, 0, 0]));
    let text = "assertion failed: `hello` at hello:17, block (0, 0, 0), thread (2, 0, 0)";
    assert!(fault.to_string().contains(text), "{fault}");
    let said = String::from_utf8_lossy(&bench.host.complaints.lock().expect("no thread panics"))
        .into_owned();
    let line = |thread| {
        format!(
            "hello:17: hello: block: [0,0,0], thread: [{thread},0,0] Assertion `hello` failed.\n"
        )
    };
    assert_eq!(said, format!("{}{}", line(2), line(3)));
}

/// A failed check of bounds in a kernel in Rust names the index and the length.
#[test]
fn failed_index_names_its_operands() {
    let text = "
.extern .func __assertfail
(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 g, .param .b64 c);
.global .align 1 .b8 text[2] = {105, 0};
.func panic_with_message(.param .b64 message)
{
    .reg .b64 %d1;
    ld.param.b64 %d1, [message];
    {
        .param .b64 m; st.param.b64 [m], %d1;
        .param .b64 f; st.param.b64 [f], %d1;
        .param .b32 l; st.param.b32 [l], 17;
        .param .b64 g; st.param.b64 [g], %d1;
        .param .b64 c; st.param.b64 [c], 1;
        call.uni __assertfail, (m, f, l, g, c);
    }
    ret;
}
.func panic_with_index(.param .b64 index, .param .b64 length, .param .b64 message)
{
    .reg .b64 %d1;
    .local .b8 other[64];
    ld.param.b64 %d1, [message];
    { .param .b64 m; st.param.b64 [m], %d1; call.uni panic_with_message, (m); }
    ret;
}
.visible .entry main(.param .u64 p)
{
    .reg .pred %q;
    .reg .b32 %r1;
    .reg .b64 %d<3>;
    .local .b8 other[32];
    mov.u32 %r1, %tid.x;
    cvt.u64.u32 %d1, %r1;
    setp.lt.u64 %q, %d1, 3;
    @%q ret;
    mov.u64 %d2, text;
    cvta.global.u64 %d2, %d2;
    {
        .param .b64 i; st.param.b64 [i], %d1;
        .param .b64 l; st.param.b64 [l], 3;
        .param .b64 m; st.param.b64 [m], %d2;
        call.uni panic_with_index, (i, l, m);
    }
    ret;
}";
    let fault = Bench::new(text, 4096).launch(1, 6).expect_err("three fail");
    let expected =
        "assertion failed: `i` at i:17 (index 3, length 3), block (0, 0, 0), thread (3, 0, 0)";
    assert!(fault.to_string().contains(expected), "{fault}");
}

#[test]
fn unallocated_memory_is_not_freed() {
    let bench = bench("{ .param .b64 q; st.param.b64 [q], 64; call.uni free, (q); }");
    assert_eq!(
        bench.launch(1, 1).expect_err("it is not allocated").kind,
        ReportKind::IllegalAddress
    );
}
