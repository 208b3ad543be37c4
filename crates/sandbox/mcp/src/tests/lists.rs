//! What there is: names, addresses, pages, changes.

use gloveport_testing::within;
use rmcp::model::{
    CompleteRequestParams, GetPromptRequestParams, LoggingLevel, ReadResourceRequestParams, Reference,
    SetLevelRequestParams, SubscribeRequestParams,
};
use serde_json::json;

use super::Place;

#[tokio::test]
async fn a_single_server_keeps_its_names_and_several_get_those_of_their_servers() {
    let place = Place::new();
    assert_eq!(place.set(&[("a", "")]), [""; 0]);
    let client = place.client().await;
    let peer = client.service.peer();
    for (servers, echo, prompt, uri, template) in [
        (&[("a", "")][..], "echo", "greet", "demo://one", "demo://{id}"),
        (&[("a", ""), ("b", "")], "a_echo", "a_greet", "demo://a/one", "demo://a/{id}"),
    ] {
        place.set(servers);
        let tools = within(peer.list_all_tools()).await.unwrap();
        assert_eq!(tools.len(), 2 * servers.len());
        assert_eq!(tools[0].name, echo);
        assert_eq!(client.text(echo, json!({"text": "hi"})).await, "a: hi");
        assert_eq!(within(peer.list_all_prompts()).await.unwrap()[0].name, prompt);
        let got = within(peer.get_prompt(GetPromptRequestParams::new(prompt))).await.unwrap();
        assert_eq!(serde_json::to_value(got).unwrap()["description"], "greet");
        assert_eq!(within(peer.list_all_resources()).await.unwrap()[0].uri, uri);
        let templates = within(peer.list_all_resource_templates()).await.unwrap();
        assert_eq!(templates[0].uri_template, template);
        let read = within(peer.read_resource(ReadResourceRequestParams::new(uri))).await.unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap()["contents"], json!([{"uri": uri, "text": "a"}]));
        let asked = CompleteRequestParams::new(Reference::for_prompt(prompt), rmcp::model::ArgumentInfo::new("x", ""));
        let completed = within(peer.complete(asked)).await.unwrap();
        assert!(completed.completion.values[0].contains("\"greet\""), "{completed:?}");
    }
    // Results name resources as their servers do.
    let read = within(peer.read_resource(ReadResourceRequestParams::new("demo://one"))).await.unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap()["contents"][0]["text"], "a");
    let unknown = within(peer.read_resource(ReadResourceRequestParams::new("other://one"))).await.unwrap_err();
    assert!(unknown.to_string().contains("no such resource here"), "{unknown}");
    assert_eq!(client.failure("echo", json!({})).await, "Unknown tool: echo");
    assert_eq!(client.failure("c_echo", json!({})).await, "Unknown tool: c_echo");
}

#[tokio::test]
async fn names_of_servers_that_begin_others_are_told_apart_by_the_tools_that_they_listed() {
    let place = Place::new();
    place.set(&[("a", ""), ("a_tool1", ""), ("b", "")]);
    let client = place.client().await;
    within(client.service.peer().list_all_tools()).await.unwrap();
    assert_eq!(client.text("a_tool1_echo", json!({"text": 1})).await, "a_tool1: 1");
    assert_eq!(client.text("a_echo", json!({"text": 1})).await, "a: 1");
    // This one is a tool of `a`, and no tool of `a_tool1`.
    assert_eq!(client.text("a_tool1", json!({})).await, "?");
}

#[tokio::test]
async fn ten_thousand_tools_of_many_pages_are_one_list_and_their_words_pass_as_they_are() {
    let place = Place::new();
    place.set(&[("a", "many")]);
    let client = place.client().await;
    let tools = within(client.service.peer().list_tools(None)).await.unwrap();
    assert_eq!((tools.tools.len(), tools.next_cursor), (10_000, None));
    assert_eq!(tools.tools[9_999].name, "tool9999");
    assert_eq!(tools.tools[1].description.as_deref(), Some("\u{1b}[2J\u{202e}"));
}

#[tokio::test]
async fn clients_hear_what_changes_and_only_what_they_want() {
    let place = Place::new();
    place.set(&[("a", ""), ("b", "")]);
    let mut wants = place.client().await;
    let mut other = place.client().await;
    let peer = wants.service.peer();
    within(peer.set_level(SetLevelRequestParams::new(LoggingLevel::Error))).await.unwrap();
    within(peer.subscribe(SubscribeRequestParams::new("demo://a/one"))).await.unwrap();
    // Of the other server it did not ask for anything.
    for tool in ["b_change", "a_change"] {
        wants.call(tool, json!({})).await.unwrap();
    }
    for expected in [json!(["tools", null]), json!(["log", "bad"]), json!(["tools", null]), json!(["log", "bad"])] {
        assert_eq!(wants.hear().await, expected);
    }
    assert_eq!(wants.hear().await, json!(["updated", "demo://a/one"]));
    for expected in [json!(["tools", null]), json!(["log", "fine"]), json!(["log", "bad"]), json!(["tools", null])] {
        // One that never asked for anything is told all but what is subscribed to.
        other.service.peer().list_all_prompts().await.unwrap();
        assert_eq!(other.hear().await, expected);
    }
    place.set(&[("a", "")]);
    for expected in ["tools", "prompts", "resources"] {
        assert_eq!(wants.hear().await[0], expected);
    }
}
