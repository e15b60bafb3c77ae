//! The live communicators, and the identifiers under which ranks meet.

use std::collections::{HashMap, HashSet};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, LazyLock, Mutex};

use curium_nccl::sys::{ncclComm_t, ncclDataType_t, ncclRedOp_t, ncclResult_t};

use super::clique::{Channel, Clique, Device};
use super::fault::NcclFault;
use super::link::Link;
use super::message::Failure;
use super::reduce::{Factor, Operator};
use super::server::ADDRESS;
use super::{Result, failed, lock};

/// One rank of a communicator.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) link: Link,
    pub(super) rank: usize,
    pub(super) device: Device,
    pub(super) is_blocking: bool,
    /// The numbers of calls so far. A transfer from the rank to itself has two ends here.
    calls: Mutex<HashMap<(Channel, bool), u64>>,
    /// The number of operations that were enqueued and have not run.
    pub(super) pending: AtomicUsize,
    pub(super) is_aborted: AtomicBool,
    pub(super) fault: Mutex<Option<NcclFault>>,
    /// The operators that were created, with the type of their factors.
    operators: Mutex<HashMap<u32, (Factor, ncclDataType_t)>>,
    /// The registered memory by handle: its address, its number of bytes, and `true` for a window.
    registrations: Mutex<HashMap<usize, (usize, usize, bool)>>,
    /// `true` once no operation may follow.
    pub(super) is_finalized: AtomicBool,
}

/// The identifier of a communicator: the process that created it, its address, and a number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identifier([u8; 128]);

/// A way to find the communicator of a handle.
#[derive(Default)]
struct Registry {
    members: HashMap<usize, Arc<Member>>,
    last: usize,
    /// The communicators whose ranks have not all arrived, by the number of the identifier.
    cliques: HashMap<u64, Arc<Clique>>,
    /// The numbers of identifiers that were used.
    completed: HashSet<u64>,
}

static REGISTRY: LazyLock<Mutex<Registry>> = LazyLock::new(Mutex::default);
static IDENTIFIERS: AtomicU64 = AtomicU64::new(1);
static HANDLES: AtomicUsize = AtomicUsize::new(STEP);

/// The first bytes of identifiers.
const MAGIC: &[u8; 8] = b"CURIUMSI";

/// Handles are multiples of this, as addresses would be.
const STEP: usize = 64;

impl Member {
    pub(super) fn new(link: Link, rank: usize, device: Device, is_blocking: bool) -> Arc<Self> {
        Arc::new(Self {
            link,
            rank,
            device,
            is_blocking,
            calls: Mutex::default(),
            pending: AtomicUsize::new(0),
            is_aborted: AtomicBool::new(false),
            fault: Mutex::new(None),
            operators: Mutex::default(),
            registrations: Mutex::default(),
            is_finalized: AtomicBool::new(false),
        })
    }

    /// Adds registered memory, and returns its handle.
    pub(super) fn register(&self, address: usize, bytes: usize, is_window: bool) -> usize {
        let handle = HANDLES.fetch_add(STEP, Relaxed);
        lock(&self.registrations).insert(handle, (address, bytes, is_window));
        handle
    }

    pub(super) fn deregister(&self, handle: usize, is_window: bool) -> Result {
        let mut registrations = lock(&self.registrations);
        let is_it = registrations
            .get(&handle)
            .is_some_and(|(.., window)| *window == is_window);
        let removed = if is_it {
            registrations.remove(&handle)
        } else {
            None
        };
        removed.map(drop).ok_or_else(|| {
            failed(
                ncclResult_t::ncclInvalidArgument,
                "unknown handle of registered memory",
            )
        })
    }

    /// Returns the number of the next call; `receives` at the receiving end of a transfer.
    pub(super) fn number(&self, channel: Channel, receives: bool) -> u64 {
        let mut calls = lock(&self.calls);
        let next = calls.entry((channel, receives)).or_default();
        *next += 1;
        *next
    }

    /// Adds an operator of this rank.
    pub(super) fn add_operator(&self, factor: Factor, element: ncclDataType_t) -> ncclRedOp_t {
        let mut operators = lock(&self.operators);
        let number = (ncclRedOp_t::ncclNumOps.0..)
            .find(|number| !operators.contains_key(number))
            .unwrap_or(u32::MAX);
        operators.insert(number, (factor, element));
        ncclRedOp_t(number)
    }

    pub(super) fn remove_operator(&self, operator: ncclRedOp_t) -> Result {
        let removed = lock(&self.operators).remove(&operator.0);
        removed.map(drop).ok_or_else(|| {
            failed(
                ncclResult_t::ncclInvalidArgument,
                "unknown operator of a reduction",
            )
        })
    }

