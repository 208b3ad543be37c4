//! Layers that try to reach something outside of their tree, to be too much, or to mean two things.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::Path,
};

use gloveport_oci_image::{ImageError, Limits};

use crate::support::{Entry, Place, directory, entry, extended, file, gzip, hard, link, made, names, tar, text, zstd};

/// What must stay as it is: a directory beside the store, with a file.
struct Outside(tempfile::TempDir);

impl Outside {
    fn new() -> Self {
        let outside = Self(tempfile::tempdir().unwrap());
        fs::create_dir(outside.path().join("directory")).unwrap();
        fs::write(outside.path().join("directory/file"), "untouched").unwrap();
        fs::write(outside.path().join("secret"), "secret").unwrap();
        fs::set_permissions(outside.path().join("secret"), fs::Permissions::from_mode(0o600)).unwrap();
        outside
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn assert_untouched(&self, what: &str) {
        assert_eq!(names(self.path()), ["directory", "secret"], "{what}");
        assert_eq!(names(&self.path().join("directory")), ["file"], "{what}");
        assert_eq!(text(self.path().join("directory/file")), "untouched", "{what}");
        let secret = fs::metadata(self.path().join("secret")).unwrap();
        assert_eq!((secret.mode() & 0o7777, secret.nlink()), (0o600, 1), "{what}");
        assert_eq!(text(self.path().join("secret")), "secret", "{what}");
    }
}

/// What it is, its layers, and what the error says; `None` if they can be unpacked.
type Attack = (&'static str, Vec<Vec<Entry>>, Option<&'static str>);

/// Names that lead up, and links that lead out.
fn through_links(out: &str, up: &str) -> Vec<Attack> {
    vec![
        ("a name that leads up", vec![vec![file("../x", "")]], Some("leads up")),
        ("a name that leads up later", vec![vec![file("a/../../x", "")]], Some("leads up")),
        ("a directory that leads up", vec![vec![directory("..")]], Some("leads up")),
        ("an absolute name", vec![vec![file(format!("{out}/x"), "")]], None),
        ("an absolute link", vec![vec![link("l", out), file("l/x", "")]], Some("leads to nothing")),
        ("a climbing link", vec![vec![link("l", up), file("l/x", "")]], Some("leads to nothing")),
        ("a link of an earlier layer", vec![vec![link("l", out)], vec![file("l/x", "")]], Some("leads to nothing")),
        ("a link as the last name", vec![vec![link("l", format!("{out}/secret")), file("l", "new")]], None),
        ("a chain of links", vec![vec![link("a", "b"), link("b", up), directory("a/x")]], Some("leads to nothing")),
        ("a link to itself", vec![vec![link("a", "a"), file("a/x", "")]], Some("in a circle")),
        ("a link to the root", vec![vec![link("a", "/../.."), file("a/x", "inside")]], None),
        ("a magic link", vec![vec![link("a", "/proc/self/root"), file("a/x", "")]], Some("leads to nothing")),
        ("a hard link out", vec![vec![hard("h", format!("{out}/secret"))]], Some("not in the image")),
        ("a climbing hard link", vec![vec![hard("h", format!("{up}/secret"))]], Some("not in the image")),
        ("a hard link through a link", vec![vec![link("l", out), hard("h", "l/secret")]], Some("not in the image")),
        (
            "a hard link to a link, then a file",
            vec![vec![link("l", format!("{out}/secret")), hard("h", "l"), file("h", "new")]],
            None,
        ),
        ("a hard link to a directory", vec![vec![directory("d"), hard("h", "d")]], Some("to a directory")),
        ("a hard link to itself", vec![vec![file("a", "x"), hard("a", "./a")]], None),
    ]
}

/// Signs that something is gone, what replaces links, names and numbers that are none.
fn by_other_means(out: &str, up: &str) -> Vec<Attack> {
    vec![
        ("something gone that has no name", vec![vec![file(".wh.", "")]], Some("has no name")),
        ("the tree itself gone", vec![vec![file(".wh..", "")]], Some("has no name")),
        ("what is above gone", vec![vec![file("a/.wh...", "")]], Some("has no name")),
        ("something gone outside", vec![vec![link("l", out)], vec![file("l/.wh.secret", "")]], None),
        ("something gone above", vec![vec![link("l", up)], vec![file("l/directory/.wh.file", "")]], None),
        ("all gone outside", vec![vec![link("l", out)], vec![file("l/.wh..wh..opq", "")]], None),
        (
            "a link gone, not what it names",
            vec![vec![link("l", format!("{out}/directory"))], vec![file(".wh.l", "")]],
            None,
        ),
        ("gone things in gone things", vec![vec![file(".wh.a/.wh.b", "")]], Some("something is gone")),
        ("a directory over a link", vec![vec![link("l", out), directory("l").mode(0o777), file("l/x", "")]], None),
        (
            "the mode of what a link names",
            vec![vec![link("l", format!("{out}/secret")), link("l", "x").mode(0o777)]],
            None,
        ),
        (
            "a FIFO over a link",
            vec![vec![link("l", format!("{out}/secret")), entry(b'6', "l", "", b"").mode(0o666)]],
            None,
        ),
        ("the root as a link", vec![vec![link(".", out)]], Some("would be no directory")),
        ("the root as a file", vec![vec![file("./", "").field(156, b"1")]], Some("would be no directory")),
        ("an empty name", vec![vec![file("", "")]], Some("has no name")),
        ("a long name", vec![vec![file("x".repeat(256), "")]], Some("longer than 255")),
        ("a long path", vec![vec![file("x/".repeat(2100) + "y", "")]], Some("longer than 4096")),
        ("many directories", vec![vec![file("x/".repeat(300) + "y", "")]], Some("directories deep")),
        ("a link without a target", vec![vec![link("l", "")]], Some("is empty")),
        ("a name with a NUL", vec![vec![extended(&[("path", b"a\0b")]), file("a", "")]], Some("has a NUL")),
        ("a target with a NUL", vec![vec![extended(&[("linkpath", b"a\0b")]), link("a", "b")]], Some("has a NUL")),
        ("an extended name that leads up", vec![vec![extended(&[("path", b"../x")]), file("a", "")]], Some("leads up")),
        ("a file below a file", vec![vec![file("a", ""), file("a/b", "")]], Some("no directory")),
        ("an unknown kind", vec![vec![entry(b'V', "a", "", b"")]], Some("not known")),
        ("a negative owner", vec![vec![file("a", "").field(108, &[0xff; 8])]], Some("owner is none, or negative")),
        ("a negative size", vec![vec![file("a", "").field(124, &[0xff; 12])]], Some("size is no number, or negative")),
        ("a size of letters", vec![vec![file("a", "").field(124, b"zzzzzzzzzzz\0")]], Some("size is no number")),
        ("a size beyond the end", vec![vec![file("a", "").field(124, b"00000100000\0")]], Some("ends too early")),
        (
            "a huge size",
            vec![vec![file("a", "").field(124, b"\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff")]],
            Some("more than"),
        ),
        (
            "a huge extended size",
            vec![vec![extended(&[("size", b"9223372036854775807")]), file("a", "")]],
            Some("more than"),
        ),
        ("a wrong extended size", vec![vec![extended(&[("size", b"-1")]), file("a", "")]], Some("no number")),
        ("a wrong sum", vec![vec![extended(&[("size", b"x")]), file("a", "")]], Some("no number")),
        (
            "a name longer than anything",
            vec![vec![entry(b'L', "x", "", &vec![b'x'; 2_000_000]), file("a", "")]],
            Some("too long"),
        ),
        ("a header for nothing", vec![vec![extended(&[("path", b"x")])]], Some("belongs to no entry")),
        ("headers without an end", vec![vec![extended(&[("path", b"x")]); 20]], Some("too many headers")),
        ("POSIX's holes", vec![vec![extended(&[("GNU.sparse.major", b"1")]), file("a", "")]], Some("with holes")),
        ("holes that make no sense", vec![vec![entry(b'S', "a", "", b"xyz")]], Some("makes no sense")),
    ]
}

#[tokio::test]
async fn what_would_leave_the_tree_is_refused_or_stays_in_it() {
    let outside = Outside::new();
    let out = outside.path().display().to_string();
    let up = format!("{}{out}", "../".repeat(40));
    let attacks = [through_links(&out, &up), by_other_means(&out, &up)].concat();
    assert!(attacks.len() > 40);
    for (what, layers, expected) in attacks {
        let place = Place::new();
        let got = place.unpacked(&layers).await;
        outside.assert_untouched(what);
        assert_eq!(names(place.directory.path()), ["layout", "store"], "{what}");
        match (got, expected) {
            (Ok(_), None) => {}
            (Err(error), Some(part)) => {
                assert!(error.to_string().contains(part), "{what}: {error}");
                place.assert_empty();
            }
            (got, expected) => panic!("{what}: {got:?}, and not {expected:?}"),
        }
    }
}

#[tokio::test]
async fn names_mean_the_inside_and_later_ones_replace_earlier_ones() {
    let place = Place::new();
    let layer = vec![
        link("data", "/srv/../srv/data"),
        file("/srv/data/a", "1"),
        file("data/b", "2"),
        link("climb", "../../../srv"),
        file("climb/c", "3"),
        file("twice", "old").mode(0o600),
        file("twice", "new"),
        directory("full/of"),
        file("full/of/things", ""),
        file("full", "a file now"),
        file("flat", ""),
        directory("flat"),
        link("aside", "srv"),
        directory("aside"),
        file("aside/d", "4"),
        file("first", "shared"),
        hard("second", "first"),
        file("first", "other"),
        file("new\nline", ""),
        file(b"\xff\xfe", ""),
        entry(b'4', "srv/device", "", b""),
        entry(b'7', "contiguous", "", b"5"),
        entry(0, "old/form/", "", b""),
    ];
    let got = place.unpacked(&[layer]).await.unwrap();
    let root = &got.root;
    assert_eq!(got.left_out, 1);
    assert_eq!(names(&root.join("srv")), ["c", "data"]);
    assert_eq!(names(&root.join("srv/data")), ["a", "b"]);
    assert_eq!(fs::read_link(root.join("data")).unwrap(), Path::new("/srv/../srv/data"));
    for (name, content) in [
        ("twice", "new"),
        ("full", "a file now"),
        ("aside/d", "4"),
        ("first", "other"),
        ("second", "shared"),
        ("contiguous", "5"),
    ] {
        assert_eq!(text(root.join(name)), content, "{name}");
    }
    for name in ["flat", "aside", "old/form"] {
        assert!(fs::symlink_metadata(root.join(name)).unwrap().is_dir(), "{name}");
    }
    assert!(root.join("new\nline").exists());
    assert_eq!(fs::read_dir(root).unwrap().count(), 13);
}

#[tokio::test]
async fn what_is_gone_is_what_earlier_layers_brought() {
    let place = Place::new();
    let first = vec![
        file("a/old", ""),
        file("a/both", "old"),
        file("a/inner/old", ""),
        file("b/old", ""),
        file("c/old", ""),
        file("d", "old"),
        file("e", "old"),
        link("f", "a"),
    ];
    let second = vec![
        file("a/inner/new", ""),
        file("a/both", "new"),
        file("a/new", ""),
        // Signs count for earlier layers alone, wherever they stand.
        file("a/.wh..wh..opq", ""),
        file("b/.wh..wh..opq", ""),
        file("b/new", ""),
        file("c/new", ""),
        file(".wh.c", ""),
        file("d", "new"),
        file(".wh.d", ""),
        file(".wh.e", ""),
        file(".wh.nothing", ""),
        file("nowhere/.wh.x", ""),
        file("nowhere/.wh..wh..opq", ""),
        file(".wh..wh.plnk/1.2", ""),
        file(".wh.f", ""),
    ];
    let got = place.unpacked(&[first, second]).await.unwrap();
    let root = &got.root;
    assert_eq!(names(root), ["a", "b", "c", "d"]);
    assert_eq!(names(&root.join("a")), ["both", "inner", "new"]);
    assert_eq!(names(&root.join("a/inner")), ["new"]);
    assert_eq!((names(&root.join("b")), names(&root.join("c"))), (vec!["new".to_owned()], vec!["new".to_owned()]));
    assert_eq!((text(root.join("a/both")), text(root.join("d"))), ("new".into(), "new".into()));
}

#[tokio::test]
async fn bounds_stop_what_is_too_much() {
    let small = Limits { compressed: 100_000, unpacked: 1_000_000, entries: 100, layers: 3, ..Limits::default() };
    let bomb = tar(&[file("a", vec![0; 2_000_000])]);
    let many = tar(&(0..200).map(|number| file(format!("{number}"), "")).collect::<Vec<_>>());
    let deep = tar(&(0..60).map(|number| file(format!("{number}/x"), "")).collect::<Vec<_>>());
    let half = tar(&[file("a", vec![0; 600_000])]);
    let noise: Vec<u8> = (0..200_000_u32).flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    let holes = tar(&[entry(b'S', "a", "", b"").field(483, b"77777777777\0")]);
    let behind = [tar(&[file("a", "")]), vec![0; 2_000_000]].concat();
    for (what, layers, expected) in [
        ("a bomb", vec![(bomb.clone(), gzip(&bomb))], "more than 1000000 bytes"),
        ("a bomb in Zstandard", vec![(bomb.clone(), zstd(&bomb))], "more than 1000000 bytes"),
        ("two halves", vec![(half.clone(), gzip(&half)); 2], "more than 1000000 bytes"),
        ("nothing behind the end", vec![(behind.clone(), gzip(&behind))], "more than 1000000 bytes"),
        ("holes", vec![(holes.clone(), gzip(&holes))], "more than 1000000 bytes"),
        ("entries", vec![(many.clone(), gzip(&many))], "more than 100 entries"),
        ("directories that are made for entries", vec![(deep.clone(), gzip(&deep))], "more than 100 entries"),
        ("layers", vec![(half.clone(), gzip(&half)); 4], "more than 3 layers"),
        ("stored bytes", vec![(noise.clone(), noise)], "more than 100000 bytes"),
    ] {
        let place = Place::with(small);
        made(&layers).write(&place.path("layout"));
        let error = place.get(&place.layout()).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{what}: {error}");
        place.assert_empty();
    }
}

#[tokio::test]
async fn what_is_no_layer_is_refused() {
    let good = tar(&[file("a", "content")]);
    let mut sum = good.clone();
    sum[0] = b'b';
    let garbage: Vec<u8> = (0..5000_u32).map(|number| number.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
    for (what, unpacked, packed) in [
        ("garbage", garbage.clone(), garbage.clone()),
        ("a wrong sum", sum.clone(), sum),
        ("a cut header", good[..300].to_vec(), good[..300].to_vec()),
        ("cut contents", good[..515].to_vec(), good[..515].to_vec()),
        ("cut gzip", good.clone(), gzip(&good)[..40].to_vec()),
        ("garbage behind gzip", good.clone(), [gzip(&good), garbage.clone()].concat()),
        ("cut Zstandard", good.clone(), zstd(&good)[..30].to_vec()),
        ("garbage behind Zstandard", good.clone(), [zstd(&good), garbage].concat()),
        ("xz", good.clone(), b"\xfd7zXZ\0".to_vec()),
    ] {
        let place = Place::new();
        made(&[(unpacked, packed)]).write(&place.path("layout"));
        let error = place.get(&place.layout()).await.unwrap_err();
        assert!(matches!(error, ImageError::Layer { layer: 1, .. }), "{what}: {error}");
        place.assert_empty();
    }
    // No mark of the end, and no layers at all, are no faults.
    let place = Place::new();
    made(&[(good[..1024].to_vec(), gzip(&good[..1024])), (Vec::new(), Vec::new())]).write(&place.path("layout"));
    assert_eq!(names(&place.get(&place.layout()).await.unwrap().root), ["a"]);
    made(&[]).write(&place.path("layout"));
    assert_eq!(names(&place.get(&place.layout()).await.unwrap().root), Vec::<String>::new());
}

#[tokio::test]
async fn files_with_holes_are_what_they_were() {
    let place = Place::new();
    let octal = |number: u64| format!("{number:011o}\0").into_bytes();
    let map = [octal(512), octal(3), octal(4096), octal(2)].concat();
    let holes = entry(b'S', "a", "", b"abcde").field(386, &map).field(483, &octal(8192)).field(257, b"ustar  \0");
    let got = place.unpacked(&[vec![holes, file("b", "next")]]).await.unwrap();
    let bytes = fs::read(got.root.join("a")).unwrap();
    assert_eq!((bytes.len(), &bytes[512..515], &bytes[4096..4098]), (8192, &b"abc"[..], &b"de"[..]));
    assert_eq!(bytes.iter().filter(|byte| **byte != 0).count(), 5);
    assert_eq!(text(got.root.join("b")), "next");
}
