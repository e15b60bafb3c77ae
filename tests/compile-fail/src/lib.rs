//! Programs that must not compile are in `tests`: this package has no code of its own.