    /// Returns the operator of a reduction of elements of this type.
    pub(super) fn operator(
        &self,
        operator: ncclRedOp_t,
        element: ncclDataType_t,
    ) -> Result<Operator> {
        if operator.0 < ncclRedOp_t::ncclNumOps.0 {
            return Ok(Operator::Plain(operator));
        }
        let refused = |message: String| failed(ncclResult_t::ncclInvalidArgument, message);
        let created = lock(&self.operators).get(&operator.0).copied();
        match created.ok_or_else(|| refused("unknown operator of a reduction".to_owned()))? {
            (factor, of) if of == element => Ok(Operator::Scaled(factor)),
            (_, of) => Err(refused(format!(
                "the operator was created for elements of {of:?}, not of {element:?}"
            ))),
        }
    }
}

/// Returns a new handle, whose rank is added later.
pub(super) fn new_handle() -> ncclComm_t {
    let mut registry = lock(&REGISTRY);
    registry.last += STEP;
    ptr::without_provenance_mut(registry.last)
}

/// Adds the rank of a new handle.
pub(super) fn add(handle: ncclComm_t, member: Arc<Member>) {
    lock(&REGISTRY).members.insert(handle.addr(), member);
}

pub(super) fn look_up(handle: ncclComm_t) -> Result<Arc<Member>> {
    let found = lock(&REGISTRY).members.get(&handle.addr()).cloned();
    found.ok_or_else(|| {
        failed(
            ncclResult_t::ncclInvalidArgument,
            "unknown communicator; it may have been destroyed",
        )
    })
}

pub(super) fn remove(handle: ncclComm_t) -> Result<Arc<Member>> {
    let found = lock(&REGISTRY).members.remove(&handle.addr());
    found.ok_or_else(|| {
        failed(
            ncclResult_t::ncclInvalidArgument,
            "unknown communicator; it may have been destroyed",
        )
    })
}

impl Identifier {
    /// Creates an identifier of this process.
    pub(super) fn new() -> Self {
        let (port, secret) = *ADDRESS;
        let mut bytes = [0; 128];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&std::process::id().to_le_bytes());
        bytes[12..14].copy_from_slice(&port.to_le_bytes());
        bytes[16..24].copy_from_slice(&IDENTIFIERS.fetch_add(1, Relaxed).to_le_bytes());
        bytes[24..40].copy_from_slice(&secret);
        Self(bytes)
    }

    /// Converts bytes that another rank sent.
    pub(super) fn from_bytes(bytes: [u8; 128]) -> Result<Self> {
        if &bytes[..8] == MAGIC {
            return Ok(Self(bytes));
        }
        Err(failed(
            ncclResult_t::ncclInvalidArgument,
            "the identifier is not one of simulated ranks",
        ))
    }

    pub(super) fn bytes(&self) -> [u8; 128] {
        self.0
    }

    /// Returns `true` if this process has created the identifier.
    pub(super) fn is_own(&self) -> bool {
        self.process() == std::process::id() && self.secret() == ADDRESS.1
    }

    pub(super) fn process(&self) -> u32 {
        u32::from_le_bytes(self.0[8..12].try_into().unwrap_or_default())
    }

    pub(super) fn port(&self) -> u16 {
        u16::from_le_bytes([self.0[12], self.0[13]])
    }

    pub(super) fn number(&self) -> u64 {
        u64::from_le_bytes(self.0[16..24].try_into().unwrap_or_default())
    }

    pub(super) fn secret(&self) -> [u8; 16] {
        self.0[24..40].try_into().unwrap_or_default()
    }
}

/// Returns the communicator of an identifier of this process, which the first rank creates.
pub(super) fn clique(number: u64, size: usize) -> Result<Arc<Clique>, Failure> {
    let mut registry = lock(&REGISTRY);
    if number == 0 || number >= IDENTIFIERS.load(Relaxed) || registry.completed.contains(&number) {
        let text = "the identifier was used before, or never created";
        return Err((ncclResult_t::ncclInvalidArgument, text.to_owned()));
    }
    let clique = registry
        .cliques
        .entry(number)
        .or_insert_with(|| Clique::new(size));
    if clique.size != size {
        let text = format!(
            "the numbers of ranks differ ({size} here, {} on another rank)",
            clique.size
        );
        return Err((ncclResult_t::ncclInvalidArgument, text));
    }
    Ok(Arc::clone(clique))
}

/// Forgets the identifier of a communicator whose ranks have all arrived: it serves once.
pub(super) fn forget_complete(clique: &Arc<Clique>) {
    if !clique.is_complete() {
        return;
    }
    let mut registry = lock(&REGISTRY);
    let number = registry
        .cliques
        .iter()
        .find(|(_, known)| Arc::ptr_eq(known, clique))
        .map(|(number, _)| *number);
    if let Some(number) = number {
        registry.cliques.remove(&number);
        registry.completed.insert(number);
    }
}

/// Returns the number of registrations of live communicators.
pub(super) fn registered() -> usize {
    let members: Vec<_> = lock(&REGISTRY).members.values().cloned().collect();
    members
        .iter()
        .map(|member| lock(&member.registrations).len())
        .sum()
}

/// Returns the number of live communicators.
pub(super) fn live() -> usize {
    lock(&REGISTRY).members.len()
}
