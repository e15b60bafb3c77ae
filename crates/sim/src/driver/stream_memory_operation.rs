//! The driver's part in stream memory operations.

use curium_ptx::exec::Access;
use curium_sys::{
    CUdevice_attribute, CUresult, CUstreamBatchMemOpParams, CUstreamBatchMemOpType,
    CUstreamWaitValue_flags,
};

use crate::context::Context;
use crate::driver::Driver;
use crate::driver::device::Devices;
use crate::driver::schedule::{Wait, Work};
use crate::handle::Id;
use crate::host_pointer::HostPtr;
use crate::memory::CopyOperand;
use crate::object::stream_memory_operation::{Action, Batch, Operation};
use crate::race;
use crate::result::Result;

impl Batch {
    /// Returns `true` if an operation accesses managed memory.
    pub(crate) fn accesses_managed_memory(&self, driver: &Driver) -> bool {
        self.operations
            .iter()
            .any(|operation| driver.memory().is_managed(operation.address))
    }

    /// Returns the operations as work, each ordered after the previous one.
    pub(crate) fn works(&self) -> impl Iterator<Item = Work> {
        self.operations.iter().map(|operation| operation.work())
    }
}

impl Operation {
    fn work(self) -> Work {
        let Self {
            address,
            value,
            width,
            action,
        } = self;
        match action {
            Action::Wait(condition) => Work::Wait(Wait::for_value(
                Access {
                    address,
                    size: width as u32,
                    write: false,
                },
                Box::new(move |driver| Ok(self.is_met_by(self.read(driver)?, condition))),
            )),
            Action::Write => Work::Device(Box::new(move |driver| {
                race::exchange_here();
                driver.report_transfer(driver.memory().store(address, width, value))
            })),
            Action::Reduce(combine) => Work::Device(Box::new(move |driver| {
                race::exchange_here();
                driver.report_transfer(
                    driver
                        .memory()
                        .combine(address, width, |current| combine(current, value)),
                )
            })),
        }
    }

    /// Returns the value in memory.
    fn read(&self, driver: &Driver) -> Result<u64> {
        let mut bytes = [0; 8];
        let destination = CopyOperand::Host(HostPtr(bytes.as_mut_ptr()));
        driver.report_transfer(driver.memory().copy_unrecorded(
            &destination,
            &CopyOperand::Device(self.address),
            self.width,
        ))?;
        Ok(u64::from_le_bytes(bytes))
    }
}

impl Devices<'_> {
    /// Checks that the device can flush remote writes if a wait requests it.
    pub(crate) fn check_flush(&self, description: &CUstreamBatchMemOpParams) -> Result {
        const FLUSH: u32 = CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_FLUSH.0;
        // SAFETY: every form of an operation begins with the kind.
        let kind = unsafe { description.operation };
        let is_wait = matches!(
            kind,
            CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WAIT_VALUE_32
                | CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WAIT_VALUE_64
        );
        // SAFETY: the kind of the operation is a wait.
        let requests_flush = is_wait && unsafe { description.waitValue }.flags & FLUSH != 0;
        let can_flush = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES;
        if requests_flush && self.attribute_value(can_flush) == 0 {
            return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
        }
        Ok(())
    }
}

impl Driver {
    /// Returns the operations of their descriptions.
    pub(crate) fn batch(
        &self,
        described: &[CUstreamBatchMemOpParams],
        context: Id<Context>,
    ) -> Result<Batch> {
        let mut operations = Vec::new();
        for description in described {
            self.devices().check_flush(description)?;
            operations.extend(Operation::described(description)?);
        }
        for operation in &operations {
            let width = operation.width as u64;
            // As on hardware, the device needs no rights to the memory of a pool.
            let is_allocated = self
                .memory()
                .find(operation.address)
                .is_some_and(|allocation| allocation.end() - operation.address >= width);
            if !operation.address.is_multiple_of(width) || !is_allocated {
                return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
            }
        }
        Ok(Batch {
            context,
            described: described.into(),
            operations: operations.into(),
        })
    }
}
