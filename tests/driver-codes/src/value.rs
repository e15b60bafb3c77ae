//! The arguments of calls: how they are written in a log, and their bytes.

use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::fmt;

/// The bytes of every block that a pointer points to: functions that fill rows have room for more
/// elements than they are told.
const BLOCK: usize = 16 << 10;
/// The bytes between two pages that can be registered.
const PAGE: usize = 64 << 10;
/// The number of pages that can be registered.
pub(crate) const PAGES: usize = 16;

/// An argument, or a member of a struct.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// An integer.
    Bits(u64),
    /// An enumerator.
    Named(&'static str, u64),
    Float(f32),
    Null,
    /// An object that an earlier call creates, with a number of bytes added to its address.
    Object {
        kind: &'static str,
        index: usize,
        offset: i64,
    },
    /// A pointer to zeros, in which the function stores an object.
    Created {
        kind: &'static str,
        index: usize,
    },
    /// A pointer to zeros.
    Output,
    /// A pointer to values in a row.
    Row {
        elements: Vec<Value>,
        size: usize,
    },
    /// A pointer to a row of pointers to zeros.
    Pointers,
    /// A struct with the members that are not zero.
    Record {
        size: usize,
        members: Vec<Member>,
    },
    Text(&'static str),
    /// The image of a module.
    Image(&'static str, &'static str),
    Callback,
    /// Pageable memory of the host.
    Host,
    /// A page of the host's memory that can be registered.
    Page(usize),
}

/// A member of a struct.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) path: String,
    pub(crate) offset: usize,
    pub(crate) size: usize,
    pub(crate) value: Value,
}

impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bits(bits) if *bits < 0x10000 => write!(formatter, "{bits}"),
            Self::Bits(bits) => write!(formatter, "{bits:#x}"),
            Self::Named(name, _) => write!(formatter, "{name}"),
            Self::Float(value) => write!(formatter, "{value}"),
            Self::Null => write!(formatter, "null"),
            Self::Object {
                kind,
                index,
                offset: 0,
            } => write!(formatter, "{kind}#{index}"),
            Self::Object {
                kind,
                index,
                offset,
            } => write!(formatter, "{kind}#{index}{offset:+}"),
            Self::Created { kind, index } => write!(formatter, "new {kind}#{index}"),
            Self::Output => write!(formatter, "out"),
            Self::Row { elements, .. } => {
                write!(formatter, "[")?;
                for (index, element) in elements.iter().enumerate() {
                    let comma = if index == 0 { "" } else { ", " };
                    write!(formatter, "{comma}{element}")?;
                }
                write!(formatter, "]")
            }
            Self::Pointers => write!(formatter, "[out, …]"),
            Self::Record { members, .. } => {
                write!(formatter, "{{")?;
                for (index, member) in members.iter().enumerate() {
                    let comma = if index == 0 { "" } else { ", " };
                    write!(formatter, "{comma}{}={}", member.path, member.value)?;
                }
                write!(formatter, "}}")
            }
            Self::Text(text) => write!(formatter, "{text:?}"),
            Self::Image(name, _) => write!(formatter, "image {name}"),
            Self::Callback => write!(formatter, "callback"),
            Self::Host => write!(formatter, "host"),
            Self::Page(index) => write!(formatter, "page#{index}"),
        }
    }
}

/// The memory that the pointers of a sequence's arguments point to, and the objects that its calls
/// created. The memory is never freed, because enqueued work may use it.
pub(crate) struct Memory {
    objects: HashMap<usize, Vec<u8>>,
    host: usize,
}

/// A function that is called back by the driver and ignores its arguments.
extern "C" fn callback() -> usize {
    0
}

impl Memory {
    pub(crate) fn new() -> Self {
        let size = PAGE.saturating_mul(PAGES.saturating_add(2));
        Self {
            objects: HashMap::new(),
            host: leak(&[], size).next_multiple_of(PAGE),
        }
    }

    /// Records the object that a call created.
    pub(crate) fn insert(&mut self, index: usize, bytes: Vec<u8>) {
        self.objects.insert(index, bytes);
    }

    /// Returns the bytes of an argument of `size` bytes, or `None` if an object of it was not
    /// created.
    pub(crate) fn encode(&self, value: &Value, size: usize) -> Option<Vec<u8>> {
        let bits = match value {
            Value::Bits(bits) | Value::Named(_, bits) => *bits,
            Value::Float(value) => u64::from(value.to_bits()),
            Value::Null => 0,
            Value::Object { index, offset, .. } => {
                let object = self.objects.get(index)?;
                if object.len() != 8 || size != 8 {
                    return Some(resized(object.clone(), size));
                }
                number(object).wrapping_add_signed(*offset)
            }
            Value::Created { .. } | Value::Output => address(leak(&[], BLOCK)),
            Value::Row { elements, size } => {
                let mut bytes = Vec::new();
                for element in elements {
                    bytes.extend(self.encode(element, *size)?);
                }
                address(leak(&bytes, BLOCK))
            }
            Value::Pointers => {
                let mut bytes = Vec::new();
                for _ in 0..16 {
                    bytes.extend(address(leak(&[], 1024)).to_ne_bytes());
                }
                address(leak(&bytes, BLOCK))
            }
            Value::Record { size, members } => {
                let mut bytes = vec![0; *size];
                for member in members {
                    let value = self.encode(&member.value, member.size)?;
                    let end = member.offset.checked_add(member.size)?;
                    bytes.get_mut(member.offset..end)?.copy_from_slice(&value);
                }
                return Some(bytes);
            }
            Value::Text(text) | Value::Image(_, text) => {
                let text = CString::new(*text).ok()?;
                address(leak(text.as_bytes_with_nul(), BLOCK))
            }
            Value::Callback => {
                let callback: extern "C" fn() -> usize = callback;
                address((callback as *const c_void).expose_provenance())
            }
            Value::Host => address(self.host),
            Value::Page(index) => {
                let page = index.saturating_add(1).saturating_mul(PAGE);
                address(self.host.saturating_add(page))
            }
        };
        Some(resized(bits.to_ne_bytes().to_vec(), size))
    }
}

/// Returns the number that the bytes of an object are.
pub(crate) fn number(bytes: &[u8]) -> u64 {
    let mut number = [0; 8];
    let length = bytes.len().min(8);
    number[..length].copy_from_slice(&bytes[..length]);
    u64::from_ne_bytes(number)
}

fn address(address: usize) -> u64 {
    address as u64
}

fn resized(mut bytes: Vec<u8>, size: usize) -> Vec<u8> {
    bytes.resize(size, 0);
    bytes
}

/// Returns the address of new memory that begins with `bytes`, followed by at least `room` zeros.
fn leak(bytes: &[u8], room: usize) -> usize {
    let words = bytes.len().saturating_add(room).div_ceil(16);
    let block = Box::leak(vec![0_u128; words].into_boxed_slice());
    let start = block.as_mut_ptr().cast::<u8>();
    // SAFETY: the block is new and longer than `bytes`.
    unsafe { start.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    start.expose_provenance()
}
