//! What a scan yields. Data only.

use super::rule::Kind;

/// Most different faults that one log yields.
pub const MAX_FAULTS: usize = 32;

/// Something that the kernel said about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What it is.
    pub kind: Kind,
    /// Name of the rule that found it.
    pub rule: &'static str,
    /// One line that is the same in every run, such as `WARNING in fuse_uring_destruct`; at most
    /// 160 characters, without control characters.
    pub title: String,
    /// File and line where it is, where debug info tells.
    pub place: Option<String>,
    /// The message without its prefixes, at most 240 characters.
    pub message: String,
    /// Rule and innermost functions; what two logs have in common has the same one.
    pub fingerprint: String,
    /// The lines of the report and the two before it, without registers; at most 42 of at most
    /// 240 characters.
    pub lines: Vec<String>,
    /// Line of the message in the log, from 1.
    pub first_line: usize,
    /// How often it was reported.
    pub times: u32,
    /// Index of the fault of the same log that this one is a consequence of.
    pub follows: Option<usize>,
}
