"""Reservations in Redis: one key each, decided in short Lua scripts."""

from reservable.backends.redis.asynchronous import AsyncRedisBackend
from reservable.backends.redis.backend import RedisBackend

__all__ = ["AsyncRedisBackend", "RedisBackend"]
