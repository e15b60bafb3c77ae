//! Physical memory on systems where the simulator has none: nothing of it can be made.

use std::io;

use crate::memory::{HostPtr, Place};

/// What there is none of.
pub(crate) enum Backing {}

/// What there is none of.
pub(crate) enum Reservation {}

/// What a piece of memory would say of itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Label {
    pub(crate) size: u64,
    pub(crate) words: [u64; LABEL_WORDS],
}

/// How many numbers a label has for the driver.
pub(crate) const LABEL_WORDS: usize = 8;

impl Backing {
    pub(crate) fn new(_: Label, _: bool) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn import(_: i32) -> Option<(Self, Label)> {
        None
    }

    pub(crate) fn export(&self) -> io::Result<i32> {
        match *self {}
    }

    pub(crate) fn host(&self) -> HostPtr {
        match *self {}
    }
}

impl Reservation {
    pub(crate) fn new(_: u64, _: u64, _: u64) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn address(&self) -> u64 {
        match *self {}
    }

    pub(crate) fn size(&self) -> u64 {
        match *self {}
    }

    pub(crate) fn show(&self, _: u64, _: u64, _: &Backing, _: bool) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn hide(&self, _: u64, _: u64) -> io::Result<()> {
        match *self {}
    }
}

/// What there is none of.
pub(crate) struct ForeignMemory {
    pub(crate) openings: u32,
    never: Backing,
}

impl ForeignMemory {
    pub(crate) fn open(_: Place) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn place(&self) -> Place {
        match self.never {}
    }

    pub(crate) fn address(&self) -> u64 {
        match self.never {}
    }

    pub(crate) fn host(&self) -> HostPtr {
        match self.never {}
    }
}

/// What there is none of.
pub(crate) enum SharedRecords {}

impl SharedRecords {
    pub(crate) fn new() -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn open(_: u32, _: i32) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn descriptor(&self) -> i32 {
        match *self {}
    }

    pub(crate) fn begin(&self) -> u64 {
        match *self {}
    }

    pub(crate) fn finish(&self, _: u64) {
        match *self {}
    }

    pub(crate) fn last(&self) -> u64 {
        match *self {}
    }

    pub(crate) fn is_done(&self, _: u64) -> bool {
        match *self {}
    }
}
