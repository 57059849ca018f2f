# The common part of the client drivers in Elixir: it starts the one in Erlang, which keeps the whole contract
# (narrows_client.erl beside this file), and puts what Elixir's libraries say into its terms.
#
# usage: elixir ... -e 'NarrowsClient.main()' MODULE [ARG ...]
defmodule NarrowsClient do
  def main do
    [module | args] = System.argv()
    :narrows_client.main([~c"Elixir." ++ to_charlist(module) | Enum.map(args, &to_charlist/1)])
  end

  # An error as Mint and the libraries on it give it: a struct with a reason, or the reason itself.
  def error(%ErlangError{original: original}), do: error(original)
  def error(%{reason: reason}), do: error(reason)
  def error({around, reason}) when around in [:error, :shutdown], do: error(reason)
  def error(reason), do: {:error, :narrows_client.class(reason), reason}
end
