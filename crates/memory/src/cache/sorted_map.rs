//! A map in a sorted vector.

/// A map from addresses or other numbers to values, in one vector sorted by key.
///
/// For up to a few thousand entries, which are looked up more often than inserted. A B-tree would compile to many times
/// the code, for each type of value.
#[derive(Debug)]
pub(crate) struct SortedMap<V> {
    entries: Vec<(u64, V)>,
}

impl<V> Default for SortedMap<V> {
    fn default() -> Self {
        Self { entries: Vec::new() }
    }
}

impl<V> SortedMap<V> {
    fn position(&self, key: u64) -> Result<usize, usize> {
        self.entries.binary_search_by(|(other, _)| other.cmp(&key))
    }

    pub(crate) fn get(&self, key: u64) -> Option<&V> {
        self.position(key).ok().map(|index| &self.entries[index].1)
    }

    pub(crate) fn get_mut(&mut self, key: u64) -> Option<&mut V> {
        let index = self.position(key).ok()?;
        Some(&mut self.entries[index].1)
    }

    pub(crate) fn contains(&self, key: u64) -> bool {
        self.position(key).is_ok()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Inserts a value, replacing that of an equal key.
    pub(crate) fn insert(&mut self, key: u64, value: V) {
        match self.position(key) {
            Ok(index) => self.entries[index].1 = value,
            Err(index) => self.entries.insert(index, (key, value)),
        }
    }

    /// Removes a key and its value, if present.
    pub(crate) fn remove(&mut self, key: u64) {
        if let Ok(index) = self.position(key) {
            self.entries.remove(index);
        }
    }

    /// Returns the entries by key.
    pub(crate) fn entries(&self) -> &[(u64, V)] {
        &self.entries
    }
}

impl<V: Default> SortedMap<V> {
    /// Returns the value of a key, after inserting the default value if there is none.
    pub(crate) fn get_or_default(&mut self, key: u64) -> &mut V {
        let index = self.position(key).unwrap_or_else(|index| {
            self.entries.insert(index, (key, V::default()));
            index
        });
        &mut self.entries[index].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_sorted_and_unique() {
        let mut map = SortedMap::default();
        for (key, value) in [(3, 'c'), (1, 'x'), (2, 'b'), (1, 'a')] {
            map.insert(key, value);
        }
        assert_eq!(map.entries(), [(1, 'a'), (2, 'b'), (3, 'c')]);
        map.remove(2);
        map.remove(7);
        assert_eq!(map.entries(), [(1, 'a'), (3, 'c')]);
        assert_eq!((map.get(3), map.get(2), map.contains(1), map.contains(2)), (Some(&'c'), None, true, false));
    }

    #[test]
    fn missing_value_is_inserted_in_order() {
        let mut map = SortedMap::default();
        *map.get_or_default(5) += 1;
        *map.get_or_default(4) += 2;
        *map.get_or_default(5) += 1;
        assert_eq!(map.entries(), [(4, 2), (5, 2)]);
        assert!(map.get_mut(6).is_none() && !map.is_empty());
    }
}
