//! The live communicators, and the identifiers under which ranks meet.

use std::collections::{HashMap, HashSet};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Duration;

use curium_sys::nccl::{ncclComm_t, ncclDataType_t, ncclRedOp_t, ncclResult_t};
use parking_lot::Mutex;

use super::clique::{Channel, Clique, Device, Key};
use super::fault::NcclFault;
use super::link::Link;
use super::message::{Failure, Parts};
use super::reduce::{Factor, Operator};
use super::server::ADDRESS;
use super::{Result, failed};

/// One rank of a communicator.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) link: Link,
    pub(super) rank: usize,
    pub(super) device: Device,
    pub(super) is_blocking: bool,
    /// The numbers of calls so far.
    calls: Mutex<HashMap<Channel, u64>>,
    /// The numbers of receives so far. A transfer from the rank to itself is a call and a receive.
    receives: Mutex<HashMap<Channel, u64>>,
    /// The number of operations that were enqueued and have not run.
    pub(super) pending: AtomicUsize,
    pub(super) is_aborted: AtomicBool,
    pub(super) fault: Mutex<Option<NcclFault>>,
    /// The operators that were created, with the type of their factors.
    operators: Mutex<HashMap<u32, (Factor, ncclDataType_t)>>,
    /// The registered memory by handle.
    registrations: Mutex<HashMap<usize, Registration>>,
    /// `true` once no operation may follow.
    pub(super) is_finalized: AtomicBool,
    /// `true` once the communicator has no handle, so that nothing is created from it.
    pub(super) has_ended: AtomicBool,
    creation: Mutex<Creation>,
}

/// The state of the last communicator that a non-blocking one creates.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Creation {
    #[default]
    None,
    Running,
    Failed(ncclResult_t),
}

/// Memory that a rank registered.
#[derive(Clone, Copy, Debug)]
struct Registration {
    is_window: bool,
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

/// The pause between queries of a call of a non-blocking communicator.
const PAUSE: Duration = Duration::from_micros(200);

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
            receives: Mutex::default(),
            pending: AtomicUsize::new(0),
            is_aborted: AtomicBool::new(false),
            fault: Mutex::new(None),
            operators: Mutex::default(),
            registrations: Mutex::default(),
            is_finalized: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            creation: Mutex::default(),
        })
    }

    pub(super) fn creation(&self) -> Creation {
        *self.creation.lock()
    }

    pub(super) fn set_creation(&self, creation: Creation) {
        *self.creation.lock() = creation;
    }

    /// Waits until every rank has contributed, and returns the data. A non-blocking communicator
    /// ends the wait.
    pub(super) fn wait_for(&self, key: Key) -> Result<Parts> {
        if !self.is_blocking {
            self.poll(&self.link, || self.link.is_ready(key))?;
        }
        self.link.wait_for(key)
    }

    /// Waits until every rank of a new communicator has arrived. A non-blocking communicator ends
    /// the wait.
    pub(super) fn wait_for_ranks(&self, new: &Link) -> Result {
        if !self.is_blocking {
            self.poll(new, || new.is_complete())?;
        }
        new.wait_for_ranks()
    }

    /// Waits until a condition is met or the link has failed, and fails once this communicator has
    /// ended.
    fn poll(&self, link: &Link, is_met: impl Fn() -> bool) -> Result {
        while !is_met() && link.error().is_none() {
            if self.has_ended.load(Relaxed) {
                return Err(failed(
                    ncclResult_t::ncclInvalidUsage,
                    "the communicator was aborted while it created another",
                ));
            }
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Adds registered memory, and returns its handle.
    pub(super) fn register(&self, is_window: bool) -> usize {
        let handle = HANDLES.fetch_add(STEP, Relaxed);
        self.registrations
            .lock()
            .insert(handle, Registration { is_window });
        handle
    }

    pub(super) fn deregister(&self, handle: usize, is_window: bool) -> Result {
        let mut registrations = self.registrations.lock();
        if registrations
            .get(&handle)
            .is_none_or(|registration| registration.is_window != is_window)
        {
            return Err(failed(
                ncclResult_t::ncclInvalidArgument,
                "unknown handle of registered memory",
            ));
        }
        registrations.remove(&handle);
        Ok(())
    }

    /// Returns the number of the next call.
    pub(super) fn number(&self, channel: Channel) -> u64 {
        increment(self.calls.lock().entry(channel).or_default())
    }

    /// Returns the number of the next call at the receiving end of a transfer.
    pub(super) fn receive_number(&self, channel: Channel) -> u64 {
        increment(self.receives.lock().entry(channel).or_default())
    }

    /// Adds an operator of this rank.
    pub(super) fn add_operator(&self, factor: Factor, element: ncclDataType_t) -> ncclRedOp_t {
        let mut operators = self.operators.lock();
        let number = (ncclRedOp_t::ncclNumOps.0..)
            .find(|number| !operators.contains_key(number))
            .unwrap_or(u32::MAX);
        operators.insert(number, (factor, element));
        ncclRedOp_t(number)
    }

    pub(super) fn remove_operator(&self, operator: ncclRedOp_t) -> Result {
        let removed = self.operators.lock().remove(&operator.0);
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
        let Some((factor, factor_type)) = self.operators.lock().get(&operator.0).copied() else {
            return Err(failed(
                ncclResult_t::ncclInvalidArgument,
                "unknown operator of a reduction",
            ));
        };
        if factor_type != element {
            return Err(failed(
                ncclResult_t::ncclInvalidArgument,
                format!(
                    "the operator was created for elements of {factor_type:?}, not of {element:?}"
                ),
            ));
        }
        Ok(Operator::Scaled(factor))
    }
}

fn increment(number: &mut u64) -> u64 {
    *number += 1;
    *number
}

/// Returns a new handle, whose rank is added later.
pub(super) fn new_handle() -> ncclComm_t {
    let mut registry = REGISTRY.lock();
    registry.last += STEP;
    ptr::without_provenance_mut(registry.last)
}

/// Adds the rank of a new handle.
pub(super) fn add(handle: ncclComm_t, member: Arc<Member>) {
    REGISTRY.lock().members.insert(handle.addr(), member);
}

pub(super) fn look_up(handle: ncclComm_t) -> Result<Arc<Member>> {
    let member = REGISTRY.lock().members.get(&handle.addr()).cloned();
    member.ok_or_else(unknown_communicator)
}

pub(super) fn remove(handle: ncclComm_t) -> Result<Arc<Member>> {
    let member = REGISTRY.lock().members.remove(&handle.addr());
    member.ok_or_else(unknown_communicator)
}

fn unknown_communicator() -> ncclResult_t {
    failed(
        ncclResult_t::ncclInvalidArgument,
        "unknown communicator; it may have been destroyed",
    )
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
    let mut registry = REGISTRY.lock();
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
    let mut registry = REGISTRY.lock();
    let number = registry
        .cliques
        .iter()
        .find(|(_, other)| Arc::ptr_eq(other, clique))
        .map(|(number, _)| *number);
    if let Some(number) = number {
        registry.cliques.remove(&number);
        registry.completed.insert(number);
    }
}

/// Returns the number of registrations of live communicators.
pub(super) fn registered() -> usize {
    let members: Vec<_> = REGISTRY.lock().members.values().cloned().collect();
    members
        .iter()
        .map(|member| member.registrations.lock().len())
        .sum()
}

/// Returns the number of live communicators.
pub(super) fn live() -> usize {
    REGISTRY.lock().members.len()
}
