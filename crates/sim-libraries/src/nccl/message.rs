//! Messages between the processes of a communicator's ranks: a length, a kind, and fields in a
//! fixed order.

use std::io::{self, Read, Write};
use std::sync::Arc;

use curium_sys::nccl::{ncclDataType_t, ncclRedOp_t, ncclResult_t};

use super::clique::{Channel, Key};
use super::operation::{Kind, Operation};
use super::reduce::{Factor, Operator};

/// The longest message of a stranger, which is to be [`Message::Hello`].
pub(super) const FIRST_LIMIT: usize = 128;

/// The longest message of a rank.
pub(super) const LIMIT: usize = 1 << 31;

/// The code and the text of an error.
pub(super) type Failure = (ncclResult_t, String);

/// The contributions of the ranks, each with the number of its rank.
pub(super) type Parts = Vec<(usize, Arc<[u8]>)>;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Message {
    /// The first message: the secret of the process, the number of the communicator, and the rank.
    Hello {
        secret: [u8; 16],
        number: u64,
        size: usize,
        rank: usize,
        ordinal: i32,
        process: u32,
    },
    /// A call, which the other ranks must make as well.
    Agree {
        channel: Channel,
        call: u64,
        operation: Operation,
    },
    /// The answer to `Hello` and `Agree`.
    Reply(Option<Failure>),
    /// Data of a rank for one run of an operation.
    Contribute {
        key: Key,
        contributor: usize,
        part: Arc<[u8]>,
    },
    /// The data of all ranks.
    Ready { key: Key, parts: Parts },
    /// Every rank has arrived.
    Complete,
    /// The communicator has failed.
    Failed(Failure),
    /// A rank, or the process that has the communicator, ends as it should.
    Leave,
}

impl Message {
    /// Writes the message with its length in one call.
    pub(super) fn send(&self, stream: &mut impl Write) -> io::Result<()> {
        let mut bytes = Bytes(vec![0; 4]);
        self.encode(&mut bytes);
        let len = u32::try_from(bytes.0.len() - 4).map_err(|_| io::ErrorKind::InvalidInput)?;
        bytes.0[..4].copy_from_slice(&len.to_le_bytes());
        stream.write_all(&bytes.0)
    }

