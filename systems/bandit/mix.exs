defmodule NarrowsBandit.MixProject do
  use Mix.Project

  def project do
    [app: :narrows_bandit, version: "1.0.0", deps: deps(), deps_path: "_build/deps", lockfile: "_build/mix.lock"]
  end

  defp deps do
    [
      {:bandit, "1.8.0", override: true},
      {:thousand_island, "1.4.2", override: true},
      {:plug, "1.18.1", override: true},
      {:plug_crypto, "2.1.1", override: true},
      {:mime, "2.0.7", override: true},
      {:websock, "0.5.3", override: true},
      {:hpax, "1.0.3", override: true},
      {:telemetry, "1.3.0", override: true}
    ]
  end
end
