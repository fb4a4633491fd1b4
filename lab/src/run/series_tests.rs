//! What is a series, and which warnings are a patch's own.

use super::*;
use crate::config::load::load;
use crate::config::shipped;

#[test]
fn a_series_is_found_by_path_range_name_or_entry() {
    let project = load(&shipped::files()).unwrap();
    let find = |input: &str| place(&project, None, input).map_err(|e| e.to_string());
    assert_eq!(find("v4"), Ok(SeriesPlace::Shipped("v4".into())));
    assert_eq!(find("lore:<a@b>"), Ok(SeriesPlace::Lore("a@b".into())));
    let range = SeriesPlace::Git { dir: "../linux".into(), range: "v7.3..topic".into() };
    assert_eq!(find("../linux:v7.3..topic"), Ok(range));
    assert_eq!(find("/tmp"), Ok(SeriesPlace::Path("/tmp".into())));
    let path = SeriesPlace::Path("kernels/series/v5".into());
    assert_eq!(find("v5-candidate"), Ok(path));
    let error = find("v44").unwrap_err();
    assert!(error.contains("`v44` is no series") && error.contains("v4"), "{error}");
}

#[test]
fn only_new_warnings_in_touched_files_are_a_patchs_own() {
    let warning =
        |file: &str, line, text: &str| Warning { file: file.into(), line, text: text.into() };
    let built = Built {
        dir: "/x".into(),
        name: "k".into(),
        release: "7.3.4".into(),
        source: String::new(),
        patches: vec![],
        fragments: vec![],
        warnings: vec![
            warning("fs/fuse/dev.c", 20, "old"),
            warning("fs/fuse/dev.c", 30, "new"),
            warning("fs/other.c", 1, "elsewhere"),
            warning("fs/fuse/dev.o", 0, "objtool: f()"),
        ],
        sha256: String::new(),
        vmlinux: None,
    };
    let text = "--- a/fs/fuse/dev.c\n+++ b/fs/fuse/dev.c\n@@ -1 +1 @@\n-a\n+b\n";
    let patch = Patch { name: "p".into(), text: text.as_bytes().into() };
    // The old one moved down by what the patch added.
    let before = [warning("fs/fuse/dev.c", 10, "old")];
    assert_eq!(
        new_warnings(&built, &patch, &before),
        ["fs/fuse/dev.c:30: new", "fs/fuse/dev.o:0: objtool: f()"]
    );
}
