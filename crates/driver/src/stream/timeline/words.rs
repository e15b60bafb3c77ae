//! The words of a context's timelines.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use curium_sys::{CU_MEMHOSTREGISTER_DEVICEMAP, CU_MEMHOSTREGISTER_PORTABLE, CUresult, Function};

use crate::base::capture_mode::with_relaxed_capture_mode;
use crate::base::exclusive::Exclusive;
use crate::base::fork;
use crate::base::release::release;
use crate::{Context, DeviceAttribute, Result, call};

/// The words of a context, in registered host memory.
pub(super) struct Words {
    /// Does not keep the context alive: the words end with it.
    context: Context,
    is_supported: OnceLock<bool>,
    state: Exclusive<State>,
}

#[derive(Default)]
struct State {
    pages: Vec<Page>,
    /// A registered page whose address on the device is not known yet. Unregistering it would wait
    /// for the device.
    unmapped: Option<Page>,
    free: Vec<Word>,
    /// Words whose last write had not completed when they were released, with its number.
    retired: Vec<(Word, u64)>,
}

/// One allocation that is registered with the driver.
struct Page {
    memory: NonNull<u8>,
}

/// A word of a timeline. It is valid for as long as its [`Words`].
#[derive(Clone, Copy)]
pub(super) struct Word {
    host: NonNull<AtomicU64>,
    device: u64,
}

/// The size and the alignment of an allocation: the largest page of the supported hosts, since
/// whole pages are pinned.
const PAGE: usize = 64 << 10;
/// The distance of two words: a cache line, so that streams do not disturb each other's readers.
const STRIDE: usize = 64;

const LAYOUT: Layout = match Layout::from_size_align(PAGE, PAGE) {
    Ok(layout) => layout,
    Err(_) => panic!("the size is a multiple of the alignment, a power of two"),
};

// SAFETY: the pointer refers to an atomic, which any thread may access.
unsafe impl Send for Word {}
// SAFETY: the pointer refers to an atomic, which any thread may access.
unsafe impl Sync for Word {}
// SAFETY: a page owns its memory, which no other value frees.
unsafe impl Send for Page {}

impl Words {
    /// Returns the words of `context`, which live as long as the context.
    pub(super) fn attached_to(context: &Context) -> Arc<Self> {
        // SAFETY: the words hold nothing but their own memory, and `Timeline`, the only owner of a
        // result, keeps the context alive until it has dropped it.
        unsafe {
            context.attached(|context| Self {
                context,
                is_supported: OnceLock::new(),
                state: Exclusive::default(),
            })
        }
    }

