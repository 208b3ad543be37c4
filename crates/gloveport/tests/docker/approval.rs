//! `rm -rf /` in a container is asked about, and runs there when somebody lets it.

use std::fs;

use crate::docker::{DEBIAN, Engine};
use crate::sessions::{Home, person::Person};

#[tokio::test]
async fn rm_of_the_root_in_a_container_is_asked_about_and_the_history_has_question_and_answer() {
    let engine = Engine::shared();
    let home = Home::new();
    fs::write(home.path().join("config.toml"), "[security]\nconfirmation_mode = true\nsecurity_analyzer = \"rules\"\n")
        .unwrap();
    fs::write(home.path().join(".env"), format!("DOCKER_HOST={}\n", engine.0)).unwrap();
    home.ok(&["start", "--runtime", "docker", "--image", DEBIAN, "--id", "box"]);
    let mut person = Person::calls(&home, &["session", "exec", "--runtime", "docker", "box", "--", "rm -rf /"]);
    person.sees("delete-root: `rm -rf /` deletes the root of the file system").await;
    person.sees("Go on? [y/N] ").await;
    person.types("y\r").await;
    // It is the program in the container that refuses now.
    person.sees("it is dangerous to operate recursively on '/'").await;
    person.sees("code 1").await;
    let events: Vec<serde_json::Value> = home
        .ok(&["events", "--runtime", "docker", "--json", "box"])
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(events[0]["args"]["confirmation_state"], "awaiting_confirmation");
    assert_eq!(events[1]["extras"]["agent_state"], "awaiting_user_confirmation");
    assert_eq!(events[2]["args"]["confirmation_state"], "confirmed");
    assert_eq!((&events[3]["cause"], &events[3]["extras"]["metadata"]["exit_code"]), (&2.into(), &1.into()));
    home.ok(&["rm", "-f", "--runtime", "docker", "box"]);
}
