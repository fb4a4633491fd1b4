//! The task dump that a kernel prints when it is asked for one (sysrq-t, sysrq-w), back to
//! tasks. Pure; the text comes from a guest and may be torn, mixed and endless.

use lab_proto::observe::TaskReport;

/// Most tasks that a dump yields: the dumps of guests have about a hundred.
const MAX_TASKS: usize = 1024;

/// Most functions of a stack.
const MAX_STACK: usize = 32;

/// Bytes of a line that are looked at.
const MAX_LINE: usize = 512;

/// Flag of a kernel thread in `task_flags`.
const PF_KTHREAD: u64 = 0x0020_0000;

/// The id of the parent of all kernel threads.
const KTHREADD: u32 = 2;

/// User tasks, and kernel threads in FUSE, of the dumps in a console's text, each once: of a task that is in several dumps,
/// the first that shows a stack.
pub fn tasks(console: &str) -> Vec<TaskReport> {
    let mut found: Vec<TaskReport> = Vec::new();
    let mut current: Option<(TaskReport, bool)> = None;
    for line in console.lines() {
        let message = message(clip(line));
        if let Some(head) = message.strip_prefix("task:") {
            keep(&mut found, current.take());
            current = parse_head(head);
        } else if let Some((task, _)) = &mut current
            && let Some(function) = function(message)
            && task.stack.len() < MAX_STACK
        {
            task.stack.push(function.to_owned());
        } else if message.starts_with("sysrq: ") || message.starts_with("Showing ") {
            keep(&mut found, current.take());
        }
    }
    keep(&mut found, current);
    found
}

fn keep(found: &mut Vec<TaskReport>, task: Option<(TaskReport, bool)>) {
    let Some((task, kernel)) = task else { return };
    if kernel && !task.stack.iter().any(|function| function.contains("fuse_")) {
        return;
    }
    match found.iter().position(|known| known.tid == task.tid) {
        Some(at) if found[at].stack.is_empty() => found[at] = task,
        Some(_) => {}
        None if found.len() < MAX_TASKS => found.push(task),
        None => {}
    }
}

fn clip(line: &str) -> &str {
    let end = (0..=line.len().min(MAX_LINE)).rev().find(|at| line.is_char_boundary(*at));
    &line[..end.unwrap_or(0)]
}

/// A line without time stamp and caller.
fn message(line: &str) -> &str {
    let mut text = line.trim();
    while let Some((inside, rest)) = text.strip_prefix('[').and_then(|t| t.split_once(']')) {
        let stamp = |c: char| c.is_ascii_digit() || matches!(c, ' ' | '.' | 'T' | 'C');
        if !inside.chars().all(stamp) {
            break;
        }
        text = rest.trim_start();
    }
    text
}

/// `lab-agent       state:T stack:0     pid:77    tgid:77    ppid:1      task_flags:0x400040 …`;
/// with it, whether it is a kernel thread.
fn parse_head(head: &str) -> Option<(TaskReport, bool)> {
    let (name, rest) = head.split_once(" state:")?;
    let state = rest.chars().next().filter(char::is_ascii_alphabetic)?;
    let field = |key: &str| {
        let value = rest.split_once(key)?.1.trim_start();
        value.split(' ').next().filter(|value| !value.is_empty())
    };
    let number = |key: &str| field(key)?.parse::<u32>().ok();
    let tid = number(" pid:")?;
    let flags = field(" task_flags:0x").and_then(|hex| u64::from_str_radix(hex, 16).ok());
    let kernel = flags.is_some_and(|flags| flags & PF_KTHREAD != 0)
        || tid == KTHREADD
        || number(" ppid:") == Some(KTHREADD);
    let name = name.trim().chars().filter(|c| !c.is_control()).take(32).collect();
    let pid = number(" tgid:").unwrap_or(tid);
    let syscall = String::new();
    let stack = Vec::new();
    Some((TaskReport { tid, pid, name, state: state.into(), stack, syscall }, kernel))
}

/// `request_wait_answer+0x12f/0x210 [fuse]`, and only frames that are sure.
fn function(message: &str) -> Option<&str> {
    let (name, rest) = message.split_once("+0x")?;
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    let offset = rest.split([' ', '\t']).next()?;
    (!name.is_empty() && name.chars().all(word) && offset.contains("/0x")).then_some(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a real kernel printed it while a reply was lost.
    const REAL: &str = include_str!("samples/sysrq-t.log");

    #[test]
    fn the_tasks_of_a_real_dump() {
        let tasks = tasks(REAL);
        let waits =
            |task: &&TaskReport| task.stack.iter().any(|f| f.starts_with("request_wait_answer+0x"));
        let waiters: Vec<_> = tasks.iter().filter(waits).collect();
        assert_eq!(waiters.len(), 1, "{tasks:#?}");
        assert_eq!(waiters[0].state, "S");
        assert!(tasks.iter().any(|t| t.name == "lab-agent" || t.name == "init"));
        assert!(tasks.iter().all(|t| t.name != "kthreadd" && !t.name.starts_with("kworker")));
    }

    #[test]
    fn a_head_tells_task_process_and_state() {
        let head = "a b             state:D stack:14360 pid:78    tgid:77    ppid:70     \
                    task_flags:0x400040 flags:0x00004002";
        let (task, kernel) = parse_head(head).unwrap();
        assert!(!kernel);
        assert_eq!(
            (task.tid, task.pid, task.name.as_str(), task.state.as_str()),
            (78, 77, "a b", "D")
        );
        let thread = "kworker/0:1     state:I stack:0     pid:9     tgid:9     ppid:2      \
                      task_flags:0x4208060 flags:0x00004000";
        assert!(parse_head(thread).unwrap().1);
        let dump = |function: &str| tasks(&format!("task:{thread}\n {function}+0x1/0x2\n"));
        assert!(dump("worker_thread").is_empty());
        assert_eq!(dump("fuse_writepages").len(), 1, "a flusher that waits for a server");
        for odd in ["", "x", "x state:", "x state:D", "x state:D pid:99999999999"] {
            assert_eq!(parse_head(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_task_in_two_dumps_is_one() {
        let head = "[    1.000000][   T12] task:cat             state:D stack:0     pid:7     tgid:7     ppid:1\n";
        let text =
            format!("{head}[    1.000001]  ? unsure+0x1/0x2\n[    1.000002]  sure+0x1/0x2\n");
        let tasks = tasks(&(text.clone() + &text));
        assert_eq!(tasks.len(), 1);
        assert_eq!(tasks[0].stack, ["sure+0x1/0x2"]);
    }

    #[test]
    fn hostile_text_is_bounded() {
        let mut text = String::new();
        for tid in 10..10 + 2 * MAX_TASKS {
            text += &format!("task:{}state:D pid:{tid}\n", "\u{1b}[2Jä".repeat(300));
            text += &format!("task:\u{1b}x state:D pid:{tid} tgid:1\n");
            text += &"f+0x1/0x2\n".repeat(40);
        }
        let tasks = tasks(&text);
        assert_eq!(tasks.len(), MAX_TASKS);
        assert!(tasks.iter().all(|t| t.stack.len() <= MAX_STACK && t.name == "x"));
    }
}
