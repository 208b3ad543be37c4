//! The file that is to be shown, opened once and judged by what was opened.
//!
//! A name says nothing: a link leads anywhere. So the file is opened with the rights of the sandbox's user, and its last
//! name, its kind, its file system and its first bytes are those of the descriptor.

use std::{
    fs::File,
    io,
    os::{
        fd::{AsFd, AsRawFd as _},
        unix::fs::FileExt as _,
    },
    path::PathBuf,
    thread,
};

use gloveport_documents::View;
use gloveport_sys::{Identity, file_identity};
use rustix::{
    fs::{FileType, Mode, OFlags, fstat, fstatfs, open, readlink},
    io::Errno,
};

use super::page::ViewError;

/// Bytes by which the kind of a file is told.
const HEAD: usize = 1024;

/// What file systems are made by the kernel out of its own state, by their numbers: what is there to be read belongs to
/// processes and devices, and is no file of anybody.
const KERNEL: [u32; 15] = [
    0x0000_9fa0, // proc
    0x6265_6572, // sysfs
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x7363_6673, // securityfs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0x0000_1cd1, // devpts
    0xcafe_4a11, // bpf
    0x6265_6570, // configfs
    0xde5e_81e4, // efivarfs
    0x6165_676c, // pstore
    0xf97c_ff8c, // selinuxfs
    0x4341_5d53, // smackfs
    0x6e73_6673, // nsfs
];

/// What can be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A PDF, whose first bytes may not be those of one; then nothing of it is shown.
    Pdf { is_one: bool },
    /// An image.
    Image {
        /// Its media type.
        mime: &'static str,
    },
    /// What is shown as text, tables and pictures of a page without scripts.
    Written(View),
}

/// What a name says about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Named {
    Pdf,
    Image,
    Written(View),
}

impl Named {
    /// By the extension: what follows the last dot of the name, unless only dots stand before it.
    fn of(path: &str) -> Result<Self, ViewError> {
        let name = path.rsplit('/').next().unwrap_or_default().trim_start_matches('.');
        let extension = name.rfind('.').and_then(|at| name.get(at..)).unwrap_or_default().to_lowercase();
        match extension.as_str() {
            ".pdf" => Ok(Self::Pdf),
            ".png" | ".jpg" | ".jpeg" | ".gif" => Ok(Self::Image),
            _ => View::of(name).map(Self::Written).ok_or(ViewError::Unsupported(extension)),
        }
    }

    /// By the first bytes too.
    fn seen(self, head: &[u8]) -> Result<Kind, ViewError> {
        match self {
            Self::Pdf => Ok(Kind::Pdf { is_one: head.windows(5).any(|window| window == b"%PDF-") }),
            Self::Image => image(head).map(|mime| Kind::Image { mime }).ok_or(ViewError::NoImage),
            Self::Written(view) => Ok(Kind::Written(view)),
        }
    }
}

fn image(head: &[u8]) -> Option<&'static str> {
    let beginnings: [(&[u8], _); 4] = [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF87a", "image/gif"),
        (b"GIF89a", "image/gif"),
    ];
    beginnings.into_iter().find_map(|(beginning, mime)| head.starts_with(beginning).then_some(mime))
}

/// The file and what it is, seen with the rights of a user if there is one, or why it is not shown.
pub(super) fn find(path: String, identity: Option<Identity>) -> Result<(File, Kind), ViewError> {
    let Some(identity) = identity else { return found(&path) };
    // The rights of a thread are its own for good.
    let look = move || {
        file_identity::take_on(&identity)?;
        found(&path)
    };
    let looking = thread::Builder::new().name("viewer".into()).spawn(look)?;
    looking.join().unwrap_or_else(|_| Err(io::Error::other("the file could not be looked at").into()))
}

fn found(path: &str) -> Result<(File, Kind), ViewError> {
    if !path.starts_with('/') {
        return Err(ViewError::Relative);
    }
    // A name only: a FIFO does not wait, and a device does nothing.
    let place = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(|_| ViewError::Missing)?;
    let kind = FileType::from_raw_mode(fstat(&place).map_err(io::Error::from)?.st_mode);
    if kind == FileType::Directory {
        return Err(ViewError::Directory);
    }
    Named::of(path)?;
    if kind != FileType::RegularFile {
        return Err(io::Error::from(Errno::INVAL).into());
    }
    if is_of_the_kernel(&place)? {
        return Err(ViewError::Kernel);
    }
    let descriptor = PathBuf::from(format!("/proc/self/fd/{}", place.as_raw_fd()));
    let name = readlink(&descriptor, Vec::new()).map_err(io::Error::from)?;
    let named = Named::of(&name.to_string_lossy())?;
    // The same file, whatever its name leads to by now; this time with a look at its mode.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(open(&descriptor, flags, Mode::empty()).map_err(io::Error::from)?);
    let mut head = [0; HEAD];
    let length = file.read_at(&mut head, 0)?;
    Ok((file, named.seen(&head[..length])?))
}

