//! The operations of an action text (spec/browser.md 4.2).

use std::time::Duration;

use gloveport_browsergym::{
    ActionError,
    keys::{KeyCombination, Modifiers},
    operation::{MouseButton, Operation},
};
use serde_json::json;

use crate::{
    cdp::CdpError,
    element::{self, Element, LIMIT, Needs, failed, timed_out},
    input::{self, Dragged, Mouse},
    live::Live,
    navigate::{self, WaitFor, Way},
    settle::After,
    world::TargetId,
};

/// How often the mouse follows an element that moves away.
const MOVES: usize = 5;

/// Performs an operation in the active page.
pub(crate) async fn perform(live: &Live, operation: Operation) -> Result<(), ActionError> {
    let target = live.active().await.map_err(|error| failed("Page", error))?;
    match operation {
        Operation::Noop { wait_ms } => {
            // It is the time itself that is asked for.
            tokio::time::sleep(Duration::try_from_secs_f64(wait_ms.max(0.0) / 1000.0).unwrap_or(Duration::MAX)).await;
            Ok(())
        }
        Operation::SendMessageToUser { .. } | Operation::ReportInfeasible { .. } => Ok(()),
        Operation::Scroll { delta_x, delta_y } => scroll(live, &target, delta_x, delta_y).await,
        Operation::Fill { bid, value } => fill(live, &target, "Locator.fill", &bid, &value).await,
        Operation::Clear { bid } => fill(live, &target, "Locator.clear", &bid, "").await,
        Operation::SelectOption { bid, options } => select(live, &target, &bid, &options).await,
        Operation::Click { bid, button, modifiers } => {
            click(live, &target, "Locator.click", &bid, (button, 1), modifiers).await
        }
        Operation::DoubleClick { bid, button, modifiers } => {
            click(live, &target, "Locator.dblclick", &bid, (button, 2), modifiers).await
        }
        Operation::Hover { bid } => {
            let element = element::find(live, &target, &bid).await?;
            pointed(live, &target, &element, "Locator.hover", Needs::HOVER).await.map(drop)
        }
        Operation::Press { bid, key_comb } => press(live, &target, &bid, &key_comb).await,
        Operation::Focus { bid } => {
            let element = element::find(live, &target, &bid).await?;
            focus(&element, "Locator.focus", Cursor::WhereItIs).await
        }
        Operation::DragAndDrop { from, to } => drag_and_drop(live, &target, &from, &to).await,
        Operation::UploadFile { bid, files } => upload(live, &target, &bid, &files).await,
        Operation::GoBack => navigate::travel(live, &target, Way::Back).await,
        Operation::GoForward => navigate::travel(live, &target, Way::Forward).await,
        Operation::Goto { url } => navigate::goto(live, &target, &url, WaitFor::Load).await,
        Operation::TabClose => close_tab(live, &target).await,
        Operation::TabFocus { index } => focus_tab(live, index).await,
        Operation::NewTab => live.new_page().await.map(drop).map_err(|error| failed("BrowserContext.new_page", error)),
    }
}

async fn scroll(live: &Live, target: &TargetId, delta_x: f64, delta_y: f64) -> Result<(), ActionError> {
    let turned = async { Mouse::of(live, target)?.wheel(delta_x, delta_y).await };
    turned.await.map_err(|error| failed("Mouse.wheel", error))
}

/// Moves the mouse to an element, also to one that moves because of that; answers where it is.
async fn pointed(
    live: &Live,
    target: &TargetId,
    element: &Element,
    operation: &str,
    needs: Needs,
) -> Result<(f64, f64), ActionError> {
    let mouse = Mouse::of(live, target).map_err(|error| failed(operation, error))?;
    let mut point = element.ready(live, operation, needs).await?;
    for _ in 0..MOVES {
        mouse.move_to(point, None).await.map_err(|error| failed(operation, error))?;
        let now = element.ready(live, operation, needs).await?;
        if (now.0 - point.0).abs() < 1.0 && (now.1 - point.1).abs() < 1.0 {
            break;
        }
        point = now;
    }
    Ok(point)
}

