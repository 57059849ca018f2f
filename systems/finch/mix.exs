defmodule NarrowsFinch.MixProject do
  use Mix.Project

  def project do
    [app: :narrows_finch, version: "1.0.0", deps: deps(), deps_path: "_build/deps", lockfile: "_build/mix.lock"]
  end

  defp deps do
    [
      {:finch, "0.20.0", override: true},
      {:mint, "1.7.1", override: true},
      {:hpax, "1.0.3", override: true},
      {:nimble_pool, "1.1.0", override: true},
      {:nimble_options, "1.1.1", override: true},
      {:mime, "2.0.7", override: true},
      {:telemetry, "1.3.0", override: true}
    ]
  end
end
