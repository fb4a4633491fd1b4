//! What every reporter is.

use crate::run::events::Record;

/// A fold over the events of a run that writes somewhere.
///
/// Output that fails (a closed pipe, a full disk) does not stop the run: a reporter gives up
/// writing and goes on folding.
pub trait Reporter: Send {
    /// Takes the next record.
    fn on(&mut self, record: &Record);
    /// Writes what is kept for the end. Called once, after the last record.
    fn finish(&mut self);
}
