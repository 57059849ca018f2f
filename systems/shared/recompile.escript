#!/usr/bin/env escript
%% Compiles the modules in a folder for the runtime that runs this, in place, from the syntax trees that they contain. So one library is
%% measured on several runtimes as each of them compiles it.
%%
%% usage: escript recompile.escript FOLDER
-mode(compile).

main([Folder]) ->
    Files = filelib:wildcard(filename:join(Folder, "*.beam")),
    Workers = [spawn_monitor(fun() -> recompile(File) end) || File <- Files],
    [receive {'DOWN', Worker, process, _, Why} -> Why =:= normal orelse stop("~0p", [Why]) end || {_, Worker} <- Workers].

recompile(File) ->
    {ok, <<"FOR1", _:32, "BEAM", Chunks/binary>>} = file:read_file(File),
    case syntax_tree(Chunks) of
        {debug_info_v1, erl_abstract_code, {Forms, _}} when is_list(Forms) ->
            case compile:forms(lists:flatmap(fun untyped/1, Forms), [return_errors, nowarn_deprecated_function]) of
                {ok, _, Beam} -> ok = file:write_file(File, Beam);
                Wrong -> stop("~ts cannot be compiled for Erlang/OTP ~s: ~0p", [File, erlang:system_info(otp_release), Wrong])
            end;
        _ -> stop("~ts does not contain its syntax tree", [File])
    end.

%% A runtime may refuse the types of older sources, and types change nothing that runs.
untyped({attribute, _, Kind, _}) when Kind =:= spec; Kind =:= type; Kind =:= opaque; Kind =:= callback; Kind =:= optional_callbacks;
        Kind =:= export_type; Kind =:= dialyzer -> [];
untyped({attribute, At, record, {Name, Fields}}) -> [{attribute, At, record, {Name, [untyped_field(Field) || Field <- Fields]}}];
untyped(Form) -> [Form].

untyped_field({typed_record_field, Field, _}) -> Field;
untyped_field(Field) -> Field.

%% beam_lib of an older runtime cannot read all that a newer compiler wrote, but this chunk is the same in all of them.
syntax_tree(<<"Dbgi", Size:32, Term:Size/binary, _/binary>>) -> binary_to_term(Term);
syntax_tree(<<_:4/binary, Size:32, Rest/binary>>) ->
    Padded = (Size + 3) band bnot 3,
    <<_:Padded/binary, More/binary>> = Rest,
    syntax_tree(More);
syntax_tree(_) -> none.

stop(Format, Words) ->
    io:format(standard_error, Format ++ "~n", Words),
    halt(1).
