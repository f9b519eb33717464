"""Events become records of the logger `frazil`."""

import logging


def log(is_warning, text, event, fields):
    level = logging.WARNING if is_warning else logging.INFO
    logging.getLogger("frazil").log(level, "%s", text, extra={"event": event, "fields": fields})
