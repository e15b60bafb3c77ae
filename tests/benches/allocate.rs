//! What allocating and freeing costs: the caching resource beside the driver's pool, called as C calls it, in turns.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    curium_tests::bench("allocate/")
}
