//! Calls and their arguments. The errors are those of BrowserGym 0.13.3 on Playwright 1.56, first lines only.

#![expect(clippy::panic, reason = "functions that tests share stop at the first broken assumption, too")]

use gloveport_browsergym::{
    keys::Modifiers,
    operation::{MouseButton, Operation},
    parse_script,
};

fn bound(text: &str) -> Result<Operation, String> {
    let calls = parse_script(text).map_err(|error| error.to_string())?;
    let [call] = calls.as_slice() else { panic!("{text}") };
    call.bind().map_err(|error| error.to_string())
}

fn text(text: &str) -> String {
    text.to_owned()
}

#[test]
fn every_function_is_an_operation() {
    let click = |bid, button, modifiers| Operation::Click { bid: text(bid), button, modifiers };
    let both = Modifiers::SHIFT | Modifiers::CONTROL;
    let table = [
        ("noop()", Operation::Noop { wait_ms: 1000.0 }),
        ("noop(500)", Operation::Noop { wait_ms: 500.0 }),
        ("noop(wait_ms=1.5)", Operation::Noop { wait_ms: 1.5 }),
        ("noop(-1)", Operation::Noop { wait_ms: 0.0 }),
        ("noop(10000000000000000000000)", Operation::Noop { wait_ms: 1.0 }),
        ("send_msg_to_user('a')", Operation::SendMessageToUser { text: text("a") }),
        ("report_infeasible(reason='a')", Operation::ReportInfeasible { reason: text("a") }),
        ("scroll(0, -200.5)", Operation::Scroll { delta_x: 0.0, delta_y: -200.5 }),
        ("fill('a12', 'b')", Operation::Fill { bid: text("a12"), value: text("b") }),
        ("fill(value='b', bid='1')", Operation::Fill { bid: text("1"), value: text("b") }),
        ("select_option('1', 'a')", Operation::SelectOption { bid: text("1"), options: vec![text("a")] }),
        (
            "select_option('1', ['a', 'b'])",
            Operation::SelectOption { bid: text("1"), options: vec![text("a"), text("b")] },
        ),
        ("select_option('1', ('a'))", Operation::SelectOption { bid: text("1"), options: vec![text("a")] }),
        ("select_option('1', {'a': 1})", Operation::SelectOption { bid: text("1"), options: vec![text("a")] }),
        ("select_option('1', None)", Operation::SelectOption { bid: text("1"), options: vec![] }),
        ("click('1')", click("1", MouseButton::Left, Modifiers::NONE)),
        ("click('1', None, None)", click("1", MouseButton::Left, Modifiers::NONE)),
        ("click('1', 'right', ['Shift', 'ControlOrMeta'])", click("1", MouseButton::Right, both)),
        ("click('1', modifiers=('Control', 'Shift', 'Shift'))", click("1", MouseButton::Left, both)),
        (
            "dblclick('1', button='middle')",
            Operation::DoubleClick { bid: text("1"), button: MouseButton::Middle, modifiers: Modifiers::NONE },
        ),
        ("hover('1')", Operation::Hover { bid: text("1") }),
        ("press('1', 'Enter')", Operation::Press { bid: text("1"), key_comb: text("Enter") }),
        ("focus('1')", Operation::Focus { bid: text("1") }),
        ("clear('1')", Operation::Clear { bid: text("1") }),
        ("drag_and_drop('1', '2')", Operation::DragAndDrop { from: text("1"), to: text("2") }),
        ("upload_file('1', 'a')", Operation::UploadFile { bid: text("1"), files: vec![text("a")] }),
        ("upload_file('1', [])", Operation::UploadFile { bid: text("1"), files: vec![] }),
        ("upload_file('1', ('a', 'b'))", Operation::UploadFile { bid: text("1"), files: vec![text("a"), text("b")] }),
        ("go_back()", Operation::GoBack),
        ("go_forward()", Operation::GoForward),
        ("goto('u')", Operation::Goto { url: text("u") }),
        ("tab_close()", Operation::TabClose),
        ("tab_focus(-1)", Operation::TabFocus { index: -1 }),
        ("tab_focus(True)", Operation::TabFocus { index: 1 }),
        ("new_tab()", Operation::NewTab),
    ];
    for (call, operation) in table {
        assert_eq!(bound(call), Ok(operation), "{call}");
    }
}

