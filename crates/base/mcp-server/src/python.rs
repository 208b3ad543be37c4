//! `python`.

use gloveport_protocol::kernels::{CellOutcome, CellRequest, KERNEL_LOST, cell_content};
use rmcp::{
    RoleServer,
    model::{ContentBlock, JsonObject},
    service::RequestContext,
};
use serde::Deserialize;
use serde_json::json;

use crate::{
    answer::Answer,
    arguments::parse,
    computer::{Computer, Failure},
    schema::CELL_LIMIT,
    tool::Tool,
};

/// Longest time limit of a cell, in seconds.
const LONGEST: f64 = 24.0 * 3600.0;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PythonArguments {
    code: String,
    timeout: Option<f64>,
}

pub(crate) async fn run(
    computer: &dyn Computer,
    arguments: JsonObject,
    context: &RequestContext<RoleServer>,
) -> Result<Answer, Failure> {
    let PythonArguments { code, timeout } = parse(Tool::Python, arguments)?;
    let timeout = timeout.unwrap_or(CELL_LIMIT);
    if !(timeout > 0.0 && timeout <= LONGEST) {
        return Err(Failure::new(format!("timeout must be more than 0 and at most {LONGEST} seconds")));
    }
    let running = computer.cell(CellRequest { code, timeout: Some(timeout) });
    let result = tokio::select! {
        result = running => result?,
        () = context.ct.cancelled() => {
            computer.interrupt_cell().await?;
            return Err(Failure::new("the call was cancelled, and its code was interrupted"));
        }
    };
    let mut text = cell_content(&result.text, result.end, Some(timeout));
    let state = match result.end {
        CellOutcome::Completed => "completed",
        CellOutcome::Raised => "raised",
        CellOutcome::TimedOut => "timed_out",
        CellOutcome::Died => {
            text = format!("{}\n[The kernel ended while it ran the code. {KERNEL_LOST}]", text.trim_end());
            "died"
        }
    };
    if result.kernel_lost_before {
        text.insert_str(0, &format!("[The kernel had ended before this. {KERNEL_LOST}]\n"));
    }
    let pictures: Vec<ContentBlock> = result.images.iter().filter_map(|image| picture(image)).collect();
    let mut data = json!({"state": state, "output": result.text, "images": pictures.len()});
    if result.kernel_lost_before || result.end == CellOutcome::Died {
        data["variables_lost"] = true.into();
    }
    let mut answer = Answer::new(text, data);
    answer.more = pictures;
    Ok(answer)
}

/// A picture as content, of its `data:` URL.
fn picture(url: &str) -> Option<ContentBlock> {
    let (media_type, base64) = url.strip_prefix("data:")?.split_once(";base64,")?;
    Some(ContentBlock::image(base64, media_type))
}
