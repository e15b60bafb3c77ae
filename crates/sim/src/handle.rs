//! Handles: addresses that are never reused, so that stale handles are detected.

use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fmt, ptr};

use crate::argument::Pointer;
use crate::live::LiveObject;
use crate::origin::Origin;

/// The kind of object of a handle; part of the handle.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub(crate) enum Kind {
    Context = 1,
    Stream,
    Event,
    Module,
    Function,
    Library,
    Kernel,
    Pool,
    Descriptor,
    Listener,
    Link,
    Physical,
    Graph,
    GraphNode,
    GraphExec,
    UserObject,
    Array,
    MipmappedArray,
    Texture,
    Surface,
}

/// An object that the driver stores under a handle.
pub(crate) trait Object {
    /// The opaque type that C points to.
    type Raw;
    const KIND: Kind;
}

/// The handle of a `T`, live or not.
pub(crate) struct Id<T>(u64, PhantomData<fn() -> T>);

/// The live objects of one kind.
pub(crate) struct Table<T> {
    live: HashMap<Id<T>, (T, Origin)>,
    /// Objects that ended with their context and were not destroyed by their owner.
    lost: HashSet<Id<T>>,
    /// The range of serial numbers that this table has issued.
    issued: std::ops::Range<u64>,
}

/// The history of a handle that is not live.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum StaleHandle {
    /// No object of this kind has had this handle.
    Unknown,
    /// The object was destroyed.
    Destroyed,
    /// The object ended with its context.
    Lost,
}

/// The number of the next handle in this process, for all kinds and simulators.
static NEXT: AtomicU64 = AtomicU64::new(0x4_0000);

/// Handles are serial numbers shifted by this, with the kind in the bits above the alignment of
/// real handles.
const SERIAL_SHIFT: u32 = 12;
const KIND_SHIFT: u32 = 4;

impl<T: Object> Id<T> {
    fn issue() -> Self {
        let serial = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(
            serial << SERIAL_SHIFT | u64::from(T::KIND as u8) << KIND_SHIFT,
            PhantomData,
        )
    }

    /// Returns `true` if the value has the form of a handle of this kind.
    pub(crate) fn is_well_formed(self) -> bool {
        self.0 & ((1 << SERIAL_SHIFT) - 1) == u64::from(T::KIND as u8) << KIND_SHIFT
    }

    /// Returns the handle in its C form: an address that points to nothing.
    pub(crate) fn as_raw(self) -> *mut T::Raw {
        ptr::without_provenance_mut(self.0 as usize)
    }

    fn serial(self) -> u64 {
        self.0 >> SERIAL_SHIFT
    }
}

impl<T> Id<T> {
    /// Creates the handle with a number.
    pub(crate) fn from_number(number: u64) -> Self {
        Self(number, PhantomData)
    }

    /// Returns the number of a handle, for kinds whose handles are not pointers in C.
    pub(crate) fn number(self) -> u64 {
        self.0
    }
}

impl<T: Object> From<Pointer<T::Raw>> for Id<T> {
    fn from(pointer: Pointer<T::Raw>) -> Self {
        Self(pointer.address(), PhantomData)
    }
}

impl<T: Object> Table<T> {
    pub(crate) fn new() -> Self {
        Self {
            live: HashMap::new(),
            lost: HashSet::new(),
            issued: 0..0,
        }
    }

    /// Stores an object and returns its new handle.
    pub(crate) fn insert(&mut self, object: T) -> Id<T> {
        let id = Id::issue();
        if self.issued.end == 0 {
            self.issued.start = id.serial();
        }
        self.issued.end = id.serial() + 1;
        self.live.insert(id, (object, Origin::here()));
        id
    }

    pub(crate) fn get(&self, id: Id<T>) -> Option<&T> {
        self.live.get(&id).map(|(object, _)| object)
    }

    pub(crate) fn get_mut(&mut self, id: Id<T>) -> Option<&mut T> {
        self.live.get_mut(&id).map(|(object, _)| object)
    }

    /// Returns the call that created an object.
    pub(crate) fn origin(&self, id: Id<T>) -> Option<&Origin> {
        self.live.get(&id).map(|(_, origin)| origin)
    }

    /// Records that an object was recreated by the current call.
    pub(crate) fn renew(&mut self, id: Id<T>) {
        if let Some((_, origin)) = self.live.get_mut(&id) {
            *origin = Origin::here();
        }
    }

    pub(crate) fn contains(&self, id: Id<T>) -> bool {
        self.live.contains_key(&id)
    }

    /// Destroys an object at its owner's request.
    pub(crate) fn remove(&mut self, id: Id<T>) -> Option<T> {
        self.live.remove(&id).map(|(object, _)| object)
    }

    /// Ends and returns every object that `belongs` to something that has ended.
    pub(crate) fn remove_dependents(&mut self, mut belongs: impl FnMut(&T) -> bool) -> Vec<T> {
        let ids: Vec<Id<T>> = self
            .iter()
            .filter(|(_, object)| belongs(object))
            .map(|(id, _)| id)
            .collect();
        self.lost.extend(&ids);
        ids.into_iter().filter_map(|id| self.remove(id)).collect()
    }

    /// Returns the history of a handle that is not live.
    pub(crate) fn classify_stale(&self, id: Id<T>) -> StaleHandle {
        if self.lost.contains(&id) {
            StaleHandle::Lost
        } else if id.is_well_formed() && self.issued.contains(&id.serial()) {
            StaleHandle::Destroyed
        } else {
            StaleHandle::Unknown
        }
    }

    /// Returns the objects that count, each with the handle of its context, which is 0 for none.
    pub(crate) fn live_objects(
        &self,
        kind: &'static str,
        counts: impl Fn(&T) -> bool,
        context: impl Fn(&T) -> u64,
    ) -> impl Iterator<Item = LiveObject> {
        let counted = self.iter().filter(move |(_, object)| counts(object));
        counted.filter_map(move |(id, object)| {
            let live = LiveObject::new(kind, id.number(), self.origin(id)?);
            Some(live.with_context(context(object)))
        })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Id<T>, &T)> {
        self.live.iter().map(|(id, (object, _))| (*id, object))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (Id<T>, &mut T)> {
        self.live.iter_mut().map(|(id, (object, _))| (*id, object))
    }
}

impl<T> Clone for Id<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Id<T> {}

impl<T> PartialEq for Id<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T> Eq for Id<T> {}

impl<T> Hash for Id<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl<T> fmt::Debug for Id<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:#x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Thing(u32);

    impl Object for Thing {
        type Raw = u8;
        const KIND: Kind = Kind::Event;
    }

    #[test]
    fn stale_handles_are_classified() {
        let mut table = Table::new();
        let live = table.insert(Thing(1));
        let destroyed = table.insert(Thing(2));
        let lost = table.insert(Thing(3));
        table.remove(destroyed);
        assert_eq!(table.remove_dependents(|thing| thing.0 == 3).len(), 1);
        assert!(table.contains(live));
        assert_eq!(table.classify_stale(destroyed), StaleHandle::Destroyed);
        assert_eq!(table.classify_stale(lost), StaleHandle::Lost);
        assert_eq!(
            table.classify_stale(Id::from_number(0x1234)),
            StaleHandle::Unknown
        );
    }

    #[test]
    fn handles_are_never_reused() {
        let mut table = Table::new();
        let first = table.insert(Thing(1));
        table.remove(first);
        assert_ne!(table.insert(Thing(1)), first);
    }
}
