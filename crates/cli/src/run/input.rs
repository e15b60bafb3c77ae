//! The standard input of rank 0.
//!
//! Rank 0 has a process group of its own, so the system would stop it when it reads from the
//! terminal. Input from a terminal is therefore forwarded through a pipe; other input is inherited.

use std::io;
use std::process::{ChildStdin, Stdio};

/// Returns the standard input for rank 0.
#[cfg(unix)]
pub(super) fn for_rank_0() -> Stdio {
    match io::IsTerminal::is_terminal(&io::stdin()) {
        true => Stdio::piped(),
        false => Stdio::inherit(),
    }
}

#[cfg(not(unix))]
pub(super) fn for_rank_0() -> Stdio {
    Stdio::inherit()
}

/// Forwards the terminal's input to `pipe` on a thread of its own, which ends with either, or with
/// the program.
#[cfg(unix)]
pub(super) fn forward(pipe: ChildStdin) -> io::Result<()> {
    std::thread::Builder::new()
        .name("input of rank 0".to_owned())
        .spawn(move || {
            // A rank that does not read its input is no error.
            let _ = copy_from_terminal(pipe);
        })?;
    Ok(())
}

#[cfg(unix)]
fn copy_from_terminal(mut pipe: ChildStdin) -> io::Result<()> {
    use std::io::Write as _;
    use std::thread;
    use std::time::Duration;

    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::io::retry_on_intr;

    let terminal = io::stdin();
    let mut buffer = [0; 4096];
    loop {
        retry_on_intr(|| poll(&mut [PollFd::new(&terminal, PollFlags::IN)], None))?;
        // A read in the background would stop this program.
        if !is_in_foreground(&terminal) {
            thread::sleep(Duration::from_millis(200));
            continue;
        }
        let count = retry_on_intr(|| rustix::io::read(&terminal, &mut buffer))?;
        if count == 0 {
            return Ok(());
        }
        pipe.write_all(&buffer[..count])?;
    }
}

/// Returns `false` if another process group has the terminal.
#[cfg(unix)]
fn is_in_foreground(terminal: &io::Stdin) -> bool {
    rustix::termios::tcgetpgrp(terminal)
        .map_or(true, |foreground| foreground == rustix::process::getpgrp())
}

#[cfg(not(unix))]
pub(super) fn forward(_: ChildStdin) -> io::Result<()> {
    Ok(())
}