async fn click(
    live: &Live,
    target: &TargetId,
    operation: &str,
    bid: &str,
    (button, times): (MouseButton, u8),
    modifiers: Modifiers,
) -> Result<(), ActionError> {
    let element = element::find(live, target, bid).await?;
    pointed(live, target, &element, operation, Needs::CLICK).await?;
    let clicked = async {
        let session = live.page_session(target)?;
        let mut mouse = Mouse::of(live, target)?;
        mouse.modifiers = modifiers.bits();
        input::keys(&session, modifiers.press()).await?;
        let clicked = mouse.click(button, times).await;
        input::keys(&session, modifiers.release()).await?;
        clicked
    };
    match clicked.await {
        // A click may close its own page.
        Ok(()) | Err(CdpError::Gone) => Ok(()),
        Err(error) => Err(failed(operation, error)),
    }
}

/// Where the cursor is in a field that gets the focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cursor {
    WhereItIs,
    AtBeginning,
}

async fn focus(element: &Element, operation: &str, cursor: Cursor) -> Result<(), ActionError> {
    element.call("focusOn", vec![json!(cursor == Cursor::AtBeginning)]).await.map_err(|error| failed(operation, error))
}

async fn fill(live: &Live, target: &TargetId, operation: &str, bid: &str, value: &str) -> Result<(), ActionError> {
    let element = element::find(live, target, bid).await?;
    element.ready(live, operation, Needs::FILL).await?;
    let answer: String = element.call("fill", vec![json!(value)]).await.map_err(|error| failed(operation, error))?;
    if answer == "done" {
        return Ok(());
    }
    if answer != "type" {
        return Err(ActionError::driver(format!("{operation}: {answer}")));
    }
    let typed = async {
        let session = live.page_session(target)?;
        if value.is_empty() {
            let delete = KeyCombination::parse("Delete").map_err(|_| CdpError::Gone)?;
            return input::keys(&session, delete.events()).await;
        }
        input::insert(&session, value).await
    };
    typed.await.map_err(|error| failed(operation, error))
}

async fn select(live: &Live, target: &TargetId, bid: &str, options: &[String]) -> Result<(), ActionError> {
    const OPERATION: &str = "Locator.select_option";
    let element = element::find(live, target, bid).await?;
    element.ready(live, OPERATION, Needs::SELECT).await?;
    let answer: Option<String> = element
        .call("chooseInTime", vec![json!(options), json!(LIMIT.as_millis())])
        .await
        .map_err(|error| failed(OPERATION, error))?;
    match answer.as_deref() {
        None => Ok(()),
        Some("missing") => Err(timed_out(OPERATION, bid, LIMIT, "did not find some options")),
        Some("disabled") => Err(timed_out(OPERATION, bid, LIMIT, "option being selected is not enabled")),
        Some(error) => Err(ActionError::driver(format!("{OPERATION}: {error}"))),
    }
}

async fn press(live: &Live, target: &TargetId, bid: &str, keys: &str) -> Result<(), ActionError> {
    const OPERATION: &str = "Locator.press";
    let element = element::find(live, target, bid).await?;
    focus(&element, OPERATION, Cursor::AtBeginning).await?;
    let combination = KeyCombination::parse(keys)?;
    let pressed = async { input::keys(&live.page_session(target)?, combination.events()).await };
    match pressed.await {
        Ok(()) | Err(CdpError::Gone) => Ok(()),
        Err(error) => Err(failed(OPERATION, error)),
    }
}

async fn drag_and_drop(live: &Live, target: &TargetId, from: &str, to: &str) -> Result<(), ActionError> {
    const OPERATION: &str = "Locator.hover";
    let source = element::find(live, target, from).await?;
    let start = source.ready(live, OPERATION, Needs::HOVER).await?;
    let mouse = Mouse::of(live, target).map_err(|error| failed(OPERATION, error))?;
    let mut missed = None;
    let destination = async {
        let found = async { element::find(live, target, to).await?.ready(live, OPERATION, Needs::HOVER).await };
        found.await.map_err(|error| missed = Some(error)).ok()
    };
    let dragged = mouse.drag(start, destination).await.map_err(|error| failed(OPERATION, error))?;
    match (dragged, missed) {
        (Dragged::NoPlace, Some(error)) => Err(error),
        (Dragged::NoPlace | Dragged::Done, _) => Ok(()),
    }
}

