//! The FUSE server of the lab: the load under test, and the instrument that watches it.
//!
//! One file-system trait ([`fs::FileSystem`]) is served over two transports, the io_uring
//! ring and reads and writes on /dev/fuse, by the same request code. [`server::Server`] is
//! the library; [`control::main`] puts it behind JSON lines on standard input and output.

pub mod abi;
pub mod control;
pub mod errno;
pub mod fs;
pub mod server;
pub mod session;
pub mod sys;
pub mod telemetry;
pub mod transport;
