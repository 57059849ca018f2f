import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import org.eclipse.jetty.alpn.server.ALPNServerConnectionFactory;
import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.http2.server.HTTP2CServerConnectionFactory;
import org.eclipse.jetty.http2.server.HTTP2ServerConnectionFactory;
import org.eclipse.jetty.server.ConnectionFactory;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.SslConnectionFactory;
import org.eclipse.jetty.util.Callback;
import org.eclipse.jetty.util.ssl.SslContextFactory;

/**
 * A server for requests with Jetty, plain or over the JDK's TLS, in HTTP/1.1 or in HTTP/2. An idle connection is kept
 * for an hour, so that a long trial is not interrupted.
 *
 * <p>Contract: GET / answers "ok". Usage: JettyServer ADDRESS PORT TLS CERT KEY HTTP (TLS is off, or anything else; HTTP is 1.1 or 2)
 */
final class JettyServer extends Handler.Abstract {
    private static final byte[] OK = "ok".getBytes(StandardCharsets.US_ASCII);
    private static final char[] NO_PASSWORD = {};

    @Override
    public boolean handle(Request request, Response response, Callback callback) {
        response.getHeaders().put(HttpHeader.CONTENT_LENGTH, OK.length);
        response.write(true, ByteBuffer.wrap(OK), callback);
        return true;
    }

    private static SslContextFactory.Server secured(Path cert, Path key) throws GeneralSecurityException, IOException {
        Certificate[] chain;
        try (InputStream pem = Files.newInputStream(cert)) {
            chain = CertificateFactory.getInstance("X.509").generateCertificates(pem).toArray(new Certificate[0]);
        }
        String algorithm = chain[0].getPublicKey().getAlgorithm();
        String text = Files.readString(key).replaceAll("-----.*-----", "");
        var spec = new PKCS8EncodedKeySpec(Base64.getMimeDecoder().decode(text));
        PrivateKey secret = KeyFactory.getInstance(algorithm).generatePrivate(spec);
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        store.setKeyEntry("server", secret, NO_PASSWORD, chain);
        var tls = new SslContextFactory.Server();
        tls.setKeyStore(store);
        tls.setKeyStorePassword("");
        return tls;
    }

    /** What speaks with connections, from the outside to the inside. */
    private static ConnectionFactory[] speaking(String[] words) throws GeneralSecurityException, IOException {
        HttpConfiguration config = new HttpConfiguration();
        boolean http2 = words[5].equals("2");
        if (words[2].equals("off")) {
            return new ConnectionFactory[] {http2 ? new HTTP2CServerConnectionFactory(config) : new HttpConnectionFactory(config)};
        }
        SslContextFactory.Server tls = secured(Path.of(words[3]), Path.of(words[4]));
        if (http2) {
            var inner = new HTTP2ServerConnectionFactory(config);
            var agreed = new ALPNServerConnectionFactory(inner.getProtocol());
            return new ConnectionFactory[] {new SslConnectionFactory(tls, agreed.getProtocol()), agreed, inner};
        }
        var inner = new HttpConnectionFactory(config);
        return new ConnectionFactory[] {new SslConnectionFactory(tls, inner.getProtocol()), inner};
    }

    public static void main(String[] words) throws Exception {
        Server server = new Server();
        ServerConnector connector = new ServerConnector(server, speaking(words));
        connector.setHost(words[0]);
        connector.setPort(Integer.parseInt(words[1]));
        connector.setAcceptQueueSize(4096);
        connector.setIdleTimeout(3600 * 1000);
        server.addConnector(connector);
        server.setHandler(new JettyServer());
        server.start();
        server.join();
    }
}
