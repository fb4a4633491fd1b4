//! Patches as mails: subjects, numbers, trailers. Pure; git takes the encodings apart.

use std::borrow::Cow;

/// What `[PATCH v4 6/8] fuse: title` says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subject {
    /// Without the brackets in front.
    pub title: String,
    /// Whether the brackets say that it is a patch, and it is no answer to one.
    pub is_patch: bool,
    /// Version of the series, 1 where none is said.
    pub version: u32,
    /// Its number and how many there are; 0 is the cover letter.
    pub number: Option<(usize, usize)>,
}

/// Reads a subject line.
pub fn subject(text: &str) -> Subject {
    let mut rest = text.trim();
    let mut subject = Subject { version: 1, ..Subject::default() };
    while let Some((words, after)) = rest.strip_prefix('[').and_then(|r| r.split_once(']')) {
        for word in words.split([' ', ',']).filter(|word| !word.is_empty()) {
            if word.eq_ignore_ascii_case("patch") || word.eq_ignore_ascii_case("rfc") {
                subject.is_patch = true;
            } else if let Some(version) = version(word) {
                subject.version = version;
            } else if let Some((number, total)) = word.split_once('/')
                && let (Ok(number), Ok(total)) = (number.parse(), total.parse())
            {
                subject.number = Some((number, total));
            }
        }
        rest = after.trim_start();
    }
    subject.title = rest.to_owned();
    subject
}

fn version(word: &str) -> Option<u32> {
    let digits = word.strip_prefix(['v', 'V'])?;
    digits.parse().ok().filter(|version| *version > 0)
}

/// The value of a header of a mail, with its continuation lines; encodings are left as they are.
pub fn header(mail: &[u8], name: &str) -> Option<String> {
    let text = String::from_utf8_lossy(&mail[..mail.len().min(64 << 10)]).into_owned();
    let mut value: Option<String> = None;
    for line in text.lines() {
        let line = line.trim_end_matches('\r');
        if let Some(value) = &mut value {
            match line.strip_prefix([' ', '\t']) {
                Some(more) => {
                    value.push(' ');
                    value.push_str(more.trim());
                    continue;
                }
                None => break,
            }
        }
        if line.is_empty() {
            break;
        }
        if let Some((found, rest)) = line.split_once(':')
            && found.eq_ignore_ascii_case(name)
        {
            value = Some(rest.trim().to_owned());
        }
    }
    value
}

/// The commit of a line `base-commit: HASH`, as `git format-patch --base` writes it.
pub fn base_commit(mail: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(mail);
    let hash = text.lines().rev().find_map(|line| line.strip_prefix("base-commit: "))?.trim();
    let is_hash = (12..=64).contains(&hash.len()) && hash.bytes().all(|b| b.is_ascii_hexdigit());
    is_hash.then(|| hash.to_owned())
}

/// A text whose first line ends in CR LF with LF alone, as it was before transport. Another one
/// is left as it is: a CR in it belongs to a line of the patch.
pub fn unix_lines(text: &[u8]) -> Cow<'_, [u8]> {
    if !is_crlf(text) {
        return Cow::Borrowed(text);
    }
    let lines = text.split_inclusive(|&b| b == b'\n');
    Cow::Owned(
        lines
            .flat_map(|line| match line.strip_suffix(b"\r\n") {
                Some(line) => [line, b"\n"].concat(),
                None => line.to_vec(),
            })
            .collect(),
    )
}

fn is_crlf(text: &[u8]) -> bool {
    text.split(|&b| b == b'\n').next().is_some_and(|line| line.ends_with(b"\r"))
}

/// Whether git has to take the text out of its encoding first.
pub fn is_encoded(mail: &[u8]) -> bool {
    let encoding = header(mail, "Content-Transfer-Encoding").unwrap_or_default();
    is_crlf(mail) || matches!(encoding.to_ascii_lowercase().as_str(), "quoted-printable" | "base64")
}

/// A file name as `git format-patch` makes it.
pub fn file_name(number: usize, title: &str) -> String {
    let mut slug = String::new();
    for c in title.chars() {
        if c.is_ascii_alphanumeric() || c == '_' || c == '.' {
            slug.push(c);
        } else if !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let slug: String = slug.trim_matches(['-', '.']).chars().take(52).collect();
    format!("{number:04}-{slug}.patch")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_tell_number_and_version() {
        let read = subject("[PATCH v4 6/8] fuse: {io-uring} Queue");
        assert_eq!((read.version, read.number, read.is_patch), (4, Some((6, 8)), true));
        assert_eq!(read.title, "fuse: {io-uring} Queue");
        let rfc = subject("[RFC,v2,17/19] fuse: {uring} Send");
        assert_eq!((rfc.version, rfc.number, rfc.is_patch), (2, Some((17, 19)), true));
        let answer = subject("Re: [PATCH v4 6/8] fuse");
        assert_eq!((answer.is_patch, answer.number), (false, None));
        let plain = subject("fuse: [a] b");
        assert_eq!((plain.title.as_str(), plain.is_patch), ("fuse: [a] b", false));
        assert!(subject("[PATCH fs-next] x").is_patch);
    }

    #[test]
    fn headers_are_folded_and_end_at_the_body() {
        let mail = b"From: a\r\nSubject: [PATCH 1/2]\r\n long title\r\n\r\nsubject: no\r\n";
        assert_eq!(header(mail, "subject").as_deref(), Some("[PATCH 1/2] long title"));
        assert_eq!(header(b"\nSubject: x", "subject"), None);
        assert!(is_encoded(mail));
        assert!(is_encoded(b"Content-Transfer-Encoding: Base64\n\n"));
        assert!(!is_encoded(b"Content-Transfer-Encoding: 8bit\n\n"));
    }

    #[test]
    fn only_the_cr_of_transport_comes_off() {
        assert_eq!(&*unix_lines(b"a\r\nb\r\r\nc"), b"a\nb\r\nc");
        assert_eq!(&*unix_lines(b"a\nb\r\n"), b"a\nb\r\n");
        assert_eq!(&*unix_lines(b""), b"");
    }

    #[test]
    fn a_base_is_a_hash() {
        let hash = "0123456789abcdef0123456789abcdef01234567";
        let mail = format!("x\n\nbase-commit: {hash}\n-- \n2.43\n");
        assert_eq!(base_commit(mail.as_bytes()).as_deref(), Some(hash));
        assert_eq!(base_commit(b"base-commit: v7.3\n"), None);
    }

    #[test]
    fn names_are_those_of_git() {
        assert_eq!(
            file_name(6, "fuse: {io-uring} Queue background requests on a different core"),
            "0006-fuse-io-uring-Queue-background-requests-on-a-differe.patch"
        );
    }
}
