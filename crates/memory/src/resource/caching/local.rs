//! Where each thread finds its bins.

use std::cell::RefCell;
use std::sync::Arc;

use super::depot::{Depot, Shelf};
use crate::cache::Owner;

thread_local! {
    static PLACES: RefCell<Vec<Place>> = const { RefCell::new(Vec::new()) };
}

/// The calling thread's bins of one resource and one stream. At the end of the thread the blocks go to the depot, which calls no
/// driver: the thread may end while the process does, when the driver is gone.
struct Place {
    resource: u64,
    shelf: Arc<Shelf>,
    depot: Arc<Depot>,
}

/// Has `operation` look at the calling thread's bins for `owner`, if there are any.
#[inline]
pub(super) fn with<T>(resource: u64, owner: Owner, operation: impl FnOnce(&Shelf) -> T) -> Option<T> {
    PLACES
        .try_with(|places| {
            let mut places = places.try_borrow_mut().ok()?;
            let found = places.iter().position(|place| place.shelf.owner == owner && place.resource == resource)?;
            // What was used last is found first.
            if found != 0 {
                places.swap(0, found);
            }
            Some(operation(&places[0].shelf))
        })
        .ok()
        .flatten()
}

/// The calling thread's bins for `owner`, if there are any.
#[inline]
pub(super) fn find(resource: u64, owner: Owner) -> Option<Arc<Shelf>> {
    PLACES
        .try_with(|places| {
            let places = places.try_borrow().ok()?;
            let place = places.iter().find(|place| place.shelf.owner == owner && place.resource == resource)?;
            Some(Arc::clone(&place.shelf))
        })
        .ok()
        .flatten()
}

/// New bins of the calling thread for `owner`, which has none; nothing if the thread is ending.
#[inline]
pub(super) fn add(resource: u64, owner: Owner, depot: &Arc<Depot>) -> Option<Arc<Shelf>> {
    PLACES
        .try_with(|places| {
            let mut places = places.try_borrow_mut().ok()?;
            // Of a resource or a stream that is gone, this is the last share.
            places.retain(|place| Arc::strong_count(&place.shelf) > 1);
            let shelf = depot.add_shelf(owner);
            places.push(Place { resource, shelf: Arc::clone(&shelf), depot: Arc::clone(depot) });
            Some(shelf)
        })
        .ok()
        .flatten()
}

impl Drop for Place {
    #[inline]
    fn drop(&mut self) {
        self.depot.remove_shelf(&self.shelf);
    }
}
