%% Hackney as a client with pools: a pool is a named pool of max_connections, which one process hands out.
%%
%% Contract: systems/shared/narrows_client.erl. Waiting for the pool, connecting and each read have a timeout of their own in Hackney;
%% all get the whole time, and the request as a whole is bounded.
-module(hackney_client).
-behaviour(narrows_client).
-export([start_pool/4, get/4, version/0]).

start_pool(Number, Size, _Url, [IdleTimeout]) ->
    {ok, _} = application:ensure_all_started(hackney),
    Pool = list_to_atom("pool_" ++ integer_to_list(Number)),
    ok = hackney_pool:start_pool(Pool, [{max_connections, Size}, {timeout, list_to_integer(IdleTimeout)}]),
    Pool.

get(Pool, #{text := Url}, Id, Timeout) ->
    Options = [{pool, Pool}, {checkout_timeout, Timeout}, {connect_timeout, Timeout}, {recv_timeout, Timeout}, with_body],
    Headers = [{<<"x-request-id">>, Id}],
    narrows_client:bounded(Timeout, fun() -> answer(hackney:request(get, Url, Headers, <<>>, Options)) end).

answer({ok, Status, Headers, Body}) -> narrows_client:answer(Status, Headers, Body);
answer({error, R}) -> {error, narrows_client:class(R), R}.

version() -> narrows_client:versions([hackney]).
