%% Splits a stream into frames (a 4-byte big-endian length, then that many bytes) for systems that do so in Erlang. Every frame becomes
%% one binary.
-module(narrows_frames).
-export([cut/4]).

%% The unfinished frame: the first bytes of its length, or {bytes still missing, pieces so far, newest first}. A stream starts with
%% <<>>.
-type pending() :: binary() | {non_neg_integer(), [binary()]}.

%% Takes the next bytes of the stream. Returns the unfinished frame, and the counts of complete frames and of their payload bytes.
-spec cut(binary(), pending(), non_neg_integer(), non_neg_integer()) -> {pending(), non_neg_integer(), non_neg_integer()}.
cut(Data, {Missing, Pieces}, Frames, Bytes) ->
    case Data of
        <<Last:Missing/binary, Rest/binary>> ->
            Frame = iolist_to_binary(lists:reverse(Pieces, [Last])),
            parse(Rest, Frames + 1, Bytes + byte_size(Frame));
        _ ->
            {{Missing - byte_size(Data), [Data | Pieces]}, Frames, Bytes}
    end;
cut(Data, <<>>, Frames, Bytes) ->
    parse(Data, Frames, Bytes);
cut(Data, Head, Frames, Bytes) ->
    Missing = 4 - byte_size(Head),
    case Data of
        <<Tail:Missing/binary, Rest/binary>> ->
            <<Length:32>> = <<Head/binary, Tail/binary>>,
            cut(Rest, {Length, []}, Frames, Bytes);
        _ ->
            {<<Head/binary, Data/binary>>, Frames, Bytes}
    end.

parse(<<Length:32, Frame:Length/binary, Rest/binary>>, Frames, Bytes) ->
    parse(Rest, Frames + 1, Bytes + byte_size(Frame));
parse(<<Length:32, Piece/binary>>, Frames, Bytes) ->
    {{Length - byte_size(Piece), [Piece]}, Frames, Bytes};
parse(Head, Frames, Bytes) ->
    {Head, Frames, Bytes}.
