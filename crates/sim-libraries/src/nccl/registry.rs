//! The live communicators, and the identifiers under which ranks meet.

use std::collections::HashMap;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, LazyLock, Mutex};

use curium_nccl::sys::{ncclComm_t, ncclRedOp_t, ncclResult_t};

use super::clique::{Channel, Clique};
use super::fault::NcclFault;
use super::reduce::Operator;
use super::{Result, failed, lock};

/// One rank of a communicator.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) clique: Arc<Clique>,
    pub(super) rank: usize,
    pub(super) device: i32,
    pub(super) is_blocking: bool,
    /// The numbers of calls so far. A transfer from the rank to itself has two ends here.
    calls: Mutex<HashMap<(Channel, bool), u64>>,
    /// The number of operations that were enqueued and have not run.
    pub(super) pending: AtomicUsize,
    pub(super) is_aborted: AtomicBool,
    pub(super) fault: Mutex<Option<NcclFault>>,
    operators: Mutex<HashMap<u32, Operator>>,
}

/// A way to find the communicator of a handle.
#[derive(Default)]
struct Registry {
    members: HashMap<usize, Arc<Member>>,
    last: usize,
    /// The communicators whose ranks have not all arrived, by identifier.
    cliques: HashMap<u64, Arc<Clique>>,
}

static REGISTRY: LazyLock<Mutex<Registry>> = LazyLock::new(Mutex::default);
static IDENTIFIERS: AtomicU64 = AtomicU64::new(1);

/// Handles are multiples of this, as addresses would be.
const STEP: usize = 64;

impl Member {
    pub(super) fn new(clique: Arc<Clique>, rank: usize, device: i32, is_blocking: bool) -> Arc<Self> {
        Arc::new(Self {
            clique,
            rank,
            device,
            is_blocking,
            calls: Mutex::default(),
            pending: AtomicUsize::new(0),
            is_aborted: AtomicBool::new(false),
            fault: Mutex::new(None),
            operators: Mutex::default(),
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
    pub(super) fn add_operator(&self, factor: [u8; 8]) -> ncclRedOp_t {
        let mut operators = lock(&self.operators);
        let number = (ncclRedOp_t::ncclNumOps.0..).find(|number| !operators.contains_key(number)).unwrap_or(u32::MAX);
        operators.insert(number, Operator::Scaled(factor));
        ncclRedOp_t(number)
    }

    pub(super) fn remove_operator(&self, operator: ncclRedOp_t) -> Result {
        let removed = lock(&self.operators).remove(&operator.0);
        removed.map(drop).ok_or_else(|| failed(ncclResult_t::ncclInvalidArgument, "unknown operator of a reduction"))
    }

    pub(super) fn operator(&self, operator: ncclRedOp_t) -> Result<Operator> {
        if operator.0 < ncclRedOp_t::ncclNumOps.0 {
            return Ok(Operator::Plain(operator));
        }
        let found = lock(&self.operators).get(&operator.0).copied();
        found.ok_or_else(|| failed(ncclResult_t::ncclInvalidArgument, "unknown operator of a reduction"))
    }
}

/// Adds a rank, and returns its handle.
pub(super) fn add(member: Arc<Member>) -> ncclComm_t {
    let mut registry = lock(&REGISTRY);
    registry.last += STEP;
    let handle = registry.last;
    registry.members.insert(handle, member);
    ptr::without_provenance_mut(handle)
}

pub(super) fn look_up(handle: ncclComm_t) -> Result<Arc<Member>> {
    let found = lock(&REGISTRY).members.get(&handle.addr()).cloned();
    found.ok_or_else(|| failed(ncclResult_t::ncclInvalidArgument, "unknown communicator; it may have been destroyed"))
}

pub(super) fn remove(handle: ncclComm_t) -> Result<Arc<Member>> {
    let found = lock(&REGISTRY).members.remove(&handle.addr());
    found.ok_or_else(|| failed(ncclResult_t::ncclInvalidArgument, "unknown communicator; it may have been destroyed"))
}

/// Returns the bytes of a new identifier.
pub(super) fn new_identifier() -> [u8; 128] {
    let mut bytes = [0; 128];
    bytes[..8].copy_from_slice(b"CURIUMSI");
    bytes[8..12].copy_from_slice(&std::process::id().to_le_bytes());
    bytes[16..24].copy_from_slice(&IDENTIFIERS.fetch_add(1, Relaxed).to_le_bytes());
    bytes
}

/// Returns the communicator of an identifier, which the first rank creates.
pub(super) fn clique(identifier: &[u8; 128], size: usize) -> Result<Arc<Clique>> {
    let number = |at: usize| u64::from_le_bytes(identifier[at..at + 8].try_into().unwrap_or_default());
    let process = u32::from_le_bytes(identifier[8..12].try_into().unwrap_or_default());
    if &identifier[..8] != b"CURIUMSI" || process != std::process::id() {
        let message = "the identifier is one of another process; simulated ranks are threads of one process";
        return Err(failed(ncclResult_t::ncclSystemError, message));
    }
    let mut registry = lock(&REGISTRY);
    let clique = registry.cliques.entry(number(16)).or_insert_with(|| Clique::new(size));
    if clique.size != size {
        let message = format!("the numbers of ranks differ ({size} here, {} on another rank)", clique.size);
        return Err(failed(ncclResult_t::ncclInvalidArgument, message));
    }
    Ok(Arc::clone(clique))
}

/// Forgets an identifier, whose ranks have all arrived.
pub(super) fn forget(clique: &Arc<Clique>) {
    lock(&REGISTRY).cliques.retain(|_, known| !Arc::ptr_eq(known, clique));
}

/// Returns the number of live communicators.
pub(super) fn live() -> usize {
    lock(&REGISTRY).members.len()
}
