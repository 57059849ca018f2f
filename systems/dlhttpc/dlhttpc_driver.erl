%% A client with a pool: Dlhttpc. Dispcount picks one slot of the pool for each caller by a hash, and refuses at once if it is taken.
%%
%% Contract: systems/shared/narrows_client.erl. There is one pool per server: several pools become one of their total size.
%% Dlhttpc reports some errors as exits, which end the calling process. So each request has its own process. When the time is over,
%% Dlhttpc kills its client wherever it is, connecting or reading. Its error does not say where, so the class is timeout.
-module(dlhttpc_driver).
-behaviour(narrows_client).
-export([start_pools/4, get/4, version/0]).

start_pools(Pools, Size, _Url, [Retries]) ->
    {ok, _} = application:ensure_all_started(dlhttpc),
    [{max_connections, Pools * Size}, {checkout_retry, list_to_integer(Retries)}].

get(Options, #{text := Url}, Id, Timeout) ->
    Headers = [{"x-request-id", binary_to_list(Id)}],
    Ask = fun() -> dlhttpc:request(binary_to_list(Url), get, Headers, [], Timeout, [{connect_timeout, Timeout} | Options]) end,
    narrows_client:bounded(Timeout, fun() -> answer(try Ask() catch exit:Reason -> {error, Reason} end) end).

answer({ok, {{Status, _}, Headers, Body}}) -> narrows_client:answer(Status, Headers, Body);
answer({error, {busy, _} = R}) -> {error, busy, R};
answer({error, {R, _}}) when is_atom(R) -> answer({error, R});
answer({error, R}) -> {error, narrows_client:class(R), R}.

version() -> narrows_client:versions([dlhttpc, dispcount]).
