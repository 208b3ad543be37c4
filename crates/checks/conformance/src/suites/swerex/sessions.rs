//! Sessions (`swe-rex-api` 3).

use serde_json::json;

use super::calls::{close, create_with, gives, in_session, quiet, run, run_with, says};
use crate::{
    Check,
    check::{Expect, Text, Want},
    server::Request,
};

const SPEC: &str = "swe-rex-api 3";

fn missing(session: &str) -> Expect {
    says("SessionDoesNotExistError", &format!("session {session} does not exist"))
}

pub(super) fn checks() -> Vec<Check> {
    let mut checks = lives();
    checks.extend(states());
    checks
}

fn lives() -> Vec<Check> {
    vec![
        Check::new("sessions/create", "a session is made and tells its type", SPEC).send(
            create_with(&json!({"startup_source": []})),
            // The reference also answers with the first prompt of bash.
            Expect::status(200).at("/session_type", "bash").want(Want::Text("/output", Text::Has(String::new()))),
        ),
        in_session("sessions/exists", "a session is made once", SPEC)
            .send(create_with(&json!({})), says("SessionExistsError", "session {session} already exists"))
            .send(run("echo still here"), gives("still here\n", 0)),
        Check::new("sessions/missing", "a session that is not there has no commands", SPEC)
            .send(run("true"), missing("'{session}'"))
            .send(run_with("true", &json!({"session": "it's {name}"})), missing("\"it's {name}\"")),
        Check::new("sessions/close-missing", "a session that is not there cannot be closed", SPEC)
            .send(close("{session}"), missing("'{session}'"))
            .send(close("it's {name}"), missing("\"it's {name}\"")),
        in_session("sessions/close", "a session that is closed is gone", SPEC)
            .send(close("{session}"), Expect::whole(json!({"session_type": "bash"})))
            .send(run("true"), missing("'{session}'"))
            .send(close("{session}"), missing("'{session}'")),
        in_session("sessions/again", "the name of a closed session can be used again, and its state is gone", SPEC)
            .send(run("X=1; cd /"), gives("", 0))
            .send(close("{session}"), Expect::status(200))
            .send(create_with(&json!({})), Expect::status(200))
            .send(run("echo ${X-unset}"), gives("unset\n", 0)),
        Check::new("sessions/exception", "an exception has all its members", SPEC).send(
            run("true"),
            Expect::status(511)
                .at("/swerexception/class_path", "swerex.exceptions.SessionDoesNotExistError")
                .want(Want::Text("/swerexception/traceback", Text::Has(String::new())))
                .want(Want::Present("/swerexception/extra_info")),
        ),
    ]
}

fn states() -> Vec<Check> {
    let other = json!({"session": "{session}-other"});
    vec![
        in_session("sessions/state", "variables, functions, aliases and the directory stay", SPEC)
            .send(run("X=1; export Y='a b'; f() { echo \"f $1\"; }; cd /"), gives("", 0))
            .send(run("echo $X \"$Y\""), gives("1 a b\n", 0))
            .send(run("sh -c 'echo ${X-unset} $Y'"), gives("unset a b\n", 0))
            .send(run("f x"), gives("f x\n", 0))
            .send(run("pwd"), gives("/\n", 0)),
        in_session("sessions/apart", "each session has a state of its own", SPEC)
            .send(create_with(&other), Expect::status(200))
            .send(run("X=1; cd /"), gives("", 0))
            .send(run_with("echo ${X-unset}; cd /tmp", &other), gives("unset\n", 0))
            .send(run("echo $X; pwd"), gives("1\n/\n", 0))
            .send(run_with("pwd", &other), gives("/tmp\n", 0))
            .send(close("{session}-other"), Expect::status(200))
            .send(run("echo $X"), gives("1\n", 0)),
        quiet("sessions/startup", "files are read first, one after the other", SPEC)
            .file("one", "echo begun; Y=1\n")
            .file("other", "Y=$((Y + 1)); export Y\n")
            .send(
                create_with(&json!({"startup_source": ["{dir}/.quiet", "{dir}/one", "{dir}/other"]})),
                Expect::status(200).has("/output", "begun"),
            )
            .send(run("echo $Y"), gives("2\n", 0)),
        in_session("sessions/shell", "a session is bash on a terminal", SPEC)
            .send(run("echo ${BASH_VERSION:+bash}"), gives("bash\n", 0))
            .send(run("test -t 0 && test -t 1 && test -t 2"), gives("", 0)),
        Check::new("sessions/default", "a command without the name of a session is one of `default`", SPEC).send(
            Request::json(
                "/run_in_session",
                &json!({"command": "true", "timeout": 20, "check": "silent", "action_type": "bash"}),
            ),
            missing("'default'").or(Expect::status(200), "there is a session with that name"),
        ),
    ]
}
