//! Where news comes from.
