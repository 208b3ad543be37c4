//! Which interpreter runs a kernel, and what happens without `ipykernel`.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use gloveport_kernel::{CellEnd, Kernel, KernelError, KernelOptions, KernelState, Python, Step};
use gloveport_sys::Identity;

use crate::support::{LONG, cell, python, surroundings};

/// A virtual environment without `ipykernel`.
fn bare(directory: &Path) -> PathBuf {
    let made = Command::new(python()).args(["-m", "venv", "--without-pip"]).arg(directory).status().unwrap();
    assert!(made.success());
    directory.join("bin/python")
}

fn script(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// The same where no index of packages can be reached.
fn offline(mut options: KernelOptions) -> KernelOptions {
    options.surroundings.set("PIP_INDEX_URL", "http://127.0.0.1:9");
    options.surroundings.set("PIP_CONFIG_FILE", "/dev/null");
    options.surroundings.unset("PIP_FIND_LINKS");
    options.surroundings.unset("PIP_EXTRA_INDEX_URL");
    options
}

async fn failure(options: KernelOptions) -> (String, String) {
    let kernel = Kernel::start(options);
    match tokio::time::timeout(LONG, kernel.execute(cell("1"))).await.unwrap() {
        Err(KernelError::Failed { reason, remedy }) => (reason, remedy),
        other => panic!("{other:?}"),
    }
}

async fn interpreter(options: KernelOptions) -> String {
    let kernel = Kernel::start(options);
    let report = tokio::time::timeout(LONG, kernel.execute(cell("import sys; print(sys.executable)"))).await.unwrap();
    let report = report.unwrap();
    assert_eq!(report.text.trim_end(), report.interpreter);
    kernel.close().await;
    report.interpreter
}

#[tokio::test]
async fn the_users_environment_comes_before_the_interpreters_of_the_path() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path();
    // Each is a link to the same interpreter, under a name of its own.
    let environment = |name: &str| {
        let place = base.join(name);
        fs::create_dir_all(place.join("bin")).unwrap();
        let program = place.join("bin/python");
        script(&program, &format!("#!/bin/sh\nexec {} \"$@\"\n", python().display()));
        place
    };
    let mut options = KernelOptions::new(surroundings(base));
    script(&base.join("path/python"), "#!/bin/sh\nexec false\n");
    options.surroundings.set("PATH", format!("{}:/usr/bin:/bin", base.join("path").display()));
    // A shim that refuses to run counts as not there.
    script(&base.join("path/python3"), "#!/bin/sh\necho no version is set >&2; exit 127\n");
    let (reason, remedy) = failure(options.clone()).await;
    let path = base.join("path");
    assert_eq!(
        reason,
        format!(
            "{0}/python3 is no Python 3.8 or later: status 127, no version is set; {0}/python is no Python 3.8 or later: status 1, ",
            path.display()
        )
    );
    assert_eq!(remedy, "install Python 3.8 or later with `ipykernel`, or name an interpreter");
    script(&path.join("python"), &format!("#!/bin/sh\nGLOVEPORT_TEST_FROM=path exec {} \"$@\"\n", python().display()));
    assert_eq!(interpreter(options.clone()).await, python().to_string_lossy());
    let from = async |options: KernelOptions| {
        let kernel = Kernel::start(options);
        let text = kernel.execute(cell("import os; print(os.environ.get('GLOVEPORT_TEST_FROM'))")).await.unwrap().text;
        kernel.close().await;
        text
    };
    assert_eq!(from(options.clone()).await, "path\n");
    fs::create_dir_all(base.join("venv/lib")).unwrap();
    assert_eq!(from(options.clone()).await, "path\n", "a directory without an interpreter is no environment");
    environment(".venv");
    assert_eq!(from(options.clone()).await, "None\n");
    // The server of an image that OpenHands has built has its own.
    let image = environment("poetry/openhands-ai-5O4_aCHf-py3.12").join("bin/python");
    script(&image, &format!("#!/bin/sh\nGLOVEPORT_TEST_FROM=image exec {} \"$@\"\n", python().display()));
    options.image_environments = base.join("poetry");
    assert_eq!(from(options.clone()).await, "image\n");
    options.surroundings.set("VIRTUAL_ENV", environment("active"));
    script(&base.join(".venv/bin/python"), "#!/bin/sh\nexit 1\n");
    assert_eq!(from(options.clone()).await, "None\n");
    options.interpreter = Some(path.join("python"));
    assert_eq!(from(options).await, "path\n");
}

