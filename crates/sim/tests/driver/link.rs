//! Links: the device runtime library, and limits of registers.

use std::ffi::{CStr, CString, c_void};
use std::ptr;

use curium_sim::Config;
use curium_sys::{
    CUfunction, CUfunction_attribute, CUjit_option, CUjitInputType, CUmodule, CUresult,
};

use crate::support::{Fixture, cu, get, handle, ok};

/// Counts the blocks at an address, waits for all of them, and stores the count that each block then reads after the counter.
const MEET: &CStr = c"
.version 7.0
.target sm_70
.address_size 64
.extern .func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope);
.extern .func (.param .b32 result) cudaCGSynchronize(.param .b64 handle, .param .b32 flags);
.visible .entry meet(.param .u64 out)
{
    .reg .b64 %rd<4>;
    .reg .b32 %r<40>;
    .reg .pred %p;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p, %r1, 0;
    @%p bra TOGETHER;
    atom.add.u32 %r2, [%rd1], 1;
TOGETHER:
    mov.b32 %r3, 1;
    {
        .param .b32 scope;
        .param .b64 handle;
        st.param.b32 [scope], %r3;
        call.uni (handle), cudaCGGetIntrinsicHandle, (scope);
        ld.param.b64 %rd2, [handle];
    }
    {
        .param .b64 handle;
        .param .b32 flags;
        .param .b32 result;
        st.param.b64 [handle], %rd2;
        st.param.b32 [flags], %r3;
        call.uni (result), cudaCGSynchronize, (handle, flags);
        ld.param.b32 %r4, [result];
    }
    mov.u32 %r5, %ctaid.x;
    mul.wide.u32 %rd3, %r5, 4;
    add.u64 %rd3, %rd3, %rd1;
    ld.volatile.u32 %r6, [%rd1];
    st.u32 [%rd3+4], %r6;
    ret;
}
";

/// An archive with the member that identifies the device runtime library.
const RUNTIME: &[u8] = b"!<arch>\ncuda_device_runtime.o/ ...";

/// Links `ptx` with archives, and returns its kernel `meet`, or the code of the step that failed.
fn linked(
    fixture: &Fixture,
    archives: &[&[u8]],
    ptx: &CStr,
    options: &mut [(CUjit_option, usize)],
) -> Result<CUfunction, CUresult> {
    let succeeded = |code| {
        if code == CUresult::CUDA_SUCCESS {
            Ok(())
        } else {
            Err(code)
        }
    };
    let api = &fixture.api;
    let mut names: Vec<CUjit_option> = options.iter().map(|option| option.0).collect();
    let mut values: Vec<*mut c_void> = options
        .iter()
        .map(|option| ptr::without_provenance_mut(option.1))
        .collect();
    let count = names.len() as u32;
    let mut link = ptr::null_mut();
    ok!(
        api,
        cuLinkCreate_v2(
            count,
            names.as_mut_ptr(),
            values.as_mut_ptr(),
            &raw mut link
        )
    );
    let add = |kind, bytes: &[u8]| {
        let data = bytes.as_ptr().cast_mut().cast();
        cu!(
            api,
            cuLinkAddData_v2(
                link,
                kind,
                data,
                bytes.len(),
                c"input".as_ptr(),
                0,
                ptr::null_mut(),
                ptr::null_mut()
            )
        )
    };
    for archive in archives {
        succeeded(add(CUjitInputType::CU_JIT_INPUT_LIBRARY, archive))?;
    }
    succeeded(add(
        CUjitInputType::CU_JIT_INPUT_PTX,
        ptx.to_bytes_with_nul(),
    ))?;
    let (mut image, mut size) = (ptr::null_mut(), 0);
    ok!(api, cuLinkComplete(link, &raw mut image, &raw mut size));
    let module = handle!(api, cuModuleLoadData(_, image));
    ok!(api, cuLinkDestroy(link));
    Ok(handle!(
        api,
        cuModuleGetFunction(_, module, c"meet".as_ptr())
    ))
}

