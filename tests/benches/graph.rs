//! What graphs cost on the host, beside C's twin in the same run.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    curium_tests::bench("graph/")
}
