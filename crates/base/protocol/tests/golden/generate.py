"""Writes the golden files of this folder with the reference implementation.

Usage: python generate.py OUTPUT_FOLDER

Needs a Python environment with the package openhands-ai 0.62.0. Every case is a pair of an input and what the
reference makes of it, so that the tests compare whole values and not fragments. The output is the same on every run.
"""

import copy
import json
import logging
import sys
from pathlib import Path

from openhands.core.config.mcp_config import MCPStdioServerConfig
from openhands.events.observation.commands import CmdOutputMetadata, CmdOutputObservation
from openhands.events.serialization import event_from_dict, event_to_dict

RUN_ALL = {
    'command': 'ls -l', 'is_input': True, 'thought': 'look', 'blocking': True, 'is_static': True, 'cwd': '/tmp',
    'hidden': True, 'confirmation_state': 'awaiting_confirmation', 'security_risk': 2,
}

# Kind of action -> (the fewest args it takes, all its args).
ACTIONS = {
    'run': ({'command': 'ls'}, RUN_ALL),
    'run_ipython': (
        {'code': '6*7'},
        {'code': 'x', 'thought': 't', 'include_extra': False, 'confirmation_state': 'rejected', 'security_risk': 0,
         'kernel_init_code': 'import os'},
    ),
    'read': (
        {'path': '/a'},
        {'path': '/a', 'start': 3, 'end': 9, 'thought': 't', 'security_risk': 1, 'impl_source': 'oh_aci',
         'view_range': [1, -1]},
    ),
    'write': (
        {'path': '/a', 'content': 'x\n'},
        {'path': '/a', 'content': 'ä€😀', 'start': 1, 'end': 2, 'thought': 't', 'security_risk': 1},
    ),
    'edit': (
        {'path': '/a'},
        {'path': '/a', 'command': 'insert', 'file_text': 'f', 'old_str': 'o', 'new_str': 'n', 'insert_line': 5,
         'content': 'c', 'start': 2, 'end': 3, 'thought': 't', 'security_risk': 1, 'impl_source': 'llm_based_edit'},
    ),
    'browse': (
        {'url': 'http://localhost'},
        {'url': 'http://localhost', 'thought': 't', 'security_risk': 1, 'return_axtree': True},
    ),
    'browse_interactive': (
        {'browser_actions': 'noop()'},
        {'browser_actions': "click('12')", 'thought': 't', 'browsergym_send_msg_to_user': 'm', 'security_risk': 1,
         'return_axtree': True},
    ),
    'call_tool_mcp': (
        {'name': 'fetch'},
        {'name': 'fetch', 'thought': 't', 'security_risk': 1,
         'arguments': {'url': "it's", 'both': '\'"', 'n': [1, 2.5, 1e16, -0.0], 'b': [True, False, None], 'o': {}}},
    ),
    'message': (
        {'content': 'hi'},
        {'content': 'hi', 'file_urls': ['f'], 'image_urls': ['i', 'j'], 'wait_for_response': True, 'security_risk': 1},
    ),
    'system': (
        {'content': 'You are'},
        {'content': 'You are', 'tools': [{'type': 'function'}], 'openhands_version': None, 'agent_class': 'CodeAct'},
    ),
    'null': ({}, {}),
    'think': ({}, {'thought': 'x'}),
    'finish': ({}, {'final_thought': 'done', 'outputs': {'content': 1}, 'thought': 't'}),
    'reject': ({}, {'outputs': {'reason': 'impossible'}, 'thought': 't'}),
    'delegate': (
        {'agent': 'BrowsingAgent', 'inputs': {}},
        {'agent': 'BrowsingAgent', 'inputs': {'task': 't'}, 'thought': 't'},
    ),
    'recall': (
        {'recall_type': 'knowledge'},
        {'recall_type': 'workspace_context', 'query': 'ä' * 60, 'thought': 't'},
    ),
    'change_agent_state': ({'agent_state': 'running'}, {'agent_state': 'paused', 'thought': 't'}),
    'condensation': (
        {'forgotten_event_ids': [1, 2]},
        {'forgotten_event_ids': None, 'forgotten_events_start_id': 3, 'forgotten_events_end_id': 6, 'summary': 's',
         'summary_offset': 1},
    ),
    'condensation_request': ({}, {}),
    'task_tracking': (
        {},
        {'command': 'plan', 'task_list': [{'id': '1', 'title': 't', 'status': 'todo', 'notes': ''}], 'thought': 't'},
    ),
    'loop_recovery': ({}, {'option': 3}),
}

