//! Stream memory operations: waiting for and writing single values in stream order.

use curium_ptx::exec::Access;

use crate::driver::Driver;
use crate::driver::schedule::{Wait, Work};
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
