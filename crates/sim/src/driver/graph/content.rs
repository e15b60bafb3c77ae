//! The content of graph nodes.

use curium_sys::{
    CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS, CUctx_st, CUdeviceptr, CUfunc_st, CUmemorytype,
    CUresult,
};

use crate::activity::{self, ActivityOperation};
use crate::argument::Pointer;
use crate::context::Context;
use crate::driver::Driver;
use crate::driver::copy::Operands;
use crate::driver::locked::Locked;
use crate::driver::schedule::Work;
use crate::handle::Id;
use crate::memory::Fill;
use crate::object::graph::attribute::Attributes;
use crate::object::graph::content::{Content, Copy3D, Set};
use crate::object::graph::plan::SharedConditions;
use crate::object::launch::Shape;
use crate::object::launch::parameters::Arguments;
use crate::race::NOBODY;
use crate::result::Result;

impl Content {
    /// Returns the node as stream work, for nodes that consist of a single operation.
    pub(crate) fn into_work(self) -> Work {
        match self {
            Self::Host(function) => Work::Host(function),
            content => Work::Device(Box::new(move |driver| content.run(driver, None))),
        }
    }

    /// Performs the device's part of the node.
    pub(crate) fn run(&self, driver: &Driver, conditions: Option<&SharedConditions>) -> Result {
        match self {
            Self::Kernel(kernel) => kernel.launch.run(driver, conditions),
            Self::Copy(copy) => copy.rows.run(driver),
            Self::Set(set) => set.run(driver),
            Self::Library(operation) => operation.run(driver),
            Self::Allocate(allocation) => {
                driver
                    .memory()
                    .record_fresh(allocation.address(), allocation.params.bytesize as u64);
                driver.memory().renew(allocation.address(), NOBODY);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl Operands<'_> {
    pub(crate) fn set_content(&self, set: CUDA_MEMSET_NODE_PARAMS) -> Result<Content> {
        let width = set.elementSize as usize;
        let row = set.width.checked_mul(width);
        let row = row.ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        let is_valid = [1, 2, 4].contains(&width)
            && set.dst.is_multiple_of(width as u64)
            && set.width > 0
            && set.height > 0
            && (set.height == 1 || set.pitch >= row);
        if !is_valid {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let size = (set.height - 1).checked_mul(set.pitch);
        let size = size.and_then(|rows| rows.checked_add(row));
        self.filled(set.dst, size.ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?)?;
        Ok(Content::Set(Set(set)))
    }
}

impl Driver {
    /// Returns the specified context, or else the current one.
    pub(crate) fn context_or_current(&self, context: Pointer<CUctx_st>) -> Result<Id<Context>> {
        if context.is_null() {
            self.current()
        } else {
            Ok(Id::from(context))
        }
    }
}

/// The kind of an operand's memory, which an update of an executable cannot change.
#[derive(Eq, PartialEq)]
pub(crate) enum MemoryKind {
    Host,
    Array,
    Managed,
    Device,
}

impl Copy3D {
    /// Returns the kinds of the source and the target.
    pub(crate) fn memory_kinds(&self, driver: &Driver) -> [MemoryKind; 2] {
        let copy = &self.described;
        [
            driver
                .operands()
                .memory_kind(copy.srcMemoryType, copy.srcDevice),
            driver
                .operands()
                .memory_kind(copy.dstMemoryType, copy.dstDevice),
        ]
    }
}

impl Operands<'_> {
    fn memory_kind(&self, kind: CUmemorytype, address: CUdeviceptr) -> MemoryKind {
        match kind {
            CUmemorytype::CU_MEMORYTYPE_HOST => MemoryKind::Host,
            CUmemorytype::CU_MEMORYTYPE_ARRAY => MemoryKind::Array,
            CUmemorytype::CU_MEMORYTYPE_UNIFIED
                if self.is_unified_host(address, 0).unwrap_or_default() =>
            {
                MemoryKind::Host
            }
            _ if self.memory.is_managed(address) => MemoryKind::Managed,
            _ => MemoryKind::Device,
        }
    }
}

impl Locked<'_> {
    /// Returns a kernel node. The launch is checked and its parameters are copied immediately.
    pub(crate) fn kernel_content(
        &mut self,
        function: Pointer<CUfunc_st>,
        context: Pointer<CUctx_st>,
        shape: Shape,
        arguments: Arguments,
    ) -> Result<Content> {
        let driver = self.driver;
        // As on hardware, a function without a context runs in its own.
        let own_context = self
            .functions
            .get(Id::from(function))
            .and_then(|function| self.modules.get(function.module))
            .map(|module| module.context);
        let context = match own_context {
            Some(own_context) if context.is_null() => own_context,
            _ => driver.context_or_current(context)?,
        };
        let context = self.contexts.owning_context(context);
        let launch = self.prepare(function, context, shape, arguments)?;
        Content::kernel(function, launch, Attributes::default())
    }

    /// Returns a copy; with a single row, the pitch is ignored.
    pub(crate) fn copy_content(&self, described: CUDA_MEMCPY3D) -> Result<Content> {
        let mut copy = described;
        if copy.Height <= 1 && copy.Depth <= 1 {
            let source_row = copy.srcXInBytes.saturating_add(copy.WidthInBytes);
            let target_row = copy.dstXInBytes.saturating_add(copy.WidthInBytes);
            copy.srcPitch = copy.srcPitch.max(source_row);
            copy.dstPitch = copy.dstPitch.max(target_row);
        }
        Ok(Content::Copy(Copy3D {
            described,
            rows: self.resolve_rows(&copy)?,
        }))
    }
}

impl Set {
    fn run(&self, driver: &Driver) -> Result {
        let Self(set) = *self;
        let fill = Fill {
            value: set.value,
            width: set.elementSize as usize,
            count: set.width,
        };
        let bytes = set.height as u64 * set.width as u64 * u64::from(set.elementSize);
        activity::measured(
            || ActivityOperation::Set { bytes },
            || {
                (0..set.height).try_for_each(|row| {
                    let address = set.dst + (row * set.pitch) as u64;
                    driver.report_transfer(driver.memory().fill(address, fill))
                })
            },
        )
    }
}
