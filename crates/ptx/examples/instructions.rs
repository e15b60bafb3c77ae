//! Prints the supported instructions: one per line, with the requirements of its forms, separated
//! by tabs.
//!
//! `cargo xtask support` generates `docs/instructions.md` from the output.

use std::io::{self, Write as _};

fn main() -> io::Result<()> {
    let mut output = io::stdout().lock();
    for (name, requirements) in curium_ptx::syntax::instructions() {
        let columns = [&[name], requirements].concat();
        writeln!(output, "{}", columns.join("\t"))?;
    }
    Ok(())
}
