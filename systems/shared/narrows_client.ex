# The common part of the client drivers in Elixir. It starts the one in Erlang, which implements the whole contract
# (narrows_client.erl next to this file), and translates the results of Elixir's libraries for it.
#
# usage: elixir ... -e 'NarrowsClient.main()' MODULE [ARG ...]
defmodule NarrowsClient do
  def main do
    [module | args] = System.argv()
    :narrows_client.main([~c"Elixir." ++ to_charlist(module) | Enum.map(args, &to_charlist/1)])
  end

  # An error of Mint or of a library that uses it: a struct with a reason, or the reason itself.
  def error(%ErlangError{original: original}), do: error(original)
  def error(%{reason: reason}), do: error(reason)
  def error({around, reason}) when around in [:error, :shutdown], do: error(reason)
  def error(reason), do: {:error, :narrows_client.class(reason), reason}
end
