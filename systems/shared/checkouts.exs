# Lets mix use the libraries in some folders as they are, without a registry and without Hex: a dependency is the folder of its name.
# mix then reads from their own mix.exs and rebar.config in which order to compile them.
#
# usage: NARROWS_FOLDERS="FOLDER ..." elixir -r checkouts.exs -S mix deps.get|deps.compile
#
# deps.get leaves to Hex what is not in the folders. deps.compile leaves nothing to it: a library also names dependencies that it does
# not need here, such as those of its tests, and mix would demand Hex for them.
defmodule Narrows.Checkouts do
  @behaviour Mix.SCM

  # mix changes the current folder as it goes from library to library.
  @folders "NARROWS_FOLDERS" |> System.fetch_env!() |> String.split() |> Enum.map(&Path.expand/1)

  # Whatever a library says about the origin of its dependencies: what is in the folders replaces it.
  def accepts_options(app, options) do
    places = Enum.map(@folders, &Path.join(&1, "#{app}"))
    library = Enum.find(places, &File.dir?/1) || (System.argv() == ["deps.compile"] && hd(places))
    if library, do: Keyword.put(options, :dest, library)
  end

  def fetchable?, do: false
  def checked_out?(options), do: File.dir?(options[:dest])
  def format(options), do: options[:dest]
  def format_lock(_options), do: nil
  def lock_status(_options), do: :ok
  def equal?(one, other), do: one[:dest] == other[:dest]
  def managers(_options), do: []
  def checkout(_options), do: nil
  def update(_options), do: nil
end

Mix.start()
Mix.SCM.prepend(Narrows.Checkouts)
