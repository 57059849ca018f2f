# Starts the LiteLLM proxy in front of `narrows serve`: start.sh NARROWS OUT ADDRESS PORT WORKERS
# Any model is of the provider openai, at `narrows serve`. There is no database, prices come from its own file, and it accepts requests
# without a key: it listens on this machine only, and nothing behind it needs one.
set -eu
narrows=$1 out=$2 address=$3 port=$4 workers=$5
. ../shared/scripted.sh

cat > "$dir/config.yaml" <<YAML
model_list:
  - model_name: "*"
    litellm_params:
      model: "openai/*"
      api_base: http://$backend/v1
      api_key: none
litellm_settings:
  telemetry: false
  drop_params: true
general_settings:
  dangerously_permit_weak_or_unset_master_key: true
YAML
export LITELLM_LOG=ERROR LITELLM_MODE=PRODUCTION LITELLM_LOCAL_MODEL_COST_MAP=True LITELLM_TELEMETRY=False HOME="$dir"
front "$out/venv/bin/python" -c "from litellm import run_server; run_server()" \
    --config "$dir/config.yaml" --host "$address" --port "$port" --num_workers "$workers" --telemetry False