METRICS = {
    'accumulated_cost': 0.5,
    'max_budget_per_task': 4.0,
    'accumulated_token_usage': {
        'model': 'm', 'prompt_tokens': 1, 'completion_tokens': 2, 'cache_read_tokens': 3, 'cache_write_tokens': 4,
        'context_window': 5, 'per_turn_token': 6, 'response_id': 'r',
    },
    'costs': [{'model': 'm', 'cost': 0.5, 'timestamp': 1.25}],
    'response_latencies': [{'model': 'm', 'latency': 0.25, 'response_id': 'r'}],
    'token_usages': [],
}

# Top-level keys and older forms.
EVENTS = {
    'run with a whole envelope': {
        'id': 7, 'timestamp': '2025-01-31T12:00:00.123456', 'source': 'agent', 'message': 'ignored', 'cause': 6,
        'action': 'run', 'args': {'command': 'ls'}, 'timeout': 120, 'llm_metrics': METRICS,
    },
    'id -1 is no id': {'id': -1, 'action': 'null', 'args': {}},
    'null envelope': {'id': None, 'timestamp': None, 'cause': None, 'action': 'null', 'args': {}, 'timeout': None},
    'no args': {'action': 'null'},
    'timeout with a fraction': {'action': 'browse', 'args': {'url': 'u'}, 'timeout': 2.5},
    'timeout as text': {'action': 'run', 'args': {'command': 'ls'}, 'timeout': '30'},
    'timeout keeps blocking': {'action': 'run', 'args': {'command': 'ls', 'blocking': True}, 'timeout': 9},
    'timeout null': {'action': 'run', 'args': {'command': 'ls', 'blocking': True}, 'timeout': None},
    'unknown top-level keys': {'action': 'run', 'args': {'command': 'ls'}, 'extra': 1},
    'timestamp among args': {'action': 'run', 'args': {'command': 'ls', 'timestamp': '2025-01-01T00:00:00'}},
    'empty timestamp among args': {'action': 'run', 'args': {'command': 'ls', 'timestamp': ''}},
    'timestamps in both places': {
        'action': 'run', 'timestamp': '2025-02-02T00:00:00', 'args': {'command': 'ls', 'timestamp': '2025-01-01T00:00:00'},
    },
    'null timestamp over one among args': {
        'action': 'run', 'timestamp': None, 'args': {'command': 'ls', 'timestamp': '2025-01-01T00:00:00'},
    },
    'is_confirmed': {'action': 'run', 'args': {'command': 'ls', 'is_confirmed': 'rejected'}},
    'is_confirmed null': {'action': 'run', 'args': {'command': 'ls', 'is_confirmed': None}},
    'is_confirmed wins': {
        'action': 'run', 'args': {'command': 'ls', 'is_confirmed': 'rejected', 'confirmation_state': 'confirmed'},
    },
    'images_urls': {'action': 'message', 'args': {'content': 'c', 'images_urls': ['a']}},
    'security_risk out of range': {'action': 'run', 'args': {'command': 'ls', 'security_risk': 3}},
    'security_risk as text': {'action': 'run', 'args': {'command': 'ls', 'security_risk': '1'}},
    'security_risk as list': {'action': 'run', 'args': {'command': 'ls', 'security_risk': [1]}},
    'security_risk as boolean': {'action': 'run', 'args': {'command': 'ls', 'security_risk': True}},
    'security_risk as float': {'action': 'run', 'args': {'command': 'ls', 'security_risk': 2.0}},
    'security_risk as odd float': {'action': 'run', 'args': {'command': 'ls', 'security_risk': 1.5}},
    'invalid security_risk for a class without it': {'action': 'null', 'args': {'security_risk': 9}},
    'keep_prompt and task_completed': {'action': 'finish', 'args': {'keep_prompt': True, 'task_completed': 'true'}},
    'own name among args': {'action': 'run', 'args': {'command': 'ls', 'action': 'run'}},
    'insert_line as text': {'action': 'edit', 'args': {'path': 'p', 'insert_line': ' 5 '}},
    'insert_line null': {'action': 'edit', 'args': {'path': 'p', 'insert_line': None}},
    'translated_ipython_code null': {'action': 'edit', 'args': {'path': 'p', 'translated_ipython_code': None}},
    'translated_ipython_code of another form': {
        'action': 'edit', 'args': {'path': 'p', 'command': 'create', 'translated_ipython_code': 'print(1)'},
    },
    'translated_ipython_code that is no literal': {
        'action': 'edit', 'args': {'path': 'p', 'translated_ipython_code': 'print(file_editor(**{a: 1}))'},
    },
    'translated_ipython_code with a syntax error': {
        'action': 'edit', 'args': {'path': 'p', 'translated_ipython_code': "print(file_editor(**{'path': }))"},
    },
    'translated_ipython_code of an edit': {
        'action': 'edit',
        'args': {
            'path': 'old',
            'translated_ipython_code': 'print(file_editor(**' + repr({
                'command': 'str_replace', 'path': '/a', 'old_str': 'it\'s\n\t"\\x\x00\x7f', 'new_str': 'é€😀\u200b',
                'insert_line': -3, 'file_text': None,
            }) + '))',
        },
    },
    'translated_ipython_code in other notations': {
        'action': 'edit',
        'args': {
            'path': 'old',
            'translated_ipython_code':
                'print(file_editor(**{ "path" : r"C:\\x" \'y\' , u\'new_str\': """a\nb\\\nc\\101\\x41\\u0041\\U00000041""",'
                '\n \'old_str\': (\'in parentheses\'), \'start\': +1_0,}))',
        },
    },
    'translated_ipython_code of a view': {
        'action': 'read',
        'args': {
            'path': 'old', 'start': 0, 'end': -1, 'thought': '', 'impl_source': 'oh_aci',
            'translated_ipython_code':
                "print(file_editor(**{'command': 'view', 'path': '/workspace/x', 'view_range': [1, 2]}))",
        },
    },
    'finish speaks its thought': {'action': 'finish', 'args': {'thought': 'bye'}},
    'reject without a reason': {'action': 'reject', 'args': {'outputs': {'other': 1}}},
    'condensation of nothing': {'action': 'condensation', 'args': {'forgotten_event_ids': []}},
    'condensation of an empty range': {
        'action': 'condensation', 'args': {'forgotten_events_start_id': 3, 'forgotten_events_end_id': 1},
    },
    'condensation of a list with half a range': {
        'action': 'condensation', 'args': {'forgotten_event_ids': [5], 'forgotten_events_start_id': 3},
    },
    'condensation of a range': {
        'action': 'condensation', 'args': {'forgotten_events_start_id': 3, 'forgotten_events_end_id': 5},
    },
    'condensation with an empty summary': {
        'action': 'condensation', 'args': {'forgotten_event_ids': [1], 'summary': '', 'summary_offset': 0},
    },
    'two tasks': {'action': 'task_tracking', 'args': {'task_list': [{}, {}]}},
}

