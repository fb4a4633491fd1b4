//! Whole builds of a toy kernel: real make, git, bubblewrap, store and trees.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::host::files;
use crate::host::process::{self, Program};
use crate::kernel::Fetch;
use crate::kernel::bzimage::tests::sample;
use crate::kernel::recipe::{Fragment, Patch, Recipe, Source};

const MAKEFILE: &str = r#"
allnoconfig:
	@grep -v '^CONFIG_DROPPED=' $(KCONFIG_ALLCONFIG) > $(O)/.config
bzImage:
	@mkdir -p $(O)/arch/x86/boot; touch $(O)/System.map; sleep $${TOY_SLEEP:-0}
	@for f in fs/*.c; do o=$(O)/$$(basename $$f).o; \
	  if [ ! $$o -nt $$f ]; then echo "  CC      $${f%.c}.o"; \
	    if grep -q broken $$f; then echo "$(CURDIR)/$$f:1:1: error: it is broken"; exit 1; fi; \
	    if grep -q doubtful $$f; then echo "$(CURDIR)/$$f:1:1: warning: it is doubtful"; fi; \
	    cp $$f $$o; fi; done
	@cat sample.bin $(O)/*.o > $(O)/arch/x86/boot/bzImage
"#;

struct Lab {
    dir: TempDir,
    said: Mutex<Vec<String>>,
}

impl Lab {
    fn new() -> Lab {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("linux");
        std::fs::create_dir_all(tree.join("fs")).unwrap();
        for (name, text) in [
            ("Makefile", MAKEFILE),
            ("Kconfig", "config DROPPED\n\tbool\nconfig A\n\tbool\n"),
            ("fs/a.c", "a one\na two\na three\n"),
            ("fs/b.c", "b one\n"),
        ] {
            std::fs::write(tree.join(name), text).unwrap();
        }
        std::fs::write(tree.join("sample.bin"), sample("7.3.4 (x) #1")).unwrap();
        Lab { dir, said: Mutex::default() }
    }

    fn cache(&self) -> PathBuf {
        self.dir.path().join("cache")
    }

    fn recipe(&self, patches: &[Patch]) -> Recipe {
        Recipe {
            name: "toy".into(),
            source: Source::Directory(self.dir.path().join("linux")),
            patches: patches.to_vec(),
            fragments: vec![Fragment { name: "lean".into(), text: "CONFIG_A=y\n".into() }],
        }
    }

    /// The same tree as a tarball: a source that never changes.
    async fn tarball(&self, patches: &[Patch]) -> Recipe {
        let path = self.dir.path().join("linux.tar");
        if !path.exists() {
            let dir = self.dir.path().display().to_string();
            let to = path.display().to_string();
            assert!(run("tar", &["-C", &dir, "-cf", &to, "linux"]).await);
        }
        let sha256 = files::sha256(&path).unwrap();
        Recipe { source: Source::Tarball { path, sha256 }, ..self.recipe(patches) }
    }

    async fn build(&self, recipe: &Recipe) -> Result<Built, BuildError> {
        self.in_mode(recipe, Fetch::Auto).await
    }

    async fn in_mode(&self, recipe: &Recipe, mode: Fetch) -> Result<Built, BuildError> {
        let tell = |line: &str| self.said.lock().unwrap().push(line.to_owned());
        let cache = self.cache();
        let builder = Builder {
            cache: &cache,
            mode,
            jobs: 2,
            keep_bytes: u64::MAX,
            shut_in: true,
            tell: &tell,
        };
        builder.build(recipe, &CancellationToken::new()).await
    }

    fn said(&self) -> String {
        std::mem::take(&mut *self.said.lock().unwrap()).join("\n")
    }

    fn trees(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.cache().join("build/trees")).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

/// Runs a program; whether it was content.
async fn run(program: &str, args: &[&str]) -> bool {
    let (limit, cancel) = (std::time::Duration::from_secs(20), CancellationToken::new());
    let ended = process::run(Program::new(program, args), limit, &cancel).await;
    ended.is_ok_and(|output| output.status.success())
}

fn patch(name: &str, file: &str, old: &str, new: &str) -> Patch {
    let text =
        format!("Subject: {name}\n\n--- a/{file}\n+++ b/{file}\n@@ -1 +1 @@\n-{old}\n+{new}\n");
    Patch { name: name.into(), text: text.as_bytes().into() }
}

fn changes_b(new: &str) -> Patch {
    patch("0001-b.patch", "fs/b.c", "b one", new)
}

fn changes_a(new: &str) -> Patch {
    let text =
        format!("--- a/fs/a.c\n+++ b/fs/a.c\n@@ -1,3 +1,3 @@\n-a one\n+{new}\n a two\n a three\n");
    Patch { name: "0002-a.patch".into(), text: text.as_bytes().into() }
}

fn image(built: &Built) -> String {
    String::from_utf8_lossy(&std::fs::read(built.image()).unwrap()).into_owned()
}

#[tokio::test]
async fn equal_inputs_are_built_once() {
    let lab = Lab::new();
    let first = lab.build(&lab.recipe(&[])).await.unwrap();
    assert_eq!((first.release.as_str(), first.patches.len()), ("7.3.4", 0));
    assert!(lab.said().contains("building toy"));
    let again = lab.build(&lab.recipe(&[])).await.unwrap();
    assert_eq!((again, lab.said().as_str()), (first.clone(), ""));
    let other = lab.build(&lab.recipe(&[changes_b("b new")])).await.unwrap();
    assert!(image(&other).contains("b new") && !image(&first).contains("b new"));
    assert_ne!(other.dir, first.dir);
    let text = std::fs::read_to_string(other.log()).unwrap();
    assert!(text.contains("CC      fs/b.o") && !text.contains("fs/a.o"), "{text}");
}

#[tokio::test]
async fn an_edit_of_a_directory_is_seen() {
    let lab = Lab::new();
    lab.build(&lab.recipe(&[])).await.unwrap();
    let file = lab.dir.path().join("linux/fs/a.c");
    std::fs::write(&file, "a edited\n").unwrap();
    std::fs::write(lab.dir.path().join("linux/fs/c.c"), "c made\n").unwrap();
    std::fs::remove_file(lab.dir.path().join("linux/fs/b.c")).unwrap();
    let built = lab.build(&lab.recipe(&[])).await.unwrap();
    let image = image(&built);
    assert!(image.contains("a edited") && image.contains("c made"), "{image}");
    assert_eq!(lab.trees().len(), 1);
    assert!(!lab.trees()[0].join("src/fs/b.c").exists());
}

#[tokio::test]
async fn a_git_revision_is_built_as_it_was_committed() {
    let lab = Lab::new();
    let dir = lab.dir.path().join("linux");
    let at = dir.display().to_string();
    let own = ["-C", &at, "-c", "user.name=a", "-c", "user.email=a@b"];
    let git = |args: &[&'static str]| [&own[..], args].concat();
    assert!(run("git", &git(&["init", "-q"])).await);
    assert!(run("git", &git(&["add", "-A"])).await);
    assert!(run("git", &git(&["commit", "-qm", "one"])).await);
    std::fs::write(dir.join("fs/b.c"), "b not committed\n").unwrap();
    let source = |revision: &str| Source::Git { dir: dir.clone(), revision: revision.into() };
    let built = lab.build(&Recipe { source: source("HEAD"), ..lab.recipe(&[]) }).await.unwrap();
    assert!(image(&built).contains("b one"), "{}", image(&built));
    let error = lab.build(&Recipe { source: source("HEAD~9"), ..lab.recipe(&[]) }).await;
    let text = error.unwrap_err().to_string();
    assert!(text.contains("HEAD~9: no such commit"), "{text}");
    // A directory that git knows is taken as it stands.
    let built = lab.build(&lab.recipe(&[])).await.unwrap();
    assert!(image(&built).contains("b not committed"), "{}", image(&built));
}

#[tokio::test]
async fn a_tarball_of_other_content_is_refused() {
    let lab = Lab::new();
    let mut recipe = lab.tarball(&[]).await;
    let Source::Tarball { sha256, .. } = &mut recipe.source else { panic!() };
    *sha256 = "0".repeat(64);
    let text = lab.build(&recipe).await.unwrap_err().to_string();
    assert!(text.contains("the entry says 0000"), "{text}");
}

#[tokio::test]
async fn a_move_between_series_writes_what_differs() {
    let lab = Lab::new();
    let one = lab.tarball(&[changes_b("b new")]).await;
    lab.build(&one).await.unwrap();
    let tree = lab.trees().pop().unwrap();
    let a = std::fs::metadata(tree.join("src/fs/a.c")).unwrap();
    let b = std::fs::metadata(tree.join("src/fs/b.c")).unwrap();
    let more = changes_a("a uno");
    let both = lab.build(&lab.tarball(&[changes_b("b new"), more]).await).await;
    assert!(both.is_ok(), "{:?}", both.unwrap_err().to_string());
    let after = std::fs::metadata(tree.join("src/fs/b.c")).unwrap();
    assert_eq!((b.ino(), b.mtime_nsec()), (after.ino(), after.mtime_nsec()), "b was written again");
    assert_ne!(a.ino(), std::fs::metadata(tree.join("src/fs/a.c")).unwrap().ino());
    // The source itself keeps what it had, though the tree shares its files.
    lab.build(&lab.tarball(&[]).await).await.unwrap();
    for name in ["fs/a.c", "fs/b.c"] {
        let source = lab.dir.path().join("linux").join(name);
        assert_eq!(
            std::fs::read(tree.join("src").join(name)).unwrap(),
            std::fs::read(source).unwrap()
        );
    }
}

#[tokio::test]
async fn a_patch_that_does_not_apply_is_named_with_its_reject() {
    let lab = Lab::new();
    let series = [
        changes_b("b two"),
        patch("0002-b.patch", "fs/b.c", "b two", "b three"),
        patch("0003-b.patch", "fs/b.c", "b nine", "b ten"),
    ];
    let error = lab.build(&lab.recipe(&series)).await.unwrap_err();
    assert_eq!(error.stage(), Stage::Apply);
    let text = error.to_string();
    assert!(text.contains("0003-b.patch does not apply") && text.contains("-b nine"), "{text}");
    let built = lab.build(&lab.recipe(&series[..2])).await.unwrap();
    assert!(image(&built).contains("b three"));
}

#[tokio::test]
async fn what_does_not_compile_is_told_and_not_kept() {
    let lab = Lab::new();
    let error = lab.build(&lab.recipe(&[changes_b("broken")])).await.unwrap_err();
    assert_eq!(error.stage(), Stage::Compile);
    let text = error.to_string();
    assert!(text.contains("fs/b.c:1:1: error: it is broken\nlog: "), "{text}");
    let log = text.rsplit("log: ").next().unwrap();
    assert!(std::fs::read_to_string(log).unwrap().contains("CC      fs/b.o"));
    let error = lab.in_mode(&lab.recipe(&[changes_b("broken")]), Fetch::CacheOnly).await;
    assert!(matches!(error, Err(BuildError::NotBuilt(_))));
    let built = lab.build(&lab.recipe(&[changes_b("doubtful")])).await.unwrap();
    assert_eq!(built.warnings.len(), 1);
    assert_eq!(built.warnings[0].file, "fs/b.c");
    // It holds as long as the file does, whatever is compiled beside it.
    let both = [changes_b("doubtful"), changes_a("a uno")];
    assert_eq!(lab.build(&lab.recipe(&both)).await.unwrap().warnings, built.warnings);
    assert_eq!(lab.build(&lab.recipe(&both[1..])).await.unwrap().warnings, []);
}

#[tokio::test]
async fn an_option_that_kconfig_drops_is_an_error() {
    let lab = Lab::new();
    for (option, why) in [("DROPPED", "a dependency"), ("NO_SUCH", "no such option")] {
        let mut recipe = lab.recipe(&[]);
        let text = format!("CONFIG_A=y\nCONFIG_{option}=y\n");
        // The toy's Kconfig takes every line but one.
        if option == "NO_SUCH" {
            let makefile = MAKEFILE.replace("DROPPED", option);
            std::fs::write(lab.dir.path().join("linux/Makefile"), makefile).unwrap();
        }
        recipe.fragments.push(Fragment { name: "own".into(), text: text.into() });
        let error = lab.build(&recipe).await.unwrap_err();
        assert_eq!(error.stage(), Stage::Configure);
        let text = error.to_string();
        assert!(text.contains("fragment own") && text.contains(option), "{text}");
        assert!(text.contains(why), "{text}");
        assert!(lab.build(&recipe).await.is_err(), "it was taken the second time");
    }
}

#[tokio::test]
async fn a_damaged_entry_is_said_and_built_again() {
    let lab = Lab::new();
    let built = lab.build(&lab.recipe(&[])).await.unwrap();
    for (file, bytes) in [("bzImage", &b"junk"[..]), ("built.json", b"{}")] {
        lab.said();
        std::fs::write(built.dir.join(file), bytes).unwrap();
        let again = lab.build(&lab.recipe(&[])).await.unwrap();
        assert_eq!(again, built);
        assert!(lab.said().contains("is damaged"), "{file}");
    }
}

#[tokio::test]
async fn two_builds_of_one_base_do_not_meet() {
    let lab = Lab::new();
    let (one, two) = (lab.recipe(&[changes_b("b left")]), lab.recipe(&[changes_b("b right")]));
    let (left, right) = tokio::join!(lab.build(&one), lab.build(&two));
    assert!(image(&left.unwrap()).contains("b left"));
    assert!(image(&right.unwrap()).contains("b right"));
    assert_eq!(lab.trees().len(), 1);
}

#[tokio::test]
async fn a_build_that_was_killed_leaves_nothing_that_counts() {
    let lab = Lab::new();
    lab.build(&lab.recipe(&[])).await.unwrap();
    // As a kill after the first file was written leaves it.
    let tree = lab.trees().pop().unwrap();
    let state = std::fs::read_to_string(tree.join("state.json")).unwrap();
    let dirty = state.replace("\"touched\":[]", "\"touched\":[\"fs/b.c\"]");
    assert_ne!(state, dirty);
    std::fs::write(tree.join("state.json"), dirty).unwrap();
    files::replace(&tree.join("src/fs/b.c"), b"half").unwrap();
    let built = lab.build(&lab.recipe(&[changes_a("a 1")])).await;
    let text = image(&built.unwrap());
    assert!(text.contains("b one") && !text.contains("half"), "{text}");
    // A state that cannot be read: the tree is made again.
    std::fs::write(tree.join("state.json"), "{").unwrap();
    files::replace(&tree.join("src/fs/a.c"), b"half").unwrap();
    let built = lab.build(&lab.recipe(&[changes_b("b new")])).await.unwrap();
    assert!(image(&built).contains("a one\na two"), "{}", image(&built));
}

#[tokio::test]
async fn an_interrupt_ends_a_build() {
    let lab = Lab::new();
    let makefile = MAKEFILE.replace("$${TOY_SLEEP:-0}", "60");
    std::fs::write(lab.dir.path().join("linux/Makefile"), makefile).unwrap();
    let cancel = CancellationToken::new();
    let cache = lab.cache();
    let builder = Builder {
        cache: &cache,
        mode: Fetch::Auto,
        jobs: 1,
        keep_bytes: u64::MAX,
        shut_in: true,
        tell: &|_| (),
    };
    let recipe = lab.recipe(&[]);
    let begin = std::time::Instant::now();
    let soon = async {
        tokio::time::sleep(std::time::Duration::from_millis(700)).await;
        cancel.cancel();
    };
    let (ended, ()) = tokio::join!(builder.build(&recipe, &cancel), soon);
    assert!(matches!(ended, Err(BuildError::Interrupted)));
    assert!(begin.elapsed().as_secs() < 20);
}

#[tokio::test]
async fn a_patch_that_leads_out_is_refused_before_anything_runs() {
    let lab = Lab::new();
    let bad = patch("0001-evil.patch", "../../evil", "x", "y");
    let error = lab.build(&lab.recipe(&[bad])).await.unwrap_err().to_string();
    assert!(error.contains("0001-evil.patch") && error.contains("../../evil"), "{error}");
    assert!(!lab.cache().join("build").exists());
    // Through a link that the source has.
    std::os::unix::fs::symlink("/tmp", lab.dir.path().join("linux/out")).unwrap();
    let bad = patch("0001-link.patch", "out/evil", "x", "y");
    let error = lab.build(&lab.recipe(&[bad])).await.unwrap_err().to_string();
    assert!(error.contains("behind the link"), "{error}");
}

#[tokio::test]
async fn what_was_used_today_stays_and_the_rest_can_go() {
    let lab = Lab::new();
    let built = lab.build(&lab.tarball(&[]).await).await.unwrap();
    let cache = lab.cache();
    let builder = Builder {
        cache: &cache,
        mode: Fetch::Auto,
        jobs: 1,
        keep_bytes: u64::MAX,
        shut_in: true,
        tell: &|_| (),
    };
    let cancel = CancellationToken::new();
    assert_eq!(builder.clean(0, false, false, &cancel).await.unwrap(), []);
    let kept = builder.kept();
    assert_eq!(kept.each_ref().map(Vec::len), [1, 1, 1]);
    assert_eq!(builder.stored(&kept[0][0]).unwrap(), built);
    assert_eq!(builder.clean(0, true, false, &cancel).await.unwrap().len(), 2);
    assert!(!built.dir.exists());
    lab.build(&lab.tarball(&[]).await).await.unwrap();
    assert_eq!(builder.clean(0, true, true, &cancel).await.unwrap().len(), 3);
}

/// The disk of a build is full: a small file system of its own, in a mount namespace.
#[tokio::test]
async fn a_full_disk_is_told_by_its_place() {
    let is_root = rustix::process::geteuid().is_root();
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().display().to_string();
    let mounted = is_root && run("mount", &["-t", "tmpfs", "-o", "size=96k", "none", &place]).await;
    if !mounted {
        return; // only root can make one; CI runs as root
    }
    let mut lab = Lab::new();
    let big = "x".repeat(200 << 10);
    std::fs::write(lab.dir.path().join("linux/fs/big.c"), big).unwrap();
    let source = lab.recipe(&[]).source;
    let own =
        std::mem::replace(&mut lab.dir, tempfile::Builder::new().tempdir_in(dir.path()).unwrap());
    let error = lab.build(&Recipe { source, ..lab.recipe(&[]) }).await;
    let text = error.map(|built| built.dir).unwrap_err().to_string();
    let left = lab.cache().join("build/kernels").exists();
    drop((lab, own));
    assert!(run("umount", &[&place]).await);
    assert!(text.contains("no space left below"), "{text}");
    assert!(!left);
}

/// Paths of files below a directory to their content.
fn contents(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = walkdir::WalkDir::new(dir).into_iter().map(Result::unwrap);
    let files = entries.filter(|entry| entry.file_type().is_file());
    files.map(|entry| (entry.path().to_owned(), std::fs::read(entry.path()).unwrap())).collect()
}

#[tokio::test]
async fn a_directory_is_never_written_to() {
    let lab = Lab::new();
    let before = contents(&lab.dir.path().join("linux"));
    lab.build(&lab.recipe(&[changes_b("b new")])).await.unwrap();
    assert_eq!(contents(&lab.dir.path().join("linux")), before);
}