#[tokio::test]
async fn an_interpreter_that_is_missing_hangs_or_is_none_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path();
    let named = |name: &str| {
        let mut options = KernelOptions::new(surroundings(base));
        options.interpreter = Some(base.join(name));
        options
    };
    let remedy = "name an interpreter of Python 3.8 or later in the configuration";
    script(
        &base.join("old"),
        "#!/bin/sh\necho 'gloveport-probe {\"version\":[3,7,9],\"program\":\"/x\",\"kernel\":null}'\n",
    );
    script(&base.join("none"), "#!/bin/sh\necho hello\n");
    script(&base.join("hangs"), "#!/bin/sh\nsleep 1000\n");
    for (name, expected) in [
        ("missing", format!("there is no {}/missing", base.display())),
        ("old", format!("{}/old is Python 3.7.9, and 3.8 is the oldest that can be used", base.display())),
        ("none", format!("{}/none is no Python 3.8 or later: status 0, hello", base.display())),
        ("hangs", format!("{}/hangs did not answer within 10 s", base.display())),
    ] {
        assert_eq!(failure(named(name)).await, (expected, remedy.to_owned()));
    }
}

#[tokio::test]
async fn without_a_network_the_error_names_the_command_and_nothing_is_left() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path();
    let program = bare(&base.join("users"));
    let before = tree(&base.join("users"));
    let mut options = KernelOptions::new(surroundings(base));
    options.interpreter = Some(program.clone());
    options.environments = Some(base.join("kernels"));
    let (reason, remedy) = failure(offline(options)).await;
    let start = format!("{} has no `ipykernel`, and it cannot be installed: ", program.display());
    assert!(reason.starts_with(&start) && reason.contains("ipykernel"), "{reason}");
    let place = remedy.rsplit_once(" && ").unwrap().0.rsplit_once(' ').unwrap().1;
    assert_eq!(
        remedy,
        format!("run `{} -m venv {place} && {place}/bin/python -m pip install ipykernel`", program.display())
    );
    let left: Vec<PathBuf> =
        tree(&base.join("kernels")).into_iter().filter(|path| path.extension() != Some("lock".as_ref())).collect();
    assert_eq!(left, [base.join("kernels")]);
    assert_eq!(tree(&base.join("users")), before);
}