    /// Reads a message of at most `limit` bytes.
    pub(super) fn receive(stream: &mut impl Read, limit: usize) -> io::Result<Self> {
        let mut len = [0; 4];
        stream.read_exact(&mut len)?;
        let len = u32::from_le_bytes(len) as usize;
        if len > limit {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut bytes = vec![0; len];
        stream.read_exact(&mut bytes)?;
        Self::decode(&mut Fields(&bytes)).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn encode(&self, to: &mut Bytes) {
        match self {
            Self::Hello {
                secret,
                number,
                size,
                rank,
                ordinal,
                process,
            } => {
                to.kind(0)
                    .bytes(secret)
                    .number(*number)
                    .number(*size as u64)
                    .number(*rank as u64);
                to.number(u64::from(ordinal.cast_unsigned()))
                    .number(u64::from(*process));
            }
            Self::Agree {
                channel,
                call,
                operation,
            } => {
                to.kind(1)
                    .channel(*channel)
                    .number(*call)
                    .operation(operation);
            }
            Self::Reply(None) => {
                to.kind(2);
            }
            Self::Reply(Some(failure)) => {
                to.kind(3).failure(failure);
            }
            Self::Contribute {
                key,
                contributor,
                part,
            } => {
                to.kind(4).key(*key).number(*contributor as u64).bytes(part);
            }
            Self::Ready { key, parts } => {
                to.kind(5).key(*key).number(parts.len() as u64);
                for (rank, part) in parts {
                    to.number(*rank as u64).bytes(part);
                }
            }
            Self::Complete => {
                to.kind(6);
            }
            Self::Failed(failure) => {
                to.kind(7).failure(failure);
            }
            Self::Leave => {
                to.kind(8);
            }
        }
    }

    fn decode(from: &mut Fields<'_>) -> Option<Self> {
        Some(match from.byte()? {
            0 => Self::Hello {
                secret: from.bytes()?.try_into().ok()?,
                number: from.number()?,
                size: from.size()?,
                rank: from.size()?,
                ordinal: u32::try_from(from.number()?).ok()?.cast_signed(),
                process: from.number()?.try_into().ok()?,
            },
            1 => Self::Agree {
                channel: from.channel()?,
                call: from.number()?,
                operation: from.operation()?,
            },
            2 => Self::Reply(None),
            3 => Self::Reply(Some(from.failure()?)),
            4 => Self::Contribute {
                key: from.key()?,
                contributor: from.size()?,
                part: from.bytes()?.into(),
            },
            5 => {
                let key = from.key()?;
                let parts = (0..from.number()?).map(|_| Some((from.size()?, from.bytes()?.into())));
                Self::Ready {
                    key,
                    parts: parts.collect::<Option<_>>()?,
                }
            }
            6 => Self::Complete,
            7 => Self::Failed(from.failure()?),
            8 => Self::Leave,
            _ => return None,
        })
    }
}

/// The bytes of a message that is written.
struct Bytes(Vec<u8>);

impl Bytes {
    fn kind(&mut self, kind: u8) -> &mut Self {
        self.0.push(kind);
        self
    }

    fn number(&mut self, number: u64) -> &mut Self {
        self.0.extend(number.to_le_bytes());
        self
    }

    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.number(bytes.len() as u64).0.extend(bytes);
        self
    }

    fn failure(&mut self, (code, text): &Failure) -> &mut Self {
        self.number(code.0.into()).bytes(text.as_bytes())
    }

    fn channel(&mut self, channel: Channel) -> &mut Self {
        match channel {
            Channel::Collective => self.kind(0),
            Channel::Pair { from, to } => self.kind(1).number(from as u64).number(to as u64),
            Channel::Creation => self.kind(2),
        }
    }

    fn key(&mut self, key: Key) -> &mut Self {
        self.channel(key.channel).number(key.call).number(key.run)
    }

    fn operator(&mut self, operator: Operator) -> &mut Self {
        match operator {
            Operator::Plain(operator) => self.kind(0).number(operator.0.into()),
            Operator::Scaled(Factor::Value(factor)) => {
                self.kind(1).number(u64::from_le_bytes(factor))
            }
            Operator::Scaled(Factor::Address(address)) => self.kind(2).number(address),
        }
    }

    fn operation(&mut self, operation: &Operation) -> &mut Self {
        match operation.kind {
            Kind::AllReduce(operator) => self.kind(0).operator(operator),
            Kind::Reduce(operator, root) => self.kind(1).operator(operator).number(root as u64),
            Kind::Broadcast(root) => self.kind(2).number(root as u64),
            Kind::AllGather => self.kind(3),
            Kind::ReduceScatter(operator) => self.kind(4).operator(operator),
            Kind::AllToAll => self.kind(5),
            Kind::Gather(root) => self.kind(6).number(root as u64),
            Kind::Scatter(root) => self.kind(7).number(root as u64),
            Kind::Send => self.kind(8),
            Kind::Receive => self.kind(9),
            Kind::Window => self.kind(10),
        };
        self.number(operation.count as u64)
            .number(operation.element.0.into())
            .number(operation.width as u64)
    }
}

/// The fields of a message that were not read yet.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|byte| byte[0])
    }

    fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn size(&mut self) -> Option<usize> {
        self.number()?.try_into().ok()
    }

    fn code(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.size()?;
        self.take(len)
    }

    fn failure(&mut self) -> Option<Failure> {
        Some((
            ncclResult_t(self.code()?),
            String::from_utf8_lossy(self.bytes()?).into_owned(),
        ))
    }

    fn channel(&mut self) -> Option<Channel> {
        Some(match self.byte()? {
            0 => Channel::Collective,
            1 => Channel::Pair {
                from: self.size()?,
                to: self.size()?,
            },
            2 => Channel::Creation,
            _ => return None,
        })
    }

    fn key(&mut self) -> Option<Key> {
        Some(Key {
            channel: self.channel()?,
            call: self.number()?,
            run: self.number()?,
        })
    }

    fn operator(&mut self) -> Option<Operator> {
        Some(match self.byte()? {
            0 => Operator::Plain(ncclRedOp_t(self.code()?)),
            1 => Operator::Scaled(Factor::Value(self.number()?.to_le_bytes())),
            2 => Operator::Scaled(Factor::Address(self.number()?)),
            _ => return None,
        })
    }

    fn operation(&mut self) -> Option<Operation> {
        let kind = match self.byte()? {
            0 => Kind::AllReduce(self.operator()?),
            1 => Kind::Reduce(self.operator()?, self.size()?),
            2 => Kind::Broadcast(self.size()?),
            3 => Kind::AllGather,
            4 => Kind::ReduceScatter(self.operator()?),
            5 => Kind::AllToAll,
            6 => Kind::Gather(self.size()?),
            7 => Kind::Scatter(self.size()?),
            8 => Kind::Send,
            9 => Kind::Receive,
            10 => Kind::Window,
            _ => return None,
        };
        Some(Operation {
            kind,
            count: self.size()?,
            element: ncclDataType_t(self.code()?),
            width: self.size()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages() -> Vec<Message> {
        let channel = Channel::Pair { from: 1, to: 300 };
        let key = Key {
            channel,
            call: 7,
            run: u64::MAX,
        };
        let scaled = Operator::Scaled(Factor::Value([1, 2, 3, 4, 5, 6, 7, 8]));
        let kinds = [
            Kind::AllReduce(scaled),
            Kind::Reduce(Operator::Plain(ncclRedOp_t::ncclMax), 3),
            Kind::ReduceScatter(Operator::Scaled(Factor::Address(0x1234_5678_9abc))),
            Kind::Broadcast(1),
            Kind::AllGather,
            Kind::ReduceScatter(scaled),
            Kind::AllToAll,
            Kind::Gather(2),
            Kind::Scatter(4),
            Kind::Send,
            Kind::Receive,
            Kind::Window,
        ];
        let calls = kinds.map(|kind| Message::Agree {
            channel: Channel::Collective,
            call: 1,
            operation: Operation {
                kind,
                count: 5,
                element: ncclDataType_t::ncclFloat32,
                width: 4,
            },
        });
        let failure = (ncclResult_t::ncclRemoteError, "rank 3 has ended".to_owned());
        let others = [
            Message::Hello {
                secret: [9; 16],
                number: 4,
                size: 8,
                rank: 7,
                ordinal: -1,
                process: 99,
            },
            Message::Reply(None),
            Message::Reply(Some(failure.clone())),
            Message::Contribute {
                key,
                contributor: 3,
                part: [1, 2, 3][..].into(),
            },
            Message::Ready {
                key,
                parts: vec![(0, [][..].into()), (9, [4; 100][..].into())],
            },
            Message::Complete,
            Message::Failed(failure),
            Message::Leave,
        ];
        calls.into_iter().chain(others).collect()
    }

    #[test]
    fn message_is_received_as_sent() {
        for message in messages() {
            let mut bytes = Vec::new();
            message.send(&mut bytes).expect("a vector takes it");
            let received = Message::receive(&mut &bytes[..], LIMIT);
            assert_eq!(received.expect("incomplete message"), message);
        }
    }

    #[test]
    fn damaged_message_is_an_error() {
        for message in messages() {
            let mut bytes = Vec::new();
            message.send(&mut bytes).expect("a vector takes it");
            for len in 4..bytes.len() {
                let mut short = bytes[..len].to_vec();
                short[..4].copy_from_slice(&(len as u32 - 4).to_le_bytes());
                assert!(
                    Message::receive(&mut &short[..], LIMIT).is_err(),
                    "{message:?}, {len} bytes"
                );
            }
        }
        let long = [u32::MAX.to_le_bytes(), [0; 4]].concat();
        let error = Message::receive(&mut &long[..], FIRST_LIMIT).expect_err("it is too long");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
