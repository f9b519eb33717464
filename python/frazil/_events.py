"""Events become records of the logger `frazil`."""

import logging

LEVELS = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def log(level, text, event, fields):
    logging.getLogger("frazil").log(LEVELS[level], "%s", text, extra={"event": event, "fields": fields})
