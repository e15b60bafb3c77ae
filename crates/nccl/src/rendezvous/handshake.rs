//! The messages between rank 0 and the other ranks.
//!
//! Rank 0 sends a [challenge](write_challenge), the rank answers with its [`Hello`], and rank 0
//! ends with a [`Reply`]. Numbers are big-endian. The `Hello` and the `Reply` are authenticated
//! with the token and the random numbers of both sides, so that neither can be replayed.

use std::io::{self, Read, Write};

use super::token::{TAG_LEN, Token};
use crate::RendezvousError;

/// The first bytes of rank 0: the name and version of the protocol.
const MAGIC: [u8; 8] = *b"CURIUM/1";

/// The code of the answer that contains the bytes.
pub(super) const BYTES_CODE: u8 = 0;

/// A random number of one side.
pub(super) type Nonce = [u8; 32];

/// The random numbers of both sides.
#[derive(Clone, Copy)]
pub(super) struct Session {
    pub(super) server: Nonce,
    pub(super) client: Nonce,
}

/// The message of a rank that arrives.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Hello {
    pub(super) rank: u32,
    pub(super) world_size: u32,
    pub(super) round: u32,
    pub(super) length: u32,
}

/// The answer of rank 0.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Reply {
    Bytes(Vec<u8>),
    WrongToken,
    DuplicateRank,
    WorldSize(u32),
    Broadcast { round: u32, length: u32 },
    Missing { milliseconds: u32, ranks: Vec<u32> },
}

/// Returns a random number for one connection.
pub(super) fn nonce() -> Result<Nonce, RendezvousError> {
    let mut nonce = [0; 32];
    let filled = getrandom::fill(&mut nonce);
    filled.map_err(|error| RendezvousError::System {
        call: "random number generation",
        source: error.into(),
    })?;
    Ok(nonce)
}

/// Sends the protocol's name and rank 0's random number.
pub(super) fn write_challenge(stream: &mut impl Write, server: Nonce) -> io::Result<()> {
    stream.write_all(&[MAGIC.as_slice(), &server].concat())
}

/// Receives rank 0's random number. `None` if the other side speaks another protocol.
pub(super) fn read_challenge(stream: &mut impl Read) -> io::Result<Option<Nonce>> {
    if read_array(stream)? != MAGIC {
        return Ok(None);
    }
    read_array(stream).map(Some)
}

impl Hello {
    const LEN: usize = 16;

    /// The number of bytes of the message on the wire.
    pub(super) const MESSAGE_LEN: usize = size_of::<Nonce>() + Self::LEN + TAG_LEN;

    /// Sends the message with this side's random number and the authentication code.
    pub(super) fn write(
        self,
        stream: &mut impl Write,
        session: &Session,
        token: &Token,
    ) -> io::Result<()> {
        let body = self.to_bytes();
        let tag = token.tag(&[b"hello", &session.server, &session.client, &body]);
        stream.write_all(&[session.client.as_slice(), &body, &tag].concat())
    }

    /// Parses the message. `None` if it is not authentic.
    pub(super) fn parse(
        message: &[u8; Self::MESSAGE_LEN],
        server: Nonce,
        token: &Token,
    ) -> Option<(Self, Session)> {
        let (client, remaining) = message.split_first_chunk()?;
        let (body, tag) = remaining.split_first_chunk()?;
        let session = Session {
            server,
            client: *client,
        };
        let parts = [b"hello".as_slice(), &session.server, &session.client, body];
        token
            .verifies(tag.first_chunk()?, &parts)
            .then(|| (Self::from_bytes(body), session))
    }

    fn to_bytes(self) -> [u8; Self::LEN] {
        let numbers = [self.rank, self.world_size, self.round, self.length];
        let mut bytes = [0; Self::LEN];
        for (part, number) in bytes.as_chunks_mut().0.iter_mut().zip(numbers) {
            *part = number.to_be_bytes();
        }
        bytes
    }

    fn from_bytes(bytes: &[u8; Self::LEN]) -> Self {
        let [rank, world_size, round, length] =
            [0, 4, 8, 12].map(|offset| number(&bytes[offset..]));
        Self {
            rank,
            world_size,
            round,
            length,
        }
    }
}

