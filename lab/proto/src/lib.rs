//! Messages and framing between the host and the guest agent.
//!
//! Data only: no I/O and no unsafe live here. Everything a guest sends is a claim by
//! something that may be hostile, so each type has a bound that [`frame`] enforces on the
//! wire and the host checks again where it uses a value.

#![forbid(unsafe_code)]

pub mod frame;
pub mod message;
pub mod observe;
pub mod server;
pub mod step;

/// Version of the wire format; both sides must agree exactly.
pub const VERSION: u8 = 1;

/// Name of the virtio-serial port that carries [`message`] frames.
pub const CONTROL_PORT: &str = "lab.control";

/// Name of the virtio-serial port that carries bulk artifact frames.
pub const BULK_PORT: &str = "lab.bulk";