ERRORS = {
    'empty': {},
    'neither': {'args': {'command': "it's"}, 'list': [1, 2.0, None, True]},
    'unknown action': {'action': 'foo', 'args': {}},
    'action without a class': {'action': 'pause', 'args': {}},
    'action is a number': {'action': 5, 'args': {}},
    'action is null': {'action': None},
    'action is a list': {'action': ['run'], 'args': {}},
    'action is an object': {'action': {'a': 1}},
    'action with quotes': {'action': "it's"},
    'unknown arg': {'action': 'run', 'args': {'command': 'ls', 'foo': 1, 'bar': 2}},
    'unknown and missing arg': {'action': 'run', 'args': {'foo': 1}},
    'unknown arg of null': {'action': 'null', 'args': {'x': 1}},
    'unknown arg of condensation_request': {'action': 'condensation_request', 'args': {'x': 1}},
    'view_range on edit': {'action': 'edit', 'args': {'path': 'p', 'view_range': [1, 2]}},
    'class variable as arg': {'action': 'run', 'args': {'command': 'ls', 'runnable': True}},
    'old timestamp leaves the text': {'action': 'run', 'args': {'timestamp': 'x', 'cmd': 'ls'}, 'timeout': 120.0},
    'no args at all': {'action': 'run', 'timeout': 5},
    'unknown source': {'action': 'run', 'args': {'command': 'ls'}, 'source': 'nobody'},
    'null source': {'action': 'run', 'args': {'command': 'ls'}, 'source': None},
    'condensation of nothing named': {'action': 'condensation', 'args': {}},
    'condensation of both': {
        'action': 'condensation',
        'args': {'forgotten_event_ids': [1], 'forgotten_events_start_id': 1, 'forgotten_events_end_id': 1},
    },
    'condensation with half a summary': {
        'action': 'condensation', 'args': {'forgotten_event_ids': [1], 'summary': 's'},
    },
}

