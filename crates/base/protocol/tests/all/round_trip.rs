//! Properties: what is written can be read again, and no JSON is too strange to be refused politely.

use gloveport_protocol::{
    Action, ActionEvent, AgentStateChangedObservation, BrowseAction, BrowseInteractiveAction, BrowseObservation,
    CallToolMcpAction, ChangeAgentStateAction, CommandMetadata, CondensationAction, CondenseObservation,
    ConfirmationState, DelegateAction, DelegateObservation, DownloadObservation, EditAction, EditObservation,
    ErrorObservation, Event, EventSource, FileEditSource, FileReadSource, FinishAction, InsertLine,
    LoopDetectionObservation, LoopRecoveryAction, McpObservation, McpServerEntry, MessageAction, MicroagentKnowledge,
    Observation, ObservationEvent, ReadAction, ReadObservation, RecallAction, RecallObservation, RecallType,
    RejectAction, RunAction, RunIpythonAction, RunIpythonObservation, RunObservation, SecurityRisk, SuccessObservation,
    SystemAction, TaskTrackingAction, TaskTrackingObservation, ThinkAction, ThinkObservation, UserRejectedObservation,
    WriteAction, WriteObservation, python,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value};

fn text() -> impl Strategy<Value = String> {
    any::<String>()
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i32>().prop_map(|number| Value::from(f64::from(number) / 8.0)),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::Array),
            vec((text(), inner), 0..4).prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn object() -> impl Strategy<Value = Map<String, Value>> {
    vec((text(), json()), 0..3).prop_map(|members| members.into_iter().collect())
}

fn risk() -> impl Strategy<Value = SecurityRisk> {
    select(vec![SecurityRisk::Unknown, SecurityRisk::Low, SecurityRisk::Medium, SecurityRisk::High])
}

fn confirmation() -> impl Strategy<Value = ConfirmationState> {
    select(ConfirmationState::ALL)
}

fn runnable() -> impl Strategy<Value = Action> {
    let run = (text(), text(), option::of(text()), any::<[bool; 4]>(), confirmation(), risk()).prop_map(
        |(command, thought, cwd, [is_input, blocking, is_static, hidden], confirmation_state, security_risk)| {
            Action::Run(RunAction {
                command,
                is_input,
                thought,
                blocking,
                is_static,
                cwd,
                hidden,
                confirmation_state,
                security_risk,
            })
        },
    );
    let run_ipython = (text(), text(), any::<bool>(), confirmation(), risk(), text()).prop_map(
        |(code, thought, include_extra, confirmation_state, security_risk, kernel_init_code)| {
            Action::RunIpython(RunIpythonAction {
                code,
                thought,
                include_extra,
                confirmation_state,
                security_risk,
                kernel_init_code,
            })
        },
    );
    let read =
        (text(), any::<(i64, i64)>(), text(), risk(), select(FileReadSource::ALL), option::of(vec(any::<i64>(), 0..3)))
            .prop_map(|(path, (start, end), thought, security_risk, impl_source, view_range)| {
                let view_range = view_range.map(|range| range.into_iter().map(Value::from).collect());
                Action::Read(ReadAction { path, start, end, thought, security_risk, impl_source, view_range })
            });
    let write = (text(), text(), any::<(i64, i64)>(), text(), risk()).prop_map(
        |(path, content, (start, end), thought, security_risk)| {
            Action::Write(WriteAction { path, content, start, end, thought, security_risk })
        },
    );
    let browse = (text(), text(), risk(), any::<bool>()).prop_map(|(url, thought, security_risk, return_axtree)| {
        Action::Browse(BrowseAction { url, thought, security_risk, return_axtree })
    });
    let interactive = (text(), text(), text(), risk(), any::<bool>()).prop_map(
        |(browser_actions, thought, browsergym_send_msg_to_user, security_risk, return_axtree)| {
            Action::BrowseInteractive(BrowseInteractiveAction {
                browser_actions,
                thought,
                browsergym_send_msg_to_user,
                security_risk,
                return_axtree,
            })
        },
    );
    prop_oneof![run, run_ipython, read, write, edit(), browse, interactive]
}

