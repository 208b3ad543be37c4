//! Bodies that nobody reads to their end: whoever is refused while still sending would see a broken connection, and not why.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::body::{Body, BodyDataStream};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use tokio::time::timeout;

/// How much of a body is still taken after it was given up, and for how long.
const REST: usize = 1024 * 1024;
const TIME: Duration = Duration::from_secs(2);

struct Lingering(Option<BodyDataStream>);

/// The same body. If it is given up, a rest of it is taken all the same.
pub(crate) fn lingering(body: Body) -> Body {
    Body::from_stream(Lingering(Some(body.into_data_stream())))
}

impl Stream for Lingering {
    type Item = Result<Bytes, axum::Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(body) = &mut self.0 else { return Poll::Ready(None) };
        let polled = body.poll_next_unpin(context);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.0 = None;
        }
        polled
    }
}

impl Drop for Lingering {
    fn drop(&mut self) {
        let Some(mut body) = self.0.take() else { return };
        // It ends by its time.
        drop(tokio::spawn(timeout(TIME, async move {
            let mut taken = 0;
            while let Some(Ok(piece)) = body.next().await {
                taken += piece.len();
                if taken > REST {
                    return;
                }
            }
        })));
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use tokio::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn a_body_is_the_same_and_its_rest_is_taken_when_it_is_given_up() {
        let pieces =
            |count: usize| stream::iter((0..count).map(|_| Ok::<_, std::io::Error>(Bytes::from_static(b"ab"))));
        let whole = axum::body::to_bytes(lingering(Body::from_stream(pieces(3))), 10).await.unwrap();
        assert_eq!(whole, b"ababab"[..]);
        let (sender, mut taken) = mpsc::unbounded_channel();
        let told = pieces(5).inspect(move |_| sender.send(()).unwrap());
        drop(lingering(Body::from_stream(told)));
        let mut count = 0;
        while taken.recv().await.is_some() {
            count += 1;
        }
        assert_eq!(count, 5);
    }
}