#[test]
fn arguments_that_do_not_fit_have_the_errors_of_python() {
    let table = [
        ("click()", "click() missing 1 required positional argument: 'bid'"),
        ("fill()", "fill() missing 2 required positional arguments: 'bid' and 'value'"),
        ("fill('12')", "fill() missing 1 required positional argument: 'value'"),
        ("fill(value='a')", "fill() missing 1 required positional argument: 'bid'"),
        ("scroll(delta_y=1)", "scroll() missing 1 required positional argument: 'delta_x'"),
        ("drag_and_drop()", "drag_and_drop() missing 2 required positional arguments: 'from_bid' and 'to_bid'"),
        ("click('12', foo=1, bar=2)", "click() got an unexpected keyword argument 'foo'"),
        ("go_back(1, a=1)", "go_back() got an unexpected keyword argument 'a'"),
        ("hover('1', '2', foo=1)", "hover() got an unexpected keyword argument 'foo'"),
        ("hover(foo=1)", "hover() got an unexpected keyword argument 'foo'"),
        ("fill('12', foo='a', bid='1')", "fill() got an unexpected keyword argument 'foo'"),
        ("click('12', 'left', [], 1)", "click() takes from 1 to 3 positional arguments but 4 were given"),
        ("noop(1, 2)", "noop() takes from 0 to 1 positional arguments but 2 were given"),
        ("go_back(1)", "go_back() takes 0 positional arguments but 1 was given"),
        ("goto(1, 2)", "goto() takes 1 positional argument but 2 were given"),
        ("fill(1, 2, 3, 4, 5)", "fill() takes 2 positional arguments but 5 were given"),
        ("click('12', bid='12')", "click() got multiple values for argument 'bid'"),
        ("click('12', 'left', [], 1, bid='2')", "click() got multiple values for argument 'bid'"),
        ("fill('12', 'a', bid='1', value='b')", "fill() got multiple values for argument 'bid'"),
        ("click(1, 2, 3, 4, button='x')", "click() got multiple values for argument 'button'"),
    ];
    for (call, message) in table {
        assert_eq!(bound(call), Err(format!("TypeError: {message}")), "{call}");
    }
}

