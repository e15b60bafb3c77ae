//! Device-accessible memory: its stream, and the accesses to it.

use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU64, Ordering};

use curium_driver::extend::refuse_wait;
use curium_driver::hazard::{Accesses, HostAccess, Operation};
use curium_driver::sys::{CUdeviceptr, CUmemAttach_flags};
use curium_driver::{Device, Error, Result, Stream, call};

use crate::{peer_access, wait};

/// The stream of an allocation, and the accesses that a later access may have to wait for.
#[derive(Debug)]
pub(crate) struct Tracked {
    accesses: Accesses,
    reach: Accessibility,
    /// The devices with access to the memory, as a bit set of the first 64. For managed memory,
    /// which all devices can access: the address of the allocation while it is attached to the host
    /// for a view, and 0 otherwise.
    reached: AtomicU64,
}

/// The name of the operation in errors of kernel arguments.
const KERNEL_ARGUMENT: &str = "kernel argument";

/// The devices that can access memory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Accessibility {
    /// The memory's own device, and others, which are granted access on demand.
    Device,
    /// The memory's own device, and others to which its owner has granted access.
    Granted,
    /// Every device: mapped host memory.
    Mapped,
    /// Every device: managed memory.
    Managed,
}

impl Tracked {
    /// Creates the tracking for memory allocated on `stream`, which graphs may lease.
    #[inline]
    pub(crate) fn leasable(stream: &Stream, reach: Accessibility) -> Self {
        Self {
            accesses: Accesses::leasable(stream),
            reach,
            reached: AtomicU64::new(0),
        }
    }

    /// Sets the address range: `bytes` bytes at `address`.
    #[inline]
    pub(crate) fn at(mut self, address: CUdeviceptr, bytes: usize) -> Self {
        self.accesses = self.accesses.at(address, bytes);
        self
    }

    /// Creates the tracking for memory that cannot be allocated in a capture.
    #[inline]
    pub(crate) fn leasable_outside(
        operation: &'static str,
        stream: &Stream,
        reach: Accessibility,
    ) -> Result<Self> {
        if stream.is_created_by_capture() {
            return Err(Error::argument(
                operation,
                "the stream is being captured, and a graph cannot own this kind of memory",
            ));
        }
        Ok(Self::leasable(stream, reach))
    }

    /// Prevents launches of graphs that conflict with a host read or write while the operation
    /// exists.
    #[inline]
    pub(crate) fn view(&self, operation: &'static str, is_write: bool) -> Result<HostAccess> {
        refuse_wait(operation)?;
        self.accesses.view(operation, is_write)
    }

    /// Transfers memory of `bytes` bytes from `cuMemAlloc` to the graphs that lease it.
    #[cold]
    pub(crate) fn leave_sync_allocation(&mut self, address: CUdeviceptr, bytes: u64) {
        let driver = self.stream().driver().clone();
        self.accesses.leave(move |accesses| {
            wait::free_or_leak(&driver, bytes, || {
                accesses.synchronize()?;
                // SAFETY: the memory is live, all work that uses it has completed, and no other
                // reference to it exists.
                unsafe { call!(&driver, cuMemFree_v2(address)) }
            });
            Ok(())
        });
    }

    /// Transfers the owner of the memory, which has `bytes` bytes, to the graphs that lease it.
    #[cold]
    pub(crate) fn leave_memory(&mut self, memory: impl Send + 'static, bytes: u64) {
        let driver = self.stream().driver().clone();
        let mut memory = ManuallyDrop::new(memory);
        self.accesses.leave(move |accesses| {
            wait::free_or_leak(&driver, bytes, || {
                accesses.synchronize()?;
                // SAFETY: after this success, nothing calls the closure again, and a `ManuallyDrop`
                // does not drop its value.
                unsafe { ManuallyDrop::drop(&mut memory) };
                Ok(())
            });
            Ok(())
        });
    }

    #[inline]
    pub(crate) fn stream(&self) -> &Stream {
        self.accesses.stream()
    }

    #[inline]
    pub(crate) fn reach(&self) -> Accessibility {
        self.reach
    }

    /// Makes the operation's stream wait for the accesses that a read must wait for.
    #[inline]
    pub(crate) fn before_read(&self, operation: &mut Operation<'_>) -> Result<()> {
        if !self.accesses.reads_freely_on(operation.stream()) {
            self.end_host_attachment(operation.name())?;
        }
        self.accesses
            .before_read(operation)
            .map_err(|error| error.during(operation.name()))
    }

    /// Makes the operation's stream wait for the accesses that a write must wait for.
    #[inline]
    pub(crate) fn before_write(&self, operation: &mut Operation<'_>) -> Result<()> {
        if !self.accesses.writes_freely_on(operation.stream()) {
            self.end_host_attachment(operation.name())?;
        }
        self.accesses
            .before_write(operation)
            .map_err(|error| error.during(operation.name()))
    }

    /// Records an enqueued read.
    #[inline]
    pub(crate) fn after_read(&self, operation: &mut Operation<'_>) {
        self.accesses.after_read(operation);
    }

    /// Records an enqueued write of a part.
    #[inline]
    pub(crate) fn after_partial_write(&self, operation: &mut Operation<'_>) {
        self.accesses.after_partial_write(operation);
    }

    /// Returns the memory's stream, and its accesses.
    #[inline]
    pub(crate) fn stream_and_accesses(&self) -> (&Stream, &Accesses) {
        (self.stream(), &self.accesses)
    }

    /// Returns the accesses, for a caller that has exclusively borrowed the whole memory.
    #[inline]
    pub(crate) fn exclusive(&mut self) -> &mut Accesses {
        &mut self.accesses
    }

