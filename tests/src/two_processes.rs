//! Two processes that exchange messages.

use crate::TestResult;
use std::ffi::{c_int, c_void};
use std::io::{Read, Write, stdin};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::Stdio;
use std::time::Duration;

use crate::own_process::OtherProcess;

/// The other process.
pub struct Peer {
    socket: UnixStream,
}

/// The time limit of each wait for the other process.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a test in two processes: `first` in this one, and `second` in a new one. The call is the
/// whole body of the calling test.
///
/// # Errors
///
/// Returns the error of the first process, or an error if the processes cannot be connected.
///
/// # Panics
///
/// Panics if either process fails, or the test is not found in the new process.
pub fn in_two_processes(
    first: impl FnOnce(&mut Peer) -> TestResult,
    second: impl FnOnce(&mut Peer) -> TestResult,
) -> TestResult {
    if OtherProcess::is_this() {
        let socket = stdin().as_fd().try_clone_to_owned()?;
        return second(&mut Peer::new(socket.into()));
    }
    let (ours, theirs) = UnixStream::pair()?;
    let other = OtherProcess::start(Stdio::from(OwnedFd::from(theirs)));
    let result = catch_unwind(AssertUnwindSafe(|| first(&mut Peer::new(ours))));
    // The end of the socket ends the other process too, which reports the failure.
    let ended = catch_unwind(AssertUnwindSafe(|| other.expect_success()));
    ended
        .and(result)
        .unwrap_or_else(|payload| resume_unwind(payload))
}

impl Peer {
    fn new(socket: UnixStream) -> Self {
        socket
            .set_read_timeout(Some(PATIENCE))
            .expect("a socket accepts a timeout");
        Self { socket }
    }

    /// Sends bytes; the other process receives the same number.
    ///
    /// # Panics
    ///
    /// Panics if the other process has ended.
    pub fn send(&mut self, bytes: &[u8]) {
        self.socket
            .write_all(bytes)
            .expect("the other process listens");
    }

    /// Receives the next `N` bytes from the other process.
    ///
    /// # Panics
    ///
    /// Panics if the other process has ended, or sends nothing within the time limit.
    #[must_use]
    pub fn receive<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.socket
            .read_exact(&mut bytes)
            .expect("the other process sends this much");
        bytes
    }

    /// Waits until the other process calls `meet` too.
    ///
    /// # Panics
    ///
    /// Panics if it does not call it within the time limit.
    pub fn meet(&mut self) {
        self.send(b"here");
        assert_eq!(
            &self.receive(),
            b"here",
            "the two processes are at the same point"
        );
    }

    /// Sends a file descriptor, which stays open in this process.
    ///
    /// # Panics
    ///
    /// Panics if the system call fails.
    pub fn send_descriptor(&mut self, descriptor: BorrowedFd<'_>) {
        let mut passed = Passed {
            descriptor: descriptor.as_raw_fd(),
            ..Passed::EMPTY
        };
        let sent = passed.exchange(|message| {
            // SAFETY: the message and what it points to are valid, and the descriptor is open.
            unsafe { sendmsg(self.socket.as_raw_fd(), message, 0) }
        });
        assert_eq!(sent, 1, "a descriptor can be sent");
    }

    /// Receives a file descriptor from the other process.
    ///
    /// # Panics
    ///
    /// Panics if no descriptor is received.
    #[must_use]
    pub fn receive_descriptor(&mut self) -> OwnedFd {
        let mut passed = Passed::EMPTY;
        let received = passed.exchange(|message| {
            // SAFETY: the message and what it points to are valid, and there is room for one
            // descriptor.
            unsafe { recvmsg(self.socket.as_raw_fd(), message, CLOSE_ON_EXEC) }
        });
        assert!(
            received == 1 && passed.descriptor >= 0,
            "the other process sends a descriptor"
        );
        // SAFETY: the system has just opened the descriptor in this process.
        unsafe { OwnedFd::from_raw_fd(passed.descriptor) }
    }
}

/// A control message of a socket that carries one descriptor (`cmsghdr` of Linux).
#[repr(C)]
struct Passed {
    length: usize,
    level: c_int,
    kind: c_int,
    descriptor: c_int,
}

/// A buffer as C describes it (`iovec`).
#[repr(C)]
struct Bytes {
    start: *mut c_void,
    length: usize,
}

/// A message of a socket (`msghdr` of 64-bit Linux).
#[repr(C)]
struct Message {
    name: *mut c_void,
    name_length: usize,
    bytes: *mut Bytes,
    byte_lists: usize,
    control: *mut c_void,
    control_length: usize,
    flags: c_int,
}

/// `MSG_CMSG_CLOEXEC`, `SOL_SOCKET` and `SCM_RIGHTS` of Linux.
const CLOSE_ON_EXEC: c_int = 0x4000_0000;
const SOCKET_LEVEL: c_int = 1;
const RIGHTS: c_int = 1;

impl Passed {
    const EMPTY: Self = Self {
        length: 20,
        level: SOCKET_LEVEL,
        kind: RIGHTS,
        descriptor: -1,
    };

    /// Passes this message together with one byte to `call`, and returns its result.
    fn exchange(&mut self, call: impl FnOnce(*mut Message) -> isize) -> isize {
        let mut byte = 0_u8;
        let mut bytes = Bytes {
            start: (&raw mut byte).cast(),
            length: 1,
        };
        let mut message = Message {
            name: std::ptr::null_mut(),
            name_length: 0,
            bytes: &raw mut bytes,
            byte_lists: 1,
            control: (&raw mut *self).cast(),
            control_length: size_of::<Self>(),
            flags: 0,
        };
        call(&raw mut message)
    }
}

// SAFETY: these are functions of the C library with these signatures.
unsafe extern "C" {
    fn sendmsg(socket: c_int, message: *const Message, flags: c_int) -> isize;
    fn recvmsg(socket: c_int, message: *mut Message, flags: c_int) -> isize;
}
