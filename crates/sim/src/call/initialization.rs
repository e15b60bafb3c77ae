//! The order in which calls check the initialization of the driver, as an H200 does (CUDA 13.0).

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_function_has_one_order() {
        for function in AFTER_ARGUMENTS {
            assert!(!INDEPENDENT.contains(function), "{function}");
        }
    }
}
