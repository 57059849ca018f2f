import java.io.EOFException;
import java.net.ConnectException;
import java.net.ProtocolException;
import java.net.SocketException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpConnectTimeoutException;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.net.http.HttpTimeoutException;
import java.time.Duration;
import java.util.concurrent.Executor;

/**
 * A client with pools: java.net.http. A pool is an HttpClient that keeps pool_size idle connections.
 *
 * <p>Contract: systems/shared/java. It has no cap on connections: it opens further ones if no idle one is free, so nobody waits for
 * the pool. It does not tell when a connection became a request's own. But if the time is over before the request's connection is
 * made, it throws an HttpConnectTimeoutException.
 */
final class JavaHttp implements ClientDriver.Client {
    @Override
    public ClientDriver.Pool startPool(String url, int size, long timeoutMillis, Executor executor) {
        // The JDK reads it once, for all clients of the process.
        System.setProperty("jdk.httpclient.connectionPoolSize", Integer.toString(size));
        Duration timeout = Duration.ofMillis(timeoutMillis);
        HttpClient client = HttpClient.newBuilder()
                .version(HttpClient.Version.HTTP_1_1).proxy(HttpClient.Builder.NO_PROXY).connectTimeout(timeout).executor(executor).build();
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(url)).timeout(timeout);
        return id -> client.sendAsync(request.copy().header("x-request-id", id).build(), BodyHandlers.ofByteArray())
                .thenApply(answer -> new ClientDriver.Answer(
                        answer.statusCode(), answer.headers().firstValue("x-request-id").orElse(null), answer.body()));
    }

    @Override
    public String classOf(Throwable error) {
        String text = String.valueOf(error.getMessage());
        if (error instanceof HttpConnectTimeoutException) {
            return "connect_timeout";
        } else if (error instanceof HttpTimeoutException) {
            return "request_timeout";
        } else if (error instanceof ConnectException) {
            return "connect_refused";
        } else if (error instanceof ProtocolException || error.getCause() instanceof ProtocolException) {
            return "protocol";
        } else if (error instanceof SocketException || text.contains("Connection reset") || text.contains("Broken pipe")) {
            return "reset";
        } else if (error.getCause() instanceof EOFException || text.contains("EOF") || text.contains("received no bytes") || text.contains("closed")) {
            return "closed_early";
        }
        return "other";
    }

    public static void main(String[] words) {
        ClientDriver.run(new JavaHttp());
    }
}
