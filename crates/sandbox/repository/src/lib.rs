//! What has changed in a git repository, as clients of OpenHands' SDK 1.x ask for it (`agent-server-workspace-api` §6).
//!
//! | module | idea |
//! |---|---|
//! | `git` | one call of git: within a time and a size, and not as a hostile repository would have it |
//! | `base` | the commit that everything is compared with |
//! | `changes` | files that were added, changed and deleted |
//! | `diff` | both texts of one file |
//! | `as_user` | work on files with the rights of whoever owns the commands |
//! | `archive` | a directory as one file: a patch, or all of it (§5.1) |
//! | `commits` | the newest commits, and what one of them changed |
//!
//! Git runs as the user of commands, with the rights that they have.

mod archive;
mod as_user;
mod base;
mod changes;
mod commits;
mod diff;
mod git;

pub use archive::{Archive, ArchiveError, ArchiveRequest, DEFAULT_EXCLUDES, Format, Origin, archive};
pub use changes::{Change, Status, changes};
pub use commits::{Commit, Commits, commit_changes, commits};
pub use diff::{FileDiff, diff};
pub use git::GitError;
