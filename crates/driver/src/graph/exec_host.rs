//! Individually updated host functions of executable graphs.
//!
//! The closures of a graph are user objects, which the driver retains for executable graphs and
//! their launches. A user object cannot be added to an executable graph, so a closure that is set
//! there is kept here. It must outlive the launches that may call it; an event after each launch
//! shows when they have completed.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use curium_sys::CUDA_HOST_NODE_PARAMS;

use super::exec::GraphExec;
use super::exec::LAUNCH;
use super::host::run;
use super::node::HostNode;
use crate::base::capture_guard::NOT_WHILE_CAPTURING;
use crate::completion::watch::{self, Pace, Waiter};
use crate::stream::until_done::is_over;
use crate::{Context, Event, EventFlags, Result, Stream, call, emit_event};

/// The closures set in one executable graph.
pub(super) struct Closures {
    /// Recorded after each launch.
    ended: Event,
    /// The current closures, indexed by node number in the source graph.
    current: HashMap<u32, Closure>,
}

type Closure = Arc<dyn Any + Send + Sync>;

/// Closures that no later launch calls, and the completion of the earlier launches.
struct Retired {
    ended: Event,
    _closures: Vec<Closure>,
}

impl GraphExec {
    /// Sets the function of a host node for subsequent launches;
    /// [`Graph::add_host`](crate::Graph::add_host) lists its restrictions. A replaced function is
    /// dropped once no pending launch can call it, and the current one when the executable graph is
    /// dropped and no launch is pending.
    ///
    /// After this call, each launch makes two additional driver calls and cannot be captured.
    ///
    /// CUDA: `cuGraphExecHostNodeSetParams`, `cuEventCreate`.
    ///
    /// # Errors
    ///
    /// An argument error if the node does not belong to the source graph or was removed from it;
    /// `CUDA_ERROR_INVALID_VALUE` if the executable graph does not have the node. The function is
    /// then dropped.
    #[doc(alias = "cuGraphExecHostNodeSetParams")]
    #[doc(alias = "cudaGraphExecHostNodeSetParams")]
    pub fn set_host<F: Fn() + Send + Sync + 'static>(
        &mut self,
        node: HostNode,
        function: F,
    ) -> Result<()> {
        if self.closures().is_none() {
            let closures = Closures::new(self.context())?;
            *self.closures() = Some(Box::new(closures));
        }
        let function = Arc::new(function);
        let params = CUDA_HOST_NODE_PARAMS {
            fn_: Some(run::<F>),
            userData: Arc::as_ptr(&function).cast_mut().cast(),
        };
        self.with_node("GraphExec::set_host", *node, |driver, exec, raw| {
            // SAFETY: the executable graph and the node are live; the closure is kept until no
            // launch can call it.
            unsafe {
                call!(
                    driver,
                    cuGraphExecHostNodeSetParams(exec, raw, &raw const params)
                )
            }
        })?;
        if let Some(closures) = self.closures() {
            let before = closures.current.insert(node.number, function);
            closures.retire(before.into_iter().collect());
        }
        Ok(())
    }

    /// Launches the graph, which may call closures kept here.
    #[cold]
    pub(super) fn launch_with_closures(&mut self, stream: &Stream) -> Result<()> {
        // A graph that captures this launch could call the closures at any time.
        stream.check_enqueue_now(LAUNCH, NOT_WHILE_CAPTURING)?;
        self.launch_without_closures(stream)?;
        let Some(closures) = self.closures() else {
            return Ok(());
        };
        closures.ended.record(stream).inspect_err(|_| {
            // The completion of this launch cannot be recorded, so it is waited for here.
            if !is_over(stream.driver(), || stream.synchronize()) {
                closures.current.values().cloned().for_each(leak);
            }
        })
    }

    /// Retires the closures, which no subsequent launch calls.
    pub(super) fn retire_closures(&mut self) {
        if let Some(mut closures) = self.closures().take() {
            let current = std::mem::take(&mut closures.current);
            closures.retire(current.into_values().collect());
        }
    }
}

impl Closures {
    fn new(context: &Context) -> Result<Self> {
        Ok(Self {
            ended: Event::new(context, EventFlags::DISABLE_TIMING)?,
            current: HashMap::new(),
        })
    }

    /// Drops closures once the launches so far have completed.
    fn retire(&self, closures: Vec<Closure>) {
        if closures.is_empty() {
            return;
        }
        let retired = Arc::new(Retired {
            ended: self.ended.share(),
            _closures: closures,
        });
        let waiter: Arc<dyn Waiter> = Arc::<Retired>::clone(&retired);
        if watch::add("GraphExec::set_host", waiter, Pace::Polled).is_err() {
            // No thread could be started, so wait here.
            if !is_over(retired.ended.driver(), || retired.ended.synchronize()) {
                leak(retired);
            }
        }
    }
}

impl Waiter for Retired {
    fn event(&self) -> &Event {
        &self.ended
    }

    fn queried(&self, answer: Result<bool>) -> bool {
        answer.unwrap_or_else(|error| error.is_sticky())
    }
}

/// Never drops closures that a launch may still call, because its end cannot be waited for.
#[cold]
fn leak<T: ?Sized>(closures: Arc<T>) {
    std::mem::forget(closures);
    emit_event!(
        ERROR,
        "leaked a host function of an executable graph, whose launch could not be waited for"
    );
}
