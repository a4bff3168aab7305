//! What an operator sets: read from files, checked once, and handed on as plain values.

pub mod catalogue;
