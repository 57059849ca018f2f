# A client with pools: Mojito. Each is a Poolboy pool of connections with one request at a time. A request picks a random pool, and
# retries once if its wait was in vain.
#
# Contract: systems/shared/narrows_client.erl. The wait for the pool and the request each have Mojito's timeout, so the whole is bounded.
# A request that the driver ends may still be waiting for the pool, for the second time, so its class is timeout.
defmodule MojitoClient do
  @behaviour :narrows_client

  def start_pools(pools, size, %{text: url, host: host, port: port}, [strategy, overflow]) do
    options = [pools: pools, size: size, strategy: List.to_atom(strategy), max_overflow: List.to_integer(overflow)]
    Application.put_env(:mojito, :pool_opts, options)
    {:ok, _} = Application.ensure_all_started(:mojito)
    {:ok, _} = Mojito.Pool.get_pool(Mojito.Pool.pool_key(host, port))
    url
  end

  def get(url, _url, id, timeout) do
    request = %Mojito.Request{method: :get, url: url, headers: [{"x-request-id", id}], opts: [timeout: timeout]}
    :narrows_client.bounded(timeout, fn -> answer(Mojito.Pool.request(request)) end)
  end

  defp answer({:ok, response}), do: :narrows_client.answer(response.status_code, response.headers, response.body)
  # Mojito waits for the answer only when it has sent the request.
  defp answer({:error, %{reason: :timeout} = reason}), do: {:error, :request_timeout, reason}
  # The request had its connection when its time was over: Mojito then waits for a negative time, and crashes.
  defp answer({:error, %{reason: %ErlangError{original: :timeout_value} = reason}}), do: {:error, :pool_wait, reason}
  defp answer({:error, reason}), do: NarrowsClient.error(reason)

  def version, do: :narrows_client.versions([:mojito, :mint, :poolboy])
end
