use gloveport_protocol::{
    BrowseAction, CommandMetadata, EditAction, ObservationEvent, RunIpythonAction, RunObservation,
    SecurityRisk::{High, Low, Medium, Unknown},
    WriteAction,
};

use super::*;

fn cell(code: &str) -> (Vec<&'static str>, SecurityRisk) {
    let action = Action::RunIpython(RunIpythonAction::new(code));
    (found(&action), rules().rate(&action, None).risk)
}

#[test]
fn commands_in_cells_are_found_where_plain_text_shows_them() {
    let rows = [
        "!rm -rf /",
        "x = 1\n!rm -rf /\n",
        "files = !rm -rf /",
        "%%bash\nls\nrm -rf /",
        "import os\nos.system('rm -rf /')",
        "os.popen(\"rm \" \"-rf /\")",
        "import subprocess\nsubprocess.run(\n    ['rm', '-rf', \"/\"], check=True)",
        "subprocess.run('rm -rf /', shell=True)",
        "subprocess.check_output(r'rm -rf /', shell=True)",
        "subprocess.run(['bash', '-c', 'rm -rf /'])",
        "shutil.rmtree('/')",
        "d = '/x'\nos.system(f'rm -rf / {d}')",
    ];
    for code in rows {
        assert_eq!(cell(code), (vec!["delete-root"], High), "{code:?}");
    }
    let harmless = [
        "print('rm -rf /')",
        "# os.system('rm -rf /')",
        "text = \"\"\"os.system('rm -rf /')\"\"\"",
        "x = 'a # b'; os.system('ls')",
        "x != 1",
        "subprocess.run(['ls', path])",
        "os.system(command)",
        "shutil.rmtree('build')",
        "a = 'it\\'s'; b = \"x\"",
        "%timeit f()",
        "x = y[!",
    ];
    for code in harmless {
        assert_eq!(cell(code), (vec![], Low), "{code:?}");
    }
}

#[test]
fn files_are_judged_by_where_their_paths_lead() {
    let rows: [(&str, &[&str], SecurityRisk); 11] = [
        ("src/main.rs", &[], Low),
        ("/workspace/a/../b", &[], Low),
        ("/tmp/x", &[], Low),
        ("/workspace/../etc/hosts", &["write-outside"], Medium),
        ("/opt/x", &["write-outside"], Medium),
        ("~/.bashrc", &["persistence"], Medium),
        ("/workspace/.git/hooks/pre-push", &["persistence"], Medium),
        ("/etc/sudoers", &["grant-privilege"], High),
        ("/etc/passwd", &["write-system"], High),
        ("/root/.ssh/authorized_keys", &["authorized-keys"], High),
        ("/dev/sda", &["overwrite-device"], High),
    ];
    for (path, names, risk) in rows {
        let edit = EditAction { command: "create".to_owned(), ..EditAction::new(path) };
        for action in [Action::Write(WriteAction::new(path, "x")), Action::Edit(edit)] {
            assert_eq!((found(&action).as_slice(), rules().rate(&action, None).risk), (names, risk), "{path}");
        }
    }
    for (path, names) in [("/etc/hosts", vec![]), ("~/.ssh/id_rsa", vec!["read-secret"]), (".env", vec![])] {
        let view = EditAction { command: "view".to_owned(), ..EditAction::new(path) };
        assert_eq!(found(&Action::Edit(view)), names, "{path}");
        assert_eq!(found(&Action::Read(ReadAction::new(path))), names, "{path}");
    }
}

#[test]
fn kinds_into_which_no_rule_looks_have_an_unknown_risk() {
    let action = Action::Browse(BrowseAction::new("https://example.com"));
    assert_eq!(rules().rate(&action, None), Assessment::of(Unknown));
}

#[test]
fn input_for_a_program_is_not_blamed_for_its_grammar() {
    let input = |text: &str| Action::Run(RunAction { is_input: true, ..RunAction::new(text) });
    for text in ["y", "C-c", "it's", "print('a')", "if x:", "1)"] {
        assert_eq!(found(&input(text)), Vec::<&str>::new(), "{text}");
    }
    assert_eq!(found(&input("rm -rf /")), ["delete-root"]);
}

/// A conversation of these events.
struct Events(Vec<Event>);

impl History for Events {
    fn latest(&self, count: usize) -> BoxFuture<'_, Vec<Event>> {
        let start = self.0.len().saturating_sub(count);
        Box::pin(async move { self.0[start..].to_vec() })
    }
}

#[tokio::test]
async fn a_command_begins_where_the_shell_was_at_last() {
    let mut observation = RunObservation::new("", "cd /", false, CommandMetadata::default());
    observation.metadata.working_dir = Some("/".to_owned());
    let history = Events(vec![ObservationEvent::from(Observation::Run(observation)).into()]);
    let event = |run| ActionEvent::from(Action::Run(run));
    let rate = async |event: &ActionEvent| rules().assess(event, &history).await.unwrap().risk;
    assert_eq!(rate(&event(RunAction::new("rm -rf *"))).await, High);
    assert_eq!(rate(&event(RunAction::new("cd /workspace/a; rm -rf *"))).await, Low);
    let fixed = RunAction { cwd: Some("/workspace/a".to_owned()), is_static: true, ..RunAction::new("rm -rf *") };
    assert_eq!(rate(&event(fixed)).await, Low);
    let fixed = RunAction { cwd: Some("/etc".to_owned()), is_static: true, ..RunAction::new("rm -rf *") };
    assert_eq!(rate(&event(fixed)).await, High);
}

#[tokio::test]
async fn rules_refuse_what_they_rate_as_high_and_say_why() {
    let rules = Rules::new(Path::new("/workspace"));
    assert_eq!(rules.unattended(), Unattended::Refuse);
    let gate = crate::Gate::new(crate::GateOptions {
        confirmation_mode: false,
        cli_mode: false,
        analyzer: Some(std::sync::Arc::new(rules)),
    });
    let mut event = ActionEvent::from(Action::Run(RunAction::new("rm -rf /")));
    let crate::Verdict::Refuse { assessment } = gate.evaluate(&mut event, &crate::NoHistory).await else {
        panic!("not refused")
    };
    assert_eq!(
        crate::refusal(&assessment).content(),
        "The action was not executed: its risk is high, and there is no one to confirm it.\n\
         - delete-root: `rm -rf /` deletes the root of the file system; delete only what this task made, by its full \
         path.\n\
         Find another way, or ask the user to do this."
    );
}
