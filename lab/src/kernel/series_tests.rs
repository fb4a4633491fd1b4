//! Series as they come: directories, mboxes with answers and encodings, git ranges.

use super::*;

fn change(file: &str, old: &str, new: &str) -> String {
    format!(
        "diff --git a/{file} b/{file}\n--- a/{file}\n+++ b/{file}\n@@ -1 +1 @@\n-{old}\n+{new}\n"
    )
}

fn mail(subject: &str, body: &str) -> String {
    format!(
        "From a@b Mon Sep 17 00:00:00 2001\nFrom: A <a@b>\nSubject: {subject}\n\nText.\n---\n{body}\n"
    )
}

async fn read_mbox(mails: &[String]) -> Result<Series, String> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("topic.mbox");
    std::fs::write(&path, mails.concat()).unwrap();
    let place = SeriesPlace::Path(path);
    read(&place, &CancellationToken::new()).await.map_err(|e| e.to_string())
}

#[tokio::test]
async fn a_thread_gives_its_patches_in_order() {
    let cover = mail("[PATCH v4 0/2] fuse: topic", "base-commit: 0123456789abcdef\n");
    let one = mail("[PATCH v4 1/2] fuse: one", &change("fs/a.c", "a", "b"));
    let two = mail("[PATCH v4 2/2] fuse: two", &change("fs/a.c", "b", "c"));
    let answer = mail("Re: [PATCH v4 1/2] fuse: one", &format!("> x\n{}", change("c", "a", "b")));
    let series = read_mbox(&[two, answer, cover, one]).await.unwrap();
    let titles: Vec<String> = series.patches.iter().map(title).collect();
    assert_eq!(titles, ["fuse: one", "fuse: two"]);
    assert_eq!(series.patches[0].name, "0001-fuse-one.patch");
    assert_eq!((series.name.as_str(), series.version, series.left_out), ("topic", Some(4), 2));
    assert_eq!(series.title.as_deref(), Some("fuse: topic"));
    assert_eq!(series.base_commit.as_deref(), Some("0123456789abcdef"));
}

#[tokio::test]
async fn what_is_missing_or_doubled_is_named() {
    let patch = |head: &str| mail(head, &change("fs/a.c", "a", "b"));
    let cases: [(&[&str], &str); 5] = [
        (&["[PATCH 1/3] a", "[PATCH 3/3] c"], "patch 2/3 is missing"),
        (&["[PATCH 1/2] a", "[PATCH 2/2] b", "[PATCH 2/2] b"], "patch 2/2 is there more than once"),
        (&["[PATCH v4 1/1] a", "[PATCH v5 1/1] a"], "it holds v4 and v5"),
        (&["[PATCH 1/1] a", "[PATCH] b"], "`b` has no number"),
        (&["hello"], "no patch in it"),
    ];
    for (subjects, why) in cases {
        let mails: Vec<String> = subjects.iter().map(|subject| patch(subject)).collect();
        let error = read_mbox(&mails).await.unwrap_err();
        assert!(error.contains(why), "{why}: {error}");
    }
}

#[tokio::test]
async fn encodings_of_mail_come_off() {
    let line = "naïve = \"caf\u{e9}\";".to_owned() + &"x".repeat(90);
    let plain = change("fs/a.c", "a", &line);
    let mut quoted = String::new();
    for byte in plain.bytes() {
        match byte {
            b'\n' => quoted.push('\n'),
            b'=' | 128.. => quoted += &format!("={byte:02X}"),
            byte => quoted.push(char::from(byte)),
        }
        let last = quoted.rsplit('\n').next().unwrap();
        if last.len() > 70 {
            quoted += "=\n";
        }
    }
    let head = "From a@b Mon Sep 17 00:00:00 2001\nSubject: [PATCH] fuse: one\n\
        Content-Type: text/plain; charset=UTF-8\nContent-Transfer-Encoding: quoted-printable\n\n";
    let series = read_mbox(&[format!("{head}Text.\n---\n{quoted}")]).await.unwrap();
    let text = String::from_utf8(series.patches[0].text.to_vec()).unwrap();
    assert!(text.contains(&plain), "{text}");
    // As a mail client saves it.
    let crlf = mail("[PATCH] fuse: two", &plain).replace('\n', "\r\n");
    let series = read_mbox(&[crlf]).await.unwrap();
    let text = String::from_utf8(series.patches[0].text.to_vec()).unwrap();
    assert!(text.contains(&plain), "{text:?}");
}

#[tokio::test]
async fn a_directory_is_taken_by_name_without_its_cover_letter() {
    let dir = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    put("0000-cover-letter.patch", "Subject: [PATCH 0/2] topic\n\nhello\n");
    put("0002-b.patch", &change("b", "1", "2"));
    put("0001-a.patch", &format!("Subject: [PATCH 1/2] fuse:\n a\n\n{}", change("a", "1", "2")));
    put("README.md", "x");
    let series = read(&SeriesPlace::Path(dir.path().into()), &CancellationToken::new()).await;
    let series = series.unwrap();
    let titles: Vec<String> = series.patches.iter().map(title).collect();
    assert_eq!(titles, ["fuse: a", "0002-b.patch"]);
    assert_eq!(series.left_out, 1);
}