    /// Waits on the host until every write has completed.
    #[inline]
    pub(crate) fn wait_for_writes(&self) -> Result<()> {
        self.accesses.synchronize_writes()
    }

    /// Waits on the host until every access has completed. The host may then write or free the
    /// memory.
    #[inline]
    pub(crate) fn wait_for_uses(&mut self) -> Result<()> {
        self.accesses.synchronize()
    }

    /// Makes the operation's stream wait for the accesses that conflict with a kernel that reads
    /// the memory. Grants the stream's device access if the memory at `address` is on another
    /// device.
    #[inline]
    pub(crate) fn before_kernel_read(
        &self,
        operation: &mut Operation<'_>,
        address: CUdeviceptr,
    ) -> Result<()> {
        // Only the stream of the last write of the whole reads without a wait. Its device already
        // has access: the memory is on it, or the writing kernel was granted access.
        if self.accesses.reads_freely_on(operation.stream()) {
            Ok(())
        } else {
            self.admit(operation, address, false)
        }
    }

    /// Makes the operation's stream wait for the accesses that conflict with a kernel that writes
    /// the memory, and grants access like [`Tracked::before_kernel_read`].
    #[inline]
    pub(crate) fn before_kernel_write(
        &self,
        operation: &mut Operation<'_>,
        address: CUdeviceptr,
    ) -> Result<()> {
        // As for reads.
        if self.accesses.writes_freely_on(operation.stream()) {
            Ok(())
        } else {
            self.admit(operation, address, true)
        }
    }

    /// Makes the operation's stream wait, and grants its device access.
    #[cold]
    #[inline(never)]
    fn admit(
        &self,
        operation: &mut Operation<'_>,
        address: CUdeviceptr,
        is_write: bool,
    ) -> Result<()> {
        // The owner stream made the last write of the whole buffer, so its device has access.
        if !self.is_attached_to_host() && self.accesses.begin_on_owner_stream(operation, is_write) {
            Ok(())
        } else {
            self.admit_other(operation, address, is_write)
        }
    }

    #[cold]
    #[inline(never)]
    fn admit_other(
        &self,
        operation: &mut Operation<'_>,
        address: CUdeviceptr,
        is_write: bool,
    ) -> Result<()> {
        self.end_host_attachment(KERNEL_ARGUMENT)?;
        if is_write {
            self.before_write(operation)
        } else {
            self.before_read(operation)
        }
        .map_err(|error| error.during(KERNEL_ARGUMENT))?;
        let stream = operation.stream();
        if self.reach.is_everywhere() || stream.device().as_raw() == self.stream().device().as_raw()
        {
            return Ok(());
        }
        self.let_in_peer(KERNEL_ARGUMENT, stream, address)
    }

    /// Records that managed memory, whose address is `address`, is attached to the host. The next
    /// access of a device ends the attachment.
    pub(crate) fn begin_host_attachment(&self, address: CUdeviceptr) {
        self.reached.store(address, Ordering::Release);
        self.accesses.order_next();
    }

    /// Attaches managed memory to all streams if it is attached to the host for a view. The view
    /// ends, was forgotten, or failed to end the attachment.
    #[inline]
    pub(crate) fn end_host_attachment(&self, operation: &'static str) -> Result<()> {
        if self.is_attached_to_host() {
            self.attach_to_streams(operation)
        } else {
            Ok(())
        }
    }

    #[inline]
    fn is_attached_to_host(&self) -> bool {
        self.reach == Accessibility::Managed && self.reached.load(Ordering::Acquire) != 0
    }

    #[cold]
    fn attach_to_streams(&self, operation: &'static str) -> Result<()> {
        let stream = self.stream();
        let address = self.reached.load(Ordering::Acquire);
        let everywhere = CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL.0;
        let release = stream.enqueue_release(operation)?;
        // SAFETY: the address is that of a whole live allocation of managed memory; the stream is
        // live and belongs to this driver.
        unsafe {
            call!(
                stream.driver(),
                cuStreamAttachMemAsync(release.raw_stream(), address, 0, everywhere)
            )
        }
        .map_err(|error| error.during(operation))?;
        drop(release);
        // Another thread may enqueue an access on any stream as soon as it finds the memory
        // attached. The wait is short: no device has used the memory since the view.
        stream.drain()?;
        self.reached.store(0, Ordering::Release);
        self.accesses.end_view_to_write();
        Ok(())
    }

    #[cold]
    fn let_in_peer(
        &self,
        operation: &'static str,
        stream: &Stream,
        address: CUdeviceptr,
    ) -> Result<()> {
        if self.reached.load(Ordering::Acquire) & bit(stream.device()) != 0 {
            return Ok(());
        }
        if self.reach == Accessibility::Granted {
            let device = stream.device().as_raw();
            let owner = self.stream().device().as_raw();
            let reason = format!(
                "device {device} has no access to memory at {address:#x}, which is on device {owner}"
            );
            return Err(Error::argument(operation, reason));
        }
        peer_access::enable_access(operation, stream, self.stream(), address)?;
        self.grant_access(stream.device());
        Ok(())
    }

    /// Records that a device has access.
    #[inline]
    pub(crate) fn grant_access(&self, device: &Device) {
        self.reached.fetch_or(bit(device), Ordering::Release);
    }
}

impl Accessibility {
    /// Returns `true` if every device can access the memory.
    #[inline]
    pub(crate) fn is_everywhere(self) -> bool {
        matches!(self, Self::Mapped | Self::Managed)
    }
}

/// Returns the bit of a device; 0 for a device past the first 64.
#[inline]
fn bit(device: &Device) -> u64 {
    u32::try_from(device.as_raw())
        .ok()
        .and_then(|ordinal| 1_u64.checked_shl(ordinal))
        .unwrap_or_default()
}
