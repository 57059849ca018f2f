//! A server for requests, uploads and streams with hyper, on tokio's single-threaded runtime, plain or over rustls, in HTTP/1.1 or
//! in HTTP/2.
//!
//! Contract: `GET /` answers "ok"; `POST /upload` counts the bytes of the body as they arrive, keeps none of them, and
//! answers the count; `GET /events/N?gap=10ms&size=100` sends N server-sent events.
//!
//! usage: program ADDRESS PORT `PIPELINE_FLUSH` TLS CERT KEY TICKETS HTTP (TLS is off, or anything else; HTTP is 1.1 or 2)

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Either, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response, Uri};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket};
use tokio::time::{Sleep, sleep};
use tokio_rustls::TlsAcceptor;

/// Server-sent events, each after a gap.
struct Events {
    data: String,
    gap: Duration,
    /// The events that were sent, and how many there are.
    sent: u64,
    count: u64,
    /// Until the next one is due.
    wait: Option<Pin<Box<Sleep>>>,
}

impl Events {
    /// Reads `/events/N?gap=10ms&size=100`.
    fn of(uri: &Uri) -> Option<Self> {
        let count = uri.path().strip_prefix("/events/")?.parse().ok()?;
        let of =
            |name: &str| uri.query()?.split('&').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        let gap = Duration::from_millis(of("gap")?.strip_suffix("ms")?.parse().ok()?);
        let data = "x".repeat(of("size")?.parse().ok()?);
        Some(Self { data, gap, sent: 0, count, wait: None })
    }
}

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(wait) = &mut self.wait {
            ready!(wait.as_mut().poll(context));
            self.wait = None;
        }
        if self.sent == self.count {
            return Poll::Ready(None);
        }
        self.sent += 1;
        if self.sent < self.count && !self.gap.is_zero() {
            self.wait = Some(Box::pin(sleep(self.gap)));
        }
        let event = format!("id: {}\ndata: {}\n\n", self.sent, self.data);
        Poll::Ready(Some(Ok(Frame::data(event.into()))))
    }
}

async fn answer(
    mut request: Request<Incoming>,
) -> Result<Response<Either<Full<Bytes>, Events>>, hyper::Error> {
    if let Some(events) = Events::of(request.uri()) {
        let mut answer = Response::new(Either::Right(events));
        answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        return Ok(answer);
    }
    let mut count = 0;
    while let Some(frame) = request.body_mut().frame().await {
        count += frame?.data_ref().map_or(0, Bytes::len);
    }
    let body = if request.uri().path() == "/upload" {
        Bytes::from(count.to_string())
    } else {
        Bytes::from_static(b"ok")
    };
    Ok(Response::new(Either::Left(Full::new(body))))
}

/// What connections speak.
#[derive(Clone, Copy)]
enum Speaks {
    Http1 { pipeline_flush: bool },
    Http2,
}

/// Serves one connection. If a peer disconnects, only its own connection ends.
async fn serve<S: AsyncRead + AsyncWrite + Unpin>(stream: S, speaks: Speaks) {
    let (stream, service) = (TokioIo::new(stream), service_fn(answer));
    let _ = match speaks {
        Speaks::Http1 { pipeline_flush } => {
            let mut http = http1::Builder::new();
            http.pipeline_flush(pipeline_flush).serve_connection(stream, service).await
        }
        Speaks::Http2 => http2::Builder::new(TokioExecutor::new()).serve_connection(stream, service).await,
    };
}

async fn accept(listener: TcpListener, speaks: Speaks, acceptor: Option<TlsAcceptor>) -> Infallible {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(10)).await; // no files are left, or a similar error
            continue;
        };
        let _ = stream.set_nodelay(true);
        let Some(acceptor) = acceptor.clone() else {
            tokio::spawn(serve(stream, speaks));
            continue;
        };
        tokio::spawn(async move {
            if let Ok(stream) = acceptor.accept(stream).await {
                serve(stream, speaks).await;
            }
        });
    }
}

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(4096)
}

/// What accepts TLS connections. Without tickets rustls remembers 256 sessions itself, which is its default.
fn acceptor(cert: &str, key: &str, tickets: bool, speaks: Speaks) -> Result<TlsAcceptor, Box<dyn Error>> {
    let chain = CertificateDer::pem_file_iter(cert)?.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(key)?;
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let mut config =
        builder.with_safe_default_protocol_versions()?.with_no_client_auth().with_single_cert(chain, key)?;
    if tickets {
        config.ticketer = ring::Ticketer::new()?;
    }
    if matches!(speaks, Speaks::Http2) {
        config.alpn_protocols = vec![b"h2".to_vec()];
    }
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address, port, pipeline_flush, tls, cert, key, tickets, http] = &words[..] else {
        return Err("usage: program ADDRESS PORT PIPELINE_FLUSH TLS CERT KEY TICKETS HTTP".into());
    };
    let address = SocketAddr::new(address.parse::<IpAddr>()?, port.parse()?);
    let speaks = match http.as_str() {
        "2" => Speaks::Http2,
        _ => Speaks::Http1 { pipeline_flush: pipeline_flush.parse()? },
    };
    let acceptor = if tls == "off" { None } else { Some(acceptor(cert, key, tickets.parse()?, speaks)?) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async move {
        let listener = listen(address).map_err(|error| format!("cannot serve on {address}: {error}"))?;
        match accept(listener, speaks, acceptor).await {}
    })
}