#[tokio::test]
async fn numbers_order_the_files_of_a_directory() {
    let dir = tempfile::tempdir().unwrap();
    let put = |name: &str, subject: &str| {
        std::fs::write(dir.path().join(name), mail(subject, &change("a", "1", "2"))).unwrap();
    };
    put("10-b.patch", "[PATCH] ten");
    put("9-c.patch", "[PATCH] nine");
    // As a mail client names what it saves.
    put("[PATCH v2 12_13] a.eml", "[PATCH v2 12/13] twelve");
    put("[PATCH v2 11_13] z.eml", "[PATCH v2 11/13] eleven");
    let series = read(&SeriesPlace::Path(dir.path().into()), &CancellationToken::new()).await;
    let titles: Vec<String> = series.unwrap().patches.iter().map(title).collect();
    assert_eq!(titles, ["nine", "ten", "eleven", "twelve"]);
}

/// A mail of a directory and the same one as an mbox: both give the lines of the patch.
async fn text_both_ways(mail: &[u8]) -> [String; 2] {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("1.eml");
    std::fs::write(&file, mail).unwrap();
    let mut texts = [String::new(), String::new()];
    for (text, path) in texts.iter_mut().zip([dir.path(), &file]) {
        let place = SeriesPlace::Path(path.to_owned());
        let series = read(&place, &CancellationToken::new()).await.unwrap();
        *text = String::from_utf8(series.patches[0].text.to_vec()).unwrap();
    }
    texts
}

#[tokio::test]
async fn lines_end_as_their_author_wrote_them() {
    let plain = change("fs/a.c", "a", "b");
    // `Text.\r\n---\r\n` and the change, in base64.
    let base64 = "VGV4dC4NCi0tLQ0KZGlmZiAtLWdpdCBhL2ZzL2EuYyBiL2ZzL2EuYw0KLS0tIGEvZnMvYS5jDQor\n\
        KysgYi9mcy9hLmMNCkBAIC0xICsxIEBADQotYQ0KK2INCg==\n";
    let head = "From a@b Mon Sep 17 00:00:00 2001\nSubject: [PATCH] fuse: one\n\
        Content-Type: text/plain; charset=UTF-8\nContent-Transfer-Encoding: base64\n\n";
    let crlf = mail("[PATCH] fuse: two", &plain).replace('\n', "\r\n");
    for mail in [crlf, format!("{head}{base64}")] {
        for text in text_both_ways(mail.as_bytes()).await {
            assert!(text.contains(&plain) && !text.contains('\r'), "{text:?}");
        }
    }
    // A file of the tree can have such lines, too.
    let dos = change("fs/a.c", "a\r", "b\r");
    for text in text_both_ways(mail("[PATCH] fuse: three", &dos).as_bytes()).await {
        assert!(text.contains(&dos), "{text:?}");
    }
}

async fn git_in(dir: &Path, args: &[&str]) {
    let own = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"];
    let mut program = Program::new("git", own.iter().chain(args));
    program.cwd = Some(dir.to_owned());
    let output = process::run(program, GIT_LIMIT, &CancellationToken::new()).await.unwrap();
    assert!(output.status.success(), "{args:?} {}", output.stderr);
}

#[tokio::test]
async fn a_git_range_gives_a_patch_a_commit() {
    let dir = tempfile::tempdir().unwrap();
    git_in(dir.path(), &["init", "-q"]).await;
    for text in ["one", "two", "three"] {
        std::fs::write(dir.path().join("f"), text).unwrap();
        git_in(dir.path(), &["add", "f"]).await;
        git_in(dir.path(), &["commit", "-qm", &format!("fuse: {text}")]).await;
    }
    // What the repository is set to must not reach the patches.
    let odd = ["format.noprefix", "format.attach", "format.coverLetter", "diff.mnemonicPrefix"];
    for key in odd {
        git_in(dir.path(), &["config", key, "true"]).await;
    }
    git_in(dir.path(), &["config", "format.suffix", ".txt"]).await;
    let range = |range: &str| SeriesPlace::Git { dir: dir.path().into(), range: range.into() };
    let cancel = CancellationToken::new();
    let series = read(&range("main~2..main"), &cancel).await.unwrap();
    let titles: Vec<String> = series.patches.iter().map(title).collect();
    assert_eq!(
        (titles, series.name.as_str()),
        (vec!["fuse: two".into(), "fuse: three".into()], "main")
    );
    let text = String::from_utf8_lossy(&series.patches[0].text);
    assert!(text.contains("\n--- a/f\n+++ b/f\n"), "{text}");
    let error = read(&range("main..nowhere"), &cancel).await.unwrap_err().to_string();
    assert!(error.contains("nowhere"), "{error}");
    let empty = read(&range("main..main"), &cancel).await.unwrap_err().to_string();
    assert!(empty.contains("no patch"), "{empty}");
}

#[tokio::test]
async fn every_shipped_series_is_whole() {
    for (name, count) in [("v4", 8), ("v5", 8), ("knob", 3), ("rfc2", 2)] {
        let series = read(&SeriesPlace::Shipped(name.into()), &CancellationToken::new()).await;
        let patches = series.unwrap().patches;
        assert_eq!(patches.len(), count, "{name}");
        for patch in &patches {
            let files = crate::kernel::build::files_of_patch(patch).unwrap();
            assert!(files.iter().all(|f| f.contains("fuse")), "{}: {files:?}", patch.name);
            let text = String::from_utf8_lossy(&patch.text);
            assert!(text.contains("Own implementation for the lab"), "{}", patch.name);
        }
    }
}
