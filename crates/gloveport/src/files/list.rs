//! `gloveport ls`.

use std::{fmt::Write as _, process::ExitCode};

use gloveport_client::{ActionExecutionClient, ListOptions};
use gloveport_protocol::files::{FileEntry, FileKind};
use jiff::Timestamp;

use super::{
    ListArgs,
    place::{Place, lacks_native_files},
};
use crate::{here::Files, output::print, visible::one_line};

pub(crate) async fn list(arguments: ListArgs) -> anyhow::Result<ExitCode> {
    let place = Place::new(&arguments.server)?;
    let path = arguments.path.as_deref().unwrap_or(".");
    let entries = match &place {
        Place::Here(_) => {
            let path = place.absolute(path).await?;
            let (entries, is_cut) = Files::list(path, arguments.all).await?;
            warn_if_cut(is_cut);
            entries
        }
        Place::There(client) => match there(client, path.strip_prefix(':').unwrap_or(path), arguments.all).await? {
            Some(entries) => entries,
            None => return names_alone(client, &arguments).await,
        },
    };
    if arguments.json {
        print(&(serde_json::to_string_pretty(&entries)? + "\n"))?;
    } else {
        print(&table(&entries, arguments.long))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// `None` if the server does not know the native file API.
async fn there(client: &ActionExecutionClient, path: &str, hidden: bool) -> anyhow::Result<Option<Vec<FileEntry>>> {
    let files = client.files();
    let entry = match files.stat(path, true).await {
        Err(error) if lacks_native_files(&error) => return Ok(None),
        other => other?,
    };
    if entry.kind != FileKind::Directory {
        return Ok(Some(vec![entry]));
    }
    let list = files.list(path, &ListOptions { hidden, limit: Some(usize::MAX), ..ListOptions::default() }).await?;
    warn_if_cut(list.truncated);
    Ok(Some(list.entries))
}

fn warn_if_cut(is_cut: bool) {
    if is_cut {
        tracing::warn!("there are more entries than can be listed at once");
    }
}

/// What a server of OpenHands tells: the names.
async fn names_alone(client: &ActionExecutionClient, arguments: &ListArgs) -> anyhow::Result<ExitCode> {
    if arguments.long {
        tracing::warn!("this server reports names only");
    }
    let path = arguments.path.as_deref().map(|path| path.strip_prefix(':').unwrap_or(path));
    let mut names = client.list_files(path).await?;
    names.retain(|name| arguments.all || !name.starts_with('.'));
    if arguments.json {
        print(&(serde_json::to_string_pretty(&names)? + "\n"))?;
    } else {
        print(&names.iter().fold(String::new(), |text, name| text + &one_line(name) + "\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// One entry a line: its name with a mark for its kind, and with `long` mode, owner, size and time before it.
fn table(entries: &[FileEntry], long: bool) -> String {
    let sizes = entries.iter().map(|entry| entry.size.to_string().len()).max().unwrap_or(0);
    let mut text = String::new();
    for entry in entries {
        if long {
            let time = time_text(entry.modified);
            // Writing into a string cannot fail.
            let _ = write!(
                text,
                "{}{} {:>6} {:>6} {:>sizes$} {time} ",
                letter(entry.kind),
                entry.mode,
                entry.uid,
                entry.gid,
                entry.size
            );
        }
        text.push_str(&one_line(&entry.path));
        if entry.kind == FileKind::Directory {
            text.push('/');
        }
        if long && let Some(target) = &entry.target {
            text.push_str(" -> ");
            text.push_str(&one_line(target));
        }
        text.push('\n');
    }
    text
}

const fn letter(kind: FileKind) -> char {
    match kind {
        FileKind::File => '-',
        FileKind::Directory => 'd',
        FileKind::Symlink => 'l',
        FileKind::Other => '?',
    }
}

/// A time in UTC, as `2026-01-31 23:59`; beyond the calendar the seconds, as `@300000000000`.
#[expect(clippy::cast_possible_truncation, reason = "a cast of a float ends at the limits")]
fn time_text(seconds: f64) -> String {
    match Timestamp::from_second(seconds.floor() as i64) {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M").to_string(),
        Err(_) => format!("@{seconds:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use gloveport_protocol::files::FileMode;

    use super::*;

    #[test]
    fn a_time_is_shown_in_utc() {
        for (seconds, expected) in [
            (0.0, "1970-01-01 00:00"),
            (951_782_399.9, "2000-02-28 23:59"),
            (951_782_400.0, "2000-02-29 00:00"),
            (1_767_225_599.0, "2025-12-31 23:59"),
            (-60.0, "1969-12-31 23:59"),
            (-0.5, "1969-12-31 23:59"),
            (3e11, "@300000000000"),
        ] {
            assert_eq!(time_text(seconds), expected);
        }
    }

    #[test]
    fn entries_are_aligned_and_their_names_stay_on_one_line() {
        let entry = |path: &str, kind, size| FileEntry {
            path: path.to_owned(),
            path_base64: None,
            kind,
            size,
            mode: FileMode::of_file(0o644),
            uid: 0,
            gid: 1000,
            modified: 0.0,
            target: (kind == FileKind::Symlink).then(|| "a\nb".to_owned()),
            target_kind: None,
        };
        let entries = [
            entry("docs", FileKind::Directory, 4096),
            entry("a\x1b[2Jb", FileKind::File, 1),
            entry("link", FileKind::Symlink, 3),
        ];
        assert_eq!(table(&entries, false), "docs/\na?[2Jb\nlink\n");
        assert_eq!(
            table(&entries, true),
            "d0644      0   1000 4096 1970-01-01 00:00 docs/\n\
             -0644      0   1000    1 1970-01-01 00:00 a?[2Jb\n\
             l0644      0   1000    3 1970-01-01 00:00 link -> a?b\n"
        );
    }
}
