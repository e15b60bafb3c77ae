//! Two processes that talk to each other.

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

/// How long a process may keep the other waiting.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a test in two processes: `first` in this one, and `second` in a new one. The call is the whole body of the test called `name`
/// (its path in the binary).
///
/// # Panics
///
/// If either fails, or the test is not found in the new process.
pub fn in_two_processes(name: &str, first: impl FnOnce(&mut Peer), second: impl FnOnce(&mut Peer)) {
    if OtherProcess::is_this(name) {
        let socket = stdin().as_fd().try_clone_to_owned().expect("the other process has passed a socket");
        return second(&mut Peer::new(socket.into()));
    }
    let (ours, theirs) = UnixStream::pair().expect("there are sockets");
    let other = OtherProcess::start(name, Stdio::from(OwnedFd::from(theirs)));
    let result = catch_unwind(AssertUnwindSafe(|| first(&mut Peer::new(ours))));
    // The end of the socket ends the other process as well, which says why it failed.
    let ended = catch_unwind(AssertUnwindSafe(|| other.expect_success()));
    ended.and(result).unwrap_or_else(|payload| resume_unwind(payload));
}

impl Peer {
    fn new(socket: UnixStream) -> Self {
        socket.set_read_timeout(Some(PATIENCE)).expect("a socket takes a timeout");
        Self { socket }
    }

    /// Sends bytes, as many as the other process is about to receive.
    ///
    /// # Panics
    ///
    /// If the other process has ended.
    pub fn send(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).expect("the other process listens");
    }

    /// Returns the next `N` bytes that the other process sends.
    ///
    /// # Panics
    ///
    /// If the other process has ended, or sends nothing for long.
    #[must_use]
    pub fn receive<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.socket.read_exact(&mut bytes).expect("the other process sends this much");
        bytes
    }

    /// Waits until the other process is here as well.
    ///
    /// # Panics
    ///
    /// If it does not come.
    pub fn meet(&mut self) {
        self.send(b"here");
        assert_eq!(&self.receive(), b"here", "the two processes are at the same point");
    }

    /// Sends a descriptor, which stays open here.
    ///
    /// # Panics
    ///
    /// If the system refuses.
    pub fn send_descriptor(&mut self, descriptor: BorrowedFd<'_>) {
        let mut passed = Passed { descriptor: descriptor.as_raw_fd(), ..Passed::EMPTY };
        let sent = passed.exchange(|message| {
            // SAFETY: the message and what it points to are valid, and the descriptor is open.
            unsafe { sendmsg(self.socket.as_raw_fd(), message, 0) }
        });
        assert_eq!(sent, 1, "a descriptor can be sent");
    }

    /// Returns the descriptor that the other process sends.
    ///
    /// # Panics
    ///
    /// If there comes none.
    #[must_use]
    pub fn receive_descriptor(&mut self) -> OwnedFd {
        let mut passed = Passed::EMPTY;
        let received = passed.exchange(|message| {
            // SAFETY: the message and what it points to are valid, and there is room for one descriptor.
            unsafe { recvmsg(self.socket.as_raw_fd(), message, CLOSE_ON_EXEC) }
        });
        assert!(received == 1 && passed.descriptor >= 0, "the other process sends a descriptor");
        // SAFETY: the system has just opened the descriptor for this process.
        unsafe { OwnedFd::from_raw_fd(passed.descriptor) }
    }
}

/// A message beside the bytes of a socket that carries one descriptor, as Linux has it (`cmsghdr`).
#[repr(C)]
struct Passed {
    length: usize,
    level: c_int,
    kind: c_int,
    descriptor: c_int,
}

/// A place for bytes, as C has it.
#[repr(C)]
struct Bytes {
    start: *mut c_void,
    length: usize,
}

/// A message of a socket, as Linux has it on systems of 64 bits.
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
    const EMPTY: Self = Self { length: 20, level: SOCKET_LEVEL, kind: RIGHTS, descriptor: -1 };

    /// Has `call` send or receive this beside one byte, and returns what it did.
    fn exchange(&mut self, call: impl FnOnce(*mut Message) -> isize) -> isize {
        let mut byte = 0_u8;
        let mut bytes = Bytes { start: (&raw mut byte).cast(), length: 1 };
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
