//! Memory that is registered with a communicator.

use std::any::Any;
use std::ffi::c_void;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::{fmt, mem};

use curium_driver::extend::{contain, dropping, leak, refuse_wait};
use curium_driver::hazard::Operation as StreamOperation;
use curium_driver::{Argument, Driver, LeakedMemory, emit_event};
use curium_memory::DeviceSlice;
use parking_lot::Mutex;

use super::Communicator;
use super::shared::{Output, Shared, entered};
use super::use_guard::UseGuard;
use crate::error::{ArgumentError, Error, Result, Returned, call};
use crate::group;
use crate::operation::{MemoryRange, Operands};
use crate::sys::{NCCL_WIN_COLL_SYMMETRIC, NCCL_WIN_REQUIRED_ALIGNMENT};

/// The operation that deregisters memory, in errors.
const RELEASE: &str = "RegisteredBuffer::into_inner";

/// Memory that a communicator can register: a buffer, or another type that dereferences to
/// [`DeviceSlice`].
///
/// It is implemented for all of them, and cannot be implemented for other types.
pub trait DeviceMemory:
    DerefMut<Target = DeviceSlice<<Self as DeviceMemory>::Element>> + Send + 'static
{
    /// The type of the elements.
    type Element;
}

impl<T, B: DerefMut<Target = DeviceSlice<T>> + Send + 'static> DeviceMemory for B {
    type Element = T;
}

/// Memory that is registered with a communicator: NCCL may transfer it without a copy.
///
/// It owns the memory, to whose [`DeviceSlice`] it dereferences, and is an operand like any other.
/// [`RegisteredBuffer::into_inner`] or a drop waits until the accesses to the memory have
/// completed, and deregisters it. If a graph captured an operation on the memory, the memory and
/// its registration last until the graph is dropped.
///
/// ```
/// # let driver = curium_sim::Simulator::new(curium_sim::Config::new())?.driver::<curium_driver::Driver>()?;
/// # let nccl = curium_sim_libraries::nccl();
/// # let context = driver.device(0)?.primary_context()?;
/// use curium_memory::DeviceBuffer;
/// use curium_nccl::{Communicator, Reduction, UniqueId};
///
/// let stream = context.stream()?;
/// let mut rank = Communicator::new(&nccl, &context, UniqueId::new(&nccl)?, 0, 1)?;
/// let gradients = DeviceBuffer::<f32, _>::zeroed_in(&stream, 1024, nccl.memory())?;
/// let mut gradients = rank.register(gradients)?;
/// rank.all_reduce_in_place(&stream, &mut gradients, Reduction::Average)?;
/// let gradients = gradients.into_inner()?;
/// assert_eq!(gradients.to_vec()?, [0.0; 1024]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RegisteredBuffer<B: DeviceMemory> {
    /// `None` once it was taken out.
    memory: Option<SlicedMemory<B>>,
    registration: Arc<Registration>,
}

/// Memory, with the slice of it that was registered.
///
/// The memory is never accessed while the slice exists, and its methods are not called again: safe
/// code that implements [`DerefMut`] may return another slice at each call, and free the memory of
/// the previous one.
struct SlicedMemory<B: DeviceMemory> {
    /// Borrows `*owner`.
    slice: NonNull<DeviceSlice<B::Element>>,
    /// From `Box::leak`.
    owner: NonNull<B>,
}

// SAFETY: it owns the `B`, and the slice of it; both may be sent.
unsafe impl<B: DeviceMemory> Send for SlicedMemory<B> where DeviceSlice<B::Element>: Send {}
// SAFETY: a shared reference gives access to the slice only, which may be shared.
unsafe impl<B: DeviceMemory> Sync for SlicedMemory<B> where DeviceSlice<B::Element>: Sync {}

impl<B: DeviceMemory> SlicedMemory<B> {
    fn new(owner: B) -> Self {
        let mut owner = NonNull::from(Box::leak(Box::new(owner)));
        // SAFETY: the allocation is live until `into_owner`, which ends the use of the slice first,
        // and nothing else accesses it until then. `B` contains no reference that ends earlier.
        let exclusive: &'static mut B = unsafe { owner.as_mut() };
        Self {
            slice: NonNull::from(&mut **exclusive),
            owner,
        }
    }

    fn slice(&self) -> &DeviceSlice<B::Element> {
        // SAFETY: the pointer was an exclusive reference into the owner, which is live, and `self`
        // is borrowed.
        unsafe { self.slice.as_ref() }
    }

    fn slice_mut(&mut self) -> &mut DeviceSlice<B::Element> {
        // SAFETY: the pointer was an exclusive reference into the owner, which is live, and `self`
        // is borrowed exclusively.
        unsafe { self.slice.as_mut() }
    }

