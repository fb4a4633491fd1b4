//! Checks of the host, each with why and the fix.
