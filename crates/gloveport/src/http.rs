//! A server seen from the command line.

use std::{sync::Once, time::Duration};

use anyhow::Context as _;
use futures_util::StreamExt as _;
use gloveport_protocol::exec::{ExecEnd, ExecRequest};
use gloveport_protocol::{ActionEvent, SESSION_KEY_HEADER};
use reqwest::{Client, Response, StatusCode, Url};
use serde_json::{Value, json};

/// Time to reach a server.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// A stream sends at least a comment every 15 s; longer silence means that the connection is lost.
const SILENCE_LIMIT: Duration = Duration::from_secs(40);
/// How often a lost stream is taken up again before we give up.
const RECONNECTIONS: u32 = 10;

/// A server and the key for it.
#[derive(Debug)]
pub(crate) struct Remote {
    client: Client,
    url: Url,
    key: Option<String>,
}

impl Remote {
    pub(crate) fn new(url: &str, key: Option<&str>) -> anyhow::Result<Self> {
        let text = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
        let url: Url = text.parse().with_context(|| format!("`{url}` is not a URL such as http://127.0.0.1:8000"))?;
        anyhow::ensure!(["http", "https"].contains(&url.scheme()), "{url}: only http and https can be used");
        Ok(Self { client: client()?, url, key: key.map(str::to_owned) })
    }

    fn post(&self, path: &str) -> anyhow::Result<reqwest::RequestBuilder> {
        let url = self.url.join(path).with_context(|| format!("cannot use the URL {}", self.url))?;
        let request = self.client.post(url);
        Ok(match &self.key {
            Some(key) => request.header(SESSION_KEY_HEADER, key),
            None => request,
        })
    }

    /// Executes one action.
    pub(crate) async fn execute(&self, event: &ActionEvent) -> anyhow::Result<Value> {
        let request = self.post("execute_action")?.json(&json!({ "action": event.to_value() }));
        let response = self.answered(request.send().await).await?;
        response.json().await.context("the server's answer is not JSON")
    }

    /// Runs a native command, hands its output to `print` as it comes, and takes a lost stream up again where it ended.
    pub(crate) async fn exec(
        &self,
        mut request: ExecRequest,
        print: &mut impl FnMut(&[u8]) -> anyhow::Result<()>,
    ) -> anyhow::Result<ExecEnd> {
        request.id = Some(random_id()?);
        let mut last_id: Option<String> = None;
        let mut lost = None;
        for attempt in 0..=RECONNECTIONS {
            if attempt > 0 {
                tokio::time::sleep(Duration::from_millis(200) * attempt).await;
            }
            let mut post = self.post("v1/exec")?.json(&request);
            if let Some(id) = &last_id {
                post = post.header("last-event-id", id);
            }
            let response = match post.send().await {
                Err(error) if attempt == 0 && error.is_connect() => return self.unreachable(error),
                Err(error) => {
                    lost = Some(anyhow::Error::from(error));
                    continue;
                }
                answer => self.answered(answer).await?,
            };
            match follow(response, &mut last_id, print).await? {
                Some(end) => return Ok(end),
                None => lost = Some(anyhow::anyhow!("the stream ended too early")),
            }
        }
        let error = lost.unwrap_or_else(|| anyhow::anyhow!("no answer"));
        Err(error.context(format!("the connection to {} was lost and could not be taken up again", self.url)))
    }

    fn unreachable<T>(&self, error: reqwest::Error) -> anyhow::Result<T> {
        Err(anyhow::Error::from(error).context(format!("no server answers at {}; is it running?", self.url)))
    }

