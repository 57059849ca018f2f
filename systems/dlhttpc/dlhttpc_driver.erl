%% Dlhttpc as a client with a pool: Dispcount gives each caller one slot of the pool by a hash, and refuses at once when it is taken.
%%
%% Contract: systems/shared/narrows_client.erl. There is one pool for each server: several pools are one as large as all of them.
%% Dlhttpc tells of some errors by exits, which end the process that asked; so each request has one of its own.
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
