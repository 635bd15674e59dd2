# The services of the distributed form, for the time of a run: on 127.0.0.1 alone, their data in a folder that is removed at the end.
# Source it, call start_services, and call stop_services however the run ends.

SERVICES="" # the folder
POSTGRES_PORT=55432 REDIS_PORT=56379 RABBITMQ_PORT=55672 RABBITMQ_DIST_PORT=55673 EPMD_PORT=55674

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

as_postgres() { if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi; }

postgres_bin() { ls -d /usr/lib/postgresql/*/bin | sort -V | tail -1; }

start_postgres() {
  local bin data="$SERVICES/postgres"
  bin="$(postgres_bin)"
  mkdir "$data"
  [ "$(id -u)" = 0 ] && chown postgres "$data"
  as_postgres "$bin/initdb" --pgdata "$data/data" --auth trust --username postgres --encoding UTF8 --locale C.UTF-8 >/dev/null
  # Nothing here outlives the run, so nothing need reach the disk.
  as_postgres "$bin/pg_ctl" --pgdata "$data/data" --log "$data/log" --wait start >/dev/null --options \
    "-p $POSTGRES_PORT -c listen_addresses=127.0.0.1 -c unix_socket_directories=$data -c fsync=off -c max_connections=200"
}

start_redis() {
  mkdir "$SERVICES/redis"
  redis-server --bind 127.0.0.1 --port "$REDIS_PORT" --save "" --appendonly no --dir "$SERVICES/redis" \
    --daemonize yes --pidfile "$SERVICES/redis/pid" --logfile "$SERVICES/redis/log" >/dev/null
}

start_rabbitmq() {
  local home="$SERVICES/rabbitmq"
  mkdir "$home"
  # Debian's default listens on every address, as does its port mapper.
  env HOME="$home" RABBITMQ_NODENAME=palimpsest@localhost RABBITMQ_NODE_IP_ADDRESS=127.0.0.1 RABBITMQ_NODE_PORT="$RABBITMQ_PORT" \
    RABBITMQ_DIST_PORT="$RABBITMQ_DIST_PORT" RABBITMQ_MNESIA_BASE="$home/data" RABBITMQ_LOG_BASE="$home/log" \
    RABBITMQ_ENABLED_PLUGINS_FILE="$home/plugins" RABBITMQ_CONFIG_FILE="$home/none" RABBITMQ_CONF_ENV_FILE=/dev/null \
    RABBITMQ_PID_FILE="$home/pid" ERL_EPMD_ADDRESS=127.0.0.1 ERL_EPMD_PORT="$EPMD_PORT" \
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="-kernel inet_dist_use_interface {127,0,0,1}" \
    setsid /usr/lib/rabbitmq/bin/rabbitmq-server >"$home/out" 2>&1 &
  wait_for_port "$RABBITMQ_PORT"
}

wait_for_port() {
  for _ in $(seq 600); do
    if (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; then return; fi
    sleep 0.1
  done
  echo "Nothing listens on port $1." >&2
  return 1
}

start_services() {
  SERVICES="$(mktemp -d /tmp/palimpsest-services-XXXXXX)"
  chmod 755 "$SERVICES"
  start_postgres
  start_redis
  wait_for_port "$REDIS_PORT"
  export PALIMPSEST_DATABASE_URL="postgres://postgres@127.0.0.1:$POSTGRES_PORT/palimpsest"
  export PALIMPSEST_REDIS_URL="redis://127.0.0.1:$REDIS_PORT/0"
}

stop_services() {
  [ -n "$SERVICES" ] || return 0
  if [ -f "$SERVICES/rabbitmq/pid" ]; then
    kill "$(cat "$SERVICES/rabbitmq/pid")" 2>/dev/null || true
    for _ in $(seq 100); do kill -0 "$(cat "$SERVICES/rabbitmq/pid")" 2>/dev/null || break; sleep 0.1; done
    ERL_EPMD_PORT="$EPMD_PORT" epmd -kill >/dev/null 2>&1 || true
  fi
  [ -f "$SERVICES/redis/pid" ] && kill "$(cat "$SERVICES/redis/pid")" 2>/dev/null || true
  [ -d "$SERVICES/postgres/data" ] && as_postgres "$(postgres_bin)/pg_ctl" --pgdata "$SERVICES/postgres/data" --mode immediate stop >/dev/null || true
  rm -rf "$SERVICES"
  SERVICES=""
}
