import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.OptionalLong;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * The common part of the Java client drivers: it reads and writes the JSON lines, keeps the callers and their counters, and checks
 * every answer. It implements docs/contracts.md, "A client driver". A client only has to provide a {@link Client}.
 * It does not report when a connection became a request's own, because no client that uses it can tell.
 */
final class ClientDriver {
    /** An answer. The id is null if there was none. */
    record Answer(int status, String id, byte[] body) {}

    /** The first error of a class: what was seen, and how far into the window. */
    private record Example(long into, String seen) {}

    /** One pool. */
    interface Pool {
        /** Makes one GET, end to end within the timeout. Fails with the client's exception. */
        CompletableFuture<Answer> get(String id);
    }

    /** What a client provides. */
    interface Client {
        /** Creates one pool of this many connections. Its futures should complete on the executor. */
        Pool startPool(String url, int size, long timeoutMillis, Executor executor);

        /** The contract's class of the client's exception. */
        String classOf(Throwable error);
    }

    private final Client client;
    private final List<Pool> pools = new ArrayList<>();
    private final Executor executor = Executors.newFixedThreadPool(Runtime.getRuntime().availableProcessors());
    private final AtomicInteger reported = new AtomicInteger();
    private CountDownLatch callersLeft;
    private long timeout;
    private long windowStart;
    private long windowEnd;

    private ClientDriver(Client client) {
        this.client = client;
    }

    /** Carries out one trial. */
    static void run(Client client) {
        try {
            new ClientDriver(client).drive();
            System.exit(0);
        } catch (IOException | InterruptedException | RuntimeException error) {
            fail(error.toString());
        }
    }

    private void drive() throws IOException, InterruptedException {
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Map<String, String> orders = readLine(input);
        if (!orders.getOrDefault("rate", "null").equals("null")) {
            fail("this driver does not support rate");
        }
        timeout = 1_000_000 * number(orders, "timeout_ms");
        for (long n = number(orders, "pools"); n > 0; n--) {
            pools.add(client.startPool(orders.get("url"), (int) number(orders, "pool_size"), timeout / 1_000_000, executor));
        }
        say("{\"event\":\"ready\"}");
        readLine(input);

        long duration = number(orders, "duration_ms");
        windowStart = System.nanoTime() + 1_000_000 * number(orders, "warmup_ms");
        windowEnd = windowStart + 1_000_000 * duration;
        List<Caller> callers = new ArrayList<>();
        for (int n = 0; n < number(orders, "concurrency"); n++) {
            callers.add(new Caller(n));
        }
        callersLeft = new CountDownLatch(callers.size());
        callers.forEach(executor::execute);
        callersLeft.await();

        Map<String, Long> inside = new HashMap<>();
        Map<String, Long> total = new HashMap<>();
        Map<Long, Long> latency = new TreeMap<>();
        Map<Long, Long> failed = new TreeMap<>();
        Map<Long, Long> ages = new TreeMap<>();
        Map<String, Example> firsts = new HashMap<>();
        for (Caller caller : callers) {
            caller.inside.forEach((outcome, count) -> inside.merge(outcome, count, Long::sum));
            caller.total.forEach((outcome, count) -> total.merge(outcome, count, Long::sum));
            caller.latency.forEach((bucket, count) -> latency.merge(bucket, count, Long::sum));
            caller.failed.forEach((bucket, count) -> failed.merge(bucket, count, Long::sum));
            caller.firsts.forEach((kind, first) -> firsts.merge(kind, first, (a, b) -> a.into() <= b.into() ? a : b));
            caller.age.ifPresent(age -> ages.merge(age, 1L, Long::sum));
        }
        long inFlight = ages.values().stream().mapToLong(Long::longValue).sum();
        String examples = firsts.entrySet().stream()
                .map(e -> quoted(e.getKey()) + ":" + quoted(words(e.getValue())))
                .collect(Collectors.joining(","));
        say("{\"event\":\"done\",\"elapsed_us\":" + 1000 * duration + "," + account(inside, inFlight) + ",\"in_flight\":" + inFlight
                + ",\"in_flight_us\":" + pairs(ages) + ",\"latency_us\":" + pairs(latency) + ",\"failed_us\":" + pairs(failed) + ",\"first_errors\":{" + examples
                + "},\"total\":{" + account(total, 0) + "}}");
    }

    /** One caller, which sends request after request. Requests that end inside the window count. */
    private final class Caller implements Runnable {
        final Map<String, Long> inside = new HashMap<>();
        final Map<String, Long> total = new HashMap<>();
        final Map<Long, Long> latency = new HashMap<>();
        final Map<Long, Long> failed = new HashMap<>();
        final Map<String, Example> firsts = new HashMap<>();
        /** How long its request had taken when the window closed. */
        OptionalLong age = OptionalLong.empty();
        private final int number;
        private int sent;

        Caller(int number) {
            this.number = number;
        }

