# A client with pools: MachineGun. Gun connections in Poolboy pools, with one request at a time on each. A pool is a group of its
# configuration.
#
# Contract: systems/shared/narrows_client.erl. The wait for the pool and the request have a timeout each, so the whole is bounded. The
# timeout of the request also covers the opening of its connection, so it does not say whether the request was sent.
defmodule MachineGunClient do
  @behaviour :narrows_client

  def start_pool(number, size, _url, [overflow]) do
    group = :"pool_#{number}"
    {:ok, _} = Application.ensure_all_started(:machine_gun)
    Application.put_env(:machine_gun, group, %{pool_size: size, pool_max_overflow: List.to_integer(overflow)})
    group
  end

  def get(group, %{text: url}, id, timeout) do
    options = %{pool_group: group, pool_timeout: timeout, request_timeout: timeout}
    :narrows_client.bounded(timeout, fn -> answer(MachineGun.get(url, [{"x-request-id", id}], options)) end)
  end

  defp answer({:ok, response}), do: :narrows_client.answer(response.status_code, response.headers, response.body)
  defp answer({:error, %{reason: :request_timeout} = reason}), do: {:error, :timeout, reason}
  defp answer({:error, reason}), do: NarrowsClient.error(reason)

  def version, do: :narrows_client.versions([:machine_gun, :gun, :poolboy])
end
