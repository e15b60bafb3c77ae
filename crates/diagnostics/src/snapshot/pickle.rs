//! The subset of Python's pickle format that snapshots need: protocol 2, without references.

/// A pickle being written.
pub(super) struct Pickle {
    bytes: Vec<u8>,
}

const PROTOCOL: [u8; 2] = [0x80, 2];
const STOP: u8 = b'.';
const MARK: u8 = b'(';
const EMPTY_DICT: u8 = b'}';
const SETITEMS: u8 = b'u';
const EMPTY_LIST: u8 = b']';
const APPENDS: u8 = b'e';
const BINUNICODE: u8 = b'X';
const BININT1: u8 = b'K';
const BININT: u8 = b'J';
const LONG1: u8 = 0x8a;
const TUPLE2: u8 = 0x86;
const NEWTRUE: u8 = 0x88;
const NEWFALSE: u8 = 0x89;

/// The maximum number of items per batch, as in Python's own writer.
const BATCH: usize = 1000;

impl Pickle {
    pub(super) fn new() -> Self {
        Self {
            bytes: PROTOCOL.to_vec(),
        }
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes.push(STOP);
        self.bytes
    }

    /// Writes a dictionary; `entries` writes keys and values alternately.
    pub(super) fn dictionary(&mut self, entries: impl FnOnce(&mut Self)) {
        self.bytes.extend([EMPTY_DICT, MARK]);
        entries(self);
        self.bytes.push(SETITEMS);
    }

    /// Writes a list; `item` writes each item.
    pub(super) fn list<T>(&mut self, items: &[T], mut item: impl FnMut(&mut Self, &T)) {
        self.bytes.push(EMPTY_LIST);
        for batch in items.chunks(BATCH) {
            self.bytes.push(MARK);
            batch.iter().for_each(|value| item(self, value));
            self.bytes.push(APPENDS);
        }
    }

    /// Writes a key.
    pub(super) fn key(&mut self, key: &str) {
        self.text(key);
    }

    /// Writes a key with a number.
    pub(super) fn entry(&mut self, key: &str, value: u64) {
        self.key(key);
        self.number(value);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.bytes.push(BINUNICODE);
        self.bytes.extend((text.len() as u32).to_le_bytes());
        self.bytes.extend(text.as_bytes());
    }

    pub(super) fn boolean(&mut self, value: bool) {
        self.bytes.push(if value { NEWTRUE } else { NEWFALSE });
    }

    pub(super) fn pair(&mut self, first: u64, second: u64) {
        self.number(first);
        self.number(second);
        self.bytes.push(TUPLE2);
    }

    pub(super) fn number(&mut self, value: u64) {
        if let Ok(value) = u8::try_from(value) {
            return self.bytes.extend([BININT1, value]);
        }
        if let Ok(value) = i32::try_from(value) {
            self.bytes.push(BININT);
            return self.bytes.extend(value.to_le_bytes());
        }
        // Two's complement: an extra byte keeps the number positive.
        let bytes = value.to_le_bytes();
        let length = if value >> 63 == 0 { 8 } else { 9 };
        self.bytes.extend([LONG1, length]);
        self.bytes
            .extend(bytes.into_iter().chain([0]).take(usize::from(length)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(value: u64) -> Vec<u8> {
        let mut pickle = Pickle::new();
        pickle.number(value);
        pickle.finish()
    }

    #[test]
    fn numbers_are_written_as_python_writes_them() {
        assert_eq!(number(255), [0x80, 2, b'K', 255, b'.']);
        assert_eq!(number(256), [0x80, 2, b'J', 0, 1, 0, 0, b'.']);
        assert_eq!(
            number(1 << 31),
            [0x80, 2, 0x8a, 8, 0, 0, 0, 0x80, 0, 0, 0, 0, b'.']
        );
        assert_eq!(
            number(u64::MAX),
            [
                0x80, 2, 0x8a, 9, 255, 255, 255, 255, 255, 255, 255, 255, 0, b'.'
            ]
        );
    }

    #[test]
    fn long_lists_are_written_in_batches() {
        let mut pickle = Pickle::new();
        pickle.list(&[1_u64; BATCH + 1], |pickle, value| pickle.number(*value));
        let bytes = pickle.finish();
        assert_eq!(bytes.iter().filter(|byte| **byte == APPENDS).count(), 2);
        assert_eq!(bytes.len(), 2 + 1 + 2 * (BATCH + 1) + 2 * 2 + 1);
    }
}