fn edit() -> impl Strategy<Value = Action> {
    let insert_line = prop_oneof![any::<i64>().prop_map(InsertLine::Number), text().prop_map(InsertLine::Text)];
    let texts = (option::of(text()), option::of(text()), option::of(text()), option::of(insert_line), text());
    (text(), text(), texts, any::<(i64, i64)>(), text(), risk(), select(FileEditSource::ALL)).prop_map(
        |(path, command, texts, (start, end), thought, security_risk, impl_source)| {
            let (file_text, old_str, new_str, insert_line, content) = texts;
            Action::Edit(EditAction {
                path,
                command,
                file_text,
                old_str,
                new_str,
                insert_line,
                content,
                start,
                end,
                thought,
                security_risk,
                impl_source,
            })
        },
    )
}

fn condensation() -> impl Strategy<Value = Action> {
    let events = prop_oneof![
        vec(any::<i64>(), 0..5).prop_map(CondensationAction::of_events),
        any::<(i64, i64)>().prop_map(|(start, end)| CondensationAction::of_range(start, end)),
    ];
    (events, option::of((text(), any::<i64>()))).prop_map(|(mut action, summary)| {
        (action.summary, action.summary_offset) = summary.unzip();
        Action::Condensation(action)
    })
}

fn other_action() -> impl Strategy<Value = Action> {
    let urls = || option::of(vec(text(), 0..3));
    prop_oneof![
        (text(), object(), text(), risk()).prop_map(|(name, arguments, thought, security_risk)| Action::CallToolMcp(
            CallToolMcpAction { name, arguments, thought, security_risk }
        )),
        (text(), urls(), urls(), any::<bool>(), risk()).prop_map(
            |(content, file_urls, image_urls, wait_for_response, security_risk)| Action::Message(MessageAction {
                content,
                file_urls,
                image_urls,
                wait_for_response,
                security_risk
            })
        ),
        (text(), option::of(vec(json(), 0..3)), option::of(text()), option::of(text())).prop_map(
            |(content, tools, openhands_version, agent_class)| Action::System(SystemAction {
                content,
                tools,
                openhands_version,
                agent_class
            })
        ),
        Just(Action::Null),
        text().prop_map(|thought| Action::Think(ThinkAction { thought })),
        (text(), object(), text()).prop_map(|(final_thought, outputs, thought)| Action::Finish(FinishAction {
            final_thought,
            outputs,
            thought
        })),
        (object(), text()).prop_map(|(outputs, thought)| Action::Reject(RejectAction { outputs, thought })),
        (text(), object(), text()).prop_map(|(agent, inputs, thought)| Action::Delegate(DelegateAction {
            agent,
            inputs,
            thought
        })),
        (select(RecallType::ALL), text(), text())
            .prop_map(|(recall_type, query, thought)| Action::Recall(RecallAction { recall_type, query, thought })),
        (text(), text()).prop_map(|(agent_state, thought)| Action::ChangeAgentState(ChangeAgentStateAction {
            agent_state,
            thought
        })),
        condensation(),
        Just(Action::CondensationRequest),
        (text(), vec(json(), 0..3), text()).prop_map(|(command, task_list, thought)| Action::TaskTracking(
            TaskTrackingAction { command, task_list, thought }
        )),
        any::<i64>().prop_map(|option| Action::LoopRecovery(LoopRecoveryAction { option })),
    ]
}

fn metadata() -> impl Strategy<Value = CommandMetadata> {
    let names = (option::of(text()), option::of(text()), option::of(text()), option::of(text()));
    (any::<(i64, i64)>(), names, text(), text()).prop_map(|((exit_code, pid), names, prefix, suffix)| {
        let (username, hostname, working_dir, py_interpreter_path) = names;
        CommandMetadata { exit_code, pid, username, hostname, working_dir, py_interpreter_path, prefix, suffix }
    })
}

fn browse_observation() -> impl Strategy<Value = Observation> {
    let texts = (text(), text(), text(), text(), option::of(text()), text(), text());
    let lists = (vec(text(), 0..3), vec(text(), 0..3), any::<i64>(), any::<[bool; 2]>());
    (texts, lists, object(), object(), text(), option::of(text())).prop_map(
        |(texts, lists, axtree_object, extra_element_properties, last_browser_action_error, focused_element_bid)| {
            let (content, url, trigger_by_action, screenshot, screenshot_path, set_of_marks, last_browser_action) =
                texts;
            let (goal_image_urls, open_pages_urls, active_page_index, [error, filter_visible_only]) = lists;
            Observation::Browse(BrowseObservation {
                content,
                url,
                trigger_by_action,
                screenshot,
                screenshot_path,
                set_of_marks,
                error,
                goal_image_urls,
                open_pages_urls,
                active_page_index,
                dom_object: Map::new(),
                axtree_object,
                extra_element_properties,
                last_browser_action,
                last_browser_action_error,
                focused_element_bid,
                filter_visible_only,
            })
        },
    )
}