#[test]
fn blocks_of_a_cooperative_launch_wait_for_each_other_by_the_runtime_library() {
    const BLOCKS: u32 = 5;
    let fixture = Fixture::with(Config::new().with_workers(2));
    let meet = linked(&fixture, &[RUNTIME], MEET, &mut []).expect("the library is known");
    let memory = fixture.alloc(4 * (1 + BLOCKS as usize));
    // The second launch begins with a new counter.
    for _ in 0..2 {
        ok!(fixture.api, cuMemsetD32_v2(memory, 0, 1 + BLOCKS as usize));
        let mut address = memory;
        let mut parameters = [(&raw mut address).cast()];
        let launch = cu!(
            fixture.api,
            cuLaunchCooperativeKernel(
                meet,
                BLOCKS,
                1,
                1,
                96,
                1,
                1,
                0,
                ptr::null_mut(),
                parameters.as_mut_ptr()
            )
        );
        assert_eq!(launch, CUresult::CUDA_SUCCESS);
        let found = fixture.download(memory, 4 * (1 + BLOCKS as usize));
        assert!(
            found
                .as_chunks::<4>()
                .0
                .iter()
                .all(|count| *count == BLOCKS.to_le_bytes()),
            "{found:?}"
        );
    }
}

#[test]
fn runtime_library_that_is_added_twice_is_linked_once() {
    linked(&Fixture::new(), &[RUNTIME, RUNTIME], MEET, &mut [])
        .expect("its functions are defined once");
}

#[test]
fn archive_of_other_machine_code_is_no_binary_for_the_device() {
    let fixture = Fixture::new();
    let refused = linked(&fixture, &[b"!<arch>\nother.o/ ..."], MEET, &mut [])
        .expect_err("it is machine code");
    assert_eq!(refused, CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU);
}

#[test]
fn kernel_claims_no_more_registers_than_the_link_allows() {
    let fixture = Fixture::new();
    // All of these words are live across a label.
    const WORDS: usize = 40;
    let lines = |line: &dyn Fn(usize) -> String| (0..WORDS).map(line).collect::<String>();
    let loads = lines(&|word| format!("ld.u32 %r{word}, [%rd1+{}];\n", 4 * word));
    let stores = lines(&|word| format!("st.u32 [%rd1+{}], %r{};\n", 4 * word, WORDS - 1 - word));
    let ptx = format!(
        ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry meet(.param .u64 out)\n{{\n.reg .b64 %rd<2>;\n\
         .reg .b32 %r<{WORDS}>;\nld.param.u64 %rd1, [out];\n{loads}NEXT:\n{stores}ret;\n}}\n"
    );
    let ptx = CString::new(ptx).expect("it is text");
    let registers = |options: &mut [_]| -> i32 {
        let meet = linked(&fixture, &[RUNTIME], &ptx, options).expect("the library is known");
        get!(
            fixture.api,
            cuFuncGetAttribute(_, CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS, meet)
        )
    };
    assert!(registers(&mut []) >= WORDS as i32);
    assert_eq!(
        registers(&mut [(CUjit_option::CU_JIT_MAX_REGISTERS, 24)]),
        24
    );
}

/// Returns a text with a private counter and helper, and a kernel that adds to the counter and stores it.
fn counting(kernel: &str, step: u32) -> CString {
    let text = format!(
        ".version 7.0\n.target sm_70\n.address_size 64\n.global .u32 count;\n\
         .func (.param .b32 r) next(.param .b32 by)\n{{\n.reg .b32 %r<3>;\nld.param.u32 %r1, [by];\n\
         atom.global.add.u32 %r2, [count], %r1;\nadd.u32 %r2, %r2, %r1;\nst.param.b32 [r], %r2;\nret;\n}}\n\
         .visible .entry {kernel}(.param .u64 out)\n{{\n.reg .b64 %rd1;\n.reg .b32 %r<3>;\nld.param.u64 %rd1, [out];\n\
         mov.b32 %r1, {step};\n{{\n.param .b32 by;\n.param .b32 r;\nst.param.b32 [by], %r1;\n\
         call.uni (r), next, (by);\nld.param.b32 %r2, [r];\n}}\nst.global.u32 [%rd1], %r2;\nret;\n}}\n"
    );
    CString::new(text).expect("it is text")
}

