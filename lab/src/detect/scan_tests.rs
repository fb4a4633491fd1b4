//! Scans of logs that are torn, mixed, noisy or hostile.

use super::*;

fn titles(log: &str) -> Vec<String> {
    scan(log.as_bytes()).into_iter().map(|f| f.title).collect()
}

const OOPS: &str = "\
[   41.000000][  T212] fuse: init (API version 7.46)
[   41.377812][  T231] BUG: kernel NULL pointer dereference, address: 0000000000000028
[   41.377901][  T231] #PF: supervisor read access in kernel mode
[   41.378040][  T231] Oops: Oops: 0000 [#1] SMP PTI
[   41.378110][  T231] CPU: 1 UID: 0 PID: 231 Comm: lab-server Not tainted 7.3.4 #1
[   41.378201][  T231] RIP: 0010:fuse_uring_commit_fetch.isra.0+0x1ab/0x4c0
[   41.378255][  T231] RSP: 0018:ffffc90000a4bd10 EFLAGS: 00010246
[   41.378300][  T231] Call Trace:
[   41.378322][  T231]  <TASK>
[   41.378350][  T231]  fuse_uring_cmd+0x2ef/0xb10
[   41.378400][  T231]  ? io_skipped+0x2ef/0xb10
[   41.378430][  T231]  io_issue_sqe.cold+0x5c/0x3e0
[   41.378470][  T231]  </TASK>
[   41.378520][  T231] ---[ end trace 0000000000000000 ]---
[   41.379001][  T231] Kernel panic - not syncing: Fatal exception
";

#[test]
fn an_oops_is_one_fault_and_the_panic_after_it_is_linked() {
    let faults = scan(OOPS.as_bytes());
    let oops = "BUG: unable to handle kernel NULL pointer dereference in fuse_uring_commit_fetch";
    let seen: Vec<_> = faults.iter().map(|f| (f.title.as_str(), f.follows)).collect();
    assert_eq!(seen, [(oops, None), ("kernel panic: Fatal exception", Some(0))]);
    let fault = &faults[0];
    assert_eq!((fault.kind, fault.first_line, fault.times), (Kind::Oops, 2, 1));
    let names = "fuse_uring_commit_fetch < fuse_uring_cmd < io_issue_sqe";
    assert_eq!(fault.fingerprint, format!("null-dereference: {names}"));
    assert!(fault.lines[0].ends_with("fuse: init (API version 7.46)"));
    assert!(fault.lines.last().unwrap().ends_with("---[ end trace 0000000000000000 ]---"));
    assert!(!fault.lines.iter().any(|l| l.contains("RSP:")));
}

/// A warning on a CPU, line by line.
fn warning(prefix: &str, name: &str, cpu: u32, taint: &str) -> Vec<String> {
    [
        "------------[ cut here ]------------".to_owned(),
        format!("WARNING: x.c:1 at {name}+0x1/0x9, CPU#{cpu}: x/{cpu}"),
        "Modules linked in:".to_owned(),
        format!("CPU: {cpu} UID: 0 PID: 7 Comm: x {taint} 7.3.4 #1"),
        format!("RIP: 0010:{name}+0x1/0x9"),
        "Call Trace:".to_owned(),
        format!(" caller_of_{name}+0x5/0x80"),
        "---[ end trace 0000000000000000 ]---".to_owned(),
    ]
    .map(|text| format!("{prefix}{text}\n"))
    .to_vec()
}

fn mixed(a: &[String], b: &[String]) -> String {
    a.iter().zip(b).map(|(x, y)| format!("{x}{y}")).collect()
}

#[test]
fn reports_of_two_cpus_are_told_apart_by_their_callers() {
    let first = warning("[    1.000000][    T7] ", "fuse_a", 0, "Not tainted");
    let second = warning("[    1.000000][    C1] ", "fuse_b", 1, "Not tainted");
    let faults = scan(mixed(&first, &second).as_bytes());
    let prints: Vec<&str> = faults.iter().map(|f| f.fingerprint.as_str()).collect();
    assert_eq!(
        prints,
        ["warning: fuse_a < caller_of_fuse_a", "warning: fuse_b < caller_of_fuse_b"]
    );
    assert!(faults[0].lines.iter().skip(1).all(|l| l.contains("T7")), "{:?}", faults[0].lines);
}

#[test]
fn without_callers_a_line_goes_to_the_report_that_it_fits() {
    let first = warning("[    1.000000] ", "fuse_a", 0, "Tainted: G      D   ");
    let second = warning("[    1.000000] ", "fuse_b", 1, "Tainted: G        W ");
    let faults = scan((OOPS.to_owned() + &mixed(&first, &second)).as_bytes());
    let seen: Vec<_> = faults[2..].iter().map(|f| (f.title.as_str(), f.follows)).collect();
    // Only the first comes after the oops, as only the line of its CPU says so.
    assert_eq!(seen, [("WARNING in fuse_a", Some(0)), ("WARNING in fuse_b", None)]);
    let prints: Vec<&str> = faults[2..].iter().map(|f| f.fingerprint.as_str()).collect();
    assert_eq!(prints, ["warning: fuse_a", "warning: fuse_b"]);
}

#[test]
fn lost_lines_leave_a_fault() {
    // The head of the report is lost.
    let headless = OOPS.lines().filter(|l| !l.contains("BUG:")).collect::<Vec<_>>().join("\n");
    assert_eq!(titles(&headless)[0], "Oops in fuse_uring_commit_fetch");
    let cut = "[    1.000000] ------------[ cut here ]------------\n\
               [    1.000000] RIP: 0010:fuse_x+0x1/0x2\n[    1.000000] ---[ end trace 0 ]---\n";
    assert_eq!(titles(cut), ["report without a head in fuse_x"]);
    assert_eq!(titles("[    1.000000] ------------[ cut here ]------------\nx\n"), [""; 0]);
    // A head that goes on in the next line.
    let split = "[    1.000000] WARNING: fs/fuse/dev_uring.c:144 at \n\
                 fuse_uring_destruct+0x1f0/0x220, CPU#0: umount/156\n\
                 [    1.000000] RIP: 0010:fuse_uring_destruct+0x1f0/0x220\n";
    assert_eq!(titles(split), ["WARNING in fuse_uring_destruct"]);
    assert_eq!(scan(b"x\r\n[    1.000000] Kernel panic - not syncing: a").len(), 1);
    assert_eq!(scan(b""), []);
}

#[test]
fn noise_does_not_hide_a_fault() {
    for line in [
        "\0\0\0[    1.000000] Kernel panic - not syncing: x",
        "\x1b[0m[    1.000000] Kernel panic - not syncing: x\r\r",
        "<0>[    1.000000][    T1] Kernel panic - not syncing: x",
        "\u{fffd}half a line[    1.000000] Kernel panic - not syncing: x",
        "Kernel pan\0ic - not syncing: x",
    ] {
        assert_eq!(titles(line), ["kernel panic: x"], "{line:?}");
    }
}

#[test]
fn what_is_reported_again_is_counted() {
    let report = |n: u32| {
        format!(
            "[   14.{n:06}] INFO: task x:{n} blocked for more than {n} seconds.\n\
             [   14.{n:06}] Call Trace:\n[   14.{n:06}]  <TASK>\n[   14.{n:06}]  schedule+0x1/0x2\n\
             [   14.{n:06}]  fuse_wait+0x1/0x2\n[   14.{n:06}]  </TASK>\n"
        )
    };
    let log: String = (0..1000).map(report).collect();
    let faults = scan((log + OOPS).as_bytes());
    assert_eq!((faults.len(), faults[0].times), (3, 1000));
    assert_eq!(faults[0].title, "INFO: task hung in fuse_wait");
    assert_eq!(faults[2].follows, Some(1));
}

#[test]
fn a_fault_of_a_kernel_that_died_before_is_a_consequence() {
    let later = "[   60.000000][    C1] watchdog: BUG: soft lockup - CPU#1 stuck for 26s! [x:7]\n\
                 [   60.000001][    C1] CPU: 1 PID: 7 Comm: x Tainted: G      D    7.3.4 #1\n";
    let faults = scan(format!("{OOPS}{later}").as_bytes());
    assert_eq!(faults.last().unwrap().follows, Some(0));
    assert_eq!(scan(later.replace("D ", "W ").as_bytes())[0].follows, None);
}

#[test]
fn a_hostile_console_is_bounded() {
    let brackets = [b"[".repeat(4095), b"\n".to_vec()].concat();
    let mut log = brackets.repeat(256);
    for n in 0..10_000 {
        let name: String = format!("{n}").bytes().map(|b| char::from(b - b'0' + b'a')).collect();
        log.extend(format!("[    1.000000] BUG: {name} \u{1b}[2J\n").bytes());
        log.extend(b"\xff\xfe\x00\n");
    }
    let faults = scan(&log);
    assert_eq!(faults.len(), MAX_FAULTS);
    assert!(faults.iter().all(|f| f.lines.len() <= BEFORE + super::super::report::MAX_LINES));
    assert!(faults.iter().all(|f| !f.lines.concat().contains('\u{1b}')));
    let long = [b"BUG: ".to_vec(), b"\xf0\x9f".repeat(1 << 20)].concat();
    assert!(scan(&long)[0].title.chars().count() <= 160);
    assert!(scan(&long)[0].message.chars().count() <= 240);
}