        @Override
        public void run() {
            long begin = System.nanoTime();
            if (begin - windowEnd >= 0) {
                callersLeft.countDown();
                return;
            }
            String id = number + "-" + sent++;
            Pool pool = pools.get(ThreadLocalRandom.current().nextInt(pools.size()));
            // Always through the executor: a caller whose request fails at once must not recurse.
            pool.get(id).whenCompleteAsync((answer, error) -> {
                Throwable cause = error instanceof CompletionException && error.getCause() != null ? error.getCause() : error;
                ended(begin, outcome(answer, cause, id, System.nanoTime() - begin > timeout), answer, cause);
                run();
            }, executor);
        }

        private void ended(long begin, String outcome, Answer answer, Throwable error) {
            long end = System.nanoTime();
            total.merge(outcome, 1L, Long::sum);
            if (end - windowEnd >= 0) {
                age = OptionalLong.of(bucket((windowEnd - begin) / 1000));
            } else if (end - windowStart >= 0) {
                inside.merge(outcome, 1L, Long::sum);
                boolean succeeded = outcome.equals("ok");
                (succeeded ? latency : failed).merge(bucket((end - begin) / 1000), 1L, Long::sum);
                if (!succeeded) {
                    firsts.computeIfAbsent(outcome, unknown -> new Example(end - windowStart, seen(answer, error)));
                }
            }
        }
    }

    private String outcome(Answer answer, Throwable error, String id, boolean late) {
        if (error != null) {
            String outcome = client.classOf(error);
            // Report the first few unknown errors. More of them would only fill the pipe.
            if (outcome.equals("other") && reported.getAndIncrement() < 20) {
                System.err.println("other: " + error);
            }
            return outcome;
        }
        if (late) {
            return "request_timeout";
        }
        if (answer.status() != 200) {
            return "status";
        }
        if (answer.body().length != 2) {
            return "length";
        }
        if (answer.body()[0] != 'o' || answer.body()[1] != 'k') {
            return "wrong_content";
        }
        return id.equals(answer.id()) ? "ok" : "wrong_id";
    }

    /** Describes an error for first_errors. Long reasons are cut. */
    private static String seen(Answer answer, Throwable error) {
        if (error != null) {
            return error.toString().substring(0, Math.min(300, error.toString().length()));
        }
        var body = new StringBuilder();
        for (int i = 0; i < Math.min(48, answer.body().length); i++) {
            byte b = answer.body()[i];
            body.append(b < ' ' || b > '~' || b == '"' || b == '\\' ? String.format("\\x%02x", b) : (char) b);
        }
        return "status " + answer.status() + ", id " + (answer.id() == null ? "none" : answer.id()) + ", body \"" + body + '"';
    }

    private static String words(Example first) {
        return String.format(Locale.ROOT, "%s (%.3f s into the window)", first.seen(), first.into() / 1e9);
    }

    /** Keeps the ten highest bits of a time. */
    private static long bucket(long v) {
        int shift = Math.max(0, 54 - Long.numberOfLeadingZeros(v));
        return v >> shift << shift;
    }

    private static String pairs(Map<Long, Long> times) {
        return times.entrySet().stream().map(e -> "[" + e.getKey() + "," + e.getValue() + "]").collect(Collectors.joining(",", "[", "]"));
    }

    private static String account(Map<String, Long> outcomes, long inFlight) {
        long attempts = outcomes.values().stream().mapToLong(Long::longValue).sum() + inFlight;
        String errors = outcomes.entrySet().stream()
                .filter(e -> !e.getKey().equals("ok"))
                .map(e -> "\"" + e.getKey() + "\":" + e.getValue())
                .collect(Collectors.joining(","));
        return "\"attempts\":" + attempts + ",\"successes\":" + outcomes.getOrDefault("ok", 0L) + ",\"errors\":{" + errors + "}";
    }

    private static final Pattern PAIR = Pattern.compile("\"(\\w+)\"\\s*:\\s*(?:\"([^\"]*)\"|([^\\s,}]+))");

    /** Parses a flat JSON object. Supports only what the contract needs. */
    private static Map<String, String> readLine(BufferedReader input) throws IOException {
        String line = input.readLine();
        if (line == null) {
            System.exit(1); // Narrows has exited
        }
        Map<String, String> fields = new HashMap<>();
        for (Matcher pair = PAIR.matcher(line); pair.find();) {
            fields.put(pair.group(1), pair.group(2) != null ? pair.group(2) : pair.group(3));
        }
        return fields;
    }

    private static long number(Map<String, String> orders, String name) {
        if (!orders.containsKey(name)) {
            fail(name + " is missing");
        }
        return Long.parseLong(orders.get(name));
    }

    /** Writes a JSON string. */
    private static String quoted(String text) {
        var quoted = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            quoted.append(c < ' ' || c > '~' || c == '"' || c == '\\' ? String.format("\\u%04x", (int) c) : c);
        }
        return quoted.append('"').toString();
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    private static void fail(String message) {
        say("{\"event\":\"error\",\"message\":" + quoted(message) + "}");
        System.exit(1);
    }
}
