//! rename, link, symlink, unlink and the limits of names.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, symlink};

use super::directories::list;
use super::tape::Tape;
use crate::sys::file;

pub(super) fn run(tape: &Tape) {
    renames(tape);
    rename_flags(tape);
    links(tape);
    symlinks(tape);
    odd_names(tape);
}

fn renames(tape: &Tape) {
    let at = |name: &str| tape.at(name);
    let rename = |from: &str, to: &str| fs::rename(at(from), at(to));
    tape.op("write a", || fs::write(at("a"), b"content of a"));
    tape.op("write b", || fs::write(at("b"), b"content of b"));
    tape.op("rename a c", || rename("a", "c"));
    tape.op("stat a", || fs::symlink_metadata(at("a")).map(|_| ()));
    tape.op("rename c b over it", || rename("c", "b"));
    tape.op("read b", || fs::read_to_string(at("b")));
    tape.op("rename absent x", || rename("absent", "x"));
    tape.op("rename b d onto a directory", || rename("b", "d"));
    tape.op("rename d b onto a file", || rename("d", "b"));
    tape.op("mkdir p and q with a file", || {
        fs::create_dir(at("p"))?;
        fs::create_dir(at("q"))?;
        fs::write(at("q/file"), b"")
    });
    tape.op("rename p q onto a full one", || rename("p", "q"));
    tape.op("rename q p onto an empty one", || rename("q", "p"));
    tape.op("rename p p/sub into itself", || rename("p", "p/sub"));
    tape.op("readdir p", || list(&at("p")));
    tape.op("rename b p/b to another directory", || rename("b", "p/b"));
    tape.op("read p/b", || fs::read_to_string(at("p/b")));
}

fn rename_flags(tape: &Tape) {
    let at = |name: &str| tape.at(name);
    let rename = |from: &str, to: &str, flags| file::rename2(&at(from), &at(to), flags);
    tape.op("write r", || fs::write(at("r"), b"r"));
    tape.op("write s", || fs::write(at("s"), b"s"));
    tape.op("rename r s NOREPLACE", || rename("r", "s", libc::RENAME_NOREPLACE));
    tape.op("rename r t NOREPLACE", || rename("r", "t", libc::RENAME_NOREPLACE));
    tape.op("rename s t EXCHANGE", || rename("s", "t", libc::RENAME_EXCHANGE));
    tape.op("read s and t", || {
        Ok(fs::read_to_string(at("s"))? + " " + &fs::read_to_string(at("t"))?)
    });
    tape.op("rename s absent EXCHANGE", || rename("s", "absent", libc::RENAME_EXCHANGE));
    tape.op("rename s u both flags", || {
        rename("s", "u", libc::RENAME_NOREPLACE | libc::RENAME_EXCHANGE)
    });
}

fn links(tape: &Tape) {
    let at = |name: &str| tape.at(name);
    let nlink = |name: &str| -> io::Result<u64> { Ok(fs::symlink_metadata(at(name))?.nlink()) };
    tape.op("link s hard", || fs::hard_link(at("s"), at("hard")));
    tape.op("nlink of s", || nlink("s"));
    tape.op("link s hard again", || fs::hard_link(at("s"), at("hard")));
    tape.op("link d dir", || fs::hard_link(at("d"), at("dir")));
    tape.op("link absent x", || fs::hard_link(at("absent"), at("x")));
    tape.op("write hard read s", || {
        fs::write(at("hard"), b"through the link")?;
        fs::read_to_string(at("s"))
    });
    tape.op("one inode", || {
        Ok(format!("{}", fs::metadata(at("s"))?.ino() == fs::metadata(at("hard"))?.ino()))
    });
    tape.op("unlink s", || fs::remove_file(at("s")));
    tape.op("nlink of hard", || nlink("hard"));
    tape.op("read hard", || fs::read_to_string(at("hard")));
    tape.op("unlink s again", || fs::remove_file(at("s")));
}

fn symlinks(tape: &Tape) {
    let at = |name: &str| tape.at(name);
    tape.op("symlink hard soft", || symlink("hard", at("soft")));
    tape.op("symlink over soft", || symlink("hard", at("soft")));
    tape.op("readlink soft", || Ok(fs::read_link(at("soft"))?.to_string_lossy().into_owned()));
    tape.op("read soft", || fs::read_to_string(at("soft")));
    tape.op("lstat soft", || {
        let seen = fs::symlink_metadata(at("soft"))?;
        Ok(format!("symlink {} size {}", seen.is_symlink(), seen.len()))
    });
    tape.op("symlink absent dangling", || symlink("absent", at("dangling")));
    tape.op("read dangling", || fs::read_to_string(at("dangling")));
    tape.op("symlink loop", || symlink("loop", at("loop")));
    tape.op("read loop", || fs::read_to_string(at("loop")));
    tape.op("readlink hard", || Ok(fs::read_link(at("hard"))?.to_string_lossy().into_owned()));
    tape.op("symlink of 1000 bytes", || {
        symlink("y".repeat(1000), at("long"))?;
        Ok(fs::read_link(at("long"))?.as_os_str().len())
    });
}

fn odd_names(tape: &Tape) {
    let at = |name: &str| tape.at(name);
    tape.op("create a name of 255 bytes", || fs::write(at(&"n".repeat(255)), b""));
    tape.op("create a name of 256 bytes", || fs::write(at(&"n".repeat(256)), b""));
    tape.op("unlink the name of 255 bytes", || fs::remove_file(at(&"n".repeat(255))));
    tape.op("create odd names", || {
        ["o dd", "o\nl", "oé", "o."].into_iter().try_for_each(|name| {
            fs::create_dir_all(at("odd"))?;
            fs::write(at("odd").join(name), b"")
        })
    });
    tape.op("readdir odd", || list(&at("odd")));
}
