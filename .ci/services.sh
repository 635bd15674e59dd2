# The services of the distributed form, for the time of a run: on free ports of 127.0.0.1 alone, their data in a folder that is removed
# at the end. Source it, call start_services, and call stop_services however the run ends. Should the run be killed, its servers end
# with it: each of them asks the kernel to be told (PR_SET_PDEATHSIG).

SERVICES="" # the folder
SERVERS=()  # process ids, in the order in which they started

install_packages() {
  local missing=()
  [ -x /usr/bin/chromium ] || missing+=(chromium)
  [ -d /usr/lib/postgresql ] || missing+=(postgresql)
  [ -x /usr/bin/redis-server ] || missing+=(redis-server)
  [ -x /usr/lib/rabbitmq/bin/rabbitmq-server ] || missing+=(rabbitmq-server)
  [ ${#missing[@]} -eq 0 ] && return
  # Packages that start servers of their own would take the usual ports, and would still run when this one has ended.
  local policy=/usr/sbin/policy-rc.d
  [ -e "$policy" ] || { printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod +x "$policy"; }
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# serve LOG SIGNAL COMMAND...: a server in the background, which gets the signal when this shell is gone.
serve() {
  local log="$1" signal="$2"
  shift 2
  setpriv --pdeathsig "$signal" "$@" >"$log" 2>&1 </dev/null &
  SERVERS+=($!)
}

wait_for_port() {
  for _ in $(seq 600); do
    if (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; then return; fi
    sleep 0.1
  done
  echo "Nothing listens on port $1: see what $2 says." >&2
  cat "$2" >&2
  return 1
}

start_postgres() {
  local bin home="$SERVICES/postgres" port become=()
  bin="$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -1)"
  port="$(free_port)"
  mkdir "$home"
  # It refuses to run as the superuser.
  [ "$(id -u)" = 0 ] && chown postgres "$home" && become=(--reuid postgres --regid postgres --init-groups)
  setpriv "${become[@]}" "$bin/initdb" --pgdata "$home/data" --auth trust --username postgres --encoding UTF8 --locale C.UTF-8 >/dev/null
  # Nothing here outlives the run, so nothing need reach the disk.
  serve "$SERVICES/postgres.log" QUIT "${become[@]}" "$bin/postgres" -D "$home/data" -p "$port" \
    -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off -c full_page_writes=off -c max_connections=200
  wait_for_port "$port" "$SERVICES/postgres.log"
  export PALIMPSEST_DATABASE_URL="postgres://postgres@127.0.0.1:$port/palimpsest"
}

start_redis() {
  local port
  port="$(free_port)"
  serve "$SERVICES/redis.log" KILL redis-server --bind 127.0.0.1 --port "$port" --save "" --appendonly no --dir "$SERVICES"
  wait_for_port "$port" "$SERVICES/redis.log"
  export PALIMPSEST_REDIS_URL="redis://127.0.0.1:$port/0"
}

# Its port mapper first, which would otherwise become a daemon; Debian's defaults listen on every address.
start_rabbitmq() {
  local home="$SERVICES/rabbitmq" port
  mkdir "$home"
  port="$(free_port)"
  export ERL_EPMD_ADDRESS=127.0.0.1 ERL_EPMD_PORT
  ERL_EPMD_PORT="$(free_port)"
  serve "$SERVICES/epmd.log" KILL epmd
  wait_for_port "$ERL_EPMD_PORT" "$SERVICES/epmd.log"
  # As under systemd, its script becomes the server, where it would otherwise stand beside it.
  serve "$SERVICES/rabbitmq.log" KILL env RUNNING_UNDER_SYSTEMD=1 HOME="$home" RABBITMQ_NODENAME=palimpsest@localhost \
    RABBITMQ_NODE_IP_ADDRESS=127.0.0.1 RABBITMQ_NODE_PORT="$port" RABBITMQ_DIST_PORT="$(free_port)" \
    RABBITMQ_MNESIA_BASE="$home/data" RABBITMQ_LOG_BASE="$home/log" RABBITMQ_ENABLED_PLUGINS_FILE="$home/plugins" \
    RABBITMQ_CONFIG_FILE="$home/none" RABBITMQ_CONF_ENV_FILE=/dev/null RABBITMQ_PID_FILE="$home/pid" \
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="-kernel inet_dist_use_interface {127,0,0,1}" /usr/lib/rabbitmq/bin/rabbitmq-server
  wait_for_port "$port" "$SERVICES/rabbitmq.log"
  export PALIMPSEST_BROKER_URL="amqp://guest:guest@127.0.0.1:$port//"
}

start_services() {
  SERVICES="$(mktemp -d "${TMPDIR:-/tmp}/palimpsest-services-XXXXXX")"
  chmod 755 "$SERVICES"
  start_postgres
  start_redis
}

stop_services() {
  local pid
  for pid in "${SERVERS[@]}"; do kill -QUIT "$pid" 2>/dev/null || true; done
  for _ in $(seq 50); do
    kill -0 "${SERVERS[@]}" 2>/dev/null || break # none is left
    sleep 0.1
  done
  for pid in "${SERVERS[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
  [ ${#SERVERS[@]} -eq 0 ] || wait "${SERVERS[@]}" 2>/dev/null || true
  [ -z "$SERVICES" ] || rm -rf "$SERVICES"
  SERVERS=() SERVICES=""
}