METADATA_ALL = {
    'exit_code': 1, 'pid': 42, 'username': 'openhands', 'hostname': 'box', 'working_dir': '/workspace',
    'py_interpreter_path': '/usr/bin/python', 'prefix': 'p', 'suffix': 's',
}

# Kind of observation -> (the fewest extras it takes, all its extras).
OBSERVATIONS = {
    'run': ({'command': 'ls'}, {'command': 'ls', 'hidden': True, 'metadata': METADATA_ALL}),
    'run_ipython': ({'code': 'x'}, {'code': 'x', 'image_urls': ['data:image/png;base64,AA==']}),
    'read': ({'path': 'p'}, {'path': 'p', 'impl_source': 'oh_aci'}),
    'write': ({'path': 'p'}, {'path': 'p'}),
    'edit': (
        {},
        {'path': 'p', 'prev_exist': True, 'old_content': 'o', 'new_content': 'n', 'impl_source': 'oh_aci',
         'diff': 'd', '_diff_cache': 'c'},
    ),
    'browse': (
        {'url': 'u', 'trigger_by_action': 'browse'},
        {'url': 'u', 'trigger_by_action': 'browse_interactive', 'screenshot': 's', 'screenshot_path': 'p',
         'set_of_marks': 'm', 'error': True, 'goal_image_urls': ['g'], 'open_pages_urls': ['u', 'v'],
         'active_page_index': 1, 'dom_object': {'a': 1}, 'axtree_object': {'b': 2},
         'extra_element_properties': {'c': 3}, 'last_browser_action': 'noop()', 'last_browser_action_error': 'e',
         'focused_element_bid': None, 'filter_visible_only': True},
    ),
    'error': ({}, {'error_id': 'E'}),
    'download': ({'file_path': '/f'}, {'file_path': '/f'}),
    'null': ({}, {}),
    'success': ({}, {}),
    'user_rejected': ({}, {}),
    'condense': ({}, {}),
    'think': ({}, {}),
    'loop_detection': ({}, {}),
    'agent_state_changed': ({'agent_state': 'running'}, {'agent_state': 'paused', 'reason': 'r'}),
    'delegate': ({'outputs': {}}, {'outputs': {'a': [1]}}),
    'recall': (
        {'recall_type': 'knowledge'},
        {'recall_type': 'workspace_context', 'repo_name': 'a', 'repo_directory': 'b', 'repo_branch': 'c',
         'repo_instructions': 'd', 'runtime_hosts': {'h': 80}, 'additional_agent_instructions': 'e', 'date': 'f',
         'custom_secrets_descriptions': {'s': 't'}, 'conversation_instructions': 'g', 'working_dir': 'h',
         'microagent_knowledge': [{'name': 'n', 'trigger': 't', 'content': 'c'}]},
    ),
    'mcp': ({}, {'name': 'fetch', 'arguments': {'a': 1}}),
    'task_tracking': ({}, {'command': 'plan', 'task_list': [{'id': '1'}]}),
}

OBSERVATION_EVENTS = {
    'whole envelope': {
        'id': 8, 'timestamp': '2025-01-31T12:00:00', 'source': 'agent', 'cause': 7, 'observation': 'run',
        'message': 'ignored', 'content': 'out', 'extras': {'command': 'ls', 'metadata': {'exit_code': 0}},
        'success': False, 'llm_metrics': METRICS,
    },
    'exit_code and command_id among extras': {
        'observation': 'run', 'content': 'c', 'extras': {'command': 'ls', 'exit_code': 3, 'command_id': 9},
    },
    'exit_code over metadata': {
        'observation': 'run', 'content': 'c',
        'extras': {'command': 'ls', 'exit_code': 3, 'metadata': {'exit_code': 1, 'suffix': 's'}},
    },
    'formatted_output_and_error': {
        'observation': 'error', 'content': 'c', 'extras': {'formatted_output_and_error': 'x'},
    },
    'no content': {'observation': 'error', 'extras': {}},
    'no extras': {'observation': 'error', 'content': 'x'},
    'unknown metadata': {
        'observation': 'run', 'content': '', 'extras': {'command': 'ls', 'metadata': {'exit_code': 0, 'shell': 'sh'}},
    },
    'metadata null': {'observation': 'run', 'content': '', 'extras': {'command': 'ls', 'metadata': None}},
    'metadata numbers as text': {
        'observation': 'run', 'content': '', 'extras': {'command': 'ls', 'metadata': {'exit_code': '2', 'pid': 4.0}},
    },
    'unknown extras of run': {'observation': 'run', 'content': '', 'extras': {'command': 'ls', 'foo': 1}},
}