fn is_of_the_kernel(file: impl AsFd) -> io::Result<bool> {
    let number = fstatfs(file)?.f_type;
    // The number has 32 bits in a word of any size and sign.
    Ok(KERNEL.iter().any(|known| i128::from(number) & 0xffff_ffff == i128::from(*known)))
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{PermissionsExt as _, symlink},
        path::Path,
    };

    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";

    fn unsupported(extension: &str) -> String {
        ViewError::Unsupported(extension.to_owned()).message().unwrap()
    }

    fn message(path: &Path) -> String {
        found(path.to_str().unwrap()).map_err(|error| error.message().unwrap_or_default()).unwrap_err()
    }

    #[test]
    fn kinds_are_told_by_the_extension() {
        for (path, expected) in [
            ("/a/b.PNG", Ok(Named::Image)),
            ("/a.png/b.jpeg", Ok(Named::Image)),
            ("/a.b.gif", Ok(Named::Image)),
            ("/a.pdf", Ok(Named::Pdf)),
            ("/a.png/b", Err("")),
            ("/.png", Err("")),
            ("/..png", Err("")),
            ("/a.", Err(".")),
            ("/a.TXT", Ok(Named::Written(View::Text))),
            ("/a.Md", Ok(Named::Written(View::Markdown))),
            ("/.bashrc.csv", Ok(Named::Written(View::Separated))),
            ("/.md", Err("")),
            ("/a.Key", Err(".key")),
        ] {
            let expected = expected.map_err(unsupported);
            let found = Named::of(path).map_err(|error| error.message().unwrap());
            assert_eq!(found, expected, "{path}");
        }
    }

    #[test]
    fn the_first_bytes_decide_what_an_image_is() {
        let directory = tempfile::tempdir().unwrap();
        for (name, content, expected) in [
            ("a.png", PNG, Some(Kind::Image { mime: "image/png" })),
            ("a.jpg", PNG, Some(Kind::Image { mime: "image/png" })),
            ("a.gif", b"GIF89a", Some(Kind::Image { mime: "image/gif" })),
            ("a.jpeg", b"\xff\xd8\xff\xe0", Some(Kind::Image { mime: "image/jpeg" })),
            ("b.png", b"root:x:0:0", None),
            ("c.png", b"", None),
            ("a.pdf", b"junk\n%PDF-1.4", Some(Kind::Pdf { is_one: true })),
            ("b.pdf", b"root:x:0:0", Some(Kind::Pdf { is_one: false })),
        ] {
            let path = directory.path().join(name);
            fs::write(&path, content).unwrap();
            assert_eq!(found(path.to_str().unwrap()).ok().map(|(_, kind)| kind), expected, "{name}");
        }
    }

    #[test]
    fn links_show_only_what_has_the_name_and_the_content_of_an_image() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        fs::write(place("real.png"), PNG).unwrap();
        fs::write(place("bare"), PNG).unwrap();
        fs::write(place("notes.key"), "text").unwrap();
        for target in ["real.png", "bare", "notes.key", "/etc/passwd", "/proc/self/environ", "/dev/zero", "nowhere"] {
            let link = place(&format!("{}.png", target.replace('/', "_")));
            symlink(target, &link).unwrap();
        }
        assert!(found(place("real.png.png").to_str().unwrap()).is_ok());
        assert_eq!(message(&place("bare.png")), unsupported(""));
        assert_eq!(message(&place("notes.key.png")), unsupported(".key"));
        assert_eq!(message(&place("_etc_passwd.png")), unsupported(""));
        assert_eq!(message(&place("_dev_zero.png")), "Invalid argument (os error 22)");
        let kernel = "The file is made by the kernel, which shows no files to be viewed.";
        assert_eq!(message(&place("_proc_self_environ.png")), kernel);
        assert!(matches!(found(place("nowhere.png").to_str().unwrap()), Err(ViewError::Missing)));
        // A hard link has the name that it has, but not the content.
        fs::hard_link(place("notes.key"), place("hard.png")).unwrap();
        assert_eq!(message(&place("hard.png")), "The content of the file is not a PNG, JPEG or GIF image.");
    }

    #[test]
    fn files_are_seen_with_the_rights_of_the_user() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let (secret, open, hidden) =
            (directory.path().join("secret.png"), directory.path().join("open.png"), directory.path().join("hidden"));
        for (path, mode) in [(&secret, 0o600), (&open, 0o644)] {
            fs::write(path, PNG).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        fs::create_dir(&hidden).unwrap();
        fs::set_permissions(&hidden, fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(hidden.join("in.png"), PNG).unwrap();
        let link = directory.path().join("link.png");
        symlink(&secret, &link).unwrap();
        let user = Identity { uid: 65_534, gid: 65_534, groups: vec![65_534] };
        let see = |path: &Path| find(path.to_str().unwrap().to_owned(), Some(user.clone()));
        let (mut file, kind) = see(&open).unwrap();
        assert_eq!(kind, Kind::Image { mime: "image/png" });
        let mut content = Vec::new();
        io::Read::read_to_end(&mut file, &mut content).unwrap();
        assert_eq!(content, PNG);
        for path in [&secret, &link] {
            assert_eq!(see(path).unwrap_err().message().unwrap(), "Permission denied (os error 13)");
        }
        // What the user may not look at is not there.
        assert!(matches!(see(&hidden.join("in.png")), Err(ViewError::Missing)));
        assert!(matches!(see(&hidden.join("none.png")), Err(ViewError::Missing)));
        assert!(find(secret.to_str().unwrap().to_owned(), None).is_ok());
    }
}
