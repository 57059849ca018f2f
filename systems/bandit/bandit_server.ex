# A server for uploads and requests with Bandit, an HTTP server in Elixir on Thousand Island. The handler is a Plug.
#
# Contract: GET / answers "ok"; POST /upload reads the body in pieces, keeps none of them, and answers its length. Bandit leaves
# `100 Continue` to the Plug. Timeouts are off, so that only the knobs have an effect.
defmodule BanditServer do
  @behaviour Plug

  def main do
    [address | numbers] = System.argv()
    {:ok, ip} = address |> String.to_charlist() |> :inet.parse_address()
    [port, length, read_length, buffer, max_requests, acceptors] = Enum.map(numbers, &String.to_integer/1)
    :ok = :os.set_signal(:sigterm, :default)
    :logger.set_primary_config(:level, :error)
    {:ok, _} = Application.ensure_all_started(:bandit)
    buffer = if buffer > 0, do: [buffer: buffer], else: []

    {:ok, _} =
      Bandit.start_link(
        plug: {__MODULE__, length: length, read_length: read_length, read_timeout: :infinity},
        ip: ip,
        port: port,
        startup_log: false,
        http_options: [compress: false],
        http_1_options: [max_requests: max_requests],
        thousand_island_options: [
          num_acceptors: acceptors,
          num_connections: :infinity,
          read_timeout: :infinity,
          transport_options: [backlog: 4096] ++ buffer
        ]
      )

    # The server would end with the process that started it, so do not return.
    Process.sleep(:infinity)
  end

  def init(options), do: options

  def call(%{method: "GET"} = conn, _options), do: Plug.Conn.send_resp(conn, 200, "ok")

  def call(conn, options) do
    expected = Plug.Conn.get_req_header(conn, "expect") == ["100-continue"]
    conn = if expected, do: Plug.Conn.inform!(conn, :continue), else: conn
    {count, conn} = count(conn, options, 0)
    Plug.Conn.send_resp(conn, 200, Integer.to_string(count))
  end

  defp count(conn, options, count) do
    case Plug.Conn.read_body(conn, options) do
      {:more, data, conn} -> count(conn, options, count + byte_size(data))
      {:ok, data, conn} -> {count + byte_size(data), conn}
    end
  end
end
