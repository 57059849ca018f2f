# The common part of the client drivers in Elixir: it starts the one in Erlang, which keeps the whole contract
# (narrows_client.erl beside this file), and puts what Elixir's libraries say into its terms.
#
# usage: elixir ... -e 'NarrowsClient.main()' MODULE [ARG ...]
defmodule NarrowsClient do
  def main do
    [module | args] = System.argv()
    :narrows_client.main([~c"Elixir." ++ to_charlist(module) | Enum.map(args, &to_charlist/1)])
  end

  # The class of an error as Mint and the libraries on it give it: a struct with a reason, or the reason itself.
  def error(%ErlangError{original: original}), do: error(original)
  def error(%{reason: reason}), do: error(reason)
  def error(reason) when reason in [:checkout_timeout, :pool_timeout], do: {:error, :pool_wait, reason}
  def error(reason) when reason in [:timeout, :request_timeout], do: {:error, :request_timeout, reason}
  def error(reason) when reason in [:connect_timeout, :etimedout], do: {:error, :connect_timeout, reason}
  def error(reason) when reason in [:closed, :normal, :noproc], do: {:error, :closed_early, reason}
  def error({:closed, _} = reason), do: {:error, :closed_early, reason}
  def error({:error, reason}), do: error(reason)
  def error({:shutdown, reason}), do: error(reason)
  def error(reason), do: {:error, :narrows_client.class(reason), reason}
end
