//! The C functions for interprocess events.

use std::ffi::c_char;
use std::sync::Arc;
use std::time::Duration;

use curium_sys::{CUevent, CUevent_st, CUipcEventHandle, CUresult};

use crate::argument::Pointer;
use crate::call::Call;
use crate::context::Context;
use crate::context::stream::Stream;
use crate::driver::context::stack::ThreadState;
use crate::driver::locked::Locked;
use crate::driver::schedule::{Wait, Work};
use crate::handle::Id;
use crate::memory::SharedRecords;
use crate::object::event::{DISABLE_TIMING, INTERPROCESS};
use crate::object::ipc_event::{RemoteRecord, Shared};
use crate::result::Result;

/// The first bytes of the handles of interprocess events.
const MARK: [u8; 8] = *b"simevent";

/// The polling interval of a wait for another process.
const PAUSE: Duration = Duration::from_micros(100);

#[expect(
    non_snake_case,
    reason = "the methods have the names of the C functions"
)]
impl Call<'_> {
    pub(crate) fn cuIpcGetEventHandle(
        &self,
        handle: Pointer<CUipcEventHandle>,
        event: Pointer<CUevent_st>,
    ) -> Result {
        let output = handle.required()?;
        let event = event.required()?;
        self.require_current()?;
        let state = self.lock();
        let (_, interprocess) = state.contexts.valid_event(event)?;
        if !interprocess.is_interprocess() {
            return Err(CUresult::CUDA_ERROR_INVALID_HANDLE);
        }
        let descriptor = interprocess.shared_descriptor().unwrap_or(-1);
        let parts = [
            origin(self.thread()),
            descriptor.to_le_bytes().to_vec(),
            event.address().to_le_bytes().to_vec(),
        ]
        .concat();
        let mut bytes = [0; 64];
        bytes[..parts.len()].copy_from_slice(&parts);
        output.write(CUipcEventHandle {
            reserved: bytes.map(|byte| c_char::from_ne_bytes([byte])),
        })
    }

    pub(crate) fn cuIpcOpenEventHandle(
        &self,
        event: Pointer<CUevent>,
        handle: CUipcEventHandle,
    ) -> Result {
        let output = event.required()?;
        let (mut state, context) = self.enter_current()?;
        let bytes = handle.reserved.map(|byte| byte.to_ne_bytes()[0]);
        if !bytes.starts_with(&MARK) {
            return Err(CUresult::CUDA_ERROR_MAP_FAILED);
        }
        if bytes.starts_with(&origin(self.thread())) {
            return Err(CUresult::CUDA_ERROR_INVALID_CONTEXT);
        }
        let process = u32::from_le_bytes(std::array::from_fn(|byte| bytes[8 + byte]));
        let descriptor = i32::from_le_bytes(std::array::from_fn(|byte| bytes[20 + byte]));
        let records = SharedRecords::open(process, descriptor)
            .map_err(|_| CUresult::CUDA_ERROR_INVALID_VALUE)?;
        let shared = Some(Shared {
            records: Arc::new(records),
            own_records: 0,
        });
        let context = state.contexts.owning_context(context);
        let flags = INTERPROCESS | DISABLE_TIMING;
        let event = state.contexts.create_event(context, flags, shared);
        output.write(event.as_raw())
    }
}

impl Call<'_> {
    /// Waits until another process has completed its record.
    pub(crate) fn wait_for_remote(
        &self,
        context: Id<Context>,
        record: Option<&RemoteRecord>,
    ) -> Result {
        while record.is_some_and(|record| !record.is_done()) {
            self.lock().contexts.valid_context(context)?;
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }
}

impl Locked<'_> {
    /// Makes later work of a stream wait for a record of another process.
    pub(crate) fn wait_for_remote_in_stream(
        &mut self,
        stream: Id<Stream>,
        record: Option<RemoteRecord>,
    ) {
        if let Some(record) = record {
            self.queue_after(
                stream,
                &[],
                Work::Wait(Wait::new(Box::new(move |_| Ok(record.is_done())))),
            );
        }
    }
}

/// Returns the prefix of the handles of a driver's events: the mark, the process, and the number of
/// the driver. The descriptor of the records and the event follow.
fn origin(thread: ThreadState) -> Vec<u8> {
    [
        &MARK[..],
        &std::process::id().to_le_bytes(),
        &thread.serial.to_le_bytes(),
    ]
    .concat()
}