    fn into_owner(self) -> Box<B> {
        // SAFETY: the pointer is that of `Box::leak`, and is used once: `self` was consumed, and
        // the slice is not used again.
        unsafe { Box::from_raw(self.owner.as_ptr()) }
    }
}

/// The registration of memory, which graphs share.
pub(crate) struct Registration {
    shared: Arc<Shared>,
    kind: Kind,
    handle: Output<c_void>,
    address: u64,
    bytes: usize,
    has_ended: AtomicBool,
    /// The memory of a buffer that was dropped while a graph used it. Dropped after the
    /// registration has ended.
    memory: Mutex<Option<Box<dyn Any + Send>>>,
}

/// A registration in the list of its communicator.
#[derive(Debug)]
pub(super) struct ListedRegistration {
    registration: Weak<Registration>,
    /// The address and the number of bytes. A search compares them without a reference to the
    /// registration, which would look like that of a graph to the thread that releases the memory.
    range: MemoryRange,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Buffer,
    Window,
}

/// The result of an attempt to end a registration.
enum Release {
    Ended,
    /// A graph uses the memory.
    Shared,
}

impl Kind {
    fn operation(self) -> &'static str {
        match self {
            Self::Buffer => "Communicator::register",
            Self::Window => "Communicator::register_window",
        }
    }
}

impl Communicator {
    /// Registers memory of this rank. NCCL uses the registration where the connection of the ranks
    /// and the kind of memory allow it; memory of [`Nccl::memory`](crate::Nccl::memory) suits all
    /// connections.
    ///
    /// Requires NCCL 2.19. CUDA: `ncclCommRegister`, `ncclCommDeregister`.
    ///
    /// # Errors
    ///
    /// Returns the memory with [`Error::Argument`] if it is empty or on another device, with
    /// [`Error::Missing`] if NCCL is older, or with an error of NCCL.
    #[doc(alias = "ncclCommRegister")]
    #[doc(alias = "ncclCommDeregister")]
    pub fn register<B: DeviceMemory>(
        &mut self,
        memory: B,
    ) -> Result<RegisteredBuffer<B>, Returned<B>> {
        self.registered(Kind::Buffer, memory)
    }

    /// Registers memory as a symmetric window, which the operations of all ranks access directly.
    /// Every rank registers a window of the same size.
    ///
    /// Requires NCCL 2.27, and memory of [`Nccl::memory`](crate::Nccl::memory). CUDA:
    /// `ncclCommWindowRegister`, `ncclCommWindowDeregister`.
    ///
    /// # Errors
    ///
    /// As for [`Communicator::register`], and [`Error::Argument`] if the address is not a multiple
    /// of 4096 bytes.
    #[doc(alias = "ncclCommWindowRegister")]
    #[doc(alias = "ncclCommWindowDeregister")]
    pub fn register_window<B: DeviceMemory>(
        &mut self,
        memory: B,
    ) -> Result<RegisteredBuffer<B>, Returned<B>> {
        self.registered(Kind::Window, memory)
    }

    fn registered<B: DeviceMemory>(
        &mut self,
        kind: Kind,
        memory: B,
    ) -> Result<RegisteredBuffer<B>, Returned<B>> {
        let memory = SlicedMemory::new(memory);
        let registered = self.start_registration(kind, memory.slice());
        match self.shared.ended_by_timeout(registered) {
            Ok(registration) => Ok(RegisteredBuffer {
                memory: Some(memory),
                registration,
            }),
            Err(error) => Err(Returned {
                value: *memory.into_owner(),
                error,
            }),
        }
    }

    fn start_registration<T>(
        &mut self,
        kind: Kind,
        memory: &DeviceSlice<T>,
    ) -> Result<Arc<Registration>> {
        let operation = kind.operation();
        group::check_none(operation)?;
        refuse_wait(operation)?;
        self.check_device(operation, memory.owner_stream())?;
        if memory.owner_stream().is_created_by_capture() {
            return Err(ArgumentError::refused(
                operation,
                "the memory was allocated in a capture, and exists only while that graph runs",
            ));
        }
        let address = memory.as_pointer().as_raw();
        let bytes = memory.byte_len();
        if bytes == 0 {
            return Err(ArgumentError::refused(operation, "the memory is empty"));
        }
        if kind == Kind::Window && !address.is_multiple_of(NCCL_WIN_REQUIRED_ALIGNMENT.into()) {
            let problem = format!(
                "the address is not a multiple of {NCCL_WIN_REQUIRED_ALIGNMENT} bytes ({address:#x}); allocate the memory with Nccl::memory"
            );
            return Err(ArgumentError::refused(operation, problem));
        }
        let handle = start(&self.shared, kind, address, bytes)?;
        let registration = Arc::new(Registration {
            shared: Arc::clone(&self.shared),
            kind,
            handle,
            address,
            bytes,
            has_ended: AtomicBool::new(false),
            memory: Mutex::new(None),
        });
        let mut registrations = self.shared.registrations.lock();
        registrations.retain(|entry| entry.registration.strong_count() > 0);
        registrations.push(ListedRegistration {
            registration: Arc::downgrade(&registration),
            range: MemoryRange { address, bytes },
        });
        Ok(registration)
    }
}