    /// Takes a word for a timeline, whose first number is greater than the word's value; `None` if
    /// the device or the driver does not support writes in stream order.
    pub(super) fn acquire(&self) -> Result<Option<Word>> {
        if !self.is_supported()? {
            return Ok(None);
        }
        let mut state = self.state.acquire("Stream::completion")?;
        if state.free.is_empty() {
            state.reclaim();
        }
        if state.free.is_empty() {
            match self.add_page(&mut state) {
                Ok(()) => {}
                Err(error) if error.code() == Some(CUresult::CUDA_ERROR_NOT_SUPPORTED) => {
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(state.free.pop())
    }

    /// Returns a word after the end of its timeline, whose last number is `last`.
    pub(super) fn release(&self, word: Word, last: u64) {
        // In a forked child, the lock may belong to a thread of the parent.
        if fork::is_child() {
            return;
        }
        // A call observer that drops a timeline while this thread registers a page loses the word
        // until the context ends.
        if let Ok(mut state) = self.state.acquire("Stream::completion") {
            state.retired.push((word, last));
        }
    }

    fn is_supported(&self) -> Result<bool> {
        if let Some(is_supported) = self.is_supported.get() {
            return Ok(*is_supported);
        }
        let is_supported = self.context.driver().has(Function::cuStreamWriteValue64_v2)
            && self
                .context
                .device()
                .attribute(DeviceAttribute::CAN_USE_64_BIT_STREAM_MEM_OPS)?;
        Ok(*self.is_supported.get_or_init(|| is_supported))
    }

    /// Allocates, registers and maps a page.
    fn add_page(&self, state: &mut State) -> Result<()> {
        let page = match state.unmapped.take() {
            Some(page) => page,
            None => self.register(state)?,
        };
        let mut device = 0;
        let host = page.memory.as_ptr().cast();
        let mapped = self.context.entered(|driver| {
            // SAFETY: `device` is valid for writes, and the memory is registered and mapped. The
            // context is current.
            unsafe {
                call!(
                    driver,
                    cuMemHostGetDevicePointer_v2(&raw mut device, host, 0)
                )
            }
        });
        match mapped {
            Ok(()) => {
                state.insert(page, device);
                Ok(())
            }
            Err(error) => {
                state.unmapped = Some(page);
                Err(error)
            }
        }
    }

    /// Allocates and registers a page.
    fn register(&self, state: &mut State) -> Result<Page> {
        // SAFETY: the layout is not empty.
        let memory = unsafe { alloc_zeroed(LAYOUT) };
        let Some(memory) = NonNull::new(memory) else {
            handle_alloc_error(LAYOUT)
        };
        // The driver writes to the memory by its address.
        memory.as_ptr().expose_provenance();
        let page = Page { memory };
        let host = memory.as_ptr().cast();
        let flags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
        let mut is_registered = false;
        // Captures on other threads neither prevent this nor are invalidated by it.
        let registered = with_relaxed_capture_mode(self.context.driver(), || {
            self.context.entered(|driver| {
                // SAFETY: the memory is allocated, and is freed only after it is unregistered. The
                // context is current.
                unsafe { call!(driver, cuMemHostRegister_v2(host, PAGE, flags)) }?;
                is_registered = true;
                Ok(())
            })
        });
        match registered {
            Ok(()) => Ok(page),
            // The capture mode of the thread could not be restored.
            Err(error) if is_registered => {
                state.unmapped = Some(page);
                Err(error)
            }
            Err(error) => {
                page.free();
                Err(error)
            }
        }
    }
}

impl State {
    /// Makes the words of a new page available.
    fn insert(&mut self, page: Page, device: u64) {
        for offset in (0..PAGE).step_by(STRIDE) {
            // SAFETY: the offset is in the page, and a multiple of the alignment of the word.
            let host = unsafe { page.memory.byte_add(offset) }.cast();
            self.free.push(Word {
                host,
                device: device + offset as u64,
            });
        }
        self.pages.push(page);
    }

    /// Makes the words available whose last write has completed.
    fn reclaim(&mut self) {
        let free = &mut self.free;
        self.retired.retain(|&(word, last)| {
            let is_pending = word.value() < last;
            if !is_pending {
                free.push(word);
            }
            is_pending
        });
    }
}

impl Word {
    #[inline]
    pub(super) fn value(self) -> u64 {
        // SAFETY: the words live as long as their context, which each timeline keeps alive. The
        // memory was zeroed, and all other accesses are writes of the device, each of one aligned
        // word.
        unsafe { self.host.as_ref() }.load(Ordering::Acquire)
    }

    #[inline]
    pub(super) fn device_address(self) -> u64 {
        self.device
    }
}

impl Page {
    /// Frees the memory, which is not registered.
    fn free(self) {
        // SAFETY: the memory was allocated with this layout, and is neither registered nor used.
        unsafe { dealloc(self.memory.as_ptr(), LAYOUT) };
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        // The memory belongs to the parent, and the driver may have excluded it from the child.
        if fork::is_child() {
            return;
        }
        let context = &self.context;
        let state = self.state.get_mut();
        state.reclaim();
        // A device that may still write, as after a failure of the context, keeps the memory.
        if !state.retired.is_empty() {
            return;
        }
        state.pages.extend(state.unmapped.take());
        for page in std::mem::take(&mut state.pages) {
            release(|| {
                let host = page.memory.as_ptr().cast();
                context.entered(|driver| {
                    // SAFETY: the memory is registered, every write to it has completed, and no
                    // timeline has a word.
                    unsafe { call!(driver, cuMemHostUnregister(host)) }
                })?;
                page.free();
                Ok(())
            });
        }
    }
}
