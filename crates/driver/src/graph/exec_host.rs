//! Host functions of executable graphs that were updated node by node.
//!
//! The closures of a graph are user objects, which the driver keeps for executables and their launches. An executable cannot be given a
//! user object, so a closure that is set there is kept here, and outlives the launches that may call it: an event behind each launch
//! tells when they are over.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use curium_sys::CUDA_HOST_NODE_PARAMS;

use super::host::run;
use super::{GraphExec, HostNode};
use crate::base::capture_guard::NOT_WHILE_CAPTURING;
use crate::call;
use crate::completion::watch::{self, Pace, Waiter};
use crate::{Context, Event, EventFlags, Result, Stream};

/// The closures that were set in one executable.
pub(super) struct Closures {
    /// Recorded behind each launch.
    ended: Event,
    /// By the numbers of their nodes in the source.
    current: HashMap<u32, Closure>,
}

type Closure = Arc<dyn Any + Send + Sync>;

/// Closures that no later launch calls, and the end of the launches before.
struct Retired {
    ended: Event,
    _closures: Vec<Closure>,
}

impl GraphExec {
    /// Makes a node call another function from the next launch on; see [`Graph::add_host`](crate::Graph::add_host) for what it may do. The
    /// function is dropped when it is replaced, or the executable gone, and no launch is pending.
    ///
    /// From then on a launch takes two more calls of the driver, and cannot be captured.
    ///
    /// CUDA: `cuGraphExecHostNodeSetParams`, `cuEventCreate`.
    ///
    /// # Errors
    ///
    /// An argument error if the node is not one of the graph that was instantiated, or was removed from it; `CUDA_ERROR_INVALID_VALUE` if
    /// the executable does not have the node. The function is dropped then.
    #[doc(alias = "cuGraphExecHostNodeSetParams")]
    #[inline]
    pub fn set_host<F: Fn() + Send + Sync + 'static>(&mut self, node: HostNode, function: F) -> Result<()> {
        if self.closures().is_none() {
            let closures = Closures::new(self.context())?;
            *self.closures() = Some(Box::new(closures));
        }
        let function = Arc::new(function);
        let params = CUDA_HOST_NODE_PARAMS { fn_: Some(run::<F>), userData: Arc::as_ptr(&function).cast_mut().cast() };
        self.with_node("GraphExec::set_host", *node, |driver, exec, raw| {
            // SAFETY: the executable and the node are live; the closure is kept until no launch can call it.
            unsafe { call!(driver, cuGraphExecHostNodeSetParams(exec, raw, &raw const params)) }
        })?;
        if let Some(closures) = self.closures() {
            let before = closures.current.insert(node.number, function);
            closures.retire(before.into_iter().collect());
        }
        Ok(())
    }

    /// Returns a launch that may call closures which are kept here.
    #[cold]
    #[inline]
    pub(super) fn launch_with_closures(&mut self, stream: &Stream) -> Result<()> {
        // A graph that takes this launch over could call the closures at any time.
        stream.refuse_capture("GraphExec::launch", NOT_WHILE_CAPTURING)?;
        self.launch_plain(stream)?;
        let Some(closures) = self.closures() else { return Ok(()) };
        closures.ended.record(stream).inspect_err(|_| {
            // Nothing tells of the end of this launch any more; what the wait says is what the caller is told of already.
            let _ = stream.synchronize();
        })
    }

    /// Lets go of the closures, which no launch calls from now on.
    #[inline]
    pub(super) fn retire_closures(&mut self) {
        if let Some(mut closures) = self.closures().take() {
            let current = std::mem::take(&mut closures.current);
            closures.retire(current.into_values().collect());
        }
    }
}

impl Closures {
    #[inline]
    fn new(context: &Context) -> Result<Self> {
        Ok(Self { ended: Event::new(context, EventFlags::DISABLE_TIMING)?, current: HashMap::new() })
    }

    /// Drops closures when the launches by now are over.
    #[inline]
    fn retire(&self, closures: Vec<Closure>) {
        if closures.is_empty() {
            return;
        }
        let retired = Arc::new(Retired { ended: self.ended.share(), _closures: closures });
        let waiter: Arc<dyn Waiter> = Arc::<Retired>::clone(&retired);
        if watch::add("GraphExec::set_host", waiter, Pace::Polled).is_err() {
            // There is no thread to wait; after a wait that fails nothing runs either.
            let _ = retired.ended.synchronize();
        }
    }
}

impl Waiter for Retired {
    #[inline]
    fn event(&self) -> &Event {
        &self.ended
    }

    #[inline]
    fn queried(&self, answer: Result<bool>) -> bool {
        // Once the context has failed no launch goes on.
        answer.unwrap_or(true)
    }
}
