//! Names of the flags of FUSE_INIT.

/// Name of each bit, from bit 0.
const NAMES: [&str; 45] = [
    "async_read",
    "posix_locks",
    "file_ops",
    "atomic_o_trunc",
    "export_support",
    "big_writes",
    "dont_mask",
    "splice_write",
    "splice_move",
    "splice_read",
    "flock_locks",
    "has_ioctl_dir",
    "auto_inval_data",
    "do_readdirplus",
    "readdirplus_auto",
    "async_dio",
    "writeback_cache",
    "no_open_support",
    "parallel_dirops",
    "handle_killpriv",
    "posix_acl",
    "abort_error",
    "max_pages",
    "cache_symlinks",
    "no_opendir_support",
    "explicit_inval_data",
    "map_alignment",
    "submounts",
    "handle_killpriv_v2",
    "setxattr_ext",
    "init_ext",
    "init_reserved",
    "security_ctx",
    "has_inode_dax",
    "create_supp_group",
    "has_expire_only",
    "direct_io_allow_mmap",
    "passthrough",
    "no_export_support",
    "has_resend",
    "allow_idmap",
    "over_io_uring",
    "request_timeout",
    "has_io_uring_bufpool",
    "uring_reduced_q",
];

/// The set bits by name, lowest first; a bit without a name as `bit N`.
pub(super) fn names(bits: u64) -> Vec<String> {
    let name = |bit: usize| NAMES.get(bit).map_or(format!("bit {bit}"), |n| (*n).to_string());
    (0..64).filter(|bit| bits >> bit & 1 == 1).map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn bits_have_the_names_of_the_protocol() {
        assert_eq!(names(1 | 1 << 30 | 1 << 41), ["async_read", "init_ext", "over_io_uring"]);
        assert_eq!(names(1 << 63), ["bit 63"]);
    }
}
