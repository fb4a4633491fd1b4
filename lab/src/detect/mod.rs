//! Console text to faults; pure. Rules are data.
