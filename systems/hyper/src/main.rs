//! A server for requests and uploads with hyper, on tokio's single-threaded runtime, plain or over rustls.
//!
//! Contract: `GET /` answers "ok"; `POST /upload` counts the bytes of the body as they arrive, keeps none of them, and
//! answers the count.
//!
//! usage: program ADDRESS PORT `PIPELINE_FLUSH` TLS CERT KEY TICKETS (TLS is off, or anything else)

use std::convert::Infallible;
use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket};
use tokio_rustls::TlsAcceptor;

async fn answer(mut request: Request<Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let mut count = 0;
    while let Some(frame) = request.body_mut().frame().await {
        count += frame?.data_ref().map_or(0, Bytes::len);
    }
    let body = if request.uri().path() == "/upload" {
        Bytes::from(count.to_string())
    } else {
        Bytes::from_static(b"ok")
    };
    Ok(Response::new(Full::new(body)))
}

/// Serves one connection. If a peer disconnects, only its own connection ends.
async fn serve<S: AsyncRead + AsyncWrite + Unpin>(stream: S, pipeline_flush: bool) {
    let mut http = http1::Builder::new();
    http.pipeline_flush(pipeline_flush);
    let _ = http.serve_connection(TokioIo::new(stream), service_fn(answer)).await;
}

async fn accept(listener: TcpListener, pipeline_flush: bool, acceptor: Option<TlsAcceptor>) -> Infallible {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(10)).await; // no files are left, or a similar error
            continue;
        };
        let _ = stream.set_nodelay(true);
        let Some(acceptor) = acceptor.clone() else {
            tokio::spawn(serve(stream, pipeline_flush));
            continue;
        };
        tokio::spawn(async move {
            if let Ok(stream) = acceptor.accept(stream).await {
                serve(stream, pipeline_flush).await;
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
fn acceptor(cert: &str, key: &str, tickets: bool) -> Result<TlsAcceptor, Box<dyn Error>> {
    let chain = CertificateDer::pem_file_iter(cert)?.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(key)?;
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let mut config =
        builder.with_safe_default_protocol_versions()?.with_no_client_auth().with_single_cert(chain, key)?;
    if tickets {
        config.ticketer = ring::Ticketer::new()?;
    }
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address, port, pipeline_flush, tls, cert, key, tickets] = &words[..] else {
        return Err("usage: program ADDRESS PORT PIPELINE_FLUSH TLS CERT KEY TICKETS".into());
    };
    let address = SocketAddr::new(address.parse::<IpAddr>()?, port.parse()?);
    let pipeline_flush = pipeline_flush.parse()?;
    let acceptor = if tls == "off" { None } else { Some(acceptor(cert, key, tickets.parse()?)?) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async move {
        let listener = listen(address).map_err(|error| format!("cannot serve on {address}: {error}"))?;
        match accept(listener, pipeline_flush, acceptor).await {}
    })
}
