//! Links: the device runtime library, and limits of registers.

use crate::TestResult;
use std::ffi::{CStr, CString, c_void};
use std::ptr;

use curium_sim::Config;
use curium_sys::{CUfunction, CUfunction_attribute, CUjit_option, CUjitInputType, CUresult};

use crate::support::{Fixture, cu, get, handle, ok};

/// Counts the blocks at an address, waits for all of them, and stores the count that each block
/// then reads after the counter.
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
    let libraries = archives
        .iter()
        .map(|archive| (CUjitInputType::CU_JIT_INPUT_LIBRARY, *archive));
    let ptx = (CUjitInputType::CU_JIT_INPUT_PTX, ptx.to_bytes_with_nul());
    for (kind, input) in libraries.chain([ptx]) {
        let code = cu!(
            api,
            cuLinkAddData_v2(
                link,
                kind,
                input.as_ptr().cast_mut().cast(),
                input.len(),
                c"input".as_ptr(),
                0,
                ptr::null_mut(),
                ptr::null_mut()
            )
        );
        if code != CUresult::CUDA_SUCCESS {
            return Err(code);
        }
    }
    let mut image = ptr::null_mut();
    let mut size = 0;
    ok!(api, cuLinkComplete(link, &raw mut image, &raw mut size));
    let module = handle!(api, cuModuleLoadData(_, image));
    ok!(api, cuLinkDestroy(link));
    Ok(handle!(
        api,
        cuModuleGetFunction(_, module, c"meet".as_ptr())
    ))
}

#[test]
fn device_runtime_syncs_a_grid() {
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
        let counts = fixture.download(memory, 4 * (1 + BLOCKS as usize));
        assert!(
            counts
                .as_chunks::<4>()
                .0
                .iter()
                .all(|count| *count == BLOCKS.to_le_bytes()),
            "{counts:?}"
        );
    }
}

#[test]
fn device_runtime_is_linked_once() {
    linked(&Fixture::new(), &[RUNTIME, RUNTIME], MEET, &mut [])
        .expect("its functions are defined once");
}

#[test]
fn machine_code_is_refused() {
    let fixture = Fixture::new();
    let refused = linked(&fixture, &[b"!<arch>\nother.o/ ..."], MEET, &mut [])
        .expect_err("it is machine code");
    assert_eq!(refused, CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU);
}

/// Returns the number of registers of a linked kernel.
fn linked_registers(fixture: &Fixture, ptx: &CStr, options: &mut [(CUjit_option, usize)]) -> i32 {
    let meet = linked(fixture, &[RUNTIME], ptx, options).expect("the library is known");
    get!(
        fixture.api,
        cuFuncGetAttribute(_, CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS, meet)
    )
}

#[test]
fn link_limits_registers() -> TestResult {
    let fixture = Fixture::new();
    // All of these words are live across a label.
    const WORDS: usize = 40;
    let loads: String = (0..WORDS)
        .map(|word| format!("ld.u32 %r{word}, [%rd1+{}];\n", 4 * word))
        .collect();
    let stores: String = (0..WORDS)
        .map(|word| format!("st.u32 [%rd1+{}], %r{};\n", 4 * word, WORDS - 1 - word))
        .collect();
    let ptx = format!(
        ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry meet(.param .u64 out)\n{{\n.reg .b64 %rd<2>;\n\
         .reg .b32 %r<{WORDS}>;\nld.param.u64 %rd1, [out];\n{loads}NEXT:\n{stores}ret;\n}}\n"
    );
    let ptx = CString::new(ptx)?;
    assert!(linked_registers(&fixture, &ptx, &mut []) >= WORDS as i32);
    let mut limit = [(CUjit_option::CU_JIT_MAX_REGISTERS, 24)];
    assert_eq!(linked_registers(&fixture, &ptx, &mut limit), 24);
    Ok(())
}
