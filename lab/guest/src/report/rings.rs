//! io_uring instances as /proc shows them.

use std::path::Path;

use lab_proto::observe::RingReport;

use super::read;

/// What a file descriptor of an io_uring instance links to.
const LINK: &str = "anon_inode:[io_uring]";

/// Most lines of one instance, and bytes of a line: a ring that is full of entries lists each.
const MAX_LINES: usize = 64;
const MAX_LINE: usize = 200;

/// Every instance that the process has open.
pub(crate) fn of(pid: u32) -> Vec<RingReport> {
    let name = read::text(format!("/proc/{pid}/comm")).unwrap_or_default();
    let is_ring = |fd: &u32| {
        let link = std::fs::read_link(format!("/proc/{pid}/fd/{fd}"));
        link.is_ok_and(|link| link == Path::new(LINK))
    };
    let report = |fd| {
        let text = read::text(format!("/proc/{pid}/fdinfo/{fd}"))?;
        Some(RingReport { pid, name: name.clone(), fd, lines: lines(&text) })
    };
    let fds = read::numbered(&format!("/proc/{pid}/fd"), "");
    fds.into_iter().filter(is_ring).filter_map(report).collect()
}

fn lines(text: &str) -> Vec<String> {
    let cut = |line: &str| line.chars().take(MAX_LINE).collect();
    text.lines().take(MAX_LINES).map(cut).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut() {
        let text = format!("{}\n", "x".repeat(999)).repeat(99);
        let lines = lines(&text);
        assert_eq!((lines.len(), lines[0].len()), (MAX_LINES, MAX_LINE));
    }
}