impl Reply {
    /// Sends the answer with its authentication code. Returns an error if the stream does not take
    /// it at once.
    pub(super) fn write(
        &self,
        stream: &mut impl Write,
        session: &Session,
        token: &Token,
    ) -> io::Result<()> {
        let (code, body) = self.to_body();
        match Frame::new(code, &body, session, token).send(stream)? {
            true => Ok(()),
            false => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Receives an answer whose body has at most `limit` bytes. An answer that is not authentic is
    /// [`Reply::WrongToken`].
    pub(super) fn read(
        stream: &mut impl Read,
        session: &Session,
        token: &Token,
        limit: usize,
    ) -> io::Result<Self> {
        let [code] = read_array(stream)?;
        let length: [u8; 4] = read_array(stream)?;
        let body_len = usize::try_from(number(&length)).unwrap_or(usize::MAX);
        if body_len > limit {
            return Err(io::ErrorKind::InvalidData.into());
        }
        // Memory grows with the bytes that arrive: the length is not authenticated yet.
        let mut body = Vec::new();
        stream
            .take(u64::try_from(body_len).unwrap_or(u64::MAX))
            .read_to_end(&mut body)?;
        if body.len() < body_len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let tag: [u8; TAG_LEN] = read_array(stream)?;
        if !token.verifies(
            &tag,
            &[
                b"reply",
                &session.server,
                &session.client,
                &[code],
                &length,
                &body,
            ],
        ) {
            return Ok(Self::WrongToken);
        }
        Self::from_body(code, body).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Returns the code and the body.
    pub(super) fn to_body(&self) -> (u8, Vec<u8>) {
        match self {
            Self::Bytes(bytes) => (BYTES_CODE, bytes.clone()),
            Self::WrongToken => (1, Vec::new()),
            Self::DuplicateRank => (2, Vec::new()),
            Self::WorldSize(size) => (3, to_be_bytes(&[*size])),
            Self::Broadcast { round, length } => (4, to_be_bytes(&[*round, *length])),
            Self::Missing {
                milliseconds,
                ranks,
            } => (
                5,
                to_be_bytes(&[&[*milliseconds], ranks.as_slice()].concat()),
            ),
        }
    }

    fn from_body(code: u8, body: Vec<u8>) -> Option<Self> {
        let numbers: Vec<_> = body
            .as_chunks()
            .0
            .iter()
            .copied()
            .map(u32::from_be_bytes)
            .collect();
        match (code, numbers.as_slice()) {
            (BYTES_CODE, _) => Some(Self::Bytes(body)),
            (1, []) => Some(Self::WrongToken),
            (2, []) => Some(Self::DuplicateRank),
            (3, &[size]) => Some(Self::WorldSize(size)),
            (4, &[round, length]) => Some(Self::Broadcast { round, length }),
            (5, [milliseconds, ranks @ ..]) => Some(Self::Missing {
                milliseconds: *milliseconds,
                ranks: ranks.to_vec(),
            }),
            _ => None,
        }
    }
}

fn to_be_bytes(numbers: &[u32]) -> Vec<u8> {
    numbers
        .iter()
        .flat_map(|number| number.to_be_bytes())
        .collect()
}

/// An answer as bytes, of which some may have been sent.
pub(super) struct Frame<'a> {
    head: [u8; 5],
    body: &'a [u8],
    tag: [u8; TAG_LEN],
    sent: usize,
}

impl<'a> Frame<'a> {
    /// Creates the frame of an answer, of which nothing has been sent. A frame whose body is too
    /// long for its length field is not authentic.
    pub(super) fn new(code: u8, body: &'a [u8], session: &Session, token: &Token) -> Self {
        let length = u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes();
        let tag = token.tag(&[
            b"reply",
            &session.server,
            &session.client,
            &[code],
            &length,
            body,
        ]);
        let [first, second, third, fourth] = length;
        Self {
            head: [code, first, second, third, fourth],
            body,
            tag,
            sent: 0,
        }
    }

    /// Sends what the stream takes without waiting. Returns `true` once everything is sent.
    pub(super) fn send(&mut self, stream: &mut impl Write) -> io::Result<bool> {
        loop {
            let remaining = self.remaining();
            if remaining.is_empty() {
                return Ok(true);
            }
            match stream.write(remaining) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the part that is sent next; it is empty at the end.
    fn remaining(&self) -> &[u8] {
        let mut offset = self.sent;
        for part in [self.head.as_slice(), self.body, &self.tag] {
            if offset < part.len() {
                return &part[offset..];
            }
            offset -= part.len();
        }
        &[]
    }
}

/// Reads exactly `N` bytes.
fn read_array<const N: usize>(stream: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Returns the number in the first four bytes.
fn number(bytes: &[u8]) -> u32 {
    bytes.first_chunk().copied().map_or(0, u32::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: Session = Session {
        server: [1; 32],
        client: [2; 32],
    };

    fn token() -> Token {
        Token::new(*b"token")
    }

    #[test]
    fn every_reply_is_parsed_as_written() {
        let replies = [
            Reply::Bytes(vec![1, 2, 3]),
            Reply::Bytes(Vec::new()),
            Reply::DuplicateRank,
            Reply::WorldSize(8),
            Reply::Broadcast {
                round: 3,
                length: 128,
            },
            Reply::Missing {
                milliseconds: 5000,
                ranks: vec![1, 7],
            },
        ];
        for reply in replies {
            let mut wire = Vec::new();
            reply
                .write(&mut wire, &SESSION, &token())
                .expect("a vector");
            assert_eq!(
                Reply::read(&mut wire.as_slice(), &SESSION, &token(), 64).expect("a reply"),
                reply
            );
        }
    }

    #[test]
    fn changed_or_replayed_reply_is_not_authentic() {
        let mut wire = Vec::new();
        Reply::Bytes(vec![1, 2, 3])
            .write(&mut wire, &SESSION, &token())
            .expect("a vector");
        for bit in 0..wire.len() * 8 {
            // The length (bytes 1 to 4) decides how much is read; a wrong one is an error or not
            // authentic.
            let mut changed = wire.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let read = Reply::read(&mut changed.as_slice(), &SESSION, &token(), 64);
            assert!(
                matches!(read, Err(_) | Ok(Reply::WrongToken)),
                "bit {bit}: {read:?}"
            );
        }
        let other = Session {
            client: [3; 32],
            ..SESSION
        };
        let read = Reply::read(&mut wire.as_slice(), &other, &token(), 64);
        assert_eq!(read.expect("a reply"), Reply::WrongToken);
    }

    #[test]
    fn reply_beyond_the_limit_is_rejected() {
        let wire = [[0].as_slice(), &u32::MAX.to_be_bytes()].concat();
        let error =
            Reply::read(&mut wire.as_slice(), &SESSION, &token(), 1 << 20).expect_err("too long");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    /// A stream that takes three bytes at a time, and every second time none.
    #[derive(Default)]
    struct Slow {
        written: Vec<u8>,
        is_full: bool,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.is_full = !self.is_full;
            if !self.is_full {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let count = bytes.len().min(3);
            self.written.extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A frame that is sent in pieces arrives whole.
    #[test]
    fn frame_continues_where_it_stopped() -> io::Result<()> {
        for body in [b"".as_slice(), b"bytes of rank 0"] {
            let mut stream = Slow::default();
            let mut frame = Frame::new(BYTES_CODE, body, &SESSION, &token());
            while !frame.send(&mut stream)? {}
            let reply = Reply::read(&mut stream.written.as_slice(), &SESSION, &token(), 64)?;
            assert_eq!(reply, Reply::Bytes(body.to_vec()));
        }
        Ok(())
    }

    #[test]
    fn hello_is_parsed_as_written_and_only_with_the_token() {
        let hello = Hello {
            rank: 3,
            world_size: 8,
            round: 1,
            length: 128,
        };
        let mut wire = Vec::new();
        hello
            .write(&mut wire, &SESSION, &token())
            .expect("a vector");
        let wire = wire.as_slice().try_into().expect("a message");
        let (read, session) = Hello::parse(wire, SESSION.server, &token()).expect("authentic");
        assert_eq!(read, hello);
        assert_eq!(session.client, SESSION.client);
        let other = Hello::parse(wire, SESSION.server, &Token::new(*b"other"));
        assert!(other.is_none());
        let replayed = Hello::parse(wire, [9; 32], &token());
        assert!(replayed.is_none());
    }
}
