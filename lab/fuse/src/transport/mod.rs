//! How requests arrive and replies leave: the io_uring ring, and /dev/fuse itself.
//!
//! Nothing here knows what a request means; that is `session`.

mod classic;
mod device;
mod ring;
mod ring_queue;

pub use classic::{Role, serve_device};
pub use device::Device;
pub use ring::{Ring, RingError};