#[test]
fn symbols_that_are_local_to_their_files_are_not_shared() {
    let fixture = Fixture::new();
    let api = &fixture.api;
    let mut link = ptr::null_mut();
    ok!(
        api,
        cuLinkCreate_v2(0, ptr::null_mut(), ptr::null_mut(), &raw mut link)
    );
    for (kernel, step) in [("first", 1), ("second", 10)] {
        let text = counting(kernel, step);
        let (data, size) = (
            text.as_ptr().cast_mut().cast(),
            text.as_bytes_with_nul().len(),
        );
        let none = ptr::null_mut();
        let kind = CUjitInputType::CU_JIT_INPUT_PTX;
        ok!(
            api,
            cuLinkAddData_v2(
                link,
                kind,
                data,
                size,
                ptr::null(),
                0,
                none,
                ptr::null_mut()
            )
        );
    }
    let (mut image, mut size) = (ptr::null_mut(), 0);
    ok!(api, cuLinkComplete(link, &raw mut image, &raw mut size));
    let module = handle!(api, cuModuleLoadData(_, image));
    let memory = fixture.alloc(4);
    let mut counts = Vec::new();
    for name in [c"first", c"second", c"first", c"second"] {
        let function: CUfunction = handle!(api, cuModuleGetFunction(_, module, name.as_ptr()));
        let mut address = memory;
        let mut values: [*mut c_void; 1] = [(&raw mut address).cast()];
        let none = ptr::null_mut();
        ok!(
            api,
            cuLaunchKernel(
                function,
                1,
                1,
                1,
                1,
                1,
                1,
                0,
                ptr::null_mut(),
                values.as_mut_ptr(),
                none
            )
        );
        counts.push(fixture.download(memory, 1)[0]);
    }
    assert_eq!(counts, [1, 10, 2, 20], "each file counts by itself");
}

/// Links texts, and returns the module, or the code and the log of the input that was refused.
fn link(fixture: &Fixture, texts: &[String]) -> Result<CUmodule, (CUresult, String)> {
    let api = &fixture.api;
    let mut log = [0_u8; 200];
    let mut names = [
        CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
        CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
    ];
    let mut values = [
        log.as_mut_ptr().cast(),
        ptr::without_provenance_mut(log.len()),
    ];
    let mut link = ptr::null_mut();
    ok!(
        api,
        cuLinkCreate_v2(2, names.as_mut_ptr(), values.as_mut_ptr(), &raw mut link)
    );
    for (number, text) in texts.iter().enumerate() {
        let (text, name) = (
            CString::new(text.as_str()),
            CString::new(format!("{number}.ptx")),
        );
        let (text, name) = (text.expect("no NUL"), name.expect("no NUL"));
        let (data, size) = (
            text.as_ptr().cast_mut().cast(),
            text.as_bytes_with_nul().len(),
        );
        let kind = CUjitInputType::CU_JIT_INPUT_PTX;
        let none = ptr::null_mut();
        let code = cu!(
            api,
            cuLinkAddData_v2(
                link,
                kind,
                data,
                size,
                name.as_ptr(),
                0,
                none,
                ptr::null_mut()
            )
        );
        if code != CUresult::CUDA_SUCCESS {
            ok!(api, cuLinkDestroy(link));
            let log = CStr::from_bytes_until_nul(&log).expect("the log ends");
            return Err((code, log.to_str().expect("the log is text").to_owned()));
        }
    }
    let (mut image, mut size) = (ptr::null_mut(), 0);
    ok!(api, cuLinkComplete(link, &raw mut image, &raw mut size));
    let module = handle!(api, cuModuleLoadData(_, image));
    ok!(api, cuLinkDestroy(link));
    Ok(module)
}

