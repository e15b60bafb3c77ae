//! The stream of a capture is borrowed only for the capture.

use curium_driver::{CaptureScope, Context, Error, Graph, Result};

fn keep(context: &Context) -> Result<()> {
    let mut kept: Option<&CaptureScope> = None;
    Graph::capture(context, |scope| {
        kept = Some(scope);
        Ok::<_, Error>(())
    })?;
    drop(kept);
    Ok(())
}

fn main() {}
