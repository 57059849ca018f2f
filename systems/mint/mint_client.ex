# Mint without a pool: a connection for each request, as a baseline for pooled clients.
#
# Contract: systems/shared/narrows_client.erl. Pools and their sizes have no effect: there are as many open connections as callers.
# Mint has no process and no timeout of its own: the driver reads until the request's time is up.
defmodule MintClient do
  @behaviour :narrows_client

  def start_pools(_pools, _size, %{host: host, port: port}, []), do: {host, port}

  def get({host, port}, %{path: path}, id, timeout) do
    deadline = :narrows_client.deadline(timeout)

    with {:ok, conn} <- Mint.HTTP.connect(:http, host, port, transport_opts: [timeout: timeout]),
         {:ok, conn, _ref} <- Mint.HTTP.request(conn, "GET", path, [{"x-request-id", id}]) do
      answer = read(conn, deadline, %{body: []})
      Mint.HTTP.close(conn)
      answer
    else
      {:error, %{reason: :timeout} = reason} -> {:error, :connect_timeout, reason}
      {:error, reason} -> NarrowsClient.error(reason)
      {:error, conn, reason} -> Mint.HTTP.close(conn) && NarrowsClient.error(reason)
    end
  end

  defp read(_conn, _deadline, %{done: true} = got), do: :narrows_client.answer(got.status, got.headers, Enum.reverse(got.body))

  defp read(conn, deadline, got) do
    receive do
      message ->
        case Mint.HTTP.stream(conn, message) do
          {:ok, conn, responses} -> read(conn, deadline, Enum.reduce(responses, got, &add/2))
          {:error, _conn, reason, _responses} -> NarrowsClient.error(reason)
          :unknown -> read(conn, deadline, got)
        end
    after
      :narrows_client.left(deadline) -> {:error, :request_timeout, :timeout}
    end
  end

  defp add({:data, _ref, data}, got), do: %{got | body: [data | got.body]}
  defp add({:done, _ref}, got), do: Map.put(got, :done, true)
  defp add({name, _ref, value}, got), do: Map.put(got, name, value)

  def version, do: :narrows_client.versions([:mint])
end
