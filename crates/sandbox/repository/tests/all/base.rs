//! What is compared with, step by step.

use std::fs;

use crate::place::Place;

/// A repository on `work`, two commits after `main`, and a bare one that it may publish to.
fn two_branches() -> Place {
    let place = Place::new();
    place.repository("r");
    place.git("r", &["checkout", "-q", "-b", "work"]);
    for name in ["first", "second"] {
        place.write(&format!("r/{name}"), "");
        place.commit("r", name);
    }
    fs::create_dir(place.path("bare")).unwrap();
    place.git("bare", &["init", "-q", "--bare"]);
    place
}

fn publish(place: &Place, references: &[&str]) {
    place.git("r", &["remote", "add", "origin", "../bare"]);
    place.git("r", &[&["push", "-q", "origin"], references].concat());
}

#[tokio::test]
async fn what_is_published_of_the_branch_counts_unless_nothing_is_new() {
    let place = two_branches();
    publish(&place, &["main", "work^:refs/heads/work"]);
    assert_eq!(place.changes("r", None).await, ["A second"]);
    place.git("r", &["push", "-q", "origin", "work"]);
    assert_eq!(place.changes("r", None).await, ["A first", "A second"]);
    // A new file is none that git knows, until it is staged.
    place.write("r/third", "");
    assert_eq!(place.changes("r", None).await, ["A first", "A second", "A third"]);
    place.git("r", &["add", "third"]);
    assert_eq!(place.changes("r", None).await, ["A third"]);
}

#[tokio::test]
async fn a_known_default_branch_is_taken_without_asking() {
    let place = two_branches();
    publish(&place, &["main:refs/heads/trunk"]);
    place.git("r", &["symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk"]);
    // Whoever asked would hear of another one.
    place.git("bare", &["symbolic-ref", "HEAD", "refs/heads/other"]);
    place.git("r", &["push", "-q", "../bare", "work:refs/heads/other"]);
    place.git("r", &["fetch", "-q", "../bare", "other:refs/remotes/origin/other"]);
    assert_eq!(place.changes("r", None).await, ["A first", "A second"]);
    place.git("r", &["symbolic-ref", "--delete", "refs/remotes/origin/HEAD"]);
    assert_eq!(place.changes("r", None).await, Vec::<String>::new());
}

#[tokio::test]
async fn the_tip_counts_where_nothing_is_in_common_and_no_contact_is_no_default() {
    let place = two_branches();
    publish(&place, &["main"]);
    place.git("r", &["checkout", "-q", "--orphan", "alone"]);
    place.git("r", &["rm", "-q", "--cached", "first", "second"]);
    fs::remove_file(place.path("r/first")).unwrap();
    // Neither a commit of its own, nor one that has nothing to do with the others, changes what is compared with.
    assert_eq!(place.changes("r", None).await, ["A second"]);
    place.commit("r", "alone");
    assert_eq!(place.changes("r", None).await, ["A second"]);
    place.git("r", &["remote", "set-url", "origin", "/no/such/place"]);
    assert_eq!(place.changes("r", None).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_main_branch_here_counts_if_the_work_began_from_it() {
    let place = two_branches();
    assert_eq!(place.changes("r", None).await, ["A first", "A second"]);
    place.git("r", &["checkout", "-q", "--detach"]);
    assert_eq!(place.changes("r", None).await, ["A first", "A second"]);
    place.git("r", &["checkout", "-q", "work"]);
    place.git("r", &["branch", "-q", "-m", "main", "master"]);
    assert_eq!(place.changes("r", None).await, ["A first", "A second"]);
    // One that has gone on is none that the work is compared with: HEAD is.
    place.git("r", &["checkout", "-q", "master"]);
    place.write("r/on-master", "");
    place.commit("r", "gone on");
    place.write("r/new", "");
    assert_eq!(place.changes("r", None).await, ["A new"]);
    place.git("r", &["checkout", "-q", "work"]);
    assert_eq!(place.changes("r", None).await, ["A new"]);
    // A main branch is there, and is this one.
    place.git("r", &["checkout", "-q", "-b", "main"]);
    assert_eq!(place.changes("r", None).await, ["A new"]);
}

#[tokio::test]
async fn a_branch_without_a_commit_is_compared_with_nothing() {
    let place = two_branches();
    place.git("r", &["checkout", "-q", "--orphan", "alone"]);
    let all = ["A .gitignore", "A changed", "A first", "A gone", "A kept", "A second"];
    assert_eq!(place.changes("r", None).await, all);
    assert_eq!(place.changes("r", Some("HEAD")).await, all);
    assert_eq!(place.changes("r", Some("work")).await, Vec::<String>::new());
    assert_eq!(place.changes("r", Some("work~1")).await, ["A second"]);
}
