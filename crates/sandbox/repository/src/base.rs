//! The commit that everything is compared with (§6.1).

use crate::git::{Git, GitError, failed};

/// What a name says, or, without one, what the work began from. It is a commit, or the empty tree.
pub(crate) async fn base(git: &Git, reference: Option<&str>) -> Result<String, GitError> {
    if let Some(name) = reference {
        return match git.commit(name).await? {
            Some(commit) => Ok(commit),
            None if name == "HEAD" => git.empty_tree().await,
            None => Err(failed(&["rev-parse"], &format!("`{name}` names no commit"))),
        };
    }
    if git.line(&["rev-list", "--max-count=1", "--all"]).await?.is_none() {
        return git.empty_tree().await;
    }
    let head = git.commit("HEAD").await?;
    let branch = git.line(&["symbolic-ref", "--quiet", "--short", "HEAD"]).await?;
    if let Some(branch) = &branch
        && let Some(published) = git.commit(&format!("refs/remotes/origin/{branch}")).await?
        && (head.as_ref() != Some(&published) || !is_clean(git).await?)
    {
        return Ok(published);
    }
    let found = match default_branch(git).await? {
        Some(default) => with_default(git, &default, head.as_deref()).await?,
        None => local(git, branch.as_deref(), head.as_deref()).await?,
    };
    match found.or(head) {
        Some(commit) => Ok(commit),
        None => git.empty_tree().await,
    }
}

/// Whether no file that git knows is changed.
async fn is_clean(git: &Git) -> Result<bool, GitError> {
    git.is_so(&["diff", "--quiet", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty", "HEAD"]).await
}

/// The branch that whoever clones gets. The other machine is asked only if it is not known here.
pub(crate) async fn default_branch(git: &Git) -> Result<Option<String>, GitError> {
    if let Some(known) = git.line(&["symbolic-ref", "--quiet", "refs/remotes/origin/HEAD"]).await? {
        return Ok(known.strip_prefix("refs/remotes/origin/").map(str::to_owned));
    }
    if git.line(&["config", "--get", "remote.origin.url"]).await?.is_none() {
        return Ok(None);
    }
    // The program at the other end is not for the repository to choose: it may be a directory of this machine.
    let asked = ["ls-remote", "--symref", "--upload-pack=git-upload-pack", "origin", "HEAD"];
    let told = git.ask(&asked).await.unwrap_or_default();
    let told = String::from_utf8_lossy(&told);
    let line = told.lines().find_map(|line| line.strip_prefix("ref: refs/heads/"));
    Ok(line.and_then(|line| line.strip_suffix("\tHEAD")).map(str::to_owned))
}

async fn with_default(git: &Git, default: &str, head: Option<&str>) -> Result<Option<String>, GitError> {
    let Some(tip) = git.commit(&format!("refs/remotes/origin/{default}")).await? else { return Ok(None) };
    let common = match head {
        Some(head) => git.line(&["merge-base", head, &tip]).await?,
        None => None,
    };
    Ok(Some(common.unwrap_or(tip)))
}

/// The main branch here, if the work is another one that began from it.
async fn local(git: &Git, branch: Option<&str>, head: Option<&str>) -> Result<Option<String>, GitError> {
    let Some(head) = head else { return Ok(None) };
    for name in ["main", "master"] {
        let Some(tip) = git.commit(&format!("refs/heads/{name}")).await? else { continue };
        let is_before = branch != Some(name) && git.is_so(&["merge-base", "--is-ancestor", &tip, head]).await?;
        return Ok(is_before.then_some(tip));
    }
    Ok(None)
}
