//! The guest as the host sees it: commands, artifacts.
