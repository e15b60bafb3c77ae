//! The C functions for links.

use std::borrow::Cow;
use std::ffi::{c_char, c_void};

use curium_sys::{CUjit_option, CUjitInputType, CUlinkState, CUlinkState_st, CUresult};

use crate::argument::{Argument as _, ConstPointer, Pointer};
use crate::call::Call;
use crate::call::module::read_image;
use crate::handle::Id;
use crate::image::jit::JitOptions;
use crate::image::{Refusal, check_version, linked};
use crate::link::runtime::{self, PTX};
use crate::link::symbols::Symbols;
use crate::link::{EMPTY_MODULE, Link, Logs, is_elf, merge};
use crate::result::Result;

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuLinkCreate_v2(
        &self,
        count: u32,
        options: Pointer<CUjit_option>,
        values: Pointer<*mut c_void>,
        link: Pointer<CUlinkState>,
    ) -> Result {
        let output = link.required()?;
        let logs = Logs(JitOptions::new(options, values, count)?);
        let max_registers = logs.0.max_registers();
        let (mut state, _) = self.enter_current()?;
        output.write(
            state
                .links
                .insert(Link {
                    logs,
                    texts: Vec::new(),
                    symbols: Symbols::default(),
                    max_registers,
                    image: None,
                })
                .as_raw(),
        )
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the parameters are those of the C function"
    )]
    pub(crate) fn cuLinkAddData_v2(
        &self,
        link: Pointer<CUlinkState_st>,
        kind: CUjitInputType,
        data: Pointer<c_void>,
        size: usize,
        name: ConstPointer<c_char>,
        count: u32,
        options: Pointer<CUjit_option>,
        values: Pointer<*mut c_void>,
    ) -> Result {
        JitOptions::new(options, values, count)?;
        if data.is_null() || size == 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let mut state = self.lock();
        let link = state.link(link)?;
        let logs = link.logs.clone();
        let text = match kind {
            CUjitInputType::CU_JIT_INPUT_LIBRARY
                // SAFETY: by the contract of the C function, the data is a library of this size.
                if unsafe { runtime::is_in(data.as_ptr().cast(), size) } =>
            {
                if link.texts.iter().any(|text| text == PTX) {
                    return Ok(());
                }
                Ok(Cow::Borrowed(PTX))
            }
            // SAFETY: by the contract of the C function, the data is a binary, which is longer than
            // its mark.
            CUjitInputType::CU_JIT_INPUT_CUBIN if !unsafe { is_elf(data) } => {
                let log = "the input is no cubin";
                Err(Refusal::new(CUresult::CUDA_ERROR_INVALID_IMAGE, log))
            }
            CUjitInputType::CU_JIT_INPUT_PTX
            | CUjitInputType::CU_JIT_INPUT_CUBIN
            | CUjitInputType::CU_JIT_INPUT_FATBINARY => {
                // SAFETY: by the contract of the C function, the data is PTX, which is
                // NUL-terminated text, or a binary.
                let text = unsafe { self.image_text(data.as_ptr().cast_const().cast()) };
                text.and_then(|text| {
                    if kind == CUjitInputType::CU_JIT_INPUT_FATBINARY {
                        check_version(&text)?;
                    }
                    Ok(text)
                })
            }
            CUjitInputType(kind) if kind < CUjitInputType::CU_JIT_NUM_INPUT_TYPES.0 => {
                let log = "the simulator links PTX, fat binaries with PTX, and images that it linked itself";
                Err(Refusal::new(CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU, log))
            }
            _ => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        };
        let name = name
            .text()
            .ok()
            .and_then(|name| name.to_str().ok())
            .filter(|name| !name.is_empty());
        let name = name.map_or_else(|| format!("input {}", link.texts.len() + 1), str::to_owned);
        let checked = text.and_then(|text| {
            let module = self.parse_ptx(&text)?;
            link.add(text.into_owned(), &module, &name)
        });
        logs.report(checked)
    }

    pub(crate) fn cuLinkAddFile_v2(
        &self,
        link: Pointer<CUlinkState_st>,
        kind: CUjitInputType,
        path: ConstPointer<c_char>,
        count: u32,
        options: Pointer<CUjit_option>,
        values: Pointer<*mut c_void>,
    ) -> Result {
        JitOptions::new(options, values, count)?;
        self.lock().link(link)?;
        let mut image = read_image(path)?;
        let size = image.len();
        // SAFETY: the image is NUL-terminated and lives until the end of the call.
        let data = unsafe { image.as_mut_ptr().cast::<c_void>().receive() };
        self.cuLinkAddData_v2(link, kind, data, size, path, count, options, values)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the parameters are those of the C function"
    )]
    pub(crate) fn cuLinkAddData(
        &self,
        link: Pointer<CUlinkState_st>,
        kind: CUjitInputType,
        data: Pointer<c_void>,
        size: usize,
        name: ConstPointer<c_char>,
        count: u32,
        options: Pointer<CUjit_option>,
        values: Pointer<*mut c_void>,
    ) -> Result {
        self.cuLinkAddData_v2(link, kind, data, size, name, count, options, values)
    }

    pub(crate) fn cuLinkAddFile(
        &self,
        link: Pointer<CUlinkState_st>,
        kind: CUjitInputType,
        path: ConstPointer<c_char>,
        count: u32,
        options: Pointer<CUjit_option>,
        values: Pointer<*mut c_void>,
    ) -> Result {
        self.cuLinkAddFile_v2(link, kind, path, count, options, values)
    }

    pub(crate) fn cuLinkComplete(
        &self,
        link: Pointer<CUlinkState_st>,
        image: Pointer<*mut c_void>,
        size: Pointer<usize>,
    ) -> Result {
        let output = image.required()?;
        let mut state = self.lock();
        // As on hardware, a link is completed once.
        let link = state
            .links
            .get_mut(Id::from(link))
            .filter(|link| link.image.is_none())
            .ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)?;
        let logs = link.logs.clone();
        // As on hardware, a link without an input is an empty image.
        let mut merged = if link.texts.is_empty() {
            EMPTY_MODULE.to_owned()
        } else {
            merge::merge(&link.texts, &link.symbols)
        };
        if let Some(most) = link.max_registers {
            merged = merge::limit_registers(&merged, most);
        }
        let compiled = self.compile(&merged, None).map_err(|refusal| {
            let undefined = link.symbols.undefined();
            undefined.map_or(refusal, |log| {
                let code = CUresult::CUDA_ERROR_INVALID_SOURCE;
                Refusal::new(code, &format!("error   : {log}"))
            })
        });
        let linked = logs.report(compiled.map(|_| linked::image(&merged)))?;
        let image = link.image.insert(linked);
        size.write_if_not_null(image.len());
        output.write(image.as_mut_ptr().cast())
    }

    pub(crate) fn cuLinkDestroy(&self, link: Pointer<CUlinkState_st>) -> Result {
        let mut state = self.lock();
        let id = Id::from(link);
        state
            .links
            .remove(id)
            .map(drop)
            .ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)
    }
}