OBSERVATION_ERRORS = {
    'hidden on error': {'observation': 'error', 'content': 'x', 'extras': {'hidden': True}},
    'missing path': {'observation': 'read', 'content': 'x', 'extras': {}},
    'three missing': {'observation': 'browse', 'content': 'x', 'extras': {}},
    'exit_code on error': {'observation': 'error', 'content': 'x', 'extras': {'exit_code': 1}},
}

BLOCK = '\n###PS1JSON###\n%s\n###PS1END###\n'
FULL = json.dumps({
    'pid': '', 'exit_code': '0', 'username': 'u', 'hostname': 'h', 'working_dir': '/w', 'py_interpreter_path': '',
}, indent=2)
PROMPT_TEXTS = [
    '',
    'no block',
    BLOCK % FULL,
    'output' + BLOCK % FULL + 'ls\n' + BLOCK % '{"exit_code": 2, "pid": "17"}',
    BLOCK % '{}',
    BLOCK % '',
    BLOCK % '{"exit_code": }',
    BLOCK % '{"exit_code": "0.0", "pid": " 5 "}',
    BLOCK % '{"exit_code": 1.9, "pid": -1.9}',
    BLOCK % '{"exit_code": null, "pid": true}',
    BLOCK % '{"exit_code": "nan", "pid": "1e3"}',
    BLOCK % '{"exit_code": "x", "pid": "1_0"}',
    BLOCK % '{"exit_code": "1__0", "pid": "_1"}',
    BLOCK % '{"username": "", "other": 1, "prefix": "p"}',
    'x###PS1JSON###\n{"exit_code": 1}\n###PS1END###',
    '###PS1JSON###{"exit_code": 1}###PS1END### tail',
    '###PS1JSON###\n{"exit_code": 1}\n',
    '\r\n###PS1JSON###\r\n{"exit_code": 7}\r\n###PS1END###\r\n',
    '###PS1JSON###\n{"exit\n###PS1JSON###\n{"exit_code": 3}\n###PS1END###\n',
    BLOCK % '{"exit_code": 1' + BLOCK % '{"exit_code": 4}',
    '###PS1JSON###\n{"exit_code": 3}\n###PS1END######PS1JSON###\n{"exit_code": 4}\n###PS1END###\n',
    'ü\n###PS1JSON###\n{"working_dir": "/tmp/ü\\n"}\n###PS1END###',
]

REPR_VALUES = [
    None, True, False, 0, -7, 2**63 - 1, 2**64 - 1, 0.0, -0.0, 1.0, 2.5, 120.0, 0.1, 1e15, 123456789012345680.0, 1e16,
    1.5e16, 9999999999999998.0, 1e22, 1.7976931348623157e308, 5e-324, 0.0001, 0.00001, 0.000012345, -1e-7, 1e100,
    '', 'a', "it's", '"', '\'"', '\\', '\n\r\t', '\x00\x1f\x7f', '\x80\xa0\xad', 'é€😀', '\u200b\u2028\ufeff', 'a\u0301',
    '\u0301', '\ue000\U000e0001', '\u3000', '\u0378', '\x1b[0m', [], {}, [1, 'a', [None]], {'a': 1, "b'": {'c': []}},
]