/// Returns a text with a declaration of `s`, and a kernel that adds to its first element.
fn sharing(declaration: &str, kernel: &str) -> String {
    format!(
        ".version 7.8\n.target sm_75\n.address_size 64\n{declaration}\n.visible .entry {kernel}() {{ .reg .u32 %v;\n\
         atom.global.add.u32 %v, [s], 1; ret; }}\n"
    )
}

#[test]
fn common_symbols_of_several_files_are_one_variable() {
    // The declaration of each file, and the values of `s` after a kernel of each file has added one. As on an H200.
    let common = ".common .global .align 4 .u32 s;";
    let four = ".common .global .align 4 .u32 s[4];";
    let visible = ".visible .global .align 4 .u32 s = 7;";
    let weak = ".weak .global .align 4 .u32 s = 9;";
    let cases: [(&str, &str, &[u32]); 8] = [
        (common, common, &[2]),
        (common, four, &[2, 0, 0, 0]),
        (four, common, &[2, 0, 0, 0]),
        (common, visible, &[9]),
        (visible, common, &[9]),
        (weak, common, &[11]),
        (weak, visible, &[9]),
        (".extern .global .align 4 .u32 s;", common, &[2]),
    ];
    for (first, second, expected) in cases {
        let fixture = Fixture::new();
        let api = &fixture.api;
        let module =
            link(&fixture, &[sharing(first, "a"), sharing(second, "b")]).expect("the files agree");
        for name in [c"a", c"b"] {
            let function: CUfunction = handle!(api, cuModuleGetFunction(_, module, name.as_ptr()));
            let none = ptr::null_mut();
            ok!(
                api,
                cuLaunchKernel(
                    function,
                    1,
                    1,
                    1,
                    1,
                    1,
                    1,
                    0,
                    ptr::null_mut(),
                    ptr::null_mut(),
                    none
                )
            );
        }
        let (mut address, mut bytes) = (0, 0);
        ok!(
            api,
            cuModuleGetGlobal_v2(&raw mut address, &raw mut bytes, module, c"s".as_ptr())
        );
        assert_eq!(bytes, expected.len() * 4, "{first} {second}");
        let expected: Vec<u8> = expected
            .iter()
            .flat_map(|value| value.to_ne_bytes())
            .collect();
        assert_eq!(
            fixture.download(address, expected.len()),
            expected,
            "{first} {second}"
        );
    }
}

#[test]
fn definitions_that_contradict_each_other_are_refused_by_name() {
    // As on an H200.
    let four = ".common .global .align 4 .u32 s[4];";
    let visible = ".visible .global .align 4 .u32 s = 7;";
    let weak = ".weak .global .align 4 .u32 s = 9;";
    let larger = "Common symbol 's' in file '0.ptx' has larger size than initialization";
    let cases = [
        (four, visible, larger),
        (four, weak, larger),
        (
            visible,
            ".visible .global .align 4 .u32 s;",
            "Multiple definition of 's' in '1.ptx', first defined in '0.ptx'",
        ),
        (
            weak,
            ".weak .global .align 4 .u32 s[4];",
            "Size doesn't match for 's' in '1.ptx', first specified in '0.ptx'",
        ),
    ];
    for (first, second, log) in cases {
        let refused = link(
            &Fixture::new(),
            &[sharing(first, "a"), sharing(second, "b")],
        );
        let (code, said) = refused.expect_err("the files do not agree");
        assert_eq!(
            (code, said),
            (CUresult::CUDA_ERROR_UNKNOWN, format!("error   : {log}")),
            "{first} {second}"
        );
    }
    let kernels = link(
        &Fixture::new(),
        &[sharing(weak, "same"), sharing(weak, "same")],
    );
    let (_, said) = kernels.expect_err("a kernel is defined twice");
    assert_eq!(
        said,
        "error   : Multiple definition of 'same' in '1.ptx', first defined in '0.ptx'"
    );
}
