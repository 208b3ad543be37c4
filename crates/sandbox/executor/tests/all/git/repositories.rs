//! Repositories, what changed in them, and where the reference says otherwise.

/// A few directories and what is to be seen in one of them.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// A shell script that makes them.
    pub(crate) build: &'static str,
    /// Where the questions are asked.
    pub(crate) cwd: &'static str,
    /// Status and path of each change.
    pub(crate) changes: &'static [(&'static str, &'static str)],
    /// Files, and what is to be said about each.
    pub(crate) diffs: &'static [(&'static str, Answer)],
    pub(crate) reference: Against,
}

/// The original and the present text of a file, or a part of the error.
type Answer = Result<(&'static str, &'static str), &'static str>;

/// How the reference answers.
pub(crate) enum Against {
    Same,
    /// Otherwise, and why we do not do the same.
    Differs(&'static str),
}

use Against::{Differs, Same};

/// A clone `w` of `o.git` with one commit that has `files`.
macro_rules! clone {
    ($($line:literal),* $(,)?) => {
        concat!(
            "git init -q --bare o.git; git clone -q o.git w 2>/dev/null; cd w\n",
            $($line, "\n",)*
        )
    };
}

/// The case that OpenHands pins: everything that can happen to a file, committed, staged and not staged.
macro_rules! nine {
    ($($line:literal)?) => {
        clone!(
            "for s in committed staged unstaged; do for f in modify delete; do echo old > ${s}_$f.txt; done; done",
            "git add .; git commit -qm base; git push -q origin main; git checkout -qb work",
            "for s in committed staged unstaged; do",
            "  echo new > ${s}_modify.txt; rm ${s}_delete.txt; echo added > ${s}_add.txt",
            "  [ $s = unstaged ] || git add -A; [ $s != committed ] || git commit -qm work",
            "done",
            $($line)?
        )
    };
}

/// What `seq 9` prints.
const SEQ: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9";

pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "nine changes on a new branch",
        build: nine!(),
        cwd: "w",
        changes: &[
            ("A", "committed_add.txt"),
            ("D", "committed_delete.txt"),
            ("M", "committed_modify.txt"),
            ("A", "staged_add.txt"),
            ("D", "staged_delete.txt"),
            ("M", "staged_modify.txt"),
            ("A", "unstaged_add.txt"),
            ("D", "unstaged_delete.txt"),
            ("M", "unstaged_modify.txt"),
        ],
        diffs: &[
            ("committed_modify.txt", Ok(("old", "new"))),
            ("staged_modify.txt", Ok(("old", "new"))),
            ("unstaged_add.txt", Ok(("", "added"))),
        ],
        reference: Same,
    },
    Scenario {
        name: "the branch was pushed",
        build: nine!("git push -q origin work"),
        cwd: "w",
        changes: &[
            ("A", "staged_add.txt"),
            ("D", "staged_delete.txt"),
            ("M", "staged_modify.txt"),
            ("A", "unstaged_add.txt"),
            ("D", "unstaged_delete.txt"),
            ("M", "unstaged_modify.txt"),
        ],
        diffs: &[("committed_modify.txt", Ok(("new", "new")))],
        reference: Same,
    },
    Scenario {
        name: "nested repositories",
        build: "git init -q 'nested 1'; echo 1 > 'nested 1/a b'; git init -q nested_2; echo 2 > nested_2/c; \
                git init -q; echo 3 > d",
        cwd: ".",
        changes: &[("A", "d"), ("A", "nested 1/a b"), ("A", "nested_2/c")],
        diffs: &[("nested 1/a b", Ok(("", "1"))), ("d", Ok(("", "3")))],
        reference: Same,
    },
    Scenario {
        name: "nested repositories in a directory that is none",
        build: "git init -q 'nested 1'; echo 1 > 'nested 1/a'; echo x > outside",
        cwd: ".",
        changes: &[("A", "nested 1/a")],
        diffs: &[("outside", Err("no_repository"))],
        reference: Same,
    },
    Scenario {
        name: "a repository further down is one entry",
        build: "git init -q; mkdir -p a/b; git init -q a/b; echo 1 > a/b/c",
        cwd: ".",
        changes: &[("A", "a/b/")],
        diffs: &[("a/b/c", Ok(("", "1")))],
        reference: Same,
    },
    Scenario {
        name: "a file whose name begins like a nested repository",
        build: "git init -q; git init -q nest; echo 1 > nest/a; echo 2 > nest_file",
        cwd: ".",
        changes: &[("A", "nest/a"), ("A", "nest_file")],
        diffs: &[("nest_file", Ok(("", "2")))],
        reference: Differs("it leaves the file out"),
    },
    Scenario {
        name: "a renamed file",
        build: clone!(
            "seq 50 > old; git add .; git commit -qm 1; git push -q origin main",
            "git mv old new; echo more >> new",
        ),
        cwd: "w",
        changes: &[("A", "new"), ("D", "old")],
        diffs: &[],
        reference: Same,
    },
    Scenario {
        name: "a copied file, with the user's wish to see copies",
        build: clone!(
            "seq 50 > a; git add .; git commit -qm 1; git push -q origin main",
            "git config diff.renames copies; cp a b; echo more >> a; git add .",
        ),
        cwd: "w",
        changes: &[("M", "a"), ("A", "b")],
        diffs: &[],
        reference: Same,
    },
    Scenario {
        name: "a renamed file with spaces, quotes and line ends in its names",
        build: clone!(
            "seq 9 > 'o \"l\" d'; git add .; git commit -qm 1; git push -q origin main",
            "git mv 'o \"l\" d' $'n\\ne w'; echo x > $'tab\\tand \\\\'",
        ),
        cwd: "w",
        changes: &[("A", "n\ne w"), ("D", "o \"l\" d"), ("A", "tab\tand \\")],
        diffs: &[("n\ne w", Ok(("", SEQ))), ("tab\tand \\", Ok(("", "x")))],
        reference: Differs("it splits at blanks, and shows such names as git quotes them"),
    },
    Scenario {
        name: "tracked files with spaces",
        build: clone!(
            "echo 1 > 'a b'; echo 1 > 'c d'; git add .; git commit -qm 1; git push -q origin main",
            "echo 2 > 'a b'; rm 'c d'; echo n > 'e f'",
        ),
        cwd: "w",
        changes: &[("M", "a b"), ("D", "c d"), ("A", "e f")],
        diffs: &[("a b", Ok(("1", "2"))), ("e f", Ok(("", "n")))],
        reference: Differs("it fails with `unexpected_value_in_git_diff`"),
    },
    Scenario {
        name: "untracked files with spaces",
        build: "git init -q; echo 1 > 'a b'; echo 1 > '$HOME `x`'",
        cwd: ".",
        changes: &[("A", "$HOME `x`"), ("A", "a b")],
        diffs: &[("a b", Ok(("", "1"))), ("$HOME `x`", Ok(("", "1")))],
        reference: Same,
    },
    Scenario {
        name: "names that are not ASCII",
        build: clone!(
            "echo 1 > café; git add .; git commit -qm 1; git push -q origin main",
            "echo 2 > café; echo n > 文",
        ),
        cwd: "w",
        changes: &[("M", "café"), ("A", "文")],
        diffs: &[("café", Ok(("1", "2"))), ("文", Ok(("", "n")))],
        reference: Differs("it shows such names as git quotes them"),
    },
    Scenario {
        name: "no origin",
        build: "git init -q; echo 1 > a; git add .; git commit -qm 1; echo 2 > a; echo n > n",
        cwd: ".",
        changes: &[("A", "a"), ("A", "n")],
        diffs: &[("a", Ok(("", "2")))],
        reference: Same,
    },
    Scenario {
        name: "an origin without branches",
        build: clone!("echo 1 > a; git add .; git commit -qm 1; echo n > n"),
        cwd: "w",
        changes: &[("A", "a"), ("A", "n")],
        diffs: &[("a", Ok(("", "1")))],
        reference: Same,
    },
    Scenario {
        name: "a clone that does not remember the default branch",
        build: clone!(
            "echo 1 > a; git add .; git commit -qm 1; git push -q origin main",
            "git remote set-head origin --delete; git checkout -qb work; echo 2 > a; git commit -qam 2; echo n > n",
        ),
        cwd: "w",
        changes: &[("M", "a"), ("A", "n")],
        diffs: &[("a", Ok(("1", "2")))],
        reference: Same,
    },
    Scenario {
        name: "the default branch went on",
        build: clone!(
            "echo 1 > a; echo 1 > b; git add .; git commit -qm 1; git push -q origin main; git checkout -qb work",
            "echo 2 > a; git commit -qam 2; git checkout -q main; echo 3 > b; git commit -qam 3",
            "git push -q origin main; git remote set-head origin main; git checkout -q work",
        ),
        cwd: "w",
        changes: &[("M", "a")],
        diffs: &[("a", Ok(("1", "2"))), ("b", Ok(("1", "1")))],
        reference: Same,
    },
    Scenario {
        name: "a detached HEAD",
        build: clone!(
            "echo 1 > a; git add .; git commit -qm 1; git push -q origin main; git remote set-head origin main",
            "git checkout -q --detach; echo 2 > a; git commit -qam 2; echo n > n",
        ),
        cwd: "w",
        changes: &[("M", "a"), ("A", "n")],
        diffs: &[("a", Ok(("1", "2")))],
        reference: Same,
    },
    Scenario {
        name: "not a repository",
        build: "echo 1 > a",
        cwd: ".",
        changes: &[],
        diffs: &[("a", Err("no_repository"))],
        reference: Same,
    },
    Scenario { name: "an empty repository", build: "git init -q", cwd: ".", changes: &[], diffs: &[], reference: Same },
    Scenario {
        name: "a repository with SHA-256 names",
        build: "git init -q --object-format=sha256; echo 1 > a; git add a; echo 2 > b",
        cwd: ".",
        changes: &[("A", "a"), ("A", "b")],
        diffs: &[("a", Ok(("", "1")))],
        reference: Differs("it knows the empty tree only by its SHA-1 name"),
    },
    Scenario {
        name: "ignored files",
        build: "git init -q; printf '*.log\\n' > .gitignore; echo 1 > a.log; echo 1 > b",
        cwd: ".",
        changes: &[("A", ".gitignore"), ("A", "b")],
        diffs: &[],
        reference: Same,
    },
    Scenario {
        name: "a deleted file",
        build: clone!("printf 'one\\ntwo\\n' > a; git add .; git commit -qm 1; git push -q origin main; rm a",),
        cwd: "w",
        changes: &[("D", "a")],
        diffs: &[("a", Ok(("one\ntwo", "")))],
        reference: Differs("it fails for a file that is gone"),
    },
    Scenario {
        name: "a file that left the index only",
        build: clone!("echo 1 > a; git add .; git commit -qm 1; git push -q origin main; git rm -q --cached a"),
        cwd: "w",
        changes: &[("D", "a"), ("A", "a")],
        diffs: &[("a", Ok(("1", "1")))],
        reference: Same,
    },
    Scenario {
        name: "a file that became a link",
        build: clone!("echo 1 > a; echo 2 > b; git add .; git commit -qm 1; git push -q origin main; rm a; ln -s b a",),
        cwd: "w",
        changes: &[("M", "a")],
        diffs: &[("a", Ok(("1", "2")))],
        reference: Differs("it fails with `unexpected_status_in_git_diff`"),
    },
    Scenario {
        name: "a conflict",
        build: clone!(
            "echo 1 > a; git add .; git commit -qm 1; git push -q origin main",
            "git checkout -qb work; echo 2 > a; git commit -qam 2; git checkout -q main; echo 3 > a; git commit -qam 3",
            "git merge work >/dev/null || true; printf 'both\\n' > a",
        ),
        cwd: "w",
        changes: &[("M", "a")],
        diffs: &[("a", Ok(("1", "both")))],
        reference: Same,
    },
    Scenario {
        name: "a binary file",
        build: clone!(
            "printf 'a\\000b' > z; git add .; git commit -qm 1; git push -q origin main; printf 'a\\000c' > z",
        ),
        cwd: "w",
        changes: &[("M", "z")],
        diffs: &[("z", Ok(("a\0b", "a\0c")))],
        reference: Same,
    },
    Scenario {
        name: "a file that is no text",
        build: clone!("printf '\\377' > z; git add .; git commit -qm 1; git push -q origin main; printf '\\376x' > z",),
        cwd: "w",
        changes: &[("M", "z")],
        diffs: &[("z", Ok(("\u{FFFD}", "\u{FFFD}x")))],
        reference: Differs("it fails for what is not UTF-8"),
    },
    Scenario {
        name: "lines that end with CR LF",
        build: clone!(
            "printf 'a\\r\\nb\\r\\n' > t; git add .; git commit -qm 1; git push -q origin main; printf 'a\\r\\nc\\r\\n' > t",
        ),
        cwd: "w",
        changes: &[("M", "t")],
        diffs: &[("t", Ok(("a\nb", "a\nc")))],
        reference: Differs("it normalises the present text only, so that every line differs"),
    },
    Scenario {
        name: "blanks at the beginning and the end",
        build: clone!("printf '\\n  a\\n\\n\\n' > t; git add .; git commit -qm 1; git push -q origin main; echo n > n",),
        cwd: "w",
        changes: &[("A", "n")],
        diffs: &[("t", Ok(("\n  a\n\n", "\n  a\n\n")))],
        reference: Differs("it trims the original only, so that an unchanged file differs"),
    },
    Scenario {
        name: "files at the limit of size",
        build: "git init -q; head -c 1048577 /dev/zero > big; mkdir d",
        cwd: ".",
        changes: &[("A", "big")],
        diffs: &[("big", Err("file_to_large"))],
        reference: Same,
    },
    Scenario {
        name: "a directory in place of a file",
        build: "git init -q; mkdir d; echo 1 > d/a",
        cwd: ".",
        changes: &[("A", "d/a")],
        diffs: &[("d", Err("d")), ("d/a", Ok(("", "1")))],
        reference: Same,
    },
    Scenario {
        name: "a directory within a repository",
        build: clone!(
            "mkdir d; echo 1 > d/a; echo 1 > b; git add .; git commit -qm 1; git push -q origin main",
            "echo 2 > d/a; echo 2 > b; echo n > d/n",
        ),
        cwd: "w/d",
        changes: &[("M", "a"), ("A", "n")],
        diffs: &[("a", Ok(("1", "2"))), ("../b", Ok(("1", "2")))],
        reference: Differs("its paths of tracked files begin at the root of the repository"),
    },
    Scenario {
        name: "a working tree beside its repository",
        build: clone!(
            "echo 1 > a; git add .; git commit -qm 1; git push -q origin main",
            "git worktree add -q ../t -b side; echo 2 > ../t/a",
        ),
        cwd: "t",
        changes: &[("M", "a")],
        diffs: &[("a", Ok(("1", "2")))],
        reference: Differs("it takes only a directory `.git` for a repository"),
    },
    Scenario {
        name: "a submodule",
        build: clone!(
            "echo 1 > a; git add .; git commit -qm 1; git push -q origin main; cd ..",
            "git init -q p; cd p; git submodule -q add ../o.git s; echo 2 > s/a",
        ),
        cwd: "p",
        changes: &[("A", ".gitmodules"), ("M", "s/a")],
        diffs: &[("s/a", Ok(("1", "2")))],
        reference: Differs("it takes only a directory `.git` for a repository"),
    },
];
