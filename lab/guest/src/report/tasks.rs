//! User tasks, their states and kernel stacks.

use lab_proto::observe::TaskReport;

use super::read;

/// Most lines of a stack.
const MAX_STACK: usize = 32;

/// Flag of a kernel thread in the flags field of a stat line.
const PF_KTHREAD: u64 = 0x0020_0000;

/// What a stat line of /proc says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stat {
    /// Task id.
    pub(crate) tid: u32,
    /// comm.
    pub(crate) name: String,
    /// State letter.
    pub(crate) state: char,
    /// Parent process.
    pub(crate) ppid: u32,
    /// Whether it is a kernel thread.
    pub(crate) kernel: bool,
}

/// Parses a stat line. comm may hold blanks and parentheses: it ends at the last one.
pub(crate) fn parse_stat(line: &str) -> Option<Stat> {
    let (tid, rest) = line.split_once(" (")?;
    let (name, rest) = rest.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let state = fields.next()?.chars().next()?;
    let ppid = fields.next()?.parse().ok()?;
    let flags: u64 = fields.nth(4)?.parse().ok()?;
    let tid = tid.parse().ok()?;
    Some(Stat { tid, name: name.to_owned(), state, ppid, kernel: flags & PF_KTHREAD != 0 })
}

/// Function names of a /proc stack text, innermost first, without addresses.
pub(crate) fn parse_stack(text: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| line.split_once("] ").map(|(_, function)| function.trim().to_owned()))
        .take(MAX_STACK)
        .collect()
}

/// Kernel stack of a task; empty when it runs, ended or the kernel does not tell.
pub(crate) fn stack(tid: u32) -> Vec<String> {
    read::text(format!("/proc/{tid}/stack")).map(|text| parse_stack(&text)).unwrap_or_default()
}

/// Process ids, ascending.
pub(crate) fn pids() -> Vec<u32> {
    read::numbered("/proc", "")
}

/// Thread ids of a process, ascending.
pub(crate) fn threads(pid: u32) -> Vec<u32> {
    read::numbered(&format!("/proc/{pid}/task"), "")
}

/// One task, none when it ended or is a kernel thread that has nothing to do with FUSE.
pub(crate) fn report(pid: u32, tid: u32) -> Option<TaskReport> {
    let stat = parse_stat(&read::text(format!("/proc/{pid}/task/{tid}/stat"))?)?;
    let mut stack = stack(tid);
    if stat.kernel && !in_fuse(&stack) {
        return None;
    }
    if stack.is_empty()
        && let Some(wchan) = read::text(format!("/proc/{tid}/wchan")).filter(|w| w != "0")
    {
        stack.push(wchan);
    }
    let syscall = read::text(format!("/proc/{tid}/syscall")).unwrap_or_default();
    let state = stat.state.to_string();
    Some(TaskReport { tid, pid, name: stat.name, state, stack, syscall })
}

/// Whether a task waits in the kernel's FUSE code for an answer; a server that waits for
/// requests on /dev/fuse does not.
pub(crate) fn waits_in_fuse(task: &TaskReport) -> bool {
    in_fuse(&task.stack)
}

fn in_fuse(stack: &[String]) -> bool {
    let any = |part: &str| stack.iter().any(|function| function.contains(part));
    any("fuse_") && !any("fuse_dev_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_lines() {
        let line = "77 (a) b (c)) D 5 77 77 0 -1 4194560 1 0";
        let stat = parse_stat(line).unwrap();
        assert_eq!((stat.tid, stat.name.as_str(), stat.state, stat.ppid), (77, "a) b (c)", 'D', 5));
        assert!(!stat.kernel);
        assert!(parse_stat("2 (kthreadd) S 0 0 0 0 -1 2129984 0 0").unwrap().kernel);
        assert_eq!(parse_stat("77 a D"), None);
    }

    #[test]
    fn stacks_lose_their_addresses() {
        let text = "[<0>] fuse_get_req+0x1a/0x2b0 [fuse]\n[<0>] do_sys+0x1/0x2\n";
        assert_eq!(parse_stack(text), ["fuse_get_req+0x1a/0x2b0 [fuse]", "do_sys+0x1/0x2"]);
    }
}
