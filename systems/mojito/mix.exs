# The version of Mojito in the published benchmark of pooled clients.
defmodule NarrowsMojito.MixProject do
  use Mix.Project

  def project do
    [app: :narrows_mojito, version: "1.0.0", deps: deps(), deps_path: "_build/deps", lockfile: "_build/mix.lock"]
  end

  defp deps do
    [
      {:mojito, "0.3.0", override: true},
      {:mint, "0.2.1", override: true},
      {:castore, "0.1.22", override: true},
      {:poolboy, "1.5.2", override: true}
    ]
  end
end
