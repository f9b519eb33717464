#!/usr/bin/env bash
# Logs of Node: the line that pino writes has every digit of an ID, and pino-pretty, which people pipe it into, shows another ID.
#
# pino 10.4.0 writes a bigint as a JSON number with all digits. `pino-pretty` 13.2.0, its own reader for terminals, prints
# 1541815603606036500 for 1541815603606036481, a number that is not in the log. winston 3.19.0 writes the same field as a string in JSON.
# A search in the log for the ID on the screen finds nothing, or finds another order.
# Remedy: log the ID as a string.
. "$(dirname "$0")/begin.sh"
npm_packages pino@10.4.0 pino-pretty@13.2.0 winston@3.19.0
cat > pino.mjs <<'JS'
import pino from 'pino'
pino({ base: null, timestamp: false }).info({ id: 1541815603606036481n }, 'paid')
JS
cat > winston.mjs <<'JS'
import winston from 'winston'
const logger = winston.createLogger({ format: winston.format.json(), transports: [new winston.transports.Console()] })
logger.info('paid', { id: 1541815603606036481n })
JS
{
    echo "pino: $(node pino.mjs | tee log)"
    echo "pino-pretty: $(npx --no-install pino-pretty --colorize=false --singleLine < log)"
    echo "winston: $(node winston.mjs)"
} > seen
expect seen <<'SEEN'
pino: {"level":30,"id":1541815603606036481,"msg":"paid"}
pino-pretty: INFO: paid {"id":1541815603606036500}
winston: {"id":"1541815603606036481","level":"info","message":"paid"}
SEEN
