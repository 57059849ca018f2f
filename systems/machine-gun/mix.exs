# The version of MachineGun in the published benchmark of pooled clients.
defmodule NarrowsMachineGun.MixProject do
  use Mix.Project

  def project do
    [app: :narrows_machine_gun, version: "1.0.0", deps: deps(), deps_path: "_build/deps", lockfile: "_build/mix.lock"]
  end

  defp deps do
    [
      {:machine_gun, "0.1.5", override: true},
      {:gun, "1.3.0", override: true},
      {:cowlib, "2.6.0", override: true},
      {:poolboy, "1.5.2", override: true}
    ]
  end
end