async fn upload(live: &Live, target: &TargetId, bid: &str, files: &[String]) -> Result<(), ActionError> {
    const OPERATION: &str = "FileChooser.set_files";
    let element = element::find(live, target, bid).await?;
    let session = live.page_session(target).map_err(|error| failed(OPERATION, error))?;
    let directory = live.directory.clone();
    let mut paths = Vec::with_capacity(files.len());
    for file in files {
        paths.push(directory.join(file).to_string_lossy().into_owned());
    }
    let intercept = |enabled: bool| json!({ "enabled": enabled });
    session
        .call("Page.setInterceptFileChooserDialog", intercept(true))
        .await
        .map_err(|error| failed(OPERATION, error))?;
    let chosen = choose_files(live, target, &element, &paths).await;
    session.tell("Page.setInterceptFileChooserDialog", intercept(false));
    chosen
}

async fn choose_files(live: &Live, target: &TargetId, element: &Element, paths: &[String]) -> Result<(), ActionError> {
    const OPERATION: &str = "FileChooser.set_files";
    live.shared.with(|world| world.page_mut(target).and_then(|page| page.chooser.take()));
    pointed(live, target, element, "Locator.click", Needs::CLICK).await?;
    let clicked = async { Mouse::of(live, target)?.click(MouseButton::Left, 1).await };
    clicked.await.map_err(|error| failed("Locator.click", error))?;
    let opened = live.shared.until(live.page_limit, |world| world.page_mut(target)?.chooser.take()).await;
    let Some((node, several)) = opened else {
        return Err(ActionError::timeout(format!(
            "Timeout {}ms exceeded while waiting for event \"filechooser\"",
            live.page_limit.as_millis()
        )));
    };
    if paths.len() > 1 && !several {
        return Err(ActionError::driver(format!(
            "{OPERATION}: Error: Non-multiple file input can only accept single file"
        )));
    }
    for path in paths {
        if let Err(error) = std::fs::metadata(path) {
            let reason = match error.kind() {
                std::io::ErrorKind::NotFound => "ENOENT: no such file or directory".to_owned(),
                std::io::ErrorKind::PermissionDenied => "EACCES: permission denied".to_owned(),
                _ => error.to_string(),
            };
            return Err(ActionError::driver(format!("{OPERATION}: {reason}, access '{path}'")));
        }
    }
    if paths.is_empty() {
        return element.call("clearFiles", Vec::new()).await.map_err(|error| failed(OPERATION, error));
    }
    let session = element.realm.session.clone();
    let parameters = json!({ "files": paths, "backendNodeId": node });
    session.call("DOM.setFileInputFiles", parameters).await.map(drop).map_err(|error| failed(OPERATION, error))
}

async fn close_tab(live: &Live, target: &TargetId) -> Result<(), ActionError> {
    let closed = live.connection.browser().call("Target.closeTarget", json!({ "targetId": target.as_str() })).await;
    closed.map_err(|error| failed("Page.close", error))?;
    let gone = live.shared.until(Duration::from_secs(5), |world| world.page(target).is_none().then_some(()));
    // One that does not go is not waited for.
    let _in_time = gone.await;
    let last = live.shared.with(|world| world.pages.last().map(|page| page.target.clone()));
    match last {
        Some(last) => live.shared.with(|world| world.activate(&last)),
        None => drop(live.new_page().await.map_err(|error| failed("BrowserContext.new_page", error))?),
    }
    Ok(())
}

async fn focus_tab(live: &Live, index: i64) -> Result<(), ActionError> {
    let target = live.shared.with(|world| {
        let count = i64::try_from(world.pages.len()).ok()?;
        // As lists of Python are read: from the end, too.
        let index = if index < 0 { index.checked_add(count)? } else { index };
        world.pages.get(usize::try_from(index).ok()?).map(|page| page.target.clone())
    });
    let Some(target) = target else { return Err(ActionError::new("IndexError", "list index out of range")) };
    let session = live.page_session(&target).map_err(|error| failed("Page.bring_to_front", error))?;
    // What the page that is left still tells of itself must not bring it back.
    if let Ok(left) = live.active().await
        && let Ok(frame) = live.main_frame(&left)
        && let Ok(place) = live.place(&left, &frame)
    {
        let _told_or_gone = live.quiet(&place, After::Input, Duration::from_millis(1), LIMIT).await;
    }
    live.shared.with(|world| world.activate(&target));
    live.bring_to_front(&target, &session).await.map_err(|error| failed("Page.bring_to_front", error))
}
