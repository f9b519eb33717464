//! Conversion only; the core decides.