    /// The response, or what the server says is wrong.
    async fn answered(&self, answer: reqwest::Result<Response>) -> anyhow::Result<Response> {
        let response = match answer {
            Ok(response) => response,
            Err(error) if error.is_connect() => return self.unreachable(error),
            Err(error) => return Err(error.into()),
        };
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let body: Value = response.json().await.unwrap_or_default();
        let said = body.get("detail").or_else(|| body.pointer("/error/message")).and_then(Value::as_str);
        let hint =
            if status == StatusCode::FORBIDDEN { " (give the server's key with --key or GLOVEPORT_KEY)" } else { "" };
        anyhow::bail!("{} answered {status}: {}{hint}", self.url, said.unwrap_or("without a reason"));
    }
}

/// Reads one stream of events; `None` if it broke off.
async fn follow(
    response: Response,
    last_id: &mut Option<String>,
    print: &mut impl FnMut(&[u8]) -> anyhow::Result<()>,
) -> anyhow::Result<Option<ExecEnd>> {
    let mut chunks = response.bytes_stream();
    let mut buffer: Vec<u8> = Vec::new();
    while let Ok(Some(Ok(chunk))) = tokio::time::timeout(SILENCE_LIMIT, chunks.next()).await {
        buffer.extend_from_slice(&chunk);
        while let Some(length) = buffer.windows(2).position(|pair| pair == b"\n\n") {
            let block: Vec<u8> = buffer.drain(..length + 2).collect();
            let event = Event::parse(&String::from_utf8_lossy(&block));
            match event.name.as_str() {
                "output" => print(&output_bytes(&event.data)?)?,
                "gap" => tracing::warn!(data = event.data, "a part of the output is no longer kept by the server"),
                "exit" => {
                    return Ok(Some(
                        serde_json::from_str(&event.data).context("the end of the command cannot be understood")?,
                    ));
                }
                _ => {}
            }
            if event.id.is_some() {
                *last_id = event.id;
            }
        }
    }
    Ok(None)
}

fn output_bytes(data: &str) -> anyhow::Result<Vec<u8>> {
    use base64::Engine as _;
    let value: Value = serde_json::from_str(data).context("an output event cannot be understood")?;
    if let Some(text) = value.get("text").and_then(Value::as_str) {
        return Ok(text.as_bytes().to_vec());
    }
    let encoded = value.get("base64").and_then(Value::as_str).unwrap_or_default();
    base64::engine::general_purpose::STANDARD.decode(encoded).context("an output event cannot be decoded")
}

/// One server-sent event.
#[derive(Debug, Default, PartialEq, Eq)]
struct Event {
    name: String,
    id: Option<String>,
    data: String,
}

impl Event {
    fn parse(block: &str) -> Self {
        let mut event = Self::default();
        for line in block.lines() {
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "event" => value.clone_into(&mut event.name),
                "id" => event.id = Some(value.to_owned()),
                "data" => {
                    if !event.data.is_empty() {
                        event.data.push('\n');
                    }
                    event.data.push_str(value);
                }
                _ => {}
            }
        }
        event
    }
}

/// A client that also works where the system has no certificates: then the bundled ones are used.
fn client() -> anyhow::Result<Client> {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // Fails only if one is installed already, which does as well.
        let _installed_before = rustls::crypto::ring::default_provider().install_default();
    });
    let builder = || Client::builder().connect_timeout(CONNECT_LIMIT);
    if let Ok(client) = builder().build() {
        return Ok(client);
    }
    let roots = webpki_root_certs::TLS_SERVER_ROOT_CERTS
        .iter()
        .map(|der| reqwest::Certificate::from_der(der))
        .collect::<Result<Vec<_>, _>>()
        .context("the bundled certificates cannot be used")?;
    builder().tls_certs_only(roots).build().context("no HTTP client can be made")
}

fn random_id() -> anyhow::Result<String> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("no random id can be made: {error}"))?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_a_name_an_id_and_lines_of_data() {
        let parsed = Event::parse(": comment\nevent: output\nid: 12\ndata: {\"a\":\ndata:1}\n\n");
        assert_eq!(parsed, Event { name: "output".into(), id: Some("12".into()), data: "{\"a\":\n1}".into() });
    }
}