fn recall_observation() -> impl Strategy<Value = Observation> {
    let knowledge =
        (text(), text(), text()).prop_map(|(name, trigger, content)| MicroagentKnowledge { name, trigger, content });
    (text(), select(RecallType::ALL), vec(text(), 8), object(), object(), vec(knowledge, 0..3)).prop_map(
        |(content, recall_type, texts, runtime_hosts, custom_secrets_descriptions, microagent_knowledge)| {
            let mut texts = texts.into_iter();
            let mut next = || texts.next().unwrap_or_default();
            Observation::Recall(RecallObservation {
                content,
                recall_type,
                repo_name: next(),
                repo_directory: next(),
                repo_branch: next(),
                repo_instructions: next(),
                runtime_hosts,
                additional_agent_instructions: next(),
                date: next(),
                custom_secrets_descriptions,
                conversation_instructions: next(),
                working_dir: next(),
                microagent_knowledge,
            })
        },
    )
}

fn edit_observation() -> impl Strategy<Value = Observation> {
    let contents = (option::of(text()), option::of(text()), option::of(text()), option::of(text()));
    (text(), text(), any::<bool>(), contents, select(FileEditSource::ALL)).prop_map(
        |(content, path, prev_exist, (old_content, new_content, diff, diff_cache), impl_source)| {
            Observation::Edit(EditObservation {
                content,
                path,
                prev_exist,
                old_content,
                new_content,
                impl_source,
                diff,
                diff_cache,
            })
        },
    )
}

fn observation() -> impl Strategy<Value = Observation> {
    prop_oneof![
        (text(), prop_oneof![text(), "[aä]{30001}"], any::<bool>(), metadata()).prop_map(
            |(command, content, hidden, metadata)| Observation::Run(RunObservation::new(
                command, content, hidden, metadata
            ))
        ),
        (text(), text(), option::of(vec(text(), 1..3))).prop_map(|(content, code, image_urls)| {
            Observation::RunIpython(RunIpythonObservation { content, code, image_urls })
        }),
        (text(), text(), select(FileReadSource::ALL))
            .prop_map(|(content, path, impl_source)| Observation::Read(ReadObservation { content, path, impl_source })),
        (text(), text()).prop_map(|(content, path)| Observation::Write(WriteObservation { content, path })),
        edit_observation(),
        browse_observation(),
        (text(), text()).prop_map(|(content, error_id)| Observation::Error(ErrorObservation { content, error_id })),
        (text(), text())
            .prop_map(|(content, file_path)| Observation::Download(DownloadObservation { content, file_path })),
        Just(Observation::Null),
        text().prop_map(|content| Observation::Success(SuccessObservation { content })),
        text().prop_map(|content| Observation::UserRejected(UserRejectedObservation { content })),
        text().prop_map(|content| Observation::Condense(CondenseObservation { content })),
        text().prop_map(|content| Observation::Think(ThinkObservation { content })),
        text().prop_map(|content| Observation::LoopDetection(LoopDetectionObservation { content })),
        (text(), text(), text()).prop_map(|(content, agent_state, reason)| Observation::AgentStateChanged(
            AgentStateChangedObservation { content, agent_state, reason }
        )),
        (text(), object())
            .prop_map(|(content, outputs)| Observation::Delegate(DelegateObservation { content, outputs })),
        recall_observation(),
        (text(), text(), object()).prop_map(|(content, name, arguments)| Observation::Mcp(McpObservation {
            content,
            name,
            arguments
        })),
        (text(), text(), vec(json(), 0..3)).prop_map(|(content, command, task_list)| Observation::TaskTracking(
            TaskTrackingObservation { content, command, task_list }
        )),
    ]
}

