//! A session between kernel and server: what INIT agrees on, and requests to answers.
//!
//! Knows no transport: it is given a request's parts and a buffer, and says how long the
//! reply in it is.

mod dispatch;
mod fault;
mod handler;
mod init;
mod request;

pub use fault::FaultPlan;
pub use handler::{Handler, Outcome};
pub use init::{Agreed, InitError, Offer, answer_init, parse_init, payload_len};
pub use request::Request;