/// All paths below a directory, itself included.
fn tree(directory: &Path) -> Vec<PathBuf> {
    let mut found = vec![directory.to_owned()];
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().unwrap().is_dir() {
            found.extend(tree(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn a_missing_ipykernel_is_installed_into_an_environment_of_our_own_once() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path();
    let program = bare(&base.join("users"));
    let packages = tree(&base.join("users")).into_iter().find(|path| path.ends_with("site-packages"));
    let packages =
        packages.unwrap_or_else(|| fs::canonicalize(base.join("users/lib64")).unwrap().join("python3/site-packages"));
    fs::write(packages.join("users_own.py"), "value = 'users'").unwrap();
    let before = tree(&base.join("users"));
    let mut options = KernelOptions::new(surroundings(base));
    options.interpreter = Some(program);
    options.environments = Some(base.join("kernels"));
    // Two servers at once make one environment.
    let kernels = [Kernel::start(options.clone()), Kernel::start(options.clone())];
    let mut state = kernels[0].state();
    let installing = state.wait_for(|state| *state == KernelState::Starting(Step::Installing));
    tokio::time::timeout(LONG, installing).await.unwrap().unwrap();
    let code = "import users_own, sys; print(users_own.value, sys.prefix)";
    let limit = Some(Duration::from_secs(170));
    for kernel in &kernels {
        let report = kernel.execute(gloveport_kernel::Cell { limit, ..cell(code) }).await.unwrap();
        let (value, prefix) = report.text.trim().split_once(' ').unwrap();
        assert_eq!(
            (value, Path::new(prefix).parent()),
            ("users", Some(base.join("kernels").as_path())),
            "{}",
            report.text
        );
        let install = kernel.execute(cell("%pip install pymsgbox==1.0.9\nimport pymsgbox")).await.unwrap();
        assert_eq!(install.end, CellEnd::Completed, "{}", install.text);
        assert!(install.text.contains("pymsgbox"), "{}", install.text);
        let pip = kernel.execute(cell("%pip --version")).await.unwrap().text;
        assert!(pip.contains(prefix), "{pip}");
        kernel.close().await;
    }
    let mut after = tree(&base.join("users"));
    after.retain(|path| !path.components().any(|part| part.as_os_str() == "__pycache__"));
    assert_eq!(after, before, "the user's environment is as it was");
    let environments: Vec<_> = fs::read_dir(base.join("kernels"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    assert_eq!(environments.len(), 1);
    let begin = Instant::now();
    interpreter(options).await;
    assert!(begin.elapsed() < Duration::from_secs(10), "it is there already");
}

#[tokio::test]
async fn a_broken_ipykernel_a_broken_environment_and_a_missing_ensurepip_are_no_obstacle() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path();
    let made = Command::new(python()).args(["-m", "venv"]).arg(base.join("users")).status().unwrap();
    assert!(made.success());
    let mut options = KernelOptions::new(surroundings(base));
    options.interpreter = Some(base.join("users/bin/python"));
    options.environments = Some(base.join("kernels"));
    let broken = base.join("broken");
    fs::create_dir(&broken).unwrap();
    fs::write(broken.join("ensurepip.py"), "raise ImportError('ensurepip is not there')").unwrap();
    let site = Command::new(base.join("users/bin/python"))
        .args(["-c", "import sysconfig; print(sysconfig.get_path('purelib'), end='')"])
        .output()
        .unwrap();
    let site = PathBuf::from(String::from_utf8(site.stdout).unwrap());
    for name in ["ipykernel", "IPython", "zmq", "jupyter_client"] {
        fs::create_dir(site.join(name)).unwrap();
        fs::write(site.join(name).join("__init__.py"), "raise ImportError('broken')").unwrap();
    }
    fs::create_dir(site.join("ipykernel-7.0.0.dist-info")).unwrap();
    fs::write(
        site.join("ipykernel-7.0.0.dist-info/METADATA"),
        "Metadata-Version: 2.1\nName: ipykernel\nVersion: 7.0.0\n",
    )
    .unwrap();
    options.surroundings.set("PYTHONPATH", &broken);
    // An environment whose interpreter is gone is in the place where ours will be.
    let place = failure(offline(options.clone())).await.1;
    let place = PathBuf::from(place.rsplit_once(" && ").unwrap().0.rsplit_once(' ').unwrap().1);
    fs::create_dir_all(place.join("bin")).unwrap();
    symlink("/nowhere/python", place.join("bin/python")).unwrap();
    let kernel = Kernel::start(options);
    let limit = Some(Duration::from_secs(170));
    let code = "import ipykernel; print(ipykernel.__file__)";
    let report = kernel.execute(gloveport_kernel::Cell { limit, ..cell(code) }).await.unwrap();
    assert!(report.text.starts_with(&*base.join("kernels").to_string_lossy()), "{}", report.text);
    assert!(report.interpreter.starts_with(&*place.to_string_lossy()), "{}", report.interpreter);
    let pip = kernel.execute(cell("%pip --version")).await.unwrap().text;
    assert!(pip.contains(&*place.to_string_lossy()), "{pip}");
    kernel.close().await;
}

#[tokio::test]
async fn a_kernel_runs_as_its_user_and_installs_and_writes_as_that_user() {
    const NOBODY: u32 = 65_534;
    let system = Path::new("/usr/bin/python3");
    if !rustix::process::geteuid().is_root() || !system.exists() {
        println!("skipped: only root can start a kernel as somebody else, with an interpreter that everybody may use");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path();
    std::os::unix::fs::chown(base, Some(NOBODY), Some(NOBODY)).unwrap();
    let mut options = KernelOptions::new(surroundings(base));
    options.interpreter = Some(system.to_owned());
    options.surroundings.user_name = "nobody".into();
    options.surroundings.identity = Some(Identity { uid: NOBODY, gid: NOBODY, groups: vec![NOBODY] });
    options.surroundings.set("HOME", base);
    options.surroundings.set("PATH", "/usr/bin:/bin");
    let kernel = Kernel::start(options);
    let code = "import os, sys\nopen('file', 'w').close()\nprint(os.environ['USER'], os.getuid(), sys.executable)";
    let limit = Some(Duration::from_secs(170));
    let text = kernel.execute(gloveport_kernel::Cell { limit, ..cell(code) }).await.unwrap().text;
    let ours = base.join(".cache/gloveport/kernels");
    assert!(text.starts_with(&format!("nobody {NOBODY} {}/", ours.display())), "{text}");
    kernel.close().await;
    for path in [base.join("file"), ours] {
        assert_eq!(fs::metadata(&path).unwrap().uid(), NOBODY, "{}", path.display());
    }
}

#[tokio::test]
async fn an_interpreter_with_a_short_name_is_named_by_it() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path();
    let environment = base.join("environment");
    assert_eq!(bare(&environment), environment.join("bin/python"));
    let mut options = KernelOptions::new(surroundings(base));
    options.surroundings.set("PATH", format!("{}:/usr/bin:/bin", environment.join("bin").display()));
    let found = Python::of(&options).await.unwrap();
    assert_eq!(found.program, environment.join("bin/python"));
    // Another program by that name is another program.
    fs::remove_file(environment.join("bin/python")).unwrap();
    fs::remove_file(environment.join("bin/python3")).unwrap();
    symlink(python(), environment.join("bin/python3")).unwrap();
    script(&environment.join("bin/python"), "#!/bin/sh\nexit 1\n");
    assert_eq!(Python::of(&options).await.unwrap().program, environment.join("bin/python3"));
}