type Shared = (Option<i64>, Option<String>, Option<EventSource>, Option<i64>, Option<Value>, Option<Value>);

fn shared() -> impl Strategy<Value = Shared> {
    let opaque = || option::of(object().prop_map(Value::Object));
    (
        option::of(0..i64::MAX),
        option::of(text()),
        option::of(select(EventSource::ALL)),
        option::of(any::<i64>()),
        opaque(),
        opaque(),
    )
}

/// Keys that mean something somewhere.
const KEYS: &[&str] = &[
    "action",
    "observation",
    "args",
    "extras",
    "content",
    "timeout",
    "id",
    "source",
    "command",
    "path",
    "metadata",
    "exit_code",
    "timestamp",
    "is_confirmed",
    "images_urls",
    "security_risk",
    "translated_ipython_code",
    "code",
    "insert_line",
    "view_range",
    "name",
    "env",
];

/// Values that mean something somewhere.
const WORDS: &[&str] =
    &["run", "edit", "read", "error", "recall", "null", "condensation", "message", "print(file_editor(**{'a': 1}))"];

/// Objects that look like events, with any values in known places.
fn almost_event() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![json(), select(WORDS).prop_map(Value::from)];
    let members = |inner| vec((select(KEYS), inner), 0..6);
    let to_value = |members: Vec<(&str, Value)>| {
        Value::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    };
    let inner = members(leaf.clone().boxed()).prop_map(to_value);
    members(prop_oneof![leaf, inner].boxed()).prop_map(to_value)
}

proptest! {
    #[test]
    fn an_action_is_read_as_it_was_written(
        action in prop_oneof![runnable(), other_action()],
        (id, timestamp, source, cause, tool_call_metadata, llm_metrics) in shared(),
        timeout in option::of((0..1_000_000).prop_map(|quarters| f64::from(quarters) / 4.0)),
        confirmation in select(ConfirmationState::ALL),
    ) {
        let confirmation_state = None;
        let mut event = ActionEvent {
            id, timestamp, source, cause, tool_call_metadata, llm_metrics, timeout, confirmation_state, action,
        };
        if confirmation != ConfirmationState::Confirmed {
            event.set_confirmation(confirmation);
        }
        prop_assert_eq!(&ActionEvent::from_value(event.to_value()).unwrap(), &event);
        prop_assert_eq!(&Event::from_value(event.to_value()).unwrap(), &Event::from(event.clone()));
        let json = serde_json::to_string(&event).unwrap();
        prop_assert_eq!(serde_json::from_str::<ActionEvent>(&json).unwrap(), event);
    }

    #[test]
    fn an_observation_is_read_as_it_was_written(
        observation in observation(),
        (id, timestamp, source, cause, tool_call_metadata, llm_metrics) in shared(),
    ) {
        let event =
            ObservationEvent { id, timestamp, source, cause, tool_call_metadata, llm_metrics, observation };
        prop_assert_eq!(&ObservationEvent::from_value(event.to_value()).unwrap(), &event);
        let json = serde_json::to_string(&event).unwrap();
        prop_assert_eq!(serde_json::from_str::<ObservationEvent>(&json).unwrap(), event);
    }

    #[test]
    fn any_json_is_read_or_refused_in_bounded_words(value in prop_oneof![json(), almost_event()]) {
        // Besides the object there are names, the list of actions and fixed words.
        let limit = 12 * 4_000;
        if let Err(error) = ActionEvent::from_value(value.clone()) {
            prop_assert!(error.to_string().len() < limit);
        }
        if let Err(error) = ObservationEvent::from_value(value.clone()) {
            prop_assert!(error.to_string().len() < limit);
        }
        // Errors of a server's description are not for the wire; they only must not panic.
        let _ = McpServerEntry::from_value(&value);
        prop_assert!(python::repr(&value).starts_with(&python::repr_bounded(&value, 20)));
    }

    #[test]
    fn any_code_of_an_old_edit_is_tolerated(literal in "[\\[\\](){}'\"\\\\,:0-9a-fxuNU_.+\\- \\n]{0,40}") {
        let code = format!("print(file_editor(**{literal}))");
        let event = serde_json::json!({"action": "null", "args": {"translated_ipython_code": code}});
        // Whether it adds arguments is for the golden files to say.
        let _ = ActionEvent::from_value(event);
    }
}
