//! The communicators of this process, for ranks in others.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Duration;

use curium_sys::nccl::ncclResult_t;
use parking_lot::Mutex;

use super::clique::{Clique, Device};
use super::message::{FIRST_LIMIT, Failure, LIMIT, Message};
use super::registry;

/// The time that a stranger has for its first message.
const PATIENCE: Duration = Duration::from_secs(5);

/// The pause after a connection that could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);

/// The time after which a rank that does not read counts as ended.
const WRITE_PATIENCE: Duration = Duration::from_secs(10);

/// The address of this process: its port, and the secret that its ranks share. The port is 0 if no
/// connection can be accepted: then all ranks are in this process.
pub(super) static ADDRESS: LazyLock<(u16, [u8; 16])> = LazyLock::new(|| {
    let mut secret = [0; 16];
    let (Ok(()), Ok(listener)) = (
        getrandom::fill(&mut secret),
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)),
    ) else {
        return (0, secret);
    };
    let port = listener.local_addr().map_or(0, |address| address.port());
    thread::spawn(move || {
        for stream in listener.incoming() {
            match stream {
                // Without a thread, the connection ends.
                Ok(stream) => drop(thread::Builder::new().spawn(move || serve(stream, &secret))),
                // Such as too many open files.
                Err(_) => thread::sleep(PAUSE),
            }
        }
    });
    (port, secret)
});

/// A rank of another process.
struct Session {
    clique: Arc<Clique>,
    rank: usize,
    process: u32,
    replies: Arc<Mutex<TcpStream>>,
}

/// Serves a rank until its connection ends.
fn serve(mut stream: TcpStream, secret: &[u8; 16]) {
    let Some(session) = Session::open(&mut stream, secret) else {
        return;
    };
    while let Ok(message) = Message::receive(&mut stream, LIMIT) {
        session.receive(message);
    }
    session.clique.disconnect(session.rank, session.process);
}

impl Session {
    /// Reads the first message, and adds the rank. Strangers get no answer.
    fn open(stream: &mut TcpStream, own_secret: &[u8; 16]) -> Option<Self> {
        stream.set_nodelay(true).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        stream.set_write_timeout(Some(WRITE_PATIENCE)).ok()?;
        let Ok(Message::Hello {
            secret,
            number,
            size,
            rank,
            ordinal,
            process,
        }) = Message::receive(stream, FIRST_LIMIT)
        else {
            return None;
        };
        if &secret != own_secret {
            return None;
        }
        stream.set_read_timeout(None).ok()?;
        let replies = Arc::new(Mutex::new(stream.try_clone().ok()?));
        let device = Device {
            ordinal,
            process,
            simulator: 0,
        };
        let arrived = registry::clique(number, size).and_then(|clique| {
            clique.arrive(rank, device, Some(Arc::clone(&replies)))?;
            Ok(clique)
        });
        match arrived {
            Ok(clique) => {
                let session = Self {
                    clique,
                    rank,
                    process,
                    replies,
                };
                session.reply(None);
                // After the reply, which the rank waits for.
                session.clique.announce();
                registry::forget_complete(&session.clique);
                Some(session)
            }
            Err(failure) => {
                let _ = Message::Reply(Some(failure)).send(&mut *replies.lock());
                None
            }
        }
    }

    fn reply(&self, failure: Option<Failure>) {
        // The reader notices the end of the connection.
        let _ = Message::Reply(failure).send(&mut *self.replies.lock());
    }

    fn receive(&self, message: Message) {
        match message {
            Message::Agree {
                channel,
                call,
                operation,
            } => {
                self.reply(
                    self.clique
                        .agree(channel, call, self.rank, &operation)
                        .err(),
                );
            }
            // A rank contributes no data of others.
            Message::Contribute {
                key,
                contributor,
                part,
            } if contributor % self.clique.size == self.rank => {
                self.clique.contribute(key, contributor, part);
            }
            Message::Failed((code, text)) => self.clique.fail((code, text)),
            Message::Leave => self.clique.leave(self.rank, false),
            _ => self.clique.fail((
                ncclResult_t::ncclInternalError,
                format!("rank {} sent an unexpected message", self.rank),
            )),
        }
    }
}
