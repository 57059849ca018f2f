# The version of Mint in the published benchmark of pooled clients.
defmodule NarrowsMint.MixProject do
  use Mix.Project

  def project do
    [app: :narrows_mint, version: "1.0.0", deps: deps(), deps_path: "_build/deps", lockfile: "_build/mix.lock"]
  end

  defp deps do
    [
      {:mint, "0.2.1", override: true}
    ]
  end
end
