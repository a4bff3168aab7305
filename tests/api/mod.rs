//! The public interface over a real socket.

mod smoke;