MCP_ENTRIES = [
    {'name': 'a', 'command': 'uvx'},
    {'name': ' a-b_C9 ', 'command': ' npx\t', 'args': ['-y', 'x y'], 'env': {'A': 'b', 'not checked': ''}},
    {'name': 'a', 'command': 'c', 'args': ' -y mcp-remote --config "path with \\" \\n spaces" \'s q\' a\\ b "" x"y"z '},
    {'name': 'a', 'command': 'c', 'args': 'a "b'},
    {'name': 'a', 'command': 'c', 'args': 'a\\'},
    {'name': 'a', 'command': 'c', 'args': ' ', 'env': ' '},
    {'name': 'a', 'command': 'c', 'args': None, 'env': None},
    {'name': 'a', 'command': 'c', 'args': [1]},
    {'name': 'a', 'command': 'c', 'args': 5},
    {'name': 'a', 'command': 'c', 'env': 'A=1, _B2 = x=y ,,C='},
    {'name': 'a', 'command': 'c', 'env': 'A'},
    {'name': 'a', 'command': 'c', 'env': '=1'},
    {'name': 'a', 'command': 'c', 'env': '1A=1'},
    {'name': 'a', 'command': 'c', 'env': {'A': 1}},
    {'name': '', 'command': 'c'},
    {'name': 'a b', 'command': 'c'},
    {'name': 'ä', 'command': 'c'},
    {'name': 5, 'command': 'c'},
    {'command': 'c'},
    {'name': 'a'},
    {'name': 'a', 'command': ' '},
    {'name': 'a', 'command': 'a b'},
    {'name': 'a', 'command': 'a\tb'},
    {'name': 'a', 'command': 'c', 'unknown': 1},
]


def parsed(event):
    """What the reference makes of an event, as JSON."""
    return event_to_dict(event_from_dict(copy.deepcopy(event)))


def refused(event):
    """The text with which the reference refuses an event."""
    try:
        parsed(event)
    except Exception as error:
        return str(error)
    raise AssertionError(f'{event} is accepted')


def actions():
    events = {}
    for kind, (fewest, every) in ACTIONS.items():
        events[f'{kind} with defaults'] = {'action': kind, 'args': fewest}
        events[f'{kind} with all fields'] = {'action': kind, 'args': every}
    events |= EVENTS
    return [{'name': name, 'input': event, 'output': parsed(event)} for name, event in events.items()]


def observations():
    events = {}
    for kind, (fewest, every) in OBSERVATIONS.items():
        content = '' if kind == 'null' else 'text'
        events[f'{kind} with defaults'] = {'observation': kind, 'content': content, 'extras': fewest}
        events[f'{kind} with all fields'] = {'observation': kind, 'content': content, 'extras': every}
    events |= OBSERVATION_EVENTS
    return [{'name': name, 'input': event, 'output': parsed(event)} for name, event in events.items()]


def texts_for_the_model():
    cases = []
    for metadata in ({}, METADATA_ALL, {'exit_code': 0, 'working_dir': '', 'py_interpreter_path': ''}):
        observation = CmdOutputObservation(content='out', command='c', metadata=CmdOutputMetadata(**metadata))
        cases.append({'metadata': observation.metadata.model_dump(), 'text': observation.to_agent_observation()})
    return cases


def truncations():
    """Contents of one repeated character, described by length and the place of the notice; -1 is none."""
    cases = []
    for unit in ('a', 'ä', '😀', '\n'):
        for count in (0, 29999, 30000, 30001, 30047, 60000):
            for hidden in (False, True):
                content = CmdOutputObservation(content=unit * count, command='c', hidden=hidden).content
                cases.append({
                    'unit': unit,
                    'count': count,
                    'hidden': hidden,
                    'length': len(content),
                    'bracket_at': content.find('['),
                })
    return cases


def mcp_entries():
    cases = []
    for entry in MCP_ENTRIES:
        try:
            output = MCPStdioServerConfig(**entry).model_dump()
        except Exception:
            output = None
        cases.append({'input': entry, 'output': output})
    return cases


def main():
    logging.disable(logging.CRITICAL)
    folder = Path(sys.argv[1])
    files = {
        'actions': actions(),
        'action_errors': [{'name': name, 'input': event, 'error': refused(event)} for name, event in ERRORS.items()],
        'observations': observations(),
        'observation_errors': [
            {'name': name, 'input': event, 'error': refused(event)} for name, event in OBSERVATION_ERRORS.items()
        ],
        'texts_for_the_model': texts_for_the_model(),
        'python_repr': [{'value': value, 'repr': repr(value)} for value in REPR_VALUES],
        'truncations': truncations(),
        'mcp_entries': mcp_entries(),
    }
    for name, content in files.items():
        (folder / f'{name}.json').write_text(json.dumps(content, indent=1) + '\n', encoding='utf-8')


if __name__ == '__main__':
    main()
