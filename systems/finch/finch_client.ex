# A client with pools: Finch. Mint connections in NimblePool pools, with one request at a time on each. The caller itself does the I/O.
#
# Contract: systems/shared/narrows_client.erl. The wait for the pool and the request have a timeout each, so the whole is bounded. Mint's
# timeout is the same error for a connect and for an answer, so its class is timeout.
defmodule FinchClient do
  @behaviour :narrows_client

  def start_pools(pools, size, %{text: url}, []) do
    {:ok, _} = Application.ensure_all_started(:finch)
    {:ok, _} = Finch.start_link(name: __MODULE__, pools: %{default: [size: size, count: pools]})
    url
  end

  def get(url, _url, id, timeout) do
    options = [pool_timeout: timeout, receive_timeout: timeout, request_timeout: timeout]
    request = Finch.build(:get, url, [{"x-request-id", id}])
    :narrows_client.bounded(timeout, fn -> ask(request, options) end)
  end

  defp ask(request, options) do
    case Finch.request(request, __MODULE__, options) do
      {:ok, response} -> :narrows_client.answer(response.status, response.headers, response.body)
      {:error, reason} -> NarrowsClient.error(reason)
    end
  rescue
    # Finch's error if no connection of the pool becomes free in time.
    error in RuntimeError -> {:error, :pool_wait, error.message}
  end

  def version, do: :narrows_client.versions([:finch, :mint])
end