#[test]
fn values_of_wrong_types_have_the_errors_of_the_reference() {
    let one_of_modifiers = "expected one of (Alt|Control|ControlOrMeta|Meta|Shift)";
    let table = [
        ("noop('a')", "Error: Page.wait_for_timeout: wait_timeout: expected float, got string"),
        ("noop(None)", "Error: Page.wait_for_timeout: wait_timeout: expected float, got undefined"),
        ("noop(True)", "Error: Page.wait_for_timeout: wait_timeout: expected float, got boolean"),
        ("noop((1,))", "Error: Page.wait_for_timeout: wait_timeout: expected float, got object"),
        ("noop(1e400)", "NameError: name 'inf' is not defined"),
        ("scroll(-1e400, 0)", "NameError: name 'inf' is not defined"),
        ("click('1', [{'a': (1e400,)}])", "NameError: name 'inf' is not defined"),
        ("send_msg_to_user(1)", "ValueError: Forbidden value: 1 is not a string"),
        ("send_msg_to_user(None)", "ValueError: Forbidden value: None is not a string"),
        ("send_msg_to_user(('a',))", "ValueError: Forbidden value: ('a',) is not a string"),
        ("report_infeasible(1.5)", "ValueError: Forbidden value: 1.5 is not a string"),
        ("scroll('a', 'b')", "Error: Mouse.wheel: delta_x: expected float, got string"),
        ("scroll(1, {'a': 1})", "Error: Mouse.wheel: delta_y: expected float, got object"),
        ("fill(12, 1)", "ValueError: expected a string, got 12"),
        ("fill(['12'], 'x')", "ValueError: expected a string, got ['12']"),
        ("fill('12', 1)", "Error: Locator.fill: value: expected string, got number"),
        ("fill('12', None)", "TypeError: Frame.fill() missing 1 required positional argument: 'value'"),
        ("fill('12', True)", "Error: Locator.fill: value: expected string, got boolean"),
        ("select_option('13', 1)", "TypeError: 'int' object is not iterable"),
        ("select_option('13', True)", "TypeError: 'bool' object is not iterable"),
        ("select_option('13', 1.5)", "TypeError: 'float' object is not iterable"),
        (
            "select_option('13', ['o1', 1])",
            "Error: Locator.select_option: options[1].valueOrLabel: expected string, got number",
        ),
        (
            "select_option('13', [None])",
            "Error: Locator.select_option: options[0].valueOrLabel: expected string, got object",
        ),
        (
            "select_option('13', [['o1']])",
            "Error: Locator.select_option: options[0].valueOrLabel: expected string, got object",
        ),
        ("click('16', 'x')", "Error: Locator.click: button: expected one of (left|right|middle)"),
        ("click('16', button=1)", "Error: Locator.click: button: expected one of (left|right|middle)"),
        ("click('16', '')", "Error: Locator.click: button: expected one of (left|right|middle)"),
        ("dblclick('16', 'x')", "Error: Locator.click: button: expected one of (left|right|middle)"),
        ("click('16', modifiers='Shift')", "Error: Locator.click: modifiers: expected array, got string"),
        ("click('16', modifiers=1)", "Error: Locator.click: modifiers: expected array, got number"),
        ("click('16', modifiers=False)", "Error: Locator.click: modifiers: expected array, got boolean"),
        ("click('16', modifiers={'a': 1})", "Error: Locator.click: modifiers: expected array, got object"),
        ("click('16', modifiers=['shift'])", &format!("Error: Locator.click: modifiers[0]: {one_of_modifiers}")),
        ("click('16', 'x', ['Shift', 1, 'y'])", &format!("Error: Locator.click: modifiers[1]: {one_of_modifiers}")),
        ("press('12', 1)", "Error: Locator.press: key: expected string, got number"),
        ("press('12', None)", "TypeError: Frame.press() missing 1 required positional argument: 'key'"),
        ("hover(None)", "ValueError: expected a string, got None"),
        ("hover(1.0)", "ValueError: expected a string, got 1.0"),
        ("focus(True)", "ValueError: expected a string, got True"),
        ("clear([])", "ValueError: expected a string, got []"),
        ("drag_and_drop('16', 2)", "ValueError: expected a string, got 2"),
        ("goto(1)", "Error: Page.goto: url: expected string, got number"),
        ("goto(None)", "TypeError: Frame.goto() missing 1 required positional argument: 'url'"),
        ("goto({})", "Error: Page.goto: url: expected string, got object"),
        ("tab_focus('a')", "TypeError: list indices must be integers or slices, not str"),
        ("tab_focus(1.0)", "TypeError: list indices must be integers or slices, not float"),
        ("tab_focus(None)", "TypeError: list indices must be integers or slices, not NoneType"),
        ("tab_focus((1,))", "TypeError: list indices must be integers or slices, not tuple"),
        ("tab_focus(10000000000000000000000)", "IndexError: cannot fit 'int' into an index-sized integer"),
        ("upload_file('15', 1)", "AttributeError: 'int' object has no attribute 'get'"),
        ("upload_file('15', None)", "AttributeError: 'NoneType' object has no attribute 'get'"),
        ("upload_file('15', [[]])", "AttributeError: 'list' object has no attribute 'get'"),
        ("upload_file('15', ['a', 1])", "Error: File paths cannot be mixed with buffers"),
        ("upload_file('15', {})", "KeyError: 'name'"),
        ("upload_file('15', {'name': 'a'})", "KeyError: 'mimeType'"),
        ("upload_file('15', {'name': 'a', 'mimeType': 'b'})", "KeyError: 'buffer'"),
        (
            "upload_file('15', {'name': 'a', 'mimeType': 'b', 'buffer': 'c'})",
            "TypeError: a bytes-like object is required, not 'str'",
        ),
        ("upload_file('15', [{'name': 'a'}, 1])", "AttributeError: 'int' object has no attribute 'get'"),
    ];
    for (call, error) in table {
        assert_eq!(bound(call), Err(text(error)), "{call}");
    }
}

#[test]
fn numbers_are_finite_however_long_they_are() {
    let long = "9".repeat(4000);
    assert_eq!(
        bound(&format!("scroll({long}, -{long})")),
        Ok(Operation::Scroll { delta_x: f64::MAX, delta_y: f64::MIN })
    );
}
