//! The whole command against a naive implementation.