/// Registers memory, which is live until the registration has ended.
fn start(shared: &Shared, kind: Kind, address: u64, bytes: usize) -> Result<Output<c_void>> {
    let operation = kind.operation();
    let use_guard = UseGuard::acquire(shared, operation)?;
    let api = shared.api();
    let raw = use_guard.raw();
    let handle = Output::new();
    let memory = std::ptr::without_provenance_mut(address as usize);
    let registered = entered(&shared.context, || match kind {
        // SAFETY: the communicator is in use, the memory is live and of its device, and the output
        // is valid for writes.
        Kind::Buffer => unsafe {
            call!(api, ncclCommRegister(raw, memory, bytes, handle.as_ptr()))
        },
        Kind::Window => {
            let flags = NCCL_WIN_COLL_SYMMETRIC.cast_signed();
            // SAFETY: the communicator is in use, the memory is live and of its device, and the
            // output is valid for writes until the call has completed.
            unsafe {
                call!(
                    api,
                    ncclCommWindowRegister(raw, memory, bytes, handle.as_ptr().cast(), flags)
                )
            }
        }
    });
    match registered.and_then(|()| shared.settle(operation)) {
        Ok(()) => Ok(handle),
        Err(error) => {
            // A non-blocking call may write it later.
            mem::forget(handle);
            Err(error)
        }
    }
}

impl<B: DeviceMemory> RegisteredBuffer<B> {
    /// Waits until the accesses to the memory have completed, deregisters it, and returns it.
    ///
    /// Waits as [`Communicator::synchronize`] does. If the communicator was aborted, NCCL has ended
    /// the registration.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] if a graph uses the memory; the graph then frees it. [`Error::Timeout`],
    /// or an error of NCCL or of the driver; memory that may still be in use is leaked.
    pub fn into_inner(mut self) -> Result<B> {
        refuse_wait(RELEASE)?;
        let Some(mut memory) = self.memory.take() else {
            unreachable!("the memory is taken out once")
        };
        match self.registration.release(memory.slice_mut()) {
            Ok(Release::Ended) => Ok(*memory.into_owner()),
            Ok(Release::Shared) => {
                self.registration.keep(memory.into_owner());
                Err(ArgumentError::refused(
                    RELEASE,
                    "a graph uses the memory; drop the graph first",
                ))
            }
            Err(error) => {
                self.registration
                    .drop_if_unused(memory.into_owner(), &error);
                Err(error)
            }
        }
    }
}

impl<B: DeviceMemory> Deref for RegisteredBuffer<B> {
    type Target = DeviceSlice<B::Element>;

    fn deref(&self) -> &DeviceSlice<B::Element> {
        let Some(memory) = &self.memory else {
            unreachable!("the memory is taken out at the end")
        };
        memory.slice()
    }
}

impl<B: DeviceMemory> DerefMut for RegisteredBuffer<B> {
    fn deref_mut(&mut self) -> &mut DeviceSlice<B::Element> {
        let Some(memory) = &mut self.memory else {
            unreachable!("the memory is taken out at the end")
        };
        memory.slice_mut()
    }
}

impl<B: DeviceMemory> AsRef<DeviceSlice<B::Element>> for RegisteredBuffer<B> {
    fn as_ref(&self) -> &DeviceSlice<B::Element> {
        self
    }
}

impl<B: DeviceMemory> AsMut<DeviceSlice<B::Element>> for RegisteredBuffer<B> {
    fn as_mut(&mut self) -> &mut DeviceSlice<B::Element> {
        self
    }
}

impl<B: DeviceMemory> Drop for RegisteredBuffer<B> {
    fn drop(&mut self) {
        let Some(mut memory) = self.memory.take() else {
            return;
        };
        let released = dropping(|| self.registration.release(memory.slice_mut()));
        let memory = memory.into_owner();
        match released {
            Some(Ok(Release::Shared)) => self.registration.keep(memory),
            Some(Err(error)) => {
                emit_event!(ERROR, %error, "memory could not be deregistered");
                self.registration.drop_if_unused(memory, &error);
            }
            Some(Ok(Release::Ended)) | None => {}
        }
    }
}

