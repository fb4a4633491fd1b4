//! Reporters: each a fold over events.
