//! Operations that are enqueued one by one.

use curium_driver::Stream;
use curium_memory::DeviceSlice;

use super::Communicator;
use crate::element::Element;
use crate::error::Result;
use crate::operation::Operation;
use crate::reduction::Reduction;

/// Each method is [`Communicator::enqueue`] of the [`Operation`] with its name, and has its errors.
impl Communicator {
    /// Enqueues [`Operation::all_reduce`].
    ///
    /// # Errors
    ///
    /// As for [`Communicator::enqueue`].
    #[inline]
    pub fn all_reduce<T: Element>(
        &mut self,
        stream: &Stream,
        source: &DeviceSlice<T>,
        target: &mut DeviceSlice<T>,
        reduction: Reduction<T>,
    ) -> Result<()> {
        self.enqueue(stream, Operation::all_reduce(source, target, reduction))
    }

    /// Enqueues [`Operation::all_reduce_in_place`].
    ///
    /// # Errors
    ///
    /// As for [`Communicator::enqueue`].
    #[inline]
    pub fn all_reduce_in_place<T: Element>(
        &mut self,
        stream: &Stream,
        memory: &mut DeviceSlice<T>,
        reduction: Reduction<T>,
    ) -> Result<()> {
        self.enqueue(stream, Operation::all_reduce_in_place(memory, reduction))
    }

    /// Enqueues [`Operation::broadcast`].
    ///
    /// # Errors
    ///
    /// As for [`Communicator::enqueue`].
    #[inline]
    pub fn broadcast<T: Element>(
        &mut self,
        stream: &Stream,
        memory: &mut DeviceSlice<T>,
        root: usize,
    ) -> Result<()> {
        self.enqueue(stream, Operation::broadcast(memory, root))
    }

    /// Enqueues [`Operation::all_gather`].
    ///
    /// # Errors
    ///
    /// As for [`Communicator::enqueue`].
    #[inline]
    pub fn all_gather<T: Element>(
        &mut self,
        stream: &Stream,
        source: &DeviceSlice<T>,
        target: &mut DeviceSlice<T>,
    ) -> Result<()> {
        self.enqueue(stream, Operation::all_gather(source, target))
    }

    /// Enqueues [`Operation::reduce_scatter`].
    ///
    /// # Errors
    ///
    /// As for [`Communicator::enqueue`].
    #[inline]
    pub fn reduce_scatter<T: Element>(
        &mut self,
        stream: &Stream,
        source: &DeviceSlice<T>,
        target: &mut DeviceSlice<T>,
        reduction: Reduction<T>,
    ) -> Result<()> {
        self.enqueue(stream, Operation::reduce_scatter(source, target, reduction))
    }

    /// Enqueues [`Operation::send`].
    ///
    /// # Errors
    ///
    /// As for [`Communicator::enqueue`].
    #[inline]
    pub fn send<T: Element>(
        &mut self,
        stream: &Stream,
        source: &DeviceSlice<T>,
        peer: usize,
    ) -> Result<()> {
        self.enqueue(stream, Operation::send(source, peer))
    }

    /// Enqueues [`Operation::receive`].
    ///
    /// # Errors
    ///
    /// As for [`Communicator::enqueue`].
    #[inline]
    pub fn receive<T: Element>(
        &mut self,
        stream: &Stream,
        target: &mut DeviceSlice<T>,
        peer: usize,
    ) -> Result<()> {
        self.enqueue(stream, Operation::receive(target, peer))
    }
}