impl Registration {
    /// Waits for the accesses to the memory, and ends the registration unless a graph shares it.
    fn release<T>(self: &Arc<Self>, memory: &mut DeviceSlice<T>) -> Result<Release> {
        self.shared.ended_by_timeout(self.wait(memory))?;
        if Arc::strong_count(self) > 1 {
            return Ok(Release::Shared);
        }
        self.end()?;
        Ok(Release::Ended)
    }

    /// Waits for the accesses to the memory. Does nothing if the communicator has ended.
    fn wait<T>(&self, memory: &mut DeviceSlice<T>) -> Result<()> {
        if self.shared.has_ended() {
            return Ok(());
        }
        let stream = memory.owner_stream().clone();
        // Before the use of the communicator: this may wait for the launch of a graph, and the
        // launch for the group of a thread that is about to use the communicator.
        let mut release = stream.enqueue_release(RELEASE)?;
        // SAFETY: no operation is enqueued.
        unsafe { Argument::<&mut [T]>::bind(&mut &mut *memory, &mut release) }?;
        drop(release);
        let Ok(_using) = UseGuard::acquire_for_release(&*self.shared, RELEASE) else {
            return Ok(());
        };
        self.shared.wait(RELEASE, &stream)
    }

    /// Deregisters the memory. Does nothing if that was done, or the communicator has ended.
    fn end(&self) -> Result<()> {
        if self.has_ended.swap(true, Relaxed) {
            return Ok(());
        }
        let Ok(use_guard) = UseGuard::acquire_for_release(&*self.shared, RELEASE) else {
            return Ok(());
        };
        let api = self.shared.api();
        let raw = use_guard.raw();
        let handle = self.handle.get();
        // NCCL returns no handle if registrations are turned off.
        if handle.is_null() {
            return Ok(());
        }
        entered(&self.shared.context, || match self.kind {
            // SAFETY: the communicator is in use, and the handle is deregistered here once.
            Kind::Buffer => unsafe { call!(api, ncclCommDeregister(raw, handle)) },
            // SAFETY: the communicator is in use, and the handle is deregistered here once.
            Kind::Window => unsafe { call!(api, ncclCommWindowDeregister(raw, handle.cast())) },
        })?;
        self.shared.settle(RELEASE)
    }

    /// Keeps the memory until the last graph has ended.
    fn keep(&self, memory: Box<dyn Any + Send>) {
        *self.memory.lock() = Some(memory);
    }

    /// Drops the memory if the communicator has ended, and leaks it otherwise: NCCL may still use
    /// it.
    #[cold]
    fn drop_if_unused<B>(&self, memory: B, error: &Error) {
        self.has_ended.store(true, Relaxed);
        if !self.shared.has_ended() {
            mem::forget(memory);
            self.report_leak(error);
        }
    }

    #[cold]
    fn report_leak(&self, error: &Error) {
        let driver: &Driver = self.shared.context.driver();
        let error = curium_driver::Error::argument("RegisteredBuffer::drop", error.to_string());
        leak(driver, LeakedMemory::new(1, self.bytes as u64), &error);
    }
}

impl ListedRegistration {
    fn overlaps(&self, other: MemoryRange) -> bool {
        self.range.address < other.end() && other.address < self.range.end()
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let ended = dropping(|| self.end());
        let Some(memory) = self.memory.get_mut().take() else {
            return;
        };
        if let Some(Err(error)) = ended {
            mem::forget(memory);
            self.report_leak(&error);
        } else {
            // The memory has a type of the user, and the graph that kept it may be dropped
            // anywhere.
            contain(|| drop(memory));
        }
    }
}

impl Shared {
    /// Makes the graph of a captured operation keep the communicator, and the registrations of its
    /// memory.
    #[inline]
    pub(crate) fn keep(self: &Arc<Self>, operation: &StreamOperation<'_>, operands: &Operands<'_>) {
        if operation.is_captured() {
            self.keep_captured(operation, operands.ranges());
        }
    }

    #[cold]
    fn keep_captured(
        self: &Arc<Self>,
        operation: &StreamOperation<'_>,
        ranges: [Option<MemoryRange>; 2],
    ) {
        operation.keep(self);
        self.set_captured();
        let used: Vec<_> = self
            .registrations
            .lock()
            .iter()
            .filter(|entry| {
                ranges
                    .into_iter()
                    .flatten()
                    .any(|range| entry.overlaps(range))
            })
            .filter_map(|entry| entry.registration.upgrade())
            .collect();
        for registration in &used {
            operation.keep(registration);
        }
    }
}

impl<B: DeviceMemory> fmt::Debug for RegisteredBuffer<B> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "RegisteredBuffer({:?})", self.registration)
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} bytes at {:#x}, {:?}",
            self.bytes, self.address, self.kind
        )
    }
}
